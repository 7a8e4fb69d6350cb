"""Dumps of the flight recorder written from what each rank truly did."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

START = datetime(2026, 2, 3, 14, 0, 0, tzinfo=UTC)
START_NS = int(START.timestamp()) * 10**9


@dataclass(frozen=True)
class Call:
    """A collective of one rank, ``at`` seconds after START; ``ended_s`` later it had ended, where it did."""

    seq: int
    at: float
    ended_s: float | None = 0.01
    name: str = "all_reduce"
    sizes: Sequence[int] = (1024, 8)
    started: bool = True
    group: str = "0"
    p2p: bool = False
    retired: bool | None = None
    types: Sequence[str] = ("Float",)


@dataclass(frozen=True)
class Dump:
    """What one rank recorded. ``members``: ranks by group; ``first_record`` above 0 where the ring was full."""

    rank: int
    calls: Sequence[Call]
    members: Mapping[str, Sequence[int]] = field(default_factory=lambda: {"0": (0, 1, 2, 3)})
    first_record: int = 0
    timeout_s: float = 600.0

    def as_json(self, *, from_pickle: bool = False) -> dict[str, Any]:
        """The form of _dump_nccl_trace_json, or of json.dump of the unpickled one."""
        unknown = None if from_pickle else 0
        groups = {
            name: {"name": name, "desc": "default_pg", "ranks": str(list(ranks)) if from_pickle else _joined(ranks)}
            for name, ranks in self.members.items()
        }
        entries = [self._entry(at, call, unknown) for at, call in enumerate(self.calls)]
        status = {"last_enqueued_collective": max((call.seq for call in self.calls), default=-1)}
        held = {
            "version": "2.4",
            "nccl_version": "2.26.2",
            "pg_config": groups,
            "pg_status": {
                "0": status if from_pickle else {name: str(value) for name, value in status.items()}
            } if self.calls else {},
        }  # fmt: skip
        return held | ({"entries": entries} if entries or from_pickle else {})

    def _entry(self, at: int, call: Call, unknown: int | None) -> dict[str, Any]:
        created = START_NS + round(call.at * 1e9)
        ended = call.ended_s is not None
        started = ended or call.started
        return {
            "record_id": self.first_record + at,
            "pg_id": 0,
            "process_group": [call.group, "default_pg"],
            "collective_seq_id": 0 if call.p2p else call.seq,
            "p2p_seq_id": call.seq if call.p2p else 0,
            "op_id": call.seq,
            "profiling_name": f"nccl:{call.name}",
            "time_created_ns": created,
            "input_sizes": [list(call.sizes)],
            "input_dtypes": list(call.types),
            "output_sizes": [list(call.sizes)],
            "output_dtypes": list(call.types),
            "state": "completed" if ended else "started" if started else "scheduled",
            "time_discovered_started_ns": created + 1_000_000 if started else unknown,
            "time_discovered_completed_ns": created + round(call.ended_s * 1e9)
            if call.ended_s is not None
            else unknown,
            "retired": ended if call.retired is None else call.retired,
            "timeout_ms": int(self.timeout_s * 1000),
            "is_p2p": call.p2p,
        }

    def write(self, folder: Path, *, from_pickle: bool = False, written_s: float | None = None) -> Path:
        """``nccl_trace_rank_N.json``, last written so many seconds after START."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"nccl_trace_rank_{self.rank}.json"
        path.write_text(json.dumps(self.as_json(from_pickle=from_pickle)), encoding="utf-8")
        if written_s is not None:
            os.utime(path, (START.timestamp() + written_s,) * 2)
        return path


def _joined(ranks: Sequence[int]) -> str:
    return "[" + ", ".join(map(str, ranks)) + "]"


def calls(last: int, *, first: int = 1, step_s: float = 1.0, **unlike: Any) -> list[Call]:
    """Collectives ``first`` to ``last`` that all ended, one a step."""
    return [Call(seq, seq * step_s, **unlike) for seq in range(first, last + 1)]
