"""What each trial may have left on each GPU: kinds of marks at its start, in its life and at its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.reduced import reduced
from gpudiag.measures._time.timeline import RESPONSE_US, Samples
from gpudiag.schema import IDLE_PCT

STEP_MIB = 200.0
"""Less than a CUDA context (300-600 MiB, METHODS 6): a smaller step of memory is no trial."""
STILL_MIB = 50.0
STEP_PCT = 12.0
"""A change of the utilization that its noise (METHODS 1: 2 to 4 points) does not explain."""
SETTLE_US = 6 * SECOND_US
"""A process frees its memory within seconds of its end; a successor allocates 3 to 8 s after its start (METHODS 6)."""
SOON_US, TAIL_US = 20 * SECOND_US, 10 * SECOND_US
RISES_US = tuple(int(s * SECOND_US) for s in (3, 6, 12, 25, 50, 100))
"""Borders of the time from a start to the first rise of memory."""
LAGS_US = tuple(int(s * SECOND_US) for s in (-3, 0, 3, 6, 12, 25, 50, 100))
"""Borders of the time from a last fall to the end: a trial writes its results after its work (METHODS 3)."""
SHIFTS = 12
MOST_SHIFTED = 12_000
"""Lives at other times; more tell no more."""
MOST_BESIDE = 3
ROWS = MOST_BESIDE + 1
FAST_US = 12 * SECOND_US
"""From this period on an end and the start after it fall between the same two samples."""


Kind = Callable[[Samples, np.ndarray, np.ndarray, float], np.ndarray]
"""From samples of a GPU, starts, ends and the period of the samples to a code by trial."""


@dataclass(frozen=True)
class Mark:
    """One kind of mark: ``kind`` (trial by GPU) is its code, -1 where nothing was recorded; ``beside`` (by trial, below
    ROWS) is what else decides how often others leave it there: how many of them are near, or how long the trial lived.
    ``usual``: how often each code is expected where the trial ran, as counts that the log's own are added to.
    ``any_time`` (trial by GPU): how often that GPU shows the code to lives as long that lie at other times of the log.
    """

    kind: np.ndarray
    beside: np.ndarray
    usual: tuple[float, ...]
    any_time: np.ndarray


def marks_of(
    start: np.ndarray, end: np.ndarray, ended: np.ndarray, memory: list[Samples], activity: list[Samples]
) -> list[Mark]:
    """All marks of trials on GPUs; ``memory`` and ``activity`` by GPU, empty where not recorded. Of a trial that has
    not ``ended`` only the first ones count.
    """
    period = _period([*memory, *activity])
    lives = _Lives(start, end, ended, period)
    at_end, at_start = _others(end, end, period + SECOND_US), _others(start, start, max(SETTLE_US, period))
    rises, falls = (1.0,) * (len(RISES_US) + 2), (1.0,) * (len(LAGS_US) + 2)
    fine = period <= FAST_US
    after_end = np.zeros(len(start), bool) if fine else _since_last(start, end) <= period + SETTLE_US
    every = ~after_end  # else the end before it is the same mark
    out = [lives.mark(_rose, memory, at_start, rises, every)]
    if fine:
        out += [
            lives.mark(_idle_first, activity, lives.third, (1.0, 1.0, 2.0), every),
            lives.mark(_last_fall, memory, at_end, falls, ended),
            lives.mark(_last_drop, activity, at_end, falls, ended),
        ]
    return [
        *out,
        lives.mark(_freed, memory, at_end, (1.0, 1.0, 2.0, 4.0, 6.0, 1.0), ended),
        lives.mark(_falls_within, memory, lives.third, (2.0, 1.0, 1.0, 1.0), ended),
        lives.mark(_stopped, activity, at_end, (4.0, 2.0, 1.0, 1.0), ended),
        lives.mark(_active_late, activity, lives.third, (1.0, 1.0, 4.0), ended),
    ]


class _Lives:
    """Trials as they were, and the same lives at other times of the log."""

    def __init__(self, start: np.ndarray, end: np.ndarray, ended: np.ndarray, period: float) -> None:
        self.start, self.end, self.period = start, end, period
        self.third = np.searchsorted(np.quantile(end - start, [1 / 3, 2 / 3]), end - start)
        self.who, self.at = _shifted(start, end)
        self.ended = ended

    def mark(
        self, kind: Kind, gpus: list[Samples], beside: np.ndarray, usual: tuple[float, ...], of: np.ndarray
    ) -> Mark:
        """One kind of mark ``of`` these trials."""
        seen = _by_gpu(kind, gpus, self.start, self.end, self.period)
        seen[~of] = -1
        who = self.who[of[self.who]]
        at = self.at[of[self.who]]
        other = _by_gpu(kind, gpus, at, at + (self.end - self.start)[who], self.period)
        often = np.stack([_shares(own, self.third[who], len(usual)) for own in other.T])
        chance = often[np.arange(len(gpus))[None, :], self.third[:, None], seen]
        return Mark(seen, beside, usual, np.where(seen >= 0, chance, 1.0))


def _shifted(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lives moved to other times at which trials ran: whose, and their starts."""
    first, last = int(start.min()), int(end.max())
    whose = np.arange(0, len(start), max(1, len(start) * SHIFTS // MOST_SHIFTED))
    by = ((np.arange(SHIFTS) + 0.5) / SHIFTS * (last - first)).astype(np.int64)
    at = (first + (start[whose] - first + by[:, None]) % max(last - first, 1)).ravel()
    who = np.tile(whose, SHIFTS)
    running = np.searchsorted(np.sort(start), at, "right") > np.searchsorted(np.sort(end), at, "right")
    kept = running & (at + (end - start)[who] <= last)
    return who[kept], at[kept]


def _shares(kind: np.ndarray, third: np.ndarray, n: int) -> np.ndarray:
    """How often each code is seen, by third of the lengths; two counts as in all of them are added."""
    seen = kind >= 0
    count = np.bincount(third[seen] * n + kind[seen], minlength=3 * n).reshape(3, n).astype(float)
    count += 2 * (count.sum(axis=0) + 1) / (count.sum() + n)
    shares: np.ndarray = count / count.sum(axis=1, keepdims=True)
    return shares


def _by_gpu(
    kind: Kind,
    gpus: list[Samples],
    start: np.ndarray,
    end: np.ndarray,
    period: float,
) -> np.ndarray:
    nothing = np.full(len(start), -1)
    return np.stack([kind(own, start, end, period) if len(own.time_us) > 1 else nothing for own in gpus], axis=1)


def _period(all_samples: list[Samples]) -> float:
    known = [own.step_us for own in all_samples if len(own.time_us) > 1]
    return max(known, default=float(SECOND_US))


def _others(times: np.ndarray, others: np.ndarray, near: float) -> np.ndarray:
    """How many of the others lie within ``near`` of each time, itself left out; at most MOST_BESIDE."""
    ordered = np.sort(others)
    count = np.searchsorted(ordered, times + near, "right") - np.searchsorted(ordered, times - near, "left") - 1
    return np.minimum(count, MOST_BESIDE)


def _since_last(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How long before each start the last end lies."""
    ordered = np.sort(end)
    at = np.searchsorted(ordered, start, "right") - 1
    return np.where(at >= 0, start - ordered[np.maximum(at, 0)], np.iinfo(np.int64).max)


def _around(samples: Samples, when: np.ndarray, period: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """First and last position of the samples just before and just after each time, and whether both are there."""
    time = samples.time_us
    at = np.searchsorted(time, when, "left")
    low = np.minimum(np.searchsorted(time, when - SETTLE_US), np.maximum(at - 1, 0))
    high = np.maximum(np.searchsorted(time, when + SETTLE_US, "right"), np.minimum(at + 1, len(time)))
    far = 1.5 * period + SECOND_US
    fresh = (at > 0) & (at < len(time))
    fresh &= when - time[np.maximum(at - 1, 0)] <= far
    fresh &= time[np.minimum(at, len(time) - 1)] - when <= far
    return low, at, high, fresh


def _freed(memory: Samples, start: np.ndarray, end: np.ndarray, period: float) -> np.ndarray:
    """Memory at the end: 0 still, 1 a little, 2 fell near, 3 fell just then, 4 to where no trial is, 5 rose."""
    low, at, high, fresh = _around(memory, end, period)
    most, least = reduced(np.maximum, memory.value, low, at), reduced(np.minimum, memory.value, at, high)
    last = memory.value[np.maximum(high - 1, 0)]
    then = np.minimum(np.searchsorted(memory.time_us, end + period + SECOND_US, "right"), at + 2)
    now = reduced(np.minimum, memory.value, at, np.maximum(then, at + 1))
    sudden = memory.value[np.maximum(at - 1, 0)] - now >= STEP_MIB
    empty = float(np.quantile(memory.value, 0.01)) + STEP_MIB
    kind = np.select(
        [
            sudden & (now <= empty),
            sudden,
            most - least >= STEP_MIB,
            last - most >= STEP_MIB,
            np.abs(last - most) < STILL_MIB,
        ],
        [4, 3, 2, 5, 0],
        1,
    )
    return np.where(fresh, kind, -1)


def _rose(memory: Samples, start: np.ndarray, end: np.ndarray, period: float) -> np.ndarray:
    """How long after the start memory first rose, by RISES_US; the last but one: later than these; the last: never."""
    _, _, _, fresh = _around(memory, start, period)
    up = np.append(memory.time_us[1:][np.diff(memory.value) >= STEP_MIB], np.iinfo(np.int64).max)
    first = up[np.searchsorted(up, start)]
    kind = np.where(first < end, np.searchsorted(np.array(RISES_US), first - start, "right"), len(RISES_US) + 1)
    return np.where(fresh, kind, -1)


def _last_fall(memory: Samples, start: np.ndarray, end: np.ndarray, period: float) -> np.ndarray:
    """How long before the end memory last fell, by LAGS_US; the last: not in this life."""
    return _lag(memory, STEP_MIB, start, end, period)


def _last_drop(activity: Samples, start: np.ndarray, end: np.ndarray, period: float) -> np.ndarray:
    """How long before the end activity last fell, by LAGS_US; the last: not in this life."""
    return _lag(activity, STEP_PCT, start, end, period)


def _lag(samples: Samples, step: float, start: np.ndarray, end: np.ndarray, period: float) -> np.ndarray:
    _, _, _, fresh = _around(samples, end, period)
    falls = samples.time_us[1:][np.diff(samples.value) <= -step]
    never = np.iinfo(np.int64).min // 2
    reach = end + int(max(period + SECOND_US, SETTLE_US))
    last = np.append(never, falls)[np.searchsorted(falls, reach, "right")]
    kind = np.where(last > start, np.searchsorted(np.array(LAGS_US), end - last, "right"), len(LAGS_US) + 1)
    return np.where(fresh, kind, -1)


def _falls_within(memory: Samples, start: np.ndarray, end: np.ndarray, period: float) -> np.ndarray:
    """How often memory fell within the life, clear of both ends; 3 for more."""
    falls = memory.time_us[1:][np.diff(memory.value) <= -STEP_MIB]
    margin = int(SETTLE_US + period)
    count, seen = (
        np.searchsorted(times, end - margin) - np.searchsorted(times, start + margin)
        for times in (falls, memory.time_us)
    )
    return np.where(seen >= 2, np.clip(count, 0, 3), -1)


def _stopped(activity: Samples, start: np.ndarray, end: np.ndarray, period: float) -> np.ndarray:
    """Activity at the end: 0 stopped, 1 fell, 2 as before, 3 rose."""
    low, at, high, fresh = _around(activity, end, period)
    before, after = reduced(np.maximum, activity.value, low, at), reduced(np.minimum, activity.value, at, high)
    last = activity.value[np.maximum(high - 1, 0)]
    stopped = (after < IDLE_PCT) & (before >= IDLE_PCT)
    kind = np.select([stopped, before - after >= STEP_PCT, last - before >= STEP_PCT], [0, 1, 3], 2)
    return np.where(fresh, kind, -1)


def _active_late(activity: Samples, start: np.ndarray, end: np.ndarray, period: float) -> np.ndarray:
    """How much of the last third of the life, less its tail, was active: 0 little, 1 most, 2 all."""
    share = _share_active(activity, end - (end - start) // 3, end - TAIL_US)
    return np.where(np.isnan(share), -1, np.select([share < 0.5, share < 0.95], [0, 1], 2))


def _idle_first(activity: Samples, start: np.ndarray, end: np.ndarray, period: float) -> np.ndarray:
    """How much of the first seconds was active: 0 all, 1 some, 2 none."""
    share = _share_active(activity, start + RESPONSE_US, np.minimum(start + SOON_US, (start + end) // 2))
    return np.where(np.isnan(share), -1, np.select([share > 0.95, share > 0.05], [0, 1], 2))


def _share_active(activity: Samples, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    active = np.concatenate([[0], np.cumsum(activity.value >= IDLE_PCT)])
    first, last = np.searchsorted(activity.time_us, low), np.searchsorted(activity.time_us, high)
    n = last - first
    return np.where(n > 0, (active[last] - active[first]) / np.maximum(n, 1), np.nan)
