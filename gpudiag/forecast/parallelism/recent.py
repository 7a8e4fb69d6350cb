"""What of a log says what comes next, how well it did so far, and what may be said of a number of workers from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpudiag._run.left_out import left_in_part
from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.parallelism.backtest import Backtest, backtest
from gpudiag.forecast.parallelism.drift import Drift, find_drift
from gpudiag.forecast.parallelism.gpu_sharing import telling_levels
from gpudiag.forecast.parallelism.model import ThroughputModel, part, whole
from gpudiag.forecast.parallelism.observed import observe
from gpudiag.forecast.parallelism.processor_sharing import Futures
from gpudiag.forecast.parallelism.spread import by_law, widening
from gpudiag.forecast.parallelism.throughput_bounds import measured_rate
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.memo import once
from gpudiag.run import Run
from gpudiag.schema import STOPPED

UNIT = "trials/h"
RECENT = 2 / 3
CUT_SHORT = ("FAIL", STOPPED)
"""With drift only the last third of a log says what comes next (METHODS 10)."""
ALL_FULL = (
    "The GPU was full with every number of trials that was seen for two minutes, so that nothing tells how much of it "
    "one trial uses: fewer trials at once may cost nothing, or their share."
)


@dataclass(frozen=True, eq=False)
class Recent:
    """All of a log, or where its trials drift the last third of it: ``model``, and ``test``, its back-test.

    Every forecast of one run asks here, so that none has values where another has bounds only.
    """

    model: ThroughputModel
    drift: Drift
    test: Backtest

    @property
    def now(self) -> int:
        """The number of workers that most of the log had."""
        return self.model.log.handover.usual

    @cached_property
    def rate(self) -> Estimate:
        """Trials per hour as measured with the present number of workers."""
        log = self.model.log
        start, end = (log.first_us + (x * SECOND_US).astype(np.int64) for x in (log.start_s, log.end_s))
        return measured_rate(start, end, log.handover, self.now)

    @cached_property
    def crash_free(self) -> ThroughputModel:
        """The model of the trials that did not fail."""
        well = self.model.trials[~np.isin(self.model.log.state[self.model.trials], CUT_SHORT)]
        return replace(self.model, trials=well)

    @property
    def point(self) -> Futures:
        """Futures of the present number of workers, from the log as it is."""
        return self.model.point(self.now)

    @property
    def many(self) -> Futures:
        """The same from many logs."""
        return self.model.bootstrap(self.now)

    @cached_property
    def expected(self) -> Estimate:
        """Trials per hour to expect of the present number: the model's; as measured where it may not speak.

        Where the rate is not the same throughout, what it was in the second half lies within.
        """
        if not self.test.reason:
            return by_law(float(self.point.throughput_h.mean()), self.many.throughput_h, self.widening(self.now), UNIT)
        rate, seen = self.rate, self.test.measured
        return replace(rate, low=min(rate.low, seen), high=max(rate.high, seen)) if self.test.tested else rate

    def reason(self, workers: int) -> str:
        """Why there can be bounds only for so many workers; '' for a forecast."""
        if self.test.reason:
            return self.test.reason
        return ALL_FULL if workers < self.now and not len(telling_levels(self.model.levels)) else ""

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
    drift = find_drift((log.startup_s + model.solo_work_s())[ran_on], study[ran_on])
    drift = replace(drift, studies_apart=drift.studies_differ and _are_apart(run))
    if drift.found:
        model = part(log, RECENT, 1.0, tick)
    return Recent(model, drift, backtest(log, RECENT if drift.found else 0.0, tick))


def _are_apart(run: Run) -> bool:
    """Whether no study ran while another did."""
    study = run.trials["study"]
    return all("workers" not in left_in_part(run, study == name) for name in study.unique())
