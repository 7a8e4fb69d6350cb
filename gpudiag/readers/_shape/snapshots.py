"""Rows of logs that are snapshots: documents, blocks or scrapes, each of one moment and all GPUs of a host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape import ticks
from gpudiag.readers._shape.finish import finish
from gpudiag.readers._shape.moments import Moment
from gpudiag.readers.base import ReadOptions, Telemetry

_LARGEST_PID = 2**32 - 1


@dataclass
class Snapshots:
    """Collects snapshots while a file is read: ``begin`` one, then add its rows."""

    moments: list[Moment | None] = field(default_factory=list)
    gpu: list[dict[str, Any]] = field(default_factory=list)
    processes: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    gpus: dict[str, dict[str, Any]] = field(default_factory=dict)

    def begin(self, moment: Moment | None) -> None:
        """Start a snapshot; None if the file does not state its time."""
        self.moments.append(moment)

    def sample(self, gpu: str, line: int, **values: float | str | None) -> None:
        """A row of table ``gpu`` of the snapshot begun last. None is unknown."""
        self.gpu.append({"at": len(self.moments) - 1, "line": line, "gpu": gpu, **values})

    def process(self, gpu: str, line: int, pid: int, **values: Any) -> None:
        """A row of table ``processes``; a torn id is left out."""
        if 0 <= pid <= _LARGEST_PID:
            self.processes.append({"at": len(self.moments) - 1, "line": line, "gpu": gpu, "pid": pid, **values})

    def event(self, kind: str, line: int, gpu: str, detail: str) -> None:
        """A row of table ``events``."""
        self.events.append({"at": len(self.moments) - 1, "line": line, "kind": kind, "gpu": gpu, "detail": detail})

    def describe(self, gpu: str, **values: Any) -> None:
        """What is known of a GPU; what is said last holds."""
        self.gpus.setdefault(gpu, {"gpu": gpu}).update({k: v for k, v in values.items() if v not in (None, "")})

    def finish(
        self, source: Source, reader: str, options: ReadOptions, log: ProblemLog, notes: Sequence[str] = ()
    ) -> Telemetry:
        """The tables. Raises InputError if no row is left."""
        timestamps, assumed = self._timestamps(options)
        tables = {}
        for name in ("gpu", "processes", "events"):
            if rows := getattr(self, name):
                table = pd.DataFrame(rows)
                table["time"] = timestamps[table.pop("at").to_numpy()].reset_index(drop=True)
                tables[name] = table
        gpus = pd.DataFrame(list(self.gpus.values())) if self.gpus else None
        return finish(source, reader, options, log, gpus=gpus, notes=[*assumed, *notes], **tables)

    def _timestamps(self, options: ReadOptions) -> tuple[pd.Series, list[str]]:
        if any(self.moments):
            timestamps = ticks.moment_column(self.moments, options.timezone) + ticks.spread(self.moments)
            return timestamps, ticks.zone_note(self.moments)
        order = pd.RangeIndex(len(self.moments)).to_numpy()
        return pd.Series(ticks.relative_time(order, options.period_s)), [ticks.relative_note(options.period_s)]


def quantity(text: str | None, unit: str = "") -> float | None:
    """The number in ``41.50 W``; None for ``N/A``, ``[N/A]``, ``??`` and whatever else is no such quantity."""
    if text is None:
        return None
    bare = text.strip().removesuffix(unit).strip()
    try:
        value = float(bare)
    except ValueError:
        return None
    return value if abs(value) < 1e18 else None
