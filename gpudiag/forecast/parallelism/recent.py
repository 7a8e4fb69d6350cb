"""What of a log says what comes next, how well it did so far, and what may be said of a number of workers from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpudiag._run.one_study import shares_workers
from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.parallelism.backtest import Backtest, backtest
from gpudiag.forecast.parallelism.drift import Drift, carried_on, find_drift
from gpudiag.forecast.parallelism.gpu_sharing import telling_levels
from gpudiag.forecast.parallelism.handover import Handover
from gpudiag.forecast.parallelism.model import ThroughputModel, part, whole
from gpudiag.forecast.parallelism.observed import observe
from gpudiag.forecast.parallelism.placement import Placement, with_workers
from gpudiag.forecast.parallelism.processor_sharing import Futures
from gpudiag.forecast.parallelism.remaining import trials_left
from gpudiag.forecast.parallelism.spread import by_law, stretched, widening
from gpudiag.forecast.parallelism.throughput_bounds import measured_rate
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.memo import once
from gpudiag.run import Run
from gpudiag.schema import STOPPED

UNIT = "trials/h"
RECENT = 2 / 3
"""With drift only the last third of a log says what comes next (METHODS 10)."""
CUT_SHORT = ("FAIL", STOPPED)
ALL_FULL = (
    "The GPU was full with every number of trials that was seen for two minutes, so that nothing tells how much of it "
    "one trial uses: fewer trials at once on a GPU may cost nothing, or their share."
)


@dataclass(frozen=True, eq=False)
class Recent:
    """All of a log, or where its trials drift the last third of it: ``model``, and ``test``, its back-test. ``onward``:
    throughput over that of the last third if the drift goes on, 1 without one; every interval reaches to it.

    Every forecast of one run asks here, so that none has values where another has bounds only.
    """

    model: ThroughputModel
    drift: Drift
    test: Backtest
    onward: float = 1.0

    @property
    def now(self) -> int:
        """The number of workers that most of the log had."""
        return self.model.log.handover.usual

    @property
    def here(self) -> Placement:
        """The workers of each GPU at the present number."""
        return self.model.log.placed(self.now)

    def placed(self, workers: int) -> Placement:
        """The workers of each GPU with so many: those of now stay where they are."""
        return with_workers(self.here, workers)

    @cached_property
    def rate(self) -> Estimate:
        """Trials per hour as measured with the present number of workers."""
        log = self.model.log
        start, end = (log.first_us + (x * SECOND_US).astype(np.int64) for x in (log.start_s, log.end_s))
        return recent_rate(start, end, log.handover, self.now, self.drift)

    @cached_property
    def crash_free(self) -> ThroughputModel:
        """The model of the trials that did not fail."""
        well = self.model.trials[~np.isin(self.model.log.state[self.model.trials], CUT_SHORT)]
        return replace(self.model, trials=well)

    @property
    def point(self) -> Futures:
        """Futures of the present number of workers, from the log as it is."""
        return self.model.point(self.here)

    @property
    def many(self) -> Futures:
        """The same from many logs."""
        return self.model.bootstrap(self.here)

    @cached_property
    def expected(self) -> Estimate:
        """Trials per hour to expect of the present number: as measured, and by the model where that is unknown. Its
        interval is that of the model around it, and holds that of what was measured.

        Where the model may not speak, what the rate was in the second half lies within; and what it becomes if a drift
        goes on.
        """
        if self.test.reason:
            rate, seen = stretched(self.rate, self.onward), self.test.measured
            return replace(rate, low=min(rate.low, seen), high=max(rate.high, seen)) if self.test.tested else rate
        value = float(self.point.throughput_h.mean())
        made = by_law(value, self.many.throughput_h, self.widening(self.now), UNIT)
        if self.rate.known:
            made = made.scaled(self.rate.value / value, UNIT)
            made = replace(made, low=min(made.low, self.rate.low), high=max(made.high, self.rate.high))
        return stretched(made, self.onward)

    def rate_of(self, placed: Placement, point: Futures, many: Futures, other: float, loss: float) -> Estimate:
        """Trials per hour of workers so placed: the model's, times what was measured of the present number over the
        model's of that. ``other``: the gain by another law; ``loss``: what the placement loses.
        """
        modeled = float(self.point.throughput_h.mean())
        value, factor = float(point.throughput_h.mean()), self.widening(sum(placed))
        made = by_law(value, many.throughput_h, factor, UNIT, also=(other * modeled,))
        return stretched(stretched(made.scaled(self.expected.value / modeled, UNIT), loss), self.onward)

    def reason(self, placed: Placement) -> str:
        """Why there can be bounds only for workers so placed; '' for a forecast."""
        if self.test.reason:
            return self.test.reason
        fewer = sum(placed) < self.now or min(filter(None, placed)) < min(filter(None, self.here))
        return ALL_FULL if fewer and not len(telling_levels(self.model.levels)) else ""

    def widening(self, workers: int) -> float:
        """Times the half-width of the double bootstrap for so many workers: more beyond what was observed."""
        return widening(workers, self.model.log.handover.most, self.test.widening)


def recent(run: Run, tick: Callable[[], None]) -> Recent:
    """All of a run's log, or where its trials drift the last third of it, with the back-test of the same part.

    Raises NotMeasurable as :func:`observe` does.
    """
    return once(run, recent, lambda: _recent(run, tick))


def _recent(run: Run, tick: Callable[[], None]) -> Recent:
    log = observe(run)
    model = whole(log, tick)
    ran_on = ~np.isin(log.state, CUT_SHORT)
    study = log.key.get_level_values("study").to_numpy(str)
    work_s = log.startup_s + model.solo_work_s()
    drift = find_drift(work_s[ran_on], study[ran_on])
    drift = replace(drift, studies_apart=drift.studies_differ and _are_apart(run))
    if not drift.found:
        return Recent(model, drift, backtest(log, 0.0, tick))
    model = part(log, RECENT, 1.0, tick)
    drifts = ran_on & (study == (drift.study or study))
    onward = go_on(run, work_s[drifts], log.end_s[drifts] > RECENT * log.span_s)
    return Recent(model, drift, backtest(log, RECENT, tick), onward)


def recent_rate(start_us: np.ndarray, end_us: np.ndarray, handover: Handover, workers: int, drift: Drift) -> Estimate:
    """Trials per hour as measured with so many workers: where trials drift, in the last third, if it had so many."""
    if drift.found:
        since_us = start_us.min() + RECENT * (end_us.max() - start_us.min())
        rate = measured_rate(start_us, end_us, handover, workers, since_us)
        if rate.known:
            return rate
    return measured_rate(start_us, end_us, handover, workers)


def go_on(run: Run, work: np.ndarray, recent: np.ndarray) -> float:
    """Throughput over that of the ``recent`` trials if their drift goes on over all that are left, or over as many as
    these where nobody says how many are left.
    """
    return carried_on(work, recent, trials_left(run) or int(recent.sum())) if recent.any() else 1.0


def _are_apart(run: Run) -> bool:
    """Whether each study may be forecast by itself: no worker ran trials of another one in between."""
    return not any(shares_workers(run, name) for name in run.trials["study"].unique())
