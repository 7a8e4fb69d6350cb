"""What PyTorch's flight recorder and its watchdog say of a training that hung: a dump and a line of the log a rank."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pandas as pd

from gpudiag.plain_data import JsonObject
from gpudiag.simulation.trainings.spec import Hang
from gpudiag.simulation.trainings.world import RankHistory, TrainingHistory

ELEMENTS = 25_557_032
"""Of the gradients of a ResNet-50, in one all-reduce a step."""


def scheduled_s(rank: RankHistory) -> list[float]:
    """When the rank called each of its all-reduces."""
    talks = set(rank.talks)
    return [begin for begin, _, at in rank.launches if rank.kernels[at] in talks]


def dump_document(hang: Hang, history: TrainingHistory, number: int, origin: pd.Timestamp) -> JsonObject:
    """The last collectives of one rank as _dump_nccl_trace_json writes them; unknown times are 0."""
    rank, n_ranks = history.ranks[number], len(history.ranks)

    def ns(at_s: float) -> int:
        return (origin.value // 1000 + round(at_s * 1e6)) * 1000

    calls = list(enumerate(zip(scheduled_s(rank), rank.talks, strict=True)))
    entries: list[JsonObject] = []
    for at, (created_s, (start_s, end_s)) in calls[-hang.buffer :]:
        ended = not (number != hang.rank and at == calls[-1][0])
        entries.append({
            "record_id": at, "pg_id": 0, "process_group": ["0", "default_pg"], "collective_seq_id": at + 1,
            "p2p_seq_id": 0, "op_id": at + 1, "profiling_name": "nccl:all_reduce", "time_created_ns": ns(created_s),
            "input_sizes": [[ELEMENTS]], "input_dtypes": ["Float"], "output_sizes": [[ELEMENTS]],
            "output_dtypes": ["Float"], "state": "completed" if ended else "started",
            "time_discovered_started_ns": ns(start_s), "time_discovered_completed_ns": ns(end_s) if ended else 0,
            "retired": ended, "timeout_ms": round(1000 * hang.timeout_s), "is_p2p": False,
        })  # fmt: skip
    group: JsonObject = {"name": "0", "desc": "default_pg", "ranks": str(list(range(n_ranks)))}
    status: JsonObject = {"last_enqueued_collective": str(len(calls))}
    return {"version": "2.4", "pg_config": {"0": group}, "pg_status": {"0": status}, "entries": list(entries)}


def watchdog_lines(hang: Hang, history: TrainingHistory, at_s: float, origin: pd.Timestamp) -> Iterator[str]:
    """The lines of the ranks that waited, in the form of PyTorch 2.4."""
    zone_time = origin + timedelta(seconds=at_s)
    stamp = f"E{zone_time.month}{zone_time:%d %H:%M:%S.%f}000"
    for number, rank in enumerate(history.ranks):
        if number == hang.rank:
            continue
        ran_ms = round(1000 * (at_s - scheduled_s(rank)[-1]))
        yield (
            f"[rank{number}]:[{stamp} ProcessGroupNCCL.cpp:607] [Rank {number}] Watchdog caught collective operation "
            f"timeout: WorkNCCL(SeqNum={len(rank.talks)}, OpType=ALLREDUCE, NumelIn={ELEMENTS}, NumelOut={ELEMENTS}, "
            f"Timeout(ms)={round(1000 * hang.timeout_s)}) ran for {ran_ms} milliseconds before timing out."
        )
