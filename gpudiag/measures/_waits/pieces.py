"""The time of one GPU without a kernel: what the record of trials explains, and what lies within the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpudiag.measures._time.gpu_time import GpuTime
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.no_waits import are_no_waits
from gpudiag.measures._time.steady import first_work
from gpudiag.measures._time.timeline import (
    BUSY,
    BUSY_LOW,
    FOREIGN,
    NO_TRIAL,
    STALLED,
    STARTUP,
    TAIL,
    WAITING,
    Samples,
    Timeline,
)
from gpudiag.measures._waits.bounds import Share
from gpudiag.schema import IDLE_PCT
from gpudiag.spans import Window


@dataclass(frozen=True, eq=False)
class UnusedTime:
    """Pieces of one GPU in order of time. ``within``: the GPU was meant to work; ``of_record``: what explains the rest.

    ``unused_s`` is the integral of 100 % minus utilization over the observed time; ``period_s`` the median time that a
    sample stands for.
    """

    start_us: np.ndarray
    end_us: np.ndarray
    util_pct: np.ndarray
    running: np.ndarray
    within: np.ndarray
    of_record: tuple[Share, ...]
    observed_s: float
    unused_s: float
    period_s: float

    def between(self, start_us: np.ndarray, end_us: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Seconds without a kernel, and observed seconds, of the work within each span; a piece that is cut counts by
        its share.
        """
        if not len(self.start_us) or not len(start_us):
            return np.zeros(len(start_us)), np.zeros(len(start_us))
        edges, unused, seen = self._areas
        both = [np.interp(end_us, edges, area) - np.interp(start_us, edges, area) for area in (unused, seen)]
        return both[0], both[1]

    @cached_property
    def _areas(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Edges of the pieces, and up to each the seconds of work without a kernel, and of observed work."""
        length = np.where(self.within, (self.end_us - self.start_us) / SECOND_US, 0.0)
        unused = length * (1 - np.nan_to_num(self.util_pct, nan=100.0) / 100)
        seen = np.where(np.isnan(self.util_pct), 0.0, length)
        totals = [np.column_stack([np.cumsum(part) - part, np.cumsum(part)]).ravel() for part in (unused, seen)]
        return np.column_stack([self.start_us, self.end_us]).ravel(), totals[0], totals[1]


def unused_time(
    line: Timeline,
    time: GpuTime,
    gpu: str,
    logged: Sequence[Window],
    between: Sequence[Window],
    behind: Sequence[Window] = (),
) -> UnusedTime:
    """The time of one GPU, of which ``line`` is all or a part; ``logged``: spans of which logs of trainings tell.

    ``behind``: spans behind the last step of its trainings in which their logs tell of an evaluation or a checkpoint.
    That is the end of a trial as the record has it, but a pause like those before it.
    """
    samples = time.samples.get(gpu, Samples.none())
    seconds = line.length_s * (1 - line.util_pct / 100)
    seen = ~np.isnan(line.util_pct)
    within = np.isin(line.cell, (STALLED, BUSY_LOW, BUSY))
    if not time.joined:
        within = seen & (~_outside(line, between) | _any(line, logged))
    else:
        within |= seen & np.isin(line.cell, (TAIL, WAITING)) & _amid(line, behind)
    return UnusedTime(
        start_us=line.start_us,
        end_us=line.end_us,
        util_pct=line.util_pct,
        running=line.running,
        within=within,
        of_record=tuple(_of_record(line, seconds, seen & ~within, joined=time.joined)),
        observed_s=float(line.length_s[seen].sum()),
        unused_s=float(seconds[seen].sum()),
        period_s=float(np.median(samples.end_us - samples.start_us)) / SECOND_US if len(samples.time_us) else np.nan,
    )


def _of_record(line: Timeline, seconds: np.ndarray, left: np.ndarray, *, joined: bool) -> list[Share]:
    """What the cells explain. Where it is open what an idle GPU waits for, that is start-up or tail at most."""
    if not joined:
        held = float(seconds[left].sum())
        return [Share("outside", "record", held, held, held)] if held else []
    of_cell = {cell: float(seconds[left & (line.cell == cell)].sum()) for cell in range(BUSY + 1)}
    outside, open_ = of_cell[NO_TRIAL] + of_cell[FOREIGN], of_cell[WAITING]
    shares = [
        Share("outside", "record", outside, outside, outside),
        Share("startup", "record", of_cell[STARTUP], of_cell[STARTUP], of_cell[STARTUP] + open_),
        Share("tail", "record", of_cell[TAIL], of_cell[TAIL], of_cell[TAIL] + open_),
    ]
    return [share for share in shares if share.high_s > 0]


def _any(line: Timeline, spans: Sequence[Window]) -> np.ndarray:
    """Pieces that lie in one of the spans, of those in which the GPU works."""
    inside, length = np.zeros(len(line.start_us), bool), line.length_s
    for low, high in spans:
        own = (line.start_us >= low) & (line.end_us <= high) & ~np.isnan(line.util_pct)
        if own.any() and np.average(line.util_pct[own], weights=length[own]) >= IDLE_PCT:
            inside |= own
    return inside


def _amid(line: Timeline, spans: Sequence[Window]) -> np.ndarray:
    """Pieces of which the middle lies in one of the spans."""
    middle, inside = (line.start_us + line.end_us) // 2, np.zeros(len(line.start_us), bool)
    for low, high in spans:
        inside |= (middle >= low) & (middle < high)
    return inside


def _outside(line: Timeline, between: Sequence[Window]) -> np.ndarray:
    """Without trials: before the first steady and after the last work, and in idle stretches that are no waits."""
    idle = ~(line.util_pct >= IDLE_PCT)
    active = np.flatnonzero(~idle)
    if not len(active):
        return np.ones(len(idle), bool)
    out = np.zeros(len(idle), bool)
    out[: first_work(~idle, line.start_us, line.end_us)] = out[active[-1] + 1 :] = True
    apart = np.flatnonzero(active[1:] - active[:-1] > 1)
    before, after = active[apart], active[apart + 1]
    long = are_no_waits(line.end_us[before], line.start_us[after], between)
    for low, high in zip(before[long].tolist(), after[long].tolist(), strict=True):
        out[low + 1 : high] = True
    return out & idle
