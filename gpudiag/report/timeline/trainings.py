"""Trainings over time, as their logs tell: what each stretch went into, as shares of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpudiag.measures._waits.logged import LoggedInterval, LoggedTraining, edges, logged_trainings
from gpudiag.plots._draw.causes import LABELS
from gpudiag.plots._draw.palette import CELL_COLORS
from gpudiag.run import Run
from gpudiag.spans import Window

PARTS = {
    "steps": ("steps", CELL_COLORS["busy"]),
    "loader": (LABELS["loader"], CELL_COLORS["stalled"]),
    "pause": ("pauses between steps", CELL_COLORS["waiting"]),
    "start": ("slow first steps, restarts", CELL_COLORS["startup_only"]),
}
"""Label and colour of what a stretch goes into."""
STARTS = ("first_steps", "restart")


def part_of(cause: str) -> str:
    """The part that a cause of a pause belongs to."""
    return "start" if cause in STARTS else "pause"


MOST_ROWS = 64


@dataclass(frozen=True, eq=False)
class Course:
    """Trainings one after the other, on one row: borders (µs) of stretches, the seconds of each part in them
    (stretches x PARTS), and by stretch the place in LABELS of what a pause was for, or their number for no pause.
    """

    name: str
    start_us: np.ndarray
    end_us: np.ndarray
    parts_s: np.ndarray
    cause: np.ndarray

    @property
    def shares(self) -> np.ndarray:
        """Share of each part in the time of a stretch, 0 to 1."""
        return self.parts_s / np.maximum((self.end_us - self.start_us) / 1e6, 1e-6)[:, None]


def training_courses(run: Run, window: Window, most: int) -> tuple[Course, ...]:
    """A row a rank, and more where trainings of one overlap, of trainings in the window; stretches are joined where a
    row has more than ``most``.
    """
    low, high = window
    rows = _rows([one for one in logged_trainings(run) if one.span_us[0] < high and one.span_us[1] > low])
    several = len(rows) > 1
    return tuple(_coarser(_course(row, several=several), most) for row in rows[:MOST_ROWS])


def _rows(trainings: Sequence[LoggedTraining]) -> list[list[LoggedTraining]]:
    rows: list[list[LoggedTraining]] = []
    for one in sorted(trainings, key=lambda one: (np.nan_to_num(one.rank, nan=-1.0), one.span_us)):
        free = (row for row in rows if _rank(row[-1]) == _rank(one) and row[-1].span_us[1] <= one.span_us[0])
        row = next(free, None)
        if row is None:
            rows.append([one])
        else:
            row.append(one)
    return rows


def _rank(training: LoggedTraining) -> str:
    return "" if math.isnan(training.rank) else f"rank {round(training.rank)}"


def _course(row: Sequence[LoggedTraining], *, several: bool) -> Course:
    intervals = [one for training in row for one in training.intervals]
    start_us, end_us = edges(intervals)
    parts = [_parts(one, (end - start) / 1e6) for one, start, end in zip(intervals, start_us, end_us, strict=True)]
    names = [*LABELS, ""]
    cause = np.array([names.index(one.cause) for one in intervals], np.uint8)
    return Course(_rank(row[0]) if several else "", start_us, end_us, np.array(parts).reshape(-1, len(PARTS)), cause)


def _parts(one: LoggedInterval, took_s: float) -> tuple[float, ...]:
    """Seconds in the order of PARTS; they add up to the time of the interval."""
    paused_s = min(one.paused_s, took_s)
    loader_s = min(float(np.nan_to_num(one.loader_s)), took_s - paused_s)
    starts = part_of(one.cause) == "start"
    return took_s - paused_s - loader_s, loader_s, 0.0 if starts else paused_s, paused_s if starts else 0.0


def _coarser(course: Course, most: int) -> Course:
    """Even stretches, each with what lies in it and the cause of most of its pauses."""
    if len(course.start_us) <= most:
        return course
    borders = np.linspace(course.start_us[0], course.end_us[-1], most + 1).astype(np.int64)
    at = np.column_stack([course.start_us, course.end_us]).ravel()
    ends = course.parts_s.cumsum(axis=0)
    totals = np.stack([ends - course.parts_s, ends], axis=1).reshape(-1, len(PARTS))
    held = np.column_stack([np.diff(np.interp(borders, at, totals[:, part])) for part in range(len(PARTS))])
    paused = course.parts_s[:, 2:].sum(axis=1)
    cause = np.full(most, len(LABELS), np.uint8)
    order = np.argsort(paused, kind="stable")  # the longest last: it names the stretch
    order = order[paused[order] > 0]
    first, last = (np.searchsorted(borders, edge[order], "right") - 1 for edge in (course.start_us, course.end_us - 1))
    for low, high, named in zip(first.tolist(), last.tolist(), course.cause[order].tolist(), strict=True):
        cause[low : high + 1] = named
    full = held.sum(axis=1) > 0
    return Course(course.name, borders[:-1][full], borders[1:][full], held[full], cause[full])
