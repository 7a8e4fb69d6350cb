"""Memory that falls at one distance from the ends of trials: seconds by which clocks may differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy

from gpudiag.alignment.signals import SampleTimes
from gpudiag.alignment.trial_groups import trial_groups
from gpudiag.run import Run
from gpudiag.spans import seconds
from gpudiag.statement import Statement

REACH_S = 200.0
STEP_S = 1.0
LEAST_MIB = 300.0
"""Smaller than what a CUDA context takes: no process ended (METHODS 6)."""
LONGEST_STEP = 3.0
"""Samples more than three periods apart have a gap between them."""
SLACK_S = 5.0
"""Falls lie at one distance from their ends if they differ by so much at most, beside the step between samples."""
EARLY_S = 5.0
"""So much earlier, beside the slack, a trial may free its memory, while it writes its results."""
MIN_ENDS = 8
MOST, FEW = 0.6, 0.4
"""Of the ends, six in ten must go with a fall at that distance; what the ends themselves show above the usual distance
may be four tenths of that at most."""
SAME = 0.9
MAX_CHANCE = 0.001
"""That falls which know nothing of the ends lie so at any distance: binomial, by their share over all distances."""

APART = (
    "Memory falls {low_s} to {high_s} {side} the recorded end of {n_apart} of {n_ends} trials. So the trials' clock is "
    "that far {clock}, or trials free their memory so {when}. If it is the clock, state clock_offset_s = {stated} in "
    "run.toml."
)


@dataclass(frozen=True)
class Lag:
    """Memory falls ``lag_s`` after the recorded end (before it, if negative) of ``n_apart`` of ``n_ends`` trials;
    ``within_s``: to how many seconds that is known.
    """

    lag_s: float
    within_s: float
    n_apart: int
    n_ends: int

    def told(self, applied_s: float) -> Statement:
        """What that says of clocks of which the trials' was moved by ``applied_s``."""
        late = self.lag_s > 0
        return Statement(
            APART,
            low_s=abs(self.lag_s) - self.within_s,
            high_s=abs(self.lag_s) + self.within_s,
            side="after" if late else "before",
            n_apart=self.n_apart,
            n_ends=self.n_ends,
            clock="behind" if late else "ahead",
            when="late" if late else "early",
            stated=str(round(applied_s + self.lag_s)),
        )


def find_lag(run: Run, samples: SampleTimes) -> Lag | None:
    """The one distance from the ends of most trials at which memory falls, where it does not fall at the ends.

    A process that lingers, or frees its memory long before its trial ends, looks the same as a clock that differs.
    """
    if "mem_used_mib" not in run.gpu or not len(run.trials):
        return None
    parts = list(ends_of(run, samples))
    n_ends = sum(len(part.end_s) for part in parts)
    if n_ends < MIN_ENDS:
        return None
    lags = np.arange(-REACH_S, REACH_S + STEP_S, STEP_S)
    fallen = np.array([sum(part.fallen(lag) for part in parts) for lag in lags])
    most, usual = int(fallen.max()), float(np.median(fallen))
    at_ends = int(fallen[(lags >= -EARLY_S) & (lags <= 0)].max())
    if most < MOST * n_ends or at_ends - usual > FEW * (most - usual):
        return None
    if len(lags) * scipy.special.bdtrc(most - 1, n_ends, fallen.mean() / n_ends) > MAX_CHANCE:
        return None
    peak = lags[_around(fallen >= SAME * most, int(np.argmax(fallen)))]
    return Lag(round(float(peak.mean())), float(np.ptp(peak)) / 2 + STEP_S, most, n_ends)


def _around(true: np.ndarray, at: int) -> slice:
    """The places without a break in which ``true`` holds, around one of them."""
    false = np.flatnonzero(~true)
    after = int(np.searchsorted(false, at))
    low = int(false[after - 1]) + 1 if after else 0
    return slice(low, int(false[after]) if after < len(false) else len(true))


@dataclass(frozen=True)
class Ends:
    """Ends of trials on one GPU, or any of several, and the last sample before and the first after each fall; s."""

    end_s: np.ndarray
    before_s: np.ndarray
    after_s: np.ndarray

    def fallen(self, lag_s: float) -> int:
        """At how many ends memory fell so long afterwards."""
        return int(self.falls_at(self.end_s + lag_s).sum())

    def falls_at(self, when_s: np.ndarray) -> np.ndarray:
        """Whether memory fell at each time."""
        begun = np.searchsorted(self.before_s - SLACK_S, when_s, "right")
        return begun > np.searchsorted(self.after_s + SLACK_S, when_s, "left")


def ends_of(run: Run, samples: SampleTimes, reach_s: float = 0.0) -> Iterator[Ends]:
    """Ends of trials no further than ``reach_s`` beside the telemetry, and falls, by GPU where trials say on which."""
    end, time = seconds(run.trials["end"]), samples.time_s
    down = np.diff(run.gpu["mem_used_mib"].to_numpy(float)) <= -LEAST_MIB
    falls = np.append(down & samples.same & (samples.step_s <= LONGEST_STEP * samples.period_s), False)
    for mine, rows in trial_groups(run, samples):
        at = np.flatnonzero(falls & rows)
        seen = mine & (end >= time[rows].min() - reach_s) & (end <= time[rows].max() + reach_s)
        yield Ends(end[seen], np.sort(time[at]), np.sort(time[np.minimum(at + 1, len(time) - 1)]))
