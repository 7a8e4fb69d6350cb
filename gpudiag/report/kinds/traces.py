"""A profiler trace as blocks: one sentence, where the time went, what to do, and the kernels that took most."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpudiag.errors import NotMeasurable
from gpudiag.readers._traces.breakdown import IDLE_STATES, STATES, GpuTime, TraceBreakdown
from gpudiag.readers._traces.kinds import COMMUNICATES
from gpudiag.readers._traces.trace import Trace
from gpudiag.report._render.blocks import Block, Heading, Note, Number, TableBlock, TableCell
from gpudiag.report._render.shown import shown_as
from gpudiag.report.format import UNKNOWN, count, duration, plural, safe, share, timestamp, zone

WORDS = {
    "compute_pct": "computing",
    "communication_pct": "communicating, nothing computed",
    "copy_pct": "copying, nothing computed",
    "queued_pct": "idle: between queued kernels",
    "data_pct": "idle: host waited for data",
    "pageable_pct": "idle: host copied pageable memory",
    "sync_pct": "idle: host was in a blocking call",
    "memory_pct": "idle: host took or freed memory",
    "setup_pct": "idle: host set CUDA up",
    "optimizer_pct": "idle: host prepared optimizer kernels",
    "operator_pct": "idle: host prepared kernels",
    "other_pct": "idle: host did unnamed work",
}
PAGEABLE = "Batches lie in pageable memory: `pin_memory=True`, and `batch.to(device, non_blocking=True)`."
DO = {
    "queued_pct": "The host is not the cause there: the next kernel was launched already. Fewer kernels have fewer "
    "gaps: `torch.compile(model)`. In a long gap look in Perfetto for another stream or GPU.",
    "data_pct": "Load batches ahead: `DataLoader(..., num_workers=4, persistent_workers=True, pin_memory=True)`, and "
    "more workers until the wait is gone.",
    "sync_pct": "Block less often: `.item()`, `.cpu()` and `print(loss)` hold the host until the GPU is done.",
    "pageable_pct": PAGEABLE,
    "memory_pct": "Take memory once: no `torch.cuda.empty_cache()` in the loop, pinned buffers used again, batches of "
    "one shape.",
    "setup_pct": "CUDA was set up meanwhile. Profile later steps: `schedule(wait=1, warmup=2, active=3)`.",
    "optimizer_pct": "Let the optimizer launch few kernels: `torch.optim.AdamW(..., fused=True)`.",
    "operator_pct": "Launch fewer kernels, each with more work: `torch.compile(model, mode='reduce-overhead')`, or a "
    "larger batch.",
    "other_pct": "Look in Perfetto what the host does there.",
    "communication_pct": "Hide communication behind computing, or do less of it. A collective also waits for the "
    "slowest rank: compare with the traces of other ranks first.",
    "copy_pct": "Copy beside computing, or less.",
}
REDUCES = (
    "With DistributedDataParallel smaller buckets (`bucket_cap_mb`) begin earlier, and `model.no_sync()` skips "
    "it while gradients accumulate."
)
LEAST_PCT = {"communication_pct": 10.0, "copy_pct": 10.0}
LEAST_IDLE_PCT = 5.0
"""From where on a share is worth a change: PyTorch's TensorBoard plugin advises from 5 % for the loader and 10 % for
communication."""
MEAN_APART = 0.05
"""Of the median: where the mean lies further from it, a sentence has both."""
LEAST_OUTSIDE = 0.01
"""Of the profiled time: less is of the steps' edges."""
LAUNCHING = ("optimizer_pct", "operator_pct", "other_pct")
MOST_GPUS, MOST_KERNELS, LONGEST_NAME = 8, 5, 52


@shown_as.register
def trace_blocks(trace: Trace) -> list[Block]:
    """Its breakdown; a sentence where the GPU was not recorded."""
    head: list[Block] = [Heading(safe(trace.path.name))]
    try:
        return head + breakdown_blocks(trace.breakdown)
    except NotMeasurable as error:
        return [*head, Note(safe(str(error)), "unknown")]


