"""Is the GPUs' memory nearly full, or nearly empty?"""

from __future__ import annotations

import math

from gpudiag.errors import NotMeasurable
from gpudiag.measures.memory import MemoryProfile, measure_memory
from gpudiag.rules._engine.evidence import Evidence, Outcome, Passed
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity
from gpudiag.schema import IDLE_PCT

RESERVED = (
    "Nothing is to be changed. To see what the job needs, let the framework take memory as it goes "
    "(TF_FORCE_GPU_ALLOW_GROWTH=true, XLA_PYTHON_CLIENT_PREALLOCATE=false). vLLM logs how much of its cache is used."
)


@rule(
    measure=measure_memory,
    severity="warning",
    title="GPU memory is nearly full",
    checks="Peak GPU memory",
    explained_by=("failures-out-of-memory", "memory-leak"),
    remedy_by_cause={"memory-leak": "Mend what grows: with a smaller batch memory would fill up as well, only later."},
    says=Given(
        "reserved",
        "{gpu} held {max_used_pct:exact} of its {total_mib} throughout its work, and no less or more: the framework "
        "reserved it. How much the job needs is not known.",
        "{gpu} used up to {max_used_pct:exact} of its {total_mib}: {headroom_mib} were left at the peak.",
    ),
    remedy="Limit what takes memory (batch size, model size), or run fewer trials at once where several run. One "
    "larger batch can end the run.",
    refuted_by="Not a problem if the framework reserves all memory at start: memory in use is then no measure of need.",
)
def memory_near_limit(memory: MemoryProfile, *, high_pct: float = 90.0) -> Outcome:
    """Close to the limit the next allocation can fail, and it takes the whole process with it.

    The most memory in use is at least 90 % of the total: PyTorch's TensorBoard plugin (0.9). However short the peak:
    the allocation of a moment, as of a validation, is what fails. Failures out of memory prove peaks between samples.
    Memory that a framework reserved is a note, unless it ran out. It rose to its greatest at once, two samples or more
    before the GPU was busy, and stayed the same to 1 % of the total (TensorFlow, JAX; defaults without a published
    source). Or all processes that have a name are a server's that does so, vLLM or SGLang.
    """
    full = memory.per_gpu[memory.per_gpu["max_used_pct"] >= high_pct]
    needed = full[full["is_reserved"] != True]  # noqa: E712 - NaN is unknown
    reserved = len(full) > 0 and needed.empty
    full = full if reserved else needed
    if full.empty:
        _need_total(memory)
        _need_peaks(memory)
        return Passed.most(
            memory.per_gpu,
            "max_used_pct",
            "{max_used_pct:exact} of {total_mib} in use",
            "limit {high_pct}",
        )
    worst = full["max_used_pct"].idxmax()
    row = full.loc[worst]
    return Evidence(
        values={name: float(row[name]) for name in ("max_used_pct", "p99_used_pct", "headroom_mib")},
        where={"gpu": ", ".join(full.index), "time": row["max_at"].isoformat()},
        margin=float(row["max_used_pct"] - high_pct),
        severity=Severity.NOTE if reserved else None,
        extra={"gpu": str(worst), "total_mib": row["total_mib"], "reserved": reserved},
        remedy=RESERVED if reserved else "",
    )


@rule(
    measure=measure_memory,
    severity="note",
    title="Most of the GPU memory was free",
    checks="Free GPU memory",
    says="{gpu} used at most {max_used_pct} of its {total_mib}: {headroom_mib} stayed free.",
    remedy="Where the GPU waits for neither CPU nor disk, time a larger batch or, in a search, one more trial at once. "
    "Free memory alone makes nothing faster.",
    refuted_by="Not a problem if a rare large trial, absent from this run, needs the room.",
    needs_all=("gpus",),
)
def memory_headroom(memory: MemoryProfile, *, low_pct: float = 50.0) -> Outcome:
    """Free memory permits larger batches or more trials at once; it does not imply a speed-up.

    The maximum stays below half of the total (a default without a published source). The bound on growth takes what
    the memory rose by as what the job needs. It is an upper limit: memory does not grow in proportion
    to the batch, and a job that ran before the record began is in the baseline. A GPU that never was at 10 %
    utilization while another was has no room to spare: nothing ran on it. Nor is anything known of the room where
    trials ran out of memory between samples.
    """
    worked = ~(memory.per_gpu["max_util_pct"] < IDLE_PCT)
    roomy = memory.per_gpu[(memory.per_gpu["max_used_pct"] < low_pct) & (worked | ~worked.any())]
    if roomy.empty:
        _need_total(memory)
        return Passed.least(
            memory.per_gpu[worked | ~worked.any()],
            "max_used_pct",
            "{max_used_pct:exact} of {total_mib} in use at the peak",
            "limit {low_pct}",
        )
    _need_peaks(memory)
    fullest = roomy["max_used_pct"].idxmax()
    row = roomy.loc[fullest]
    growth = float(row["growth_factor"])
    return Evidence(
        values={
            "max_used_pct": float(row["max_used_pct"]),
            "headroom_mib": float(row["headroom_mib"]),
            "growth_factor": None if math.isnan(growth) else growth,
        },
        where={"gpu": ", ".join(roomy.index)},
        margin=float(low_pct - row["max_used_pct"]),
        extra={
            "gpu": str(fullest),
            "total_mib": row["total_mib"],
            "min_mib": row["min_mib"],
        },
        absence=True,
    )


def _need_total(memory: MemoryProfile) -> None:
    """Nothing found is no health where it is not known how full a GPU was."""
    unknown = memory.per_gpu.index[memory.per_gpu["max_used_pct"].isna()]
    if len(unknown):
        raise NotMeasurable(
            "How full {gpus} was is unknown: memory in use or the total is missing.",
            "Record memory.used and memory.total, or state mem_total_mib under [gpus.{first}] in run.toml.",
            gpus=unknown,
            first=unknown[0],
        )


def _need_peaks(memory: MemoryProfile) -> None:
    """What ran out of memory filled it, whatever samples show."""
    if memory.n_oom_unseen > 0:
        raise NotMeasurable(
            "GPU memory ran out {n_oom:time}, yet no sample shows more than {max_used_pct} in use: its peaks lay "
            "between samples.",
            "Store torch.cuda.max_memory_allocated() with each trial.",
            n_oom=memory.n_oom_unseen,
            max_used_pct=memory.max_used_pct,
        )
