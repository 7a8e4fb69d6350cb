"""Memory by trials at once, and the costs of single trials, by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.parallelism import ParallelismProfile
from tests.rules.small_profiles import TIMES, blank, profile

SETTLED_S = 20.0
NAN = float("nan")


def at(seconds: Sequence[float]) -> pd.Series:
    return pd.Series([TIMES + pd.Timedelta(seconds=second) for second in seconds])


def levels(most_mib: Mapping[int, float], total_mib: float = 1000.0, time_s: float | Mapping[int, float] = 600.0,
           gpus: int = 1) -> tuple[MemoryProfile, ParallelismProfile]:  # fmt: skip
    """One level after the other, each with a reading of its most memory when it has settled."""
    starts = [1000.0 * place for place in range(len(most_mib))]
    series = pd.DataFrame(
        {"gpu": "0", "time": at([start + SETTLED_S for start in starts]), "mem_used_mib": most_mib.values()}
    )
    return profiles(series, starts, list(most_mib), total_mib, time_s, gpus)


def profiles(
    series: pd.DataFrame,
    starts: Sequence[float],
    at_once: Sequence[int],
    total_mib: float = 1000.0,
    time_s: float | Mapping[int, float] = 600.0,
    gpus: int = 1,
) -> tuple[MemoryProfile, ParallelismProfile]:
    """Readings of memory, and how many trials ran at once from these seconds on."""
    known = time_s if isinstance(time_s, Mapping) else dict.fromkeys(at_once, time_s)
    changes = pd.DataFrame({"time": at(starts), "n_closed": at_once, "n_all": at_once})
    spent = pd.DataFrame({"level": list(known), "time_s": list(known.values()), "share_pct": NAN})
    rows = {str(gpu): {"total_mib": total_mib} for gpu in range(gpus)}
    return (
        profile(MemoryProfile, rows, series=series),
        profile(ParallelismProfile, concurrency=changes, levels=spent),
    )


def costs(process_mib: Sequence[float], peak_mib: Sequence[float] | None = None) -> CostsProfile:
    """What single trials took of memory: of their own process, and of the device while they ran alone."""
    rows = [
        {**blank(CostsProfile.tables()["trials"]), "process_mem_mib": own, "peak_mem_mib": peak}
        for own, peak in zip(process_mib, peak_mib or [NAN] * len(process_mib), strict=True)
    ]
    made: CostsProfile = profile(CostsProfile, trials=pd.DataFrame(rows))
    return made
