"""What the log of a training says of the time between two of its lines, in bounds for the idle time of a GPU in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.measures._steps.courses import courses
from gpudiag.measures._steps.paused_for import BOTH, OTHER, Part, pause_parts
from gpudiag.measures._time.microseconds import LONG_AGO, SECOND_US, microseconds
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import LASTING
from gpudiag.spans import Window

PAUSES = (*LASTING, BOTH, OTHER)
"""Causes of idle time in pauses."""


@dataclass(frozen=True)
class LoggedInterval:
    """A stretch of a training, in microseconds: ``least_steps_s`` to ``steps_s`` went into steps at their pace,
    ``paused_s`` at most into ``parts`` (none without a pause), ``loader_s`` of the steps into waiting for data (NaN
    unknown). ``n``: steps done in it.
    """

    start_us: int
    end_us: int
    least_steps_s: float
    steps_s: float
    paused_s: float
    parts: tuple[Part, ...]
    loader_s: float
    n: float

    @property
    def cause(self) -> str:
        """What most of its pause went into, or both kinds of work that the log tells of; '' without a pause."""
        works = {part.work for part in self.parts}
        if works.issuperset(LASTING):
            return BOTH
        return max(self.parts, key=lambda part: part.s).work if self.parts else ""


@dataclass(frozen=True)
class LoggedTraining:
    """One training whose lines carry timestamps; rank and trial are NaN where no line names one. ``unit``: what its
    lines count, step or epoch.
    """

    rank: float
    trial: float
    unit: str
    intervals: tuple[LoggedInterval, ...]

    @property
    def span_us(self) -> tuple[int, int]:
        return self.intervals[0].start_us, self.intervals[-1].end_us


def worked_until_us(trainings: Sequence[LoggedTraining]) -> int:
    """Up to when the logs tell of an evaluation or a checkpoint behind the last step of one, in microseconds; LONG_AGO
    where none does.
    """
    return max([LONG_AGO, *(until for _, until in behind_steps(trainings))])


def behind_steps(trainings: Sequence[LoggedTraining]) -> list[Window]:
    """The evaluations and checkpoints behind the last step of each, of which its log tells, in microseconds."""
    spans = []
    for training in trainings:
        last = training.intervals[-1]
        worked_s = sum(part.s for part in last.parts if part.work in (*LASTING, BOTH))
        if last.n == 0 and worked_s > 0:
            spans.append((last.start_us, last.start_us + round(worked_s * SECOND_US)))
    return spans


def edges(intervals: Sequence[LoggedInterval]) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of intervals, in microseconds."""
    both = np.array([(one.start_us, one.end_us) for one in intervals], np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


@memoized
def logged_trainings(run: Run) -> list[LoggedTraining]:
    """The trainings of the run's logs with their intervals in order of time, none of which overlap."""
    found = []
    for course in courses(run):
        intervals = tuple(_intervals(course))
        if intervals:
            first = course.iloc[0]
            found.append(LoggedTraining(float(first["rank"]), float(first["trial"]), str(first["unit"]), intervals))
    return found


def _intervals(course: pd.DataFrame) -> list[LoggedInterval]:
    out: list[LoggedInterval] = []
    dated = course[course["end"].notna()]
    begins = microseconds(dated["start"].fillna(dated["end"]))
    usual_n, reach = float(course["n"].median()), LONG_AGO
    rows = zip(begins.tolist(), microseconds(dated["end"]).tolist(), dated.to_dict("records"), strict=True)
    for begin_us, end_us, row in rows:
        n, loader_s, usual_s = float(row["n"]), float(row["loader_s"]), row["n"] * row["pace_s"]
        steps_s = _known(row["stated_s"], usual_s)
        if row["resumed"] > 0 and row["first"] and out:
            # Where it resumed, and how many steps no line tells of before it stopped, is open.
            gone_s = (end_us - reach) / SECOND_US
            steps_s = min(usual_s + usual_n * row["pace_s"], gone_s)
            parts = _of_restart(row, gone_s - float(row["paused_s"]))
            made = LoggedInterval(reach, end_us, 0.0, steps_s, gone_s, parts, 0.0, n)
        elif row["first"] or begin_us == end_us:
            start_us = end_us - round(steps_s * SECOND_US) if steps_s >= 0 else end_us
            slow_s = max(steps_s - usual_s, 0.0)
            parts = _all("first_steps", slow_s) if slow_s > 0 else ()
            made = LoggedInterval(max(start_us, reach), end_us, usual_s, usual_s, slow_s, parts, loader_s, n)
        else:
            took_s, paused_s = (end_us - begin_us) / SECOND_US, float(row["paused_s"] + row["resumed"])
            parts = _of_restart(row, float(row["resumed"])) if row["resumed"] else pause_parts(row) if paused_s else ()
            within_s = took_s - paused_s
            made = LoggedInterval(max(begin_us, reach), end_us, within_s, within_s, paused_s, parts, loader_s, n)
        if made.end_us > made.start_us:
            out.append(made)
            reach = made.end_us
    return out


def _of_restart(row: Mapping[str, Any], down_s: float) -> tuple[Part, ...]:
    """Time for a restart, behind what the log states of other work in the same interval."""
    return (*(pause_parts(row) if row["paused_s"] > 0 else ()), *_all("restart", down_s))


def _all(cause: str, seconds: float) -> tuple[Part, ...]:
    return (Part(cause, seconds, seconds, seconds),)


def _known(value: float, otherwise: float) -> float:
    return otherwise if np.isnan(value) else value
