"""Planted faults of collectives: dumps of four ranks; one is missing or calls another, or none ends."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from gpudiag.rules._engine.verdict import Status
from gpudiag.run import Run
from gpudiag.schema import COLLECTIVES, conform
from planted.base import START, Edge, fault, run

RANKS = range(4)


def _dumps(calls: Iterable[tuple[int, int, str, bool]], wait_s: float) -> Run:
    """Calls (rank, seq, operation, ended), one a second; the dumps were written ``wait_s`` after the last."""
    rows = []
    of_rank = dict.fromkeys(RANKS, 0)
    calls = list(calls)
    last = START + pd.Timedelta(seconds=max(seq for _, seq, _, _ in calls))
    for rank, seq, name, ended in calls:
        time = START + pd.Timedelta(seconds=seq)
        rows.append({
            "path": f"nccl_trace_rank_{rank}.json", "rank": rank, "group": "0", "group_title": "default_pg",
            "group_ranks": "0,1,2,3", "record": of_rank[rank], "kind": "collective", "seq": seq, "name": name,
            "state": "completed" if ended else "started", "time": time,
            "completed": time + pd.Timedelta(seconds=0.1) if ended else pd.NaT,
            "input_elements": 8192, "input_types": "Float", "timeout_s": 600.0,
            "written": last + pd.Timedelta(seconds=wait_s),
        })  # fmt: skip
        of_rank[rank] += 1
    return run(collectives=conform(pd.DataFrame(rows), COLLECTIVES))


def _ended(last: int) -> list[tuple[int, int, str, bool]]:
    return [(rank, seq, "all_reduce", True) for rank in RANKS for seq in range(1, last + 1)]


@fault(
    "rank-missing",
    edges={"min_wait_s": Edge({"wait_s": 59.0}, {"wait_s": 61.0}, says="Rank 2 never came to all_reduce number 6")},
    bigger=({"wait_s": 120.0}, {"wait_s": 600.0}),
)
def missing(*, wait_s: float = 300.0) -> Run:
    """Rank 2 never schedules the sixth collective, for which three others have waited ``wait_s``."""
    return _dumps([*_ended(5), *((rank, 6, "all_reduce", False) for rank in RANKS if rank != 2)], wait_s)


@fault(
    "collective-stuck",
    edges={"min_wait_s": Edge({"wait_s": 59.0}, {"wait_s": 61.0}, says="All 4 ranks came to all_reduce number 6")},
    bigger=({"wait_s": 120.0}, {"wait_s": 600.0}),
)
def stuck(*, wait_s: float = 300.0) -> Run:
    """All four ranks schedule the sixth collective, and ``wait_s`` later it has ended on none."""
    return _dumps([*_ended(5), *((rank, 6, "all_reduce", False) for rank in RANKS)], wait_s)


@fault(
    "collective-mismatch",
    edges={"": Edge({"other": "all_reduce"}, {"other": "broadcast"}, short_gives=Status.OK)},
    bigger=({"other": "broadcast"},),
)
def mismatch(*, other: str = "broadcast") -> Run:
    """Rank 2 calls ``other`` as its sixth collective, and the others call all_reduce."""
    calls = [(rank, 6, other if rank == 2 else "all_reduce", False) for rank in RANKS]
    return _dumps([*_ended(5), *calls], 300.0)
