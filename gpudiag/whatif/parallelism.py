"""What another number of trials at once would bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpudiag.measures.stamps import SECOND_US
from gpudiag.whatif.assignment import POLICIES
from gpudiag.whatif.backtest import Backtest, backtest
from gpudiag.whatif.bounds import bounded_rate, measured_rate
from gpudiag.whatif.drift import Drift, find_drift
from gpudiag.whatif.estimate import NAN, Estimate
from gpudiag.whatif.model import Model, part, whole
from gpudiag.whatif.mva import calibrated_other, mva_throughput
from gpudiag.whatif.observed import Observed
from gpudiag.whatif.processor_sharing import Futures
from gpudiag.whatif.scenario import Scenario
from gpudiag.whatif.sharing import telling_levels
from gpudiag.whatif.spread import ratio_estimate, spread, widening

RECENT = 2 / 3
"""With drift only the last third of a log says what comes next (METHODS 10)."""
ALL_FULL = (
    "The GPU was full with every number of trials that was seen for two minutes, so that nothing tells how much of it "
    "one trial uses: fewer trials at once may cost nothing, or their share."
)

Progress = Callable[[str], None]
Overflow = Callable[[int], Estimate]


@dataclass(frozen=True, eq=False)
class Parallelism:
    """``scenarios``: one a number of workers. ``now``: the number that most of the log had, ``rate`` its throughput.

    ``policies``: (k, policy, trials/h) where there are several GPUs. ``model`` is what the numbers came from.
    """

    scenarios: tuple[Scenario, ...]
    now: int
    rate: Estimate
    backtest: Backtest
    drift: Drift
    policies: tuple[tuple[int, str, float], ...]
    model: Model


@dataclass(frozen=True)
class Remaining:
    """``trials`` still to run (NaN unknown, then ``reason`` says why), and the hours that a change of workers costs."""

    trials: float
    restart_h: float
    reason: str = ""

    def hours(self, rate: Estimate, changed: bool) -> Estimate:
        """Time to finish at a rate, after a restart where something changed."""
        if np.isnan(self.trials):
            return Estimate.unknown("h", self.reason)
        restart = self.restart_h if changed else 0.0
        value, low, high = (restart + self.trials / x for x in (rate.value, rate.high, rate.low))
        return Estimate(value, low, high, "h", rate.bounds_only, rate.reason)

    def break_even(self, now: float, then: float) -> float:
        """Trials from which the restart has paid: R X X' / (X' - X); NaN where the new rate is not higher."""
        return self.restart_h * now * then / (then - now) if then > now else NAN


def forecast_parallelism(
    log: Observed,
    wanted: Sequence[int],
    remaining: Remaining,
    overflow: Overflow,
    memory_mib: np.ndarray | None = None,
    progress: Progress = lambda what: None,
) -> Parallelism:
    """Forecast each number of workers in ``wanted``. ``progress`` is called with what comes next and may raise."""
    progress("back-test on the second half of the log")
    model, drift = _recent(log, lambda: progress(""), memory_mib)
    test = backtest(log, 0.0 if not drift.found else RECENT, model.tick)
    now = log.handover.usual
    start, end = (log.first_us + (x * SECOND_US).astype(np.int64) for x in (log.start_s, log.end_s))
    rate = measured_rate(start, end, log.handover, now)
    point, many = model.point(now), model.bootstrap(now)
    expected = rate
    if test.tested and not test.passed:
        # The rate is not the same throughout: what it was in the second half must lie within.
        expected = replace(rate, low=min(rate.low, test.measured), high=max(rate.high, test.measured))
    elif not test.reason:
        value = float(point.throughput_h.mean())
        expected = spread(value, many.throughput_h, widening(now, now, test.widening), "trials/h")
    base = _Base(model, now, expected, point, many, model.undisturbed(now), test, remaining, overflow)
    scenarios = []
    for k in wanted:
        progress(f"re-simulation with {k} at once")
        scenarios.append(base.scenario(k))
    policies: tuple[tuple[int, str, float], ...] = ()
    if len(log.gpus) > 1 and not test.reason:
        policies = tuple(
            (k, policy, float(model.point(k, policy=policy).throughput_h.mean())) for k in wanted for policy in POLICIES
        )
    return Parallelism(tuple(scenarios), now, rate, test, drift, policies, model)


def _recent(log: Observed, tick: Callable[[], None], memory_mib: np.ndarray | None) -> tuple[Model, Drift]:
    """All of the log, or where its trials drift the last third of it."""
    model = whole(log, tick, memory_mib)
    decided = log.state != "FAIL"
    drift = find_drift((log.startup_s + model.solo_work_s())[decided])
    if not drift.found:
        return model, drift
    return replace(part(log, RECENT, 1.0), tick=tick, memory_mib=memory_mib), drift


@dataclass(frozen=True, eq=False)
class _Base:
    """The present number of workers, against which every other is set; ``rate`` is what is expected of it."""

    model: Model
    now: int
    rate: Estimate
    point: Futures
    many: Futures
    undisturbed: float
    test: Backtest
    remaining: Remaining
    overflow: Overflow

    def scenario(self, k: int) -> Scenario:
        log = self.model.log
        least, most = bounded_rate(self.rate, self.now, k, log.busy_share(self.now))
        factor = widening(k, log.handover.most, self.test.widening)
        reason = self._reason(k)
        changed = k != self.now
        if reason:
            throughput = Estimate.bounds(least, most, "trials/h", reason)
            gain = Estimate.bounds(min(1.0, k / self.now), max(1.0, most / self.rate.high), "", reason)
            util = Estimate.bounds(*self._util_bounds(k), "%", reason)
        else:
            point, many = self.model.point(k), self.model.bootstrap(k)
            other = self.model.undisturbed(k) / self.undisturbed
            value, now = float(point.throughput_h.mean()), self.rate.value
            throughput = spread(value, many.throughput_h, factor, "trials/h", also=(other * now,), within=(least, most))
            bounds = (min(1.0, k / self.now), max(1.0, most / self.rate.high))
            gain = ratio_estimate(point, many, self.point, self.many, factor, bounds, also=(other,))
            util = spread(float(point.busy_pct.mean()), many.busy_pct, factor, "%", within=(0.0, 100.0))
        return Scenario(
            k=k,
            throughput=throughput,
            complete=self._complete(throughput),
            gain=gain,
            util=util,
            overflow=self.overflow(k),
            left=self.remaining.hours(throughput, changed),
            break_even_trials=self.remaining.break_even(self.rate.value, throughput.value) if changed else NAN,
            queueing=self._queueing(k),
            least=least,
            most=most,
            beyond=k > log.handover.most,
        )

    def _reason(self, k: int) -> str:
        """Why there can be bounds only; '' for a forecast."""
        if self.test.reason:
            return self.test.reason
        return ALL_FULL if k < self.now and not len(telling_levels(self.model.levels)) else ""

    def _complete(self, throughput: Estimate) -> Estimate:
        """COMPLETE trials per hour: the same share of the trials as so far."""
        share, low, high = self.model.complete_share()
        return Estimate(
            throughput.value * share, throughput.low * low, throughput.high * high, "trials/h",
            throughput.bounds_only, throughput.reason,
        )  # fmt: skip

    def _util_bounds(self, k: int) -> tuple[float, float]:
        used = 100.0 * self.model.log.busy_share(self.now)
        return (used * k / self.now, used) if k < self.now else (used, 100.0)

    def _queueing(self, k: int) -> float:
        """Mean value analysis, each GPU by itself, calibrated to the present rate."""
        log = self.model.log
        gpus = max(len(log.gpus), 1)
        busy_s = float(log.busy_s.sum()) / log.n
        if not busy_s > 0:
            return NAN
        rate = self.rate.value / 3600.0 / gpus
        other = calibrated_other(self.now / gpus, busy_s, rate)
        return 3600.0 * gpus * mva_throughput(k / gpus, busy_s, other)
