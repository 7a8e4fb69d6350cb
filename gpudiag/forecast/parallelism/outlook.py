"""What another number of trials at once would bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpudiag.forecast.estimate import NAN, Estimate
from gpudiag.forecast.parallelism.assignment import POLICIES, Policy
from gpudiag.forecast.parallelism.backtest import Backtest
from gpudiag.forecast.parallelism.drift import Drift
from gpudiag.forecast.parallelism.model import ThroughputModel
from gpudiag.forecast.parallelism.mva import calibrated_other, placed_throughput
from gpudiag.forecast.parallelism.placement import Placement, evenly
from gpudiag.forecast.parallelism.recent import Recent
from gpudiag.forecast.parallelism.remaining import Remaining
from gpudiag.forecast.parallelism.scenario import RISKY_PCT, Scenario
from gpudiag.forecast.parallelism.spread import ratio_estimate, spread, stretched
from gpudiag.forecast.parallelism.throughput_bounds import bounded_gain, bounded_rate
from gpudiag.forecast.progress import Progress

Overflow = Callable[[int], Estimate]
"""The chance of an overflow by number of trials on the fullest GPU."""
Net = Callable[[Placement], Estimate]
"""Trials per hour that end well by the trials on each GPU, crashes included; unknown where nobody can tell."""
CRASHES = "What crashes leave of the throughput is not known."


@dataclass(frozen=True, eq=False)
class Parallelism:
    """``scenarios``: one a number of workers. ``now``: the number that most of the log had, ``rate`` its throughput.

    ``policies``: (k, policy, trials/h) where there are several GPUs. ``spread``: what the present number would bring
    spread evenly over the GPUs, None where it is. ``model`` is what the numbers came from.
    """

    scenarios: tuple[Scenario, ...]
    now: int
    rate: Estimate
    backtest: Backtest
    drift: Drift
    policies: tuple[tuple[int, Policy, float], ...]
    spread: Scenario | None
    model: ThroughputModel


def forecast_parallelism(
    held: Recent,
    wanted: Sequence[int],
    remaining: Remaining,
    overflow: Overflow,
    net: Net,
    memory_mib: np.ndarray | None = None,
    progress: Progress = lambda what: None,
) -> Parallelism:
    """Forecast each number of workers in ``wanted``. ``memory_mib``: peak of each trial of the log, for policies that
    look at memory. ``progress`` is called with what comes next and may raise.
    """
    model, test, now, n_gpus = held.model, held.test, held.now, len(held.model.log.gpus)
    base = _PresentState(held, model, now, held.expected, model.undisturbed(held.here), remaining, overflow, net)
    scenarios = []
    for k in wanted:
        progress(f"re-simulation with {k} at once")
        scenarios.append(base.scenario(held.placed(k)))
    even = evenly(now, n_gpus)
    spread_out = base.scenario(even) if sorted(even) != sorted(held.here) else None
    policies: tuple[tuple[int, Policy, float], ...] = ()
    if n_gpus > 1 and not test.reason:
        by_memory = replace(model, memory_mib=memory_mib)
        policies = tuple(
            (k, policy, float(by_memory.point(evenly(k, n_gpus), policy=policy).throughput_h.mean()))
            for k in wanted
            for policy in POLICIES
        )
    return Parallelism(tuple(scenarios), now, held.rate, test, held.drift, policies, spread_out, model)


@dataclass(frozen=True, eq=False)
class _PresentState:
    """The present number of workers, against which every other is set; ``rate`` is what is expected of it."""

    held: Recent
    model: ThroughputModel
    now: int
    rate: Estimate
    undisturbed: float
    remaining: Remaining
    overflow: Overflow
    net: Net

    def scenario(self, placed: Placement) -> Scenario:
        log, here, k = self.model.log, self.held.here, sum(placed)
        busy = log.least_busy_share(self.now, self.model.blocks)
        least, most = bounded_rate(self.rate, here, placed, busy)
        factor = self.held.widening(k)
        reason = self.held.reason(placed)
        changed = placed != here
        if reason:
            throughput = Estimate.bounds(least, most, "trials/h", reason)
            gain = Estimate.bounds(*bounded_gain(here, placed, busy), "", reason)
            util = Estimate.bounds(*self._util_bounds(k), "%", reason)
        else:
            point, many = self.model.point(placed), self.model.bootstrap(placed)
            other = self.model.undisturbed(placed) / self.undisturbed
            loss = self.model.slowed(placed, here)
            gain = ratio_estimate(point, many, self.held.point, self.held.many, factor, also=(other,))
            gain = stretched(gain, loss, bounded_gain(here, placed))
            throughput = self.rate
            if placed != here:
                made = self.held.rate_of(placed, point, many, other, loss)
                throughput = stretched(made, 1.0, bounded_rate(self.rate, here, placed))
            util = spread(float(point.busy_pct.mean()), many.busy_pct, factor, "%")
            util = stretched(util.scaled(self._measured_ratio, "%"), 1.0, (0.0, 100.0))
        return Scenario(
            k=k,
            placed=dict(zip(log.gpus, placed, strict=True)),
            throughput=throughput,
            complete=self._complete(throughput, placed),
            gain=gain,
            util=util,
            overflow=self.overflow(max(placed)),
            left=self.remaining.hours(throughput, changed),
            break_even_trials=self.remaining.break_even(self.rate.value, throughput.value) if changed else NAN,
            queueing=self._queueing(placed),
            least=least,
            most=most,
            beyond=k > log.handover.most,
        )

    def _complete(self, throughput: Estimate, placed: Placement) -> Estimate:
        """COMPLETE trials per hour: so many as end well of those with crashes, which may take less than whole trials;
        else the same share of the trials as so far, and no more than that where more on a GPU overflow its memory.
        """
        net = self.net(placed)
        rate = net if net.known else throughput
        share, low, high = self.model.complete_share(sum(placed), of_well=net.known)
        if not net.known and max(placed) > max(self.held.here) and self.overflow(max(placed)).value > RISKY_PCT:
            return Estimate.bounds(0.0, rate.high * high, "trials/h", CRASHES)
        return Estimate(rate.value * share, rate.low * low, rate.high * high, "trials/h", rate.bounds_only, rate.reason)

    def _util_bounds(self, k: int) -> tuple[float, float]:
        log = self.model.log
        used = 100.0 * log.busy_share(self.now, self.model.blocks) * (1 - log.n_idle / len(log.gpus))
        return (used * k / self.now, used) if k < self.now else (used, 100.0)

    @property
    def _measured_ratio(self) -> float:
        """Utilization as measured over that which the model gives the present number: what it misses at the edges of
        work, it misses at any number.
        """
        used = 100.0 * self.model.log.used_share(self.now, self.model.blocks)
        modeled = float(self.held.point.busy_pct.mean())
        return used / modeled if used > 0 and modeled > 0 else 1.0

    def _queueing(self, placed: Placement) -> float:
        """Mean value analysis, each GPU by itself, calibrated to the present rate."""
        log = self.model.log
        busy_s = float(log.busy_s[self.model.blocks].sum()) / len(self.model.trials)
        if not busy_s > 0:
            return NAN
        other = calibrated_other(self.held.here, busy_s, self.rate.value / 3600.0)
        return 3600.0 * placed_throughput(placed, busy_s, other)
