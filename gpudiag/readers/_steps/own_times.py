"""Times that lines state: whether they are of the epoch or the step, since the line before, or since the start."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from gpudiag.readers._steps.step_line import StepLine
from gpudiag.readers._steps.step_object import runtime_of_object
from gpudiag.readers._steps.time_columns import EPOCH, TimeColumns


def with_own_times(rows: Sequence[StepLine], stamps: Sequence[str]) -> tuple[list[StepLine], list[str]]:
    """The rows, of which those with a time of their own tell it as that of the epoch or the step, or as the time since
    the start. What the lines of one writer call by a name is looked at together, as a column of a table is.

    And timestamps on a day of our own for those whose time since the start goes on where steps are counted anew.
    """
    out, since_start = list(rows), [""] * len(rows)
    by_writer: defaultdict[tuple[str, int | None, int | None], list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        if row.time_name:
            by_writer[row.unit, row.rank, row.trial].append(at)
    for (unit, *_), places in by_writer.items():
        own = [rows[at] for at in places]
        names = _names(own) if unit == EPOCH else {}
        table = [
            _place(row) | {names.get(row.time_name, row.time_name): row.step_s} | _stamped(stamps[at])
            for at, row in zip(places, own, strict=True)
        ]
        times = TimeColumns(table)
        for at, line in zip(places, table, strict=True):
            told = times.told(line)
            step_s, elapsed_s = (told.get(name, math.nan) for name in ("step_time", "elapsed"))
            meant = ("step" if unit == EPOCH else "running") if step_s >= 0 else ""
            said = rows[at]._replace(step_s=step_s, elapsed_s=elapsed_s, meant=meant, time_name="")
            out[at] = times.meant(said) if meant else said
            since_start[at] = runtime_of_object(told)
    return out, since_start


def _place(row: StepLine) -> dict[str, Any]:
    """How far a row is, by the names that a row of a table has for it."""
    return {row.unit: row.step} | ({} if row.epoch is None else {EPOCH: row.epoch})


def _stamped(stamp: str) -> dict[str, Any]:
    return {"timestamp": stamp} if stamp else {}


def _names(rows: Sequence[StepLine]) -> dict[str, str]:
    """By the name of a time that of its column: one that is the same in all lines is of the epoch."""
    out = {}
    for name in {row.time_name for row in rows}:
        times = [row.step_s for row in rows if row.time_name == name]
        out[name] = "epoch_time" if len(set(times)) == 1 and (len(times) > 1 or name != "elapsed") else name
    return out
