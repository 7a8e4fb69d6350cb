"""The samples of a GPU as arrays, and the time in which at least one of several GPUs was active."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpudiag.measures._time.concurrency import busy_stretches
from gpudiag.measures._time.curve import rise
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.work import stretches


@dataclass(frozen=True)
class GpuCourse:
    """The samples of one GPU, its memory NaN where unknown."""

    util: np.ndarray
    at_work: np.ndarray
    used: np.ndarray
    start_us: np.ndarray
    end_us: np.ndarray

    @cached_property
    def weight_s(self) -> np.ndarray:
        return np.asarray((self.end_us - self.start_us) / SECOND_US)


@dataclass(frozen=True)
class ActiveTime:
    """When at least one GPU was active: borders of these stretches, and the seconds of them up to each."""

    borders_us: np.ndarray
    until_s: np.ndarray

    @classmethod
    def of(cls, gpus: Collection[GpuCourse]) -> ActiveTime:
        spans = [(one, *stretches(one.at_work, one.start_us, one.end_us)) for one in gpus]
        left, right = busy_stretches(
            np.concatenate([one.start_us[first] for one, first, _ in spans]),
            np.concatenate([one.end_us[last] for one, _, last in spans]),
        )
        until_us = np.column_stack([np.zeros(len(left)), right - left]).ravel().cumsum()
        return cls(np.column_stack([left, right]).ravel(), until_us / SECOND_US)

    def within_s(self, start_us: np.ndarray, end_us: np.ndarray) -> float:
        """Seconds of spans in order in which a GPU was active."""
        return float(rise(start_us, end_us, self.borders_us, self.until_s).sum()) if len(self.borders_us) else 0.0
