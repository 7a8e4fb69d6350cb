"""The back-test: fitted on the first half of a log, does the model predict the second (METHODS 10)?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gpudiag.errors import in_words
from gpudiag.forecast.document import BacktestEntry
from gpudiag.forecast.estimate import NAN, Estimate
from gpudiag.forecast.parallelism.model import ThroughputModel, part
from gpudiag.forecast.parallelism.observed import ObservedLog
from gpudiag.forecast.parallelism.spread import INSIDE, rate_spread
from gpudiag.forecast.parallelism.throughput_bounds import shares_within
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.plain_data import clean

MIN_HALF = 10
"""Fewer trials in a half test nothing (a default without a published source)."""
CLOSE_PCT = 10.0
"""A prediction this near is good enough however narrow its interval; the interval is widened to hold the truth."""
LEAST_SHARE = 0.02
UNIT = "trials/h"
TOO_SHORT = (
    "Nothing could be tested: with {n_first} and {n_second} trials in the halves of the log, at least {n_needed} each "
    "are needed."
)
MISSES = (
    "Fitted on the first half of the log, the model misses the second half by {error_pct:as points}: what trials will "
    "do next does not follow from what they did."
)


@dataclass(frozen=True)
class Backtest:
    """Trials per hour ``predicted`` for the second half and ``measured`` in it; ``error_pct`` of the prediction.

    ``passed``: the measured rate lies in the interval or within 10 % of the prediction. ``widening``: times the
    half-width on a log scale that holds the measured rate, at least 2. ``tested`` is False where a half has too few
    trials.
    """

    tested: bool
    passed: bool
    predicted: Estimate
    measured: float
    error_pct: float
    n_fit: int
    n_test: int
    widening: float
    reason: str

    @property
    def document(self) -> BacktestEntry:
        """As the document of a forecast holds it."""
        return BacktestEntry(
            tested=self.tested,
            passed=self.passed,
            predicted_trials_h=self.predicted,
            measured_trials_h=clean(self.measured),
            error_pct=clean(self.error_pct),
            n_fit=self.n_fit,
            n_test=self.n_test,
            widening=self.widening,
            reason=self.reason,
        )


def backtest(log: ObservedLog, low: float = 0.0, tick: Callable[[], None] = lambda: None) -> Backtest:
    """Fit on the trials that ended in the first half of what lies beyond ``low`` (0..1), predict the second half.

    A trial counts by the share of its life that lies in the second half, which is taken with the numbers of workers
    that it had, each for its time.
    """
    middle = (low + 1.0) / 2
    model = part(log, low, middle, tick)
    share = shares_within(log.start_s, log.end_s, middle * log.span_s, log.span_s)
    ended = round(float(share.sum()))
    nothing = Backtest(False, False, Estimate.unknown(UNIT, ""), NAN, NAN, len(model.trials), ended, INSIDE, "")
    if min(len(model.trials), ended) < MIN_HALF:
        numbers = {"n_first": len(model.trials), "n_second": ended, "n_needed": MIN_HALF}
        return replace(nothing, reason=in_words(TOO_SHORT, numbers))
    first, last = (log.first_us + x * log.span_s * SECOND_US for x in (middle, 1.0))
    seconds = log.handover.worker_s(first, last)
    seconds[0] = 0.0
    measured = 3600.0 * float(share.sum()) / float(seconds.sum())
    predicted, reach = _mixed(replace(model, horizon=min(ended, model.horizon)), seconds / seconds.sum(), measured)
    error = 100.0 * (predicted.value / measured - 1.0)
    passed = bool(predicted.low <= measured <= predicted.high or abs(error) <= CLOSE_PCT)
    half = abs(np.log(reach / predicted.value))
    widening = max(INSIDE, float(abs(np.log(measured / predicted.value)) / half)) if half > 0 else INSIDE
    reason = "" if passed else in_words(MISSES, {"error_pct": error})
    return Backtest(True, passed, predicted, measured, error, len(model.trials), ended, widening, reason)


def _mixed(model: ThroughputModel, shares: np.ndarray, measured: float) -> tuple[Estimate, float]:
    """The predicted rate over numbers of workers weighted by time, and its unwidened end towards the truth."""
    used = [k for k in range(1, len(shares)) if shares[k] >= LEAST_SHARE]
    weight = shares[used] / shares[used].sum()
    rates = np.stack([model.bootstrap(model.log.placed(k)).throughput_h for k in used])
    means = [model.point(model.log.placed(k)).throughput_h.mean() for k in used]
    value = float(weight @ means)
    sample = weight @ rates
    plain = rate_spread(value, sample, 1.0, UNIT)
    reach = plain.high if measured > value else plain.low
    return rate_spread(value, sample, INSIDE, UNIT), reach
