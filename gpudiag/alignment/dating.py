"""Where in time a log of GPU metrics lies that carries no date, by the trials or the logged steps beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.alignment.apply import later
from gpudiag.alignment.days import Day, days_with, nearest_day, on_day
from gpudiag.alignment.establish import correlate
from gpudiag.alignment.far_places import FarPlaces, Place
from gpudiag.alignment.logged_steps import logged_stretches, of_one_rank, placed, times_of_work
from gpudiag.alignment.signals import SampleTimes
from gpudiag.readers.base import Trials
from gpudiag.run import Run
from gpudiag.spans import seconds
from gpudiag.statement import Statement
from gpudiag.units import SECOND_US

ONE_DAY = "Its timestamps carry no date: {day} is assumed, the one day on which they overlap with the {what}."
ON_WORK = "Its timestamps carry no date: {day} is assumed, the one day on which logged steps lie on work of the GPUs."
BEST_DAY = (
    "Its timestamps carry no date: {day} is assumed, on which {signals} fit the {what} best (correlation "
    "{fit:as ratio}; other days reach {rival_fit:as ratio} at most)."
)
NEAREST = "Its timestamps carry no date: {day} is assumed, on which the {what} fit them best but for another time zone."
PLACED = (
    "Its samples carry no time: a beginning at {begin} UTC is assumed, where {signals} fit the {what} best "
    "(correlation {fit:as ratio}; no other place reaches more than {rival_fit:as ratio})."
)
SEVERAL_DAYS = (
    "The telemetry has times of day and no date. It may be of {n:day} from {first} to {last}, of which none fits the "
    "{what} clearly best. No day is assumed, and the two are not joined."
)
NO_DAY = (
    "The telemetry has times of day and no date, and no day is found on which it fits the {what}. No day is "
    "assumed, and the two are not joined."
)
NO_TIME = (
    "The telemetry carries no time, and nothing in it shows where it lies beside the {what}. No time is assumed, "
    "and the two are not joined."
)


class Dating(NamedTuple):
    """What was found for one log: from its times as read (datetime64) to UTC, None where it is not told; and why."""

    to_utc: Callable[[np.ndarray], np.ndarray] | None
    said: Statement


@dataclass(frozen=True)
class Beside:
    """What tells dates: ``trials``, or the steps of a ``log``, whose lines are ``line_s`` apart; intervals in UTC."""

    what: str
    intervals: pd.DataFrame
    line_s: float = float("nan")

    @classmethod
    def of(cls, trials: Trials, given_s: float) -> Beside | None:
        """On the telemetry's clock, as far as somebody stated it: trials + ``given_s``. None without any date."""
        began = trials.trials[trials.trials["start"].notna()]
        if len(began):
            found = cls("trials", pd.DataFrame({"start": began["start"], "end": began["end"].fillna(began["start"])}))
        elif len(trials.trials) or len(steps := of_one_rank(trials.steps)) < 2:
            return None
        else:
            found = cls("log", *logged_stretches(steps))
        moved = later(found.intervals, ("start", "end"), np.full(len(found.intervals), given_s))
        return replace(found, intervals=moved) if len(moved) else None

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Starts and ends in seconds since 1970."""
        return seconds(self.intervals["start"]), seconds(self.intervals["end"])

    def places(self, run: Run) -> FarPlaces | None:
        """How they fit the samples of a run wherever these lie."""
        return None if run.gpu.empty else FarPlaces.of(run, SampleTimes.of(run), self.intervals)

    def work(self, run: Run) -> np.ndarray | None:
        """Starts and ends of work of the GPUs, as read; None where it is not looked at: a trial may have none."""
        if self.what != "log" or "util_pct" not in run.gpu or run.gpu.empty:
            return None
        work_s = times_of_work(run, SampleTimes.of(run).period_s, self.line_s)
        return np.round(work_s * SECOND_US).astype("int64").astype("datetime64[us]")

    def is_ruled_out(self, work: np.ndarray | None, day: Day, zone: tzinfo, offset_s: float = 0.0) -> bool:
        """Whether the steps lie beside the work of that day, as for a log with dates."""
        if work is None:
            return False
        work_s = on_day(work.ravel(), day.number, zone).astype("int64").reshape(-1, 2) / SECOND_US
        return placed(self.intervals, offset_s, work_s).is_wrong


def date_by_day(run: Run, times: np.ndarray, beside: Beside, zone: tzinfo) -> Dating:
    """The day on which a log with times of day lies; ``times`` (s) are those of all its rows."""
    first, last = float(np.nanmin(times)), float(np.nanmax(times))
    start, end = beside.ends()
    days = list(days_with(first, last, start, end, zone))
    work = beside.work(run)
    fitting = [day for day in days if not beside.is_ruled_out(work, day, zone)]
    if len(fitting) == 1:
        return _on(fitting[0], zone, Statement(ONE_DAY if len(days) == 1 else ON_WORK, what=beside.what))
    if fitting:
        places = beside.places(run)
        best = places and places.of_days([day.offset_s for day in fitting])
        if not best:
            ends = {"first": fitting[0].date, "last": fitting[-1].date}
            return Dating(None, Statement(SEVERAL_DAYS, n=len(fitting), what=beside.what, **ends))
        day = next(day for day in fitting if day.offset_s == best.offset_s)
        return _on(day, zone, _by_fit(BEST_DAY, best, beside))
    day = nearest_day(first, last, float(start.min() + end.max()) / 2, zone)
    offset_s = _offset_s(run, beside, day, zone)
    if offset_s is None or beside.is_ruled_out(work, day, zone, offset_s):
        return Dating(None, Statement(NO_DAY, what=beside.what))
    return _on(day, zone, Statement(NEAREST, what=beside.what))


def _offset_s(run: Run, beside: Beside, day: Day, zone: tzinfo) -> float | None:
    """By how many quarters of an hour the log of that day clearly fits."""
    if run.gpu.empty:
        return None
    times = on_day(run.gpu["time"].to_numpy("datetime64[us]"), day.number, zone)
    dated = Run(gpu=run.gpu.assign(time=pd.Series(times, run.gpu.index).dt.tz_localize("UTC")))
    made = correlate(dated, SampleTimes.of(dated), beside.intervals, zone)
    return made.offset_s if made.confidence == "strong" else None


def _on(day: Day, zone: tzinfo, said: Statement) -> Dating:
    told = Statement(said.template, **{**said.values, "day": day.date})
    return Dating(lambda time: on_day(time, day.number, zone), told)


def date_by_fit(run: Run, times: np.ndarray, beside: Beside) -> Dating:
    """Where a log without any time lies."""
    places = beside.places(run)
    best = places and places.anywhere()
    if not best:
        return Dating(None, Statement(NO_TIME, what=beside.what))
    begin = datetime.fromtimestamp(round(float(np.nanmin(times)) - best.offset_s), UTC)
    by = np.timedelta64(round(-best.offset_s * SECOND_US), "us")
    return Dating(lambda time: time + by, Statement(PLACED, begin=begin, **_by_fit(PLACED, best, beside).values))


def _by_fit(template: str, best: Place, beside: Beside) -> Statement:
    return Statement(template, signals=best.signals, fit=best.fit, rival_fit=best.rival_fit, what=beside.what)
