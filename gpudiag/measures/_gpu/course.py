"""The samples of a GPU as arrays, and the time in which at least one of several GPUs was active."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpudiag.measures._time.concurrency import busy_stretches
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.work import stretches
from gpudiag.spans import held_within


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
    """When at least one GPU was active: both ends of these stretches, in order."""

    left_us: np.ndarray
    right_us: np.ndarray

    @classmethod
    def of(cls, gpus: Collection[GpuCourse]) -> ActiveTime:
        spans = [(one, *stretches(one.at_work, one.start_us, one.end_us)) for one in gpus]
        return cls(
            *busy_stretches(
                np.concatenate([one.start_us[first] for one, first, _ in spans]),
                np.concatenate([one.end_us[last] for one, _, last in spans]),
            )
        )

    def within_s(self, start_us: np.ndarray, end_us: np.ndarray) -> float:
        """Seconds of some spans in which a GPU was active."""
        return float(held_within(start_us, end_us, self.left_us, self.right_us).sum()) / SECOND_US
