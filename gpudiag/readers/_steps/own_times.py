"""Times that lines on epochs state: whether they are of the epoch, or since the start."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from gpudiag.readers._steps.step_line import StepLine
from gpudiag.readers._steps.time_columns import EPOCH, TimeColumns


def with_own_times(rows: Sequence[StepLine], stamps: Sequence[str]) -> list[StepLine]:
    """The rows, of which those on epochs tell their time as that of the epoch or as the time since the start. What the
    lines of one writer call by a name is looked at together, as a column of a table is.
    """
    out = list(rows)
    by_writer: defaultdict[tuple[int | None, int | None], list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        if row.time_name:
            by_writer[row.rank, row.trial].append(at)
    for places in by_writer.values():
        names = _names([rows[at] for at in places])
        table = [
            {EPOCH: rows[at].step, names[rows[at].time_name]: rows[at].step_s}
            | ({"timestamp": stamps[at]} if stamps[at] else {})
            for at in places
        ]
        times = TimeColumns(table)
        for at, line in zip(places, table, strict=True):
            told = times.told(line)
            step_s, elapsed_s = (told.get(name, math.nan) for name in ("step_time", "elapsed"))
            meant = "step" if step_s >= 0 else ""
            out[at] = rows[at]._replace(step_s=step_s, elapsed_s=elapsed_s, meant=meant, time_name="")
    return out


def _names(rows: Sequence[StepLine]) -> dict[str, str]:
    """By the name of a time that of its column: one that is the same in all lines is of the epoch."""
    out = {}
    for name in {row.time_name for row in rows}:
        times = [row.step_s for row in rows if row.time_name == name]
        out[name] = "epoch_time" if len(set(times)) == 1 and (len(times) > 1 or name != "elapsed") else name
    return out
