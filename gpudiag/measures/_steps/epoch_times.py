"""How long the epochs of a training take by its log, and whether what repeats comes once in each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpudiag.measures._steps.courses import courses
from gpudiag.measures._steps.ranks import in_lock_step, one_of_each
from gpudiag.memo import memoized
from gpudiag.run import Run

ENOUGH = 3
"""Whole epochs whose median is the time of one."""
SAME = 0.05
"""Share of a period that an epoch may differ from it by."""
CLOCK_S = 2.0
"""What a clock of whole seconds may be off by between two of its readings."""


@dataclass(frozen=True)
class EpochTime:
    """``counted_s``: median time of an epoch that clocks of the log count, NaN unknown; ``is_all``: timestamps count
    all of it, while bars leave out what lies between them.
    """

    counted_s: float
    is_all: bool

    def once(self, period_s: float) -> bool:
        """Whether something with this period comes once in each counted epoch."""
        return abs(period_s - self.counted_s) <= SAME * period_s

    def once_uncounted(self, period_s: float, width_s: float) -> bool:
        """Whether something of this width comes once in each epoch, in time that the log's clocks do not count: period
        and epoch differ by just that, and by more than rounded clocks do.
        """
        apart_s = abs(period_s - self.counted_s - width_s)
        return not self.is_all and width_s > 2 * max(apart_s, CLOCK_S) and apart_s <= SAME * period_s


@memoized
def epoch_time(run: Run) -> EpochTime:
    """Of the training whose log was read, the ranks of which do the same steps; the first epoch and the last one, which
    may be cut, are left out.
    """
    told = courses(run)
    if not told or not in_lock_step(told):
        return EpochTime(math.nan, is_all=False)
    course = max(one_of_each(told), key=len)
    number = course["new_epoch"].cumsum()
    each_s = course.groupby(number)["took_s"].sum(min_count=1).iloc[1:-1].to_numpy()
    known = each_s[np.isfinite(each_s) & (each_s > 0)]
    is_all = bool(course["end"].notna().any())
    return EpochTime(float(np.median(known)) if len(known) >= ENOUGH else math.nan, is_all)
