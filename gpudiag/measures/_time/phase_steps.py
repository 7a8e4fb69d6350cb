"""The time of one GPU in steps within which nothing changes: no trial comes or goes, busy stays busy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpudiag.measures._time.concurrency import assign_workers
from gpudiag.measures._time.microseconds import SECOND_US, distinct
from gpudiag.measures._time.timeline import RESPONSE_US, Intervals, Samples

RISE_PCT = 12.0
"""A rise of the utilization over two samples that its noise (METHODS 1: 2 to 4 points) does not explain."""
COARSE_US = 8 * SECOND_US
"""Median distance of samples from which on single trials are followed as shared ones are. At 10 s and more the first
two busy samples in a row end a start-up too late: in development runs start-up was 1 to 4 points too long."""
STEPS_A_TRIAL = 20
MOST_STEPS = 120_000


@dataclass(frozen=True)
class Steps:
    """Steps from the first start to the last end: shapes (n,), or (lanes, n) for what is of the trial in a lane.

    ``trial``: its position in the intervals, -1 where the lane is empty; ``age_s`` and ``left_s``: seconds since its
    start and until its end at the left border. ``rise``: the utilization goes up there; ``beside``: the GPU worked in
    the two samples before, so that what begins there does so beside other work. ``coarse``: samples lie so far
    apart that an idle one beside a start may as well show a stall.
    """

    start_us: np.ndarray
    length_s: np.ndarray
    active: np.ndarray
    seen: np.ndarray
    rise: np.ndarray
    beside: np.ndarray
    trial: np.ndarray
    age_s: np.ndarray
    left_s: np.ndarray
    coarse: bool = False

    @property
    def lanes(self) -> int:
        """The most trials at once."""
        return len(self.trial)

    def part(self, low: int, high: int) -> Steps:
        """The steps from one to before another."""
        arrays = [name for name in self.__dataclass_fields__ if name != "coarse"]
        return replace(self, **{name: getattr(self, name)[..., low:high] for name in arrays})


def cut_steps(samples: Samples, intervals: Intervals) -> Steps:
    """The steps of a GPU; none where it has no samples or no trials."""
    real = np.flatnonzero(intervals.end_us > intervals.start_us)
    order = real[np.lexsort((intervals.end_us[real], intervals.start_us[real]))]
    start, end = intervals.start_us[order], intervals.end_us[order]
    if not len(start) or not len(samples.time_us):
        nothing, nobody = np.zeros(0), np.zeros((0, 0))
        return Steps(nothing, nothing, nothing, nothing, nothing, nothing, nobody, nobody, nobody)
    active, rise = samples.at_work, _rises(samples.value)
    borders = _borders(samples, active, rise, start, end)
    begins, length = borders[:-1], np.diff(borders) / SECOND_US
    at = np.searchsorted(samples.start_us, begins, "right") - 1
    covered = (at >= 0) & (begins < samples.end_us[at])
    seen = covered & ~_of_other_trials(samples.time_us[at], begins, start, end, active[at])
    lane = assign_workers(start, end)
    trial = np.full((int(lane.max()) + 1, len(begins)), -1)
    for i in range(len(trial)):
        own = np.flatnonzero(lane == i)
        place = np.searchsorted(start[own], begins, "right") - 1
        held = (place >= 0) & (begins < end[own][place])
        trial[i, held] = own[place[held]]
    age, left = (begins - start[trial]) / SECOND_US, (end[trial] - begins) / SECOND_US
    named = np.where(trial >= 0, order[trial], -1)
    coarse = len(samples.time_us) > 1 and samples.step_us >= COARSE_US
    beside = _beside(active)[at] & seen
    return Steps(begins, length, active[at] & covered, seen, rise[at] & seen, beside, named, age, left, coarse)


def _of_other_trials(
    sampled: np.ndarray, begins: np.ndarray, start: np.ndarray, end: np.ndarray, active: np.ndarray
) -> np.ndarray:
    """Where a sample may show another set of trials than the step has for which it stands.

    A trial came or went between the two; or one ended up to a second before an active sample: utilization.gpu looks
    back so far (nvml.h), so that the work may be that trial's. An idle sample shows that nobody worked.
    """
    marks = np.sort(np.concatenate([start, end]))
    passed = np.searchsorted(marks, sampled, "right") != np.searchsorted(marks, begins, "right")
    ended = np.sort(end)
    lately = np.searchsorted(ended, sampled, "right") != np.searchsorted(ended, sampled - RESPONSE_US, "right")
    return passed | (lately & active)


def _beside(active: np.ndarray) -> np.ndarray:
    """Samples before which the GPU was active twice: a rise, which takes two, began within work."""
    out = np.zeros(len(active), bool)
    out[2:] = active[1:-1] & active[:-2]
    return out


def _rises(value: np.ndarray) -> np.ndarray:
    """Samples at which the utilization begins to rise by that much, within this sample or the next."""
    up = np.zeros(len(value), bool)
    up[1:-1] = (value[1:-1] - value[:-2] >= RISE_PCT / 3) & (
        np.maximum(value[1:-1], value[2:]) - value[:-2] >= RISE_PCT
    )
    return up


def _borders(samples: Samples, active: np.ndarray, rise: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Borders of the steps, in order and without repetition."""
    first, last = int(start.min()), int(end.max())
    longest = max(float(np.median(end - start)) / STEPS_A_TRIAL, (last - first) / MOST_STEPS, 1.0)
    changes = np.flatnonzero((active[1:] != active[:-1]) | rise[1:] | rise[:-1]) + 1
    gaps = samples.end_us[:-1][samples.end_us[:-1] < samples.start_us[1:]]
    behind = samples.start_us[1:][samples.end_us[:-1] < samples.start_us[1:]]
    cuts = [samples.start_us[changes]] if len(changes) <= MOST_STEPS else []
    even = np.arange(first, last, max(int(longest), 1))
    marks = np.concatenate([*cuts, gaps, behind, samples.start_us[:1], samples.end_us[-1:], start, end, even])
    return distinct(marks[(marks >= first) & (marks <= last)])
