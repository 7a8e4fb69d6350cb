"""Does memory leak, or stay behind?"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.measures.base import OPEN_CLOCK, STATE_OFFSET
from gpudiag.measures.leak import LeakProfile, measure_leak
from gpudiag.rules._engine.evidence import NotApplicable, Outcome, Passed, worst_gpu
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity

FIND = (
    "Look for tensors that outlive their step: losses summed without .item(), results kept in a list, hooks. Compare "
    "torch.cuda.memory_allocated() at the end of each epoch."
)
RAN_OUT = "GPU memory grew until the training ran out of it"
TRIALS_RAN_OUT = "GPU memory grew until trials ran out of it"
ONLY_LATER = "A smaller batch would run out as well, only later."


@rule(
    measure=measure_leak,
    severity="warning",
    title="GPU memory grows over the run",
    checks="Memory growth",
    says=(
        "Memory on {gpu}",
        Given("has_trials", " that trials do not free"),
        Given(
            "refills",
            " grew {n_fills:time} until it was nearly full and was freed, by {fill_mib} in {fill_s} each.",
            (
                " grew by {rise_mib} ({rise_pct} of the total) in {span_s}",
                Given("ran_out", Given("has_trials", ", and trials ran out of it", ", and the training ran out of it")),
                ".",
            ),
        ),
    ),
    remedy=f"{FIND} In a search, run each trial in its own process.",
    refuted_by="Not a problem if a caching allocator was still filling up, or later trials are larger.",
    needs_all=("gpus",),
)
def memory_leak(
    leak: LeakProfile,
    *,
    min_slope_pct: float = 1.0,
    max_p_pct: float = 1.0,
    min_rise_pct: float = 5.0,
    min_fills: float = 2.0,
) -> Outcome:
    """A leak ends in an out-of-memory error, after all the time before it was spent.

    Slope of the minima of 20 blocks (Theil-Sen), without what trials hold and free at their end, above 1 % of the
    total per hour, Mann-Kendall over the blocks below 1 %, less sure where neighboring blocks resemble each other, and
    a rise of 5 points or more (METHODS 8). SageMaker GPUMemoryIncrease uses 5 points. Minima of blocks and not raw
    samples: on those Mann-Kendall gives 57 % false alarms. A training that is restarted grows anew each time: without
    trials, the same holds within each stretch at whose end 90 % was in use and a fifth of the total was freed, of which
    there must be two (a default without a published source). A restart shows in the log, as 30 s of an idle GPU, or as
    less memory than a CUDA context takes. A cache that one process fills and frees is no leak. A training that ran out
    of memory is looked at up to then: what was in use at most in its first tenth left room, and the growth took it. Of
    trials that ran out of it, four in five must have begun when half of the growth was over.
    """
    table = leak.per_gpu

    def grows(slope_pct_h: str, p: str, rise_pct: str) -> pd.Series:
        rises = (table[slope_pct_h] > min_slope_pct) & (table[rise_pct] >= min_rise_pct)
        return rises & (table[p] < max_p_pct / 100)

    steadily = grows("slope_pct_h", "p_rise", "rise_pct")
    fill_grows = grows("fill_slope_pct_h", "p_fill", "fill_rise_pct")
    refills = fill_grows & (table["n_fills"] >= min_fills)
    found = table[steadily | refills]
    if found.empty:
        unclear = table.index[fill_grows & (table["n_fills"] + table["n_open_fills"] >= min_fills)]
        if len(unclear):
            raise NotMeasurable(
                "Memory of {gpus} was nearly full and then freed several times, and nothing shows whether a job was "
                "started again.",
                "Record utilization.gpu beside memory.used, every 10 s or more often, or give the log of the training.",
                gpus=unclear,
            )
        short = table.index[table["slope_pct_h"].isna()]
        if len(short):
            raise NotMeasurable(
                "Memory of {gpus} has too few samples for a trend, or an unknown total.",
                "Record memory.used and memory.total for longer.",
                gpus=short,
            )
        if (table["rise_pct"] >= min_rise_pct).any():
            return None
        return Passed.most(
            table.assign(rise_pct=table["rise_pct"].clip(lower=0.0)),
            "rise_pct",
            "{rise_pct} of the total",
            "limit {min_rise_pct}",
        )
    again = not steadily.any()
    rise = "fill_rise_pct" if again else "rise_pct"
    ran_out = found[steadily[found.index] & found["ran_out"].eq(True)]
    worst = (found if ran_out.empty else ran_out)[rise].idxmax()
    evidence = worst_gpu(
        worst,
        found,
        ("fill_slope_pct_h", "fill_rise_pct", "fill_mib", "p_fill", "fill_s", "n_fills")
        if again
        else ("slope_pct_h", "rise_pct", "rise_mib", "p_rise", "span_s"),
        margin=float(found.at[worst, rise] - min_rise_pct),
        extra={"has_trials": leak.has_trials, "refills": again, "ran_out": not ran_out.empty},
    )
    if ran_out.empty:
        return replace(evidence, not_cause_of=("training-failed", "failures-out-of-memory"))
    if leak.has_trials:
        return replace(evidence, title=TRIALS_RAN_OUT)
    return replace(evidence, title=RAN_OUT, severity=Severity.CRITICAL, remedy=f"{FIND} {ONLY_LATER}")


@rule(
    measure=measure_leak,
    severity="warning",
    title="Memory stays in use after the last trial",
    checks="Memory left after the last trial",
    says="{gpu} still held {after_mib} after the last trial, {residual_mib} more than before the first.",
    remedy="Find the process that holds it: a worker that did not end, a child of the loader, or a notebook "
    "(nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv).",
    refuted_by="Not a problem if another job holds it that has not worked yet, or workers wait for trials on purpose.",
    explained_by=("work-outside-trials", "trials-abandoned"),
    needs_all=("gpus",),
)
def memory_residual(leak: LeakProfile, *, max_residual_mib: float = 300.0) -> Outcome:
    """Memory that stays is missing in the next run, whose first large trial then fails.

    Median memory from 10 s after the last trial's end on, above that before the first trial by 300 MiB or more, as
    much as a CUDA context takes: 300-600 MiB (METHODS 6). Where a GPU works on after the last trial, memory counts from
    10 s after that work; where it works until the record ends, its memory may be that of the work.
    """
    if leak.n_open:
        raise NotApplicable("{n_open:trial} may still be running.", n_open=leak.n_open)
    if not leak.ended and leak.clock_open:
        raise NotMeasurable(OPEN_CLOCK, STATE_OFFSET)
    if not leak.ended:
        raise NotMeasurable(
            "The record ends with the last trial, or has no trials with times.",
            "Let the recorder run on for a minute after the last trial.",
        )
    table = leak.per_gpu
    found = table[table["residual_mib"] >= max_residual_mib]
    if found.empty:
        works_on = table.index[table["residual_mib"].isna() & (table["residual_high_mib"] >= max_residual_mib)]
        if len(works_on):
            raise NotMeasurable(
                "Work went on after the last trial on {gpus}, and may be what holds the memory.",
                "Let the recorder run on for a minute after all work has ended.",
                gpus=works_on,
            )
        return Passed.most(
            table.assign(residual_mib=table["residual_mib"].clip(lower=0.0)),
            "residual_mib",
            "{residual_mib} more than before the first",
            "limit {max_residual_mib}",
        )
    worst = found["residual_mib"].idxmax()
    return worst_gpu(
        worst,
        found,
        ("residual_mib", "after_mib", "before_mib", "after_s"),
        margin=float(found.at[worst, "residual_mib"] - max_residual_mib),
    )
