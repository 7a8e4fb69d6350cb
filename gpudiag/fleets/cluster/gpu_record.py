"""What is known of one GPU over all the time of a data set, as amounts that add up at any cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpudiag.measures._time.cells import cell_borders
from gpudiag.readers._datasets.host_samples import UtilSamples
from gpudiag.schema import BUSY_PCT, IDLE_PCT
from gpudiag.spans import SILENCE_S
from gpudiag.units import SECOND_US

IDLE, LOW, BUSY, WORK = range(4)
"""Amounts: microseconds below 10 % utilization, from 10 to 50 %, of 50 % or more; and percent times microseconds."""
SILENCE_US = int(SILENCE_S * SECOND_US)
"""A longer silence of all GPUs of a host ends a session, as that of all GPUs of a run does."""


@dataclass(frozen=True)
class GpuRecord:
    """Cells of the samples of one GPU (start, end, percent), which do not overlap."""

    start_us: np.ndarray
    end_us: np.ndarray
    util_pct: np.ndarray

    def amounts_before(self, when_us: np.ndarray) -> np.ndarray:
        """The four amounts before each of these times; whole microseconds, so that cuts add up to the last one."""
        out = np.zeros((len(when_us), 4))
        if not len(self.start_us):
            return out
        at = np.searchsorted(self.start_us, when_us, "right") - 1
        inside = np.clip(when_us - self.start_us[at], 0, self.end_us[at] - self.start_us[at])
        inside[at < 0] = 0
        level = np.where(self.util_pct < IDLE_PCT, IDLE, np.where(self.util_pct < BUSY_PCT, LOW, BUSY))
        length = self.end_us - self.start_us
        for amount in range(4):
            weight = self.util_pct if amount == WORK else (level == amount).astype(float)
            before = np.concatenate(([0.0], np.cumsum(weight * length)))
            out[:, amount] = before[np.maximum(at, 0)] + weight[at] * inside
        return out


def sessions_of(gpus: tuple[UtilSamples, ...]) -> list[tuple[int, int]]:
    """First and last sample of each session: stretches without a silence of all GPUs of more than six hours."""
    known = [gpu.time_us for gpu in gpus if len(gpu.time_us)]
    if not known:
        return []
    silences = _silences(known[0])
    for time in known[1:]:
        silences = list(_common(silences, _silences(time)))
    return [(left[1], right[0]) for left, right in pairwise(silences)]


def _common(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Stretches in which both are silent for long enough; all lists are in order."""
    a = b = 0
    while a < len(one) and b < len(other):
        low, high = max(one[a][0], other[b][0]), min(one[a][1], other[b][1])
        if high - low > SILENCE_US:
            yield low, high
        if one[a][1] < other[b][1]:
            a += 1
        else:
            b += 1


def _silences(time: np.ndarray) -> list[tuple[int, int]]:
    """Long stretches between samples, those before the first and after the last included."""
    far = 2**62
    at = np.flatnonzero(np.diff(time) > SILENCE_US)
    return [
        (-far, int(time[0])),
        *zip(time[at].tolist(), time[at + 1].tolist(), strict=True),
        (int(time[-1]), far),
    ]


def spans_of(gpu: UtilSamples, sessions: list[tuple[int, int]]) -> list[tuple[int, int] | None]:
    """First and last observed instant of a GPU in each session; None with fewer than two samples."""
    out: list[tuple[int, int] | None] = []
    for first, last in sessions:
        low, high = np.searchsorted(gpu.time_us, [first, last + 1])
        start, end = cell_borders(gpu.time_us[low:high])
        out.append((int(start[0]), int(end[-1])) if high - low > 1 else None)
    return out


def record_of(gpu: UtilSamples, sessions: list[tuple[int, int]], life: tuple[int, int]) -> GpuRecord:
    """The cells of each session as a run of its own has them: with its own median period, and nothing across, nor
    before or after the GPU was part of its host.
    """
    starts, ends = [], []
    for first, last in sessions:
        low, high = np.searchsorted(gpu.time_us, [first, last + 1])
        start, end = cell_borders(gpu.time_us[low:high])
        starts.append(start)
        ends.append(end)
    if not starts:
        nothing = np.zeros(0, np.int64)
        return GpuRecord(nothing, nothing, np.zeros(0))
    start, end = np.concatenate(starts), np.concatenate(ends)
    end[:-1] = np.minimum(end[:-1], start[1:])  # half a period of days may reach into the next session
    return GpuRecord(np.clip(start, *life), np.clip(end, *life), gpu.util_pct)
