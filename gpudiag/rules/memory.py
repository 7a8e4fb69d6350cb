"""Is the GPUs' memory nearly full, or nearly empty?"""

from __future__ import annotations

import math

from gpudiag.errors import NotMeasurable
from gpudiag.measures.memory import MemoryProfile, measure_memory
from gpudiag.rules.engine import Evidence, rule
from gpudiag.rules.wording import gpus
from gpudiag.units import MIB_PER_GIB


@rule(
    measure=measure_memory,
    severity="warning",
    title="GPU memory is nearly full",
    remedy="Run fewer trials at once or bound the parameters that take memory (batch size, model size) before adding "
    "work; one larger trial can end the run.",
    refuted_by="A framework that reserves all memory at start, or a caching allocator: memory in use is then a "
    "high-water mark.",
)
def memory_near_limit(memory: MemoryProfile, *, high_pct: float = 90.0) -> Evidence | None:
    """Close to the limit the next allocation can fail, and it takes the whole process with it.

    The 99th percentile over time of memory in use is at least 90 % of the total: PyTorch's TensorBoard plugin (0.9).
    """
    full = memory.per_gpu[memory.per_gpu["p99_used_pct"] >= high_pct]
    if full.empty:
        _need_total(memory)
        return None
    worst = full["p99_used_pct"].idxmax()
    row = full.loc[worst]
    return Evidence(
        f"GPU {worst} used {row['p99_used_pct']:.1f} % of its {row['total_mib'] / MIB_PER_GIB:.1f} GiB at the 99th "
        f"percentile; {row['headroom_mib']:.0f} MiB were left at the peak.",
        {
            "p99_used_pct": float(row["p99_used_pct"]),
            "max_used_pct": float(row["max_used_pct"]),
            "headroom_mib": float(row["headroom_mib"]),
        },
        {"gpu": ", ".join(full.index), "time": row["max_at"].isoformat()},
        margin=float(row["p99_used_pct"] - high_pct),
    )


@rule(
    measure=measure_memory,
    severity="info",
    title="Most of the GPU memory stayed free",
    remedy="There is room to try a larger batch or one more trial at once, in small steps. Room alone does not make "
    "anything faster: that depends on what the GPU waits for.",
    refuted_by="A rare large trial that was not in this run.",
)
def memory_headroom(memory: MemoryProfile, *, low_pct: float = 50.0) -> Evidence | None:
    """Free memory permits larger batches or more trials at once; it does not imply a speed-up.

    The maximum stays below half of the total (a default without a published source). The bound on growth takes what
    the memory rose by as what the job needs; it is an upper limit, as memory does not grow in proportion
    to the batch and a job that ran before the record began is in the baseline.
    """
    roomy = memory.per_gpu[memory.per_gpu["max_used_pct"] < low_pct]
    if roomy.empty:
        _need_total(memory)
        return None
    fullest = roomy["max_used_pct"].idxmax()
    row = roomy.loc[fullest]
    growth = float(row["growth_factor"])
    bound = f"; at most {growth:.1f} times as much would fit" if growth > 1 else ""
    return Evidence(
        f"GPU {fullest} never used more than {row['max_used_pct']:.1f} % of its "
        f"{row['total_mib'] / MIB_PER_GIB:.1f} GiB, so {row['headroom_mib'] / MIB_PER_GIB:.1f} GiB stayed free{bound}.",
        {
            "max_used_pct": float(row["max_used_pct"]),
            "headroom_mib": float(row["headroom_mib"]),
            "growth_factor": None if math.isnan(growth) else growth,
        },
        {"gpu": ", ".join(roomy.index)},
        margin=float(low_pct - row["max_used_pct"]),
    )


def _need_total(memory: MemoryProfile) -> None:
    """Nothing found is no health where it is not known how full a GPU was."""
    unknown = memory.per_gpu.index[memory.per_gpu["max_used_pct"].isna()]
    if len(unknown):
        raise NotMeasurable(
            f"How full {gpus(unknown)} was is unknown: memory in use or the total is missing.",
            f"Record memory.used and memory.total, or state mem_total_mib under [gpus.{unknown[0]}] in run.toml.",
        )
