"""Dates for telemetry that has none, from the trials or the logs beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.alignment.dating import Beside, Dating, date_by_day, date_by_fit
from gpudiag.readers._shape.ticks import MIDNIGHT_NOTE
from gpudiag.readers.base import WITHOUT_DATE, Telemetry, Trials
from gpudiag.run import Run
from gpudiag.spans import seconds
from gpudiag.statement import NOTHING, Statement

TABLES = ("gpu", "processes", "host", "events")


class Dated(NamedTuple):
    """Logs of GPU metrics with dates; or as they were, and why. ``placed``: how those without any time were put."""

    logs: Sequence[Telemetry]
    withheld: Statement = NOTHING
    placed: Statement = NOTHING


def with_dates(logs: Sequence[Telemetry], trials: Trials, zone: tzinfo, given_s: float | None) -> Dated:
    """Logs of GPU metrics without dates on those of the trials, or of the logs, beside them.

    Times of day get the one day on which they overlap with them; of several days the one on which logged steps lie on
    work of the GPUs, or that fits as clearly as an offset must (METHODS 2). Samples without any time are put where the
    fit is as clear as that of an offset that no time zone explains. ``given_s``: trials or logs + this = telemetry.
    """
    times = {at: _times(log) for at, log in enumerate(logs) if log.clock in WITHOUT_DATE}
    beside = Beside.of(trials, given_s or 0.0) if any(map(len, times.values())) else None
    if beside is None:
        return Dated(logs)
    found = {at: _dating(logs[at], own, beside, zone) for at, own in times.items() if len(own)}
    for one in found.values():
        if one.to_utc is None:
            return Dated([_noted(log, one.said) for log in logs], withheld=one.said)
    made = [
        _noted(_moved(log, found[at].to_utc), found[at].said) if at in found else log for at, log in enumerate(logs)
    ]
    by_fit = (one.said for at, one in found.items() if logs[at].clock == "count")
    return Dated(made, placed=next(by_fit, NOTHING))


def _dating(log: Telemetry, times: np.ndarray, beside: Beside, zone: tzinfo) -> Dating:
    run = Run(gpu=log.gpu)
    return date_by_day(run, times, beside, zone) if log.clock == "day" else date_by_fit(run, times, beside)


def _times(log: Telemetry) -> np.ndarray:
    """The times of all its rows; s."""
    tables = (getattr(log, name) for name in TABLES)
    return np.concatenate([seconds(table["time"]) for table in tables if len(table)] or [np.zeros(0)])


def _moved(log: Telemetry, to_utc: Callable[[np.ndarray], np.ndarray] | None) -> Telemetry:
    """The log with the times that are found for its times."""
    if to_utc is None:
        return log
    tables = {name: table for name in TABLES if len(table := getattr(log, name))}
    for name, table in tables.items():
        moved = pd.Series(to_utc(table["time"].to_numpy("datetime64[us]")), table.index)
        tables[name] = table.assign(time=moved.dt.tz_localize("UTC"))
    return replace(log, **tables)


def _noted(log: Telemetry, said: Statement) -> Telemetry:
    """The log with that among its notes, in place of the one on midnight."""
    return replace(log, notes=(*(note for note in log.notes if note != MIDNIGHT_NOTE), str(said)))
