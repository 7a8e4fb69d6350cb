"""Whether two folders with GPU samples hold a training each, told from their names and from where their logs stood."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from gpudiag.readers.base import Trials
from gpudiag.spans import microseconds

OF_ONE_RUN = re.compile(
    "nodes?|hosts?|ranks?|worker|machine|server|gpus?|proc|process|replica|pod|shard|part|chunk|attempt|restart|"
    "resumed?|session|stage|local"
)
OF_RUNS = re.compile("runs?|expt?|experiments?|seed|jobs?|trial|config|baseline|ablation")
"""Words in the names of folders that are a run each (defaults without a source, as those above)."""
SAME_PACE = 0.1
"""Ranks do the same steps; a tenth between their paces is more than lines at other moments make of them."""
NEAR_LINES = 2.0
NEAR = 0.01
"""How far apart two logs of one training may stand: so many lines, or such a share of the steps done meanwhile."""


@dataclass(frozen=True)
class Course:
    """When a log stood at which step: times in microseconds, ascending, and steps."""

    at_us: np.ndarray
    steps: np.ndarray

    @property
    def line(self) -> float:
        """Steps from one line to the next."""
        return float(np.median(np.abs(np.diff(self.steps))))

    def disagrees(self, other: Course) -> bool:
        """Whether at the same times the two went on at another pace."""
        one, two = (float(np.ptp(course)) for course in self._meanwhile(other))
        apart = abs(one - two)
        return apart > SAME_PACE * max(one, two) and apart > NEAR_LINES * max(self.line, other.line)

    def stands_with(self, other: Course) -> bool:
        """Whether at the same times both stood at the same step."""
        one, two = self._meanwhile(other)
        near = max(NEAR_LINES * max(self.line, other.line), NEAR * float(np.ptp(one)))
        return float(np.median(np.abs(one - two))) <= near

    def overlaps(self, other: Course) -> bool:
        """Whether there is a time of which both tell."""
        return bool(max(self.at_us[0], other.at_us[0]) < min(self.at_us[-1], other.at_us[-1]))

    def begins_anew_after(self, other: Course) -> bool:
        """Whether it began where a training begins, when the other had gone further."""
        later = self.at_us[0] >= other.at_us[-1]
        return bool(later and self.steps[0] <= NEAR_LINES * self.line < other.steps[-1])

    def _meanwhile(self, other: Course) -> tuple[np.ndarray, np.ndarray]:
        first, last = max(self.at_us[0], other.at_us[0]), min(self.at_us[-1], other.at_us[-1])
        times = np.linspace(first, last, 100)
        return np.interp(times, self.at_us, self.steps), np.interp(times, other.at_us, other.steps)


def course_of(logs: Sequence[Trials]) -> Course | None:
    """The course of the longest log with dates; None without one."""
    found = [rows for log in logs if len(log.steps) for rows in _dated(log.steps)]
    if not found:
        return None
    longest = max(found, key=len).sort_values(["time", "step"], kind="stable")
    return Course(microseconds(longest["time"]), longest["step"].to_numpy(float))


def are_apart(names: tuple[str, str], courses: tuple[Course | None, Course | None]) -> bool:
    """Whether two folders, each with a training or a search of its own, are runs of their own.

    Ranks and nodes of one training log the same steps at the same time. Where the logs of two folders contradict that,
    they are two trainings, whatever they are called; where nothing does, the names decide.
    """
    named = _by_name(*names)
    one, two = courses
    if one is None or two is None:
        return named in ("runs", "unlike")
    if one.overlaps(two):
        return one.disagrees(two) or named == "runs" or (named == "unlike" and not one.stands_with(two))
    return named != "parts" and (one.begins_anew_after(two) or two.begins_anew_after(one))


def _by_name(one: str, two: str) -> Literal["parts", "runs", "numbered", "unlike"]:
    """What two names say: parts of one run, runs, one name with other numbers, or nothing alike."""
    words = [re.findall(r"[a-z]+", name.casefold()) for name in (one, two)]
    if all(any(map(OF_RUNS.fullmatch, some)) for some in words):
        return "runs"
    if all(any(map(OF_ONE_RUN.fullmatch, some)) for some in words):
        return "parts"
    return "numbered" if re.sub(r"\d+", "#", one) == re.sub(r"\d+", "#", two) else "unlike"


def _dated(steps: pd.DataFrame) -> list[pd.DataFrame]:
    known = steps[steps["time"].notna() & (steps["unit"] == "step")]
    parts = [part for _, part in known.groupby(["path", "series"], sort=False, dropna=False)]
    return [part for part in parts if part["time"].nunique() > 1 and part["step"].nunique() > 1]
