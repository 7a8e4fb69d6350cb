"""What is known of the start-up of each trial of a study: as its GPU shows it, as longer trials tell, or a range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.forecast.pruning.theil_sen import theil_sen
from gpudiag.measures._time.gpu_time import gpu_time
from gpudiag.measures._trials.startup import startups
from gpudiag.run import Run

MANY, FEWEST = 400, 8
LARGEST_SHARE = 0.9
"""A start-up is at most this share of a trial that reported."""
LEVEL_PCT = 95.0
SEEN_SHARE, SEEN_LEAST_S = 0.1, 0.5
"""By how much all start-ups that were seen may be off together: a tenth of them, and no less than half a second."""

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class StartupBounds:
    """Seconds of start-up by trial: most likely ``typical_s``.

    All of them may be off together, down to ``low_s`` and up to ``high_s``. ``spread_s`` is the standard deviation of
    one trial around that. ``known`` is False where only the length of the trials bounds it.
    """

    low_s: Array
    typical_s: Array
    high_s: Array
    spread_s: Array
    known: bool

    def before(self, first_s: Array) -> StartupBounds:
        """None lasts longer than until the first report, ``first_s`` after the start; NaN where that is not known."""
        low, typical, high = (np.fmin(s, first_s) for s in (self.low_s, self.typical_s, self.high_s))
        return StartupBounds(low, typical, high, self.spread_s, self.known)

    @classmethod
    def none(cls, n: int) -> StartupBounds:
        """Without timestamps: no start-up in n trials."""
        zero = np.zeros(n)
        return cls(zero, zero, zero, zero, True)


@dataclass(frozen=True)
class StartupRange:
    """One start-up for every trial whose own was not seen, in seconds."""

    low_s: float
    typical_s: float
    high_s: float
    spread_s: float
    known: bool


def startup_bounds(
    run: Run, trials: pd.DataFrame, duration_s: Array, n_reports: Array, every: int = 1
) -> StartupBounds:
    """Start-ups of ``trials`` (study, trial), which last ``duration_s`` and report ``n_reports`` times, once in
    ``every`` steps.

    Where the GPU shows a trial's start-up, that one; else the run's typical one, between the quartiles of those seen;
    where too few are seen, what the line through duration against number of reports leaves for no report. Where all
    trials have the same number of reports, it is anything up to most of the shortest trial.
    """
    own_s, sure_s, spread_s, median_s = _seen(run, trials)
    unseen = np.isnan(own_s)
    if not unseen.any():
        rest = StartupRange(0.0, 0.0, 0.0, 0.0, True)
    elif np.isfinite(median_s):
        rest = _typical(own_s[~unseen], median_s)
    else:
        rest = startup_of_lengths(duration_s, n_reports, every)
    most_s = np.where(np.isfinite(duration_s), LARGEST_SHARE * duration_s, np.inf)

    def filled(seen_s: Array, other_s: float) -> Array:
        return np.minimum(np.where(unseen, other_s, np.maximum(seen_s, 0.0)), most_s)

    return StartupBounds(
        low_s=filled(own_s - sure_s, rest.low_s),
        typical_s=filled(own_s, rest.typical_s),
        high_s=filled(own_s + sure_s, rest.high_s),
        spread_s=np.where(unseen, rest.spread_s, spread_s),
        known=rest.known,
    )


def _seen(run: Run, trials: pd.DataFrame) -> tuple[Array, Array, Array, float]:
    """By trial what its GPU shows, by how much all may be off, one trial's deviation; and the run's median (s)."""
    nothing = np.full(len(trials), np.nan)
    if run.gpu.empty:
        return nothing, nothing, nothing, float("nan")
    try:
        found, time = startups(run), gpu_time(run)
    except NotMeasurable:
        return nothing, nothing, nothing, float("nan")
    frame = time.trials.rows[["study", "trial"]].assign(seconds=found.seconds)
    row = frame.drop_duplicates(["study", "trial"]).set_index(["study", "trial"])
    row = row.reindex(pd.MultiIndex.from_frame(trials[["study", "trial"]]))
    own_s = row["seconds"].to_numpy(float)
    every_s = [float(np.median(np.diff(s.time_us))) / 1e6 for s in time.samples.values() if len(s.time_us) > 1]
    spread_s = np.full(len(trials), max(every_s, default=0.0) / 2)
    return own_s, np.maximum(SEEN_SHARE * own_s, SEEN_LEAST_S), spread_s, found.median_s


def _typical(seen_s: Array, median_s: float) -> StartupRange:
    """The median; those not seen may lie together anywhere between the quartiles of those seen."""
    low, high = (float(x) for x in np.percentile(seen_s, (25, 75))) if len(seen_s) else (median_s, median_s)
    spread_s = float(np.std(seen_s)) if len(seen_s) > 1 else 0.0
    return StartupRange(min(low, median_s), median_s, max(high, median_s), spread_s, True)


def startup_of_lengths(duration_s: Array, n_reports: Array, every: int = 1) -> StartupRange:
    """Where the line through duration against number of reports meets zero reports (Theil-Sen), with 95 %.

    It needs eight trials of more than one length. Without them the start-up is anything up to most of the shortest
    trial, and reports are taken to be spread over the whole of it. Where only one step in ``every`` reports, as much as
    the steps between two reports may have come after the last one instead.
    """
    known = np.flatnonzero(np.isfinite(duration_s) & (n_reports > 0))
    if not len(known):
        return StartupRange(0.0, 0.0, 0.0, 0.0, True)
    most_s = LARGEST_SHARE * float(duration_s[known].min())
    known = known[:: max(1, len(known) // MANY)]
    if len(known) < FEWEST or len(np.unique(n_reports[known])) < 2:
        return StartupRange(0.0, 0.0, most_s, 0.0, False)
    slope, at_zero, flat, steep = theil_sen(n_reports[known], duration_s[known], LEVEL_PCT / 100)
    middle = float(np.median(n_reports[known]))
    low, typical, high = (
        float(np.clip(at_zero + (slope - s) * middle, 0.0, most_s)) for s in (steep, slope, flat)
    )  # fmt: skip
    spread = (high - low) / 2
    low = max(0.0, low - float(slope) * (every - 1) / every)
    return StartupRange(low, typical, high, spread, True)
