"""Logs whose dates can be read day first or month first, dated by the telemetry beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pandas as pd

from gpudiag._load.intake import Intake, read_again
from gpudiag.readers.base import Telemetry, Trials
from gpudiag.units import FIRST_YEAR

_APART = timedelta(days=1)
"""Clocks of different zones differ by less; the two readings of a date by four weeks or more."""


def with_log_dates(intakes: Sequence[Intake]) -> list[Intake]:
    """The inputs with each such log read in the way that puts it beside telemetry, if only one does."""
    trials = [intake.data for intake in intakes if isinstance(intake.data, Trials)]
    if all(one.otherwise is None for one in trials):
        return list(intakes)
    logs = [intake.data for intake in intakes if isinstance(intake.data, Telemetry)]
    spans = [(log.gpu["time"].min(), log.gpu["time"].max()) for log in logs if len(log.gpu)]
    return read_again(
        intakes, logs, [_dated(one, [span for span in spans if span[0].year >= FIRST_YEAR]) for one in trials]
    )


def _dated(log: Trials, spans: Sequence[tuple[pd.Timestamp, pd.Timestamp]]) -> Trials:
    if log.otherwise is None or not spans:
        return log
    beside = {}
    for day_first in (True, False):
        read = log.otherwise(day_first)
        times = pd.concat([table["time"] for table in (read.steps, read.events) if len(table)])
        if any(times.min() < end + _APART and times.max() > start - _APART for start, end in spans):
            beside[day_first] = read
    if len(beside) != 1:
        return log
    ((day_first, read),) = beside.items()
    order = "day first" if day_first else "month first"
    return replace(
        read, notes=(*read.notes, f"Dates were read {order}: the other way the log lies beside no telemetry.")
    )