@shown_as.register
def breakdown_blocks(made: TraceBreakdown) -> list[Block]:
    """What a terminal and a notebook show."""
    notes = [Note(line) for line in sentences(made)]
    out: list[Block] = [*notes, _times(made)]
    out += [_kernels(made)] if made.kernels else []
    out += [_waits(made)] if made.waits and made.waits[0].share_pct >= 1 else []
    return out + [Note(f"Read with oddities: {safe(one)}.", "unknown") for one in made.problems]


def sentences(made: TraceBreakdown) -> list[str]:
    """What was profiled, what the GPU was idle for, what to do, and how far the profiler itself is in the numbers."""
    main = min(made.gpus, key=lambda one: one.idle_pct)
    out = [f"{_what(made)} {_idle(made, main)}", *_not_counted(made), *_talk(made)]
    cause = _cause(made, main)
    if cause:
        out.append(" ".join([DO[cause], *_more(made, cause)]))
    if made.n_steps and main.idle_pct >= LEAST_IDLE_PCT:
        out.append(f"Without idle time a step would take {share(main.idle_pct)} less, at most.")
    if made.host_recorded and any(_of(main, name) >= LEAST_IDLE_PCT for name in LAUNCHING):
        out.append("The profiler slows the host: without it the GPU is idle less.")
    return out


def _more(made: TraceBreakdown, cause: str) -> list[str]:
    """What else the trace says of the cause."""
    top = next((one.name for one in made.kernels if cause in KEYS and re.search(KEYS[cause], one.name)), "")
    if cause == "communication_pct" and "AllReduce" in top:
        return [REDUCES]
    if cause == "copy_pct" and top:
        return [f"Most of it is {safe(top)}.", *([PAGEABLE] if "Pageable ->" in top else [])]
    if cause == "other_pct" and not made.python_recorded:
        return ["`with_stack=True` records its Python functions."]
    waits = [one for one in made.waits if one.operator and one.share_pct >= LEAST_IDLE_PCT]
    if cause == "operator_pct" and waits:
        return [
            f"The host was also blocked in {safe(waits[0].operator)}, {share(waits[0].share_pct)} of the time. After "
            "that the GPU is idle until the next kernel is launched."
        ]
    return []


KEYS = {"communication_pct": COMMUNICATES, "copy_pct": r"^Mem(?:cpy|set)\b"}
"""By cause: how the names of its kernels are known. Kernels of memory-efficient attention are no copies."""


def _of(gpu: GpuTime, state: str) -> float:
    return float(getattr(gpu, state))


def _what(made: TraceBreakdown) -> str:
    when = f" on {timestamp(made.begin, zone('UTC'))} UTC" if made.begin else ""
    rank = "" if made.rank is None else f" of rank {made.rank}"
    rank += f" of {made.world_size}" if rank and made.world_size else ""
    if not made.n_steps:
        return (
            f"The trace{rank} spans {duration(made.window_s)}{when} and names no steps (`prof.step()`, NVTX `step 1`)."
        )
    low, high, usual = (duration(one) for one in (made.step_low_s, made.step_high_s, made.step_s))
    mean_s = made.window_s / made.n_steps
    apart = abs(mean_s - made.step_s) > MEAN_APART * made.step_s
    length = f"of {duration(mean_s)} on average, {usual} in the median" if apart else f"of {usual}"
    length += "" if low == high else f" ({low} to {high})"
    return f"{plural(made.n_steps, 'profiled step')}{rank}, {length}{when}."


def _not_counted(made: TraceBreakdown) -> list[str]:
    """Steps that are not like the others, and work of the GPU that lies in no step."""
    out = []
    if n := made.n_odd_steps:
        each = f"{plural(n, 'more step')} of {duration(made.odd_steps_s / n)}{' on average' if n > 1 else ''}"
        out.append(
            f"Not counted: {each}, with more idle time than a usual step is long. A first step compiles or sets up; "
            "others may evaluate or save."
        )
    if made.outside_s >= LEAST_OUTSIDE * made.window_s:
        out.append(f"Not counted: GPU work of {duration(made.outside_s)} that lies in none of the steps.")
    return out


def _idle(made: TraceBreakdown, gpu: GpuTime) -> str:
    who = "The GPU" if len(made.gpus) == 1 else f"GPU {gpu.gpu}, which worked most,"
    said = f"{who} was idle for {share(gpu.idle_pct)} of that time"
    causes = sorted(IDLE_STATES, key=lambda name: -_of(gpu, name))
    if gpu.idle_pct < LEAST_IDLE_PCT:
        return f"{said}."
    causes = [name for name in causes if made.host_recorded or name not in LAUNCHING]
    named = [
        f"{share(_of(gpu, name))} {'' if name == 'queued_pct' else 'while the '}{WORDS[name].removeprefix('idle: ')}"
        for name in causes[:2]
        if _of(gpu, name) >= max(1.0, 0.1 * gpu.idle_pct)
    ]
    unsaid = "" if made.host_recorded else " Operators of the host were not recorded."
    return (f"{said}: {', '.join(named)}." if named else f"{said}.") + unsaid


def _talk(made: TraceBreakdown) -> list[str]:
    ranks = made.world_size or 1
    if ranks > 1 and not any(one.communication_total_pct for one in made.gpus):
        return [f"No kernel is known to communicate between the {plural(ranks, 'rank')}; others count as computing."]
    return [
        f"GPU {one.gpu} communicated for {share(one.communication_total_pct)}; "
        f"{share(one.hidden_pct)} of that was hidden behind computing."
        for one in made.gpus[:MOST_GPUS]
        if one.communication_total_pct >= 1
    ]


def _cause(made: TraceBreakdown, gpu: GpuTime) -> str:
    """The state that lost most of those worth a change; '' for none, and where idle time has no known cause."""
    lost = [name for name in STATES[1:] if made.host_recorded or name not in LAUNCHING]
    worth = [name for name in lost if _of(gpu, name) >= LEAST_PCT.get(name, LEAST_IDLE_PCT)]
    return max(worth, key=lambda name: _of(gpu, name), default="")


def _times(made: TraceBreakdown) -> TableBlock:
    """A row a state that occurred, and the sum."""
    shown = made.gpus[:MOST_GPUS]
    states = [name for name in STATES if any(_of(one, name) > 0 for one in shown)]
    unknown = dict.fromkeys(LAUNCHING, "idle: operators not recorded")
    words = WORDS if made.host_recorded else WORDS | unknown | {"operator_pct": "idle: host in a call of CUDA"}
    rows: list[tuple[TableCell, ...]] = [
        (words[name], *_cells([_of(one, name) for one in shown], made)) for name in states
    ]
    rows.append(("sum", *_cells([100.0] * len(shown), made)))
    a_step = ("Mean step",) if len(shown) == 1 and made.n_steps else ()
    names = [f"GPU {one.gpu}" + (f", {safe(one.name)}" if one.name and len(shown) == 1 else "") for one in shown]
    more = f"{plural(len(made.gpus) - MOST_GPUS, 'more GPU')}: --format json." if len(made.gpus) > MOST_GPUS else ""
    return TableBlock(("What it did", *names, *a_step), tuple(rows), more)


def _cells(shares: Sequence[float], made: TraceBreakdown) -> list[TableCell]:
    cells: list[TableCell] = [Number(share(one, exact=True)) for one in shares]
    if len(shares) == 1 and made.n_steps:
        cells.append(Number(duration(shares[0] / 100 * made.window_s / made.n_steps)))
    return cells


def _kernels(made: TraceBreakdown) -> TableBlock:
    rows = [
        (_short(one.name), Number(count(one.n)), Number(share(one.share_pct))) for one in made.kernels[:MOST_KERNELS]
    ]
    return TableBlock(("Work of the GPU", "Runs", "GPU time"), tuple(rows))


def _waits(made: TraceBreakdown) -> TableBlock:
    rows = [
        (_short(one.operator) or UNKNOWN, safe(one.call), Number(count(one.n)), Number(share(one.share_pct)))
        for one in made.waits
    ]
    return TableBlock(
        ("The host was blocked in", "Call", "Times", "Of the time"), tuple(rows), "The GPU may work meanwhile."
    )


def _short(name: str) -> str:
    name = safe(name)
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
