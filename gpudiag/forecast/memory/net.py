"""What crashes leave of the throughput, by number of trials at once (METHODS 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gpudiag.errors import NotMeasurable
from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.memory.crashes import MIN_SEEN
from gpudiag.forecast.memory.document import CapacitySource
from gpudiag.forecast.parallelism.observed import observe
from gpudiag.forecast.parallelism.placement import evenly
from gpudiag.forecast.parallelism.recent import RECENT, UNIT, recent
from gpudiag.forecast.parallelism.spread import by_law, stretched
from gpudiag.forecast.parallelism.throughput_bounds import bounded_rate
from gpudiag.measures._time.gpu_samples import known_gpus
from gpudiag.measures._time.microseconds import LONG_AGO, SECOND_US
from gpudiag.measures._trials.failure_periods import failure_periods
from gpudiag.measures._trials.proportions import clopper_pearson_pct
from gpudiag.run import Run

Array = np.ndarray

MIN_RESTARTS = 5
UNKNOWN_RESTART = (0.0, 1.0)
"""Hours between which a restart is taken to lie where nobody said and no failure shows it."""


WHOLE = Estimate(1.0, 1.0, 1.0, "1")
"""A crash at the end of a trial: all of its time is lost."""


@dataclass(frozen=True)
class Restart:
    """What a crash costs beside its own trial: ``hours`` until the worker works again, 95 %; ``how`` it is known:
    'given', 'seen' (gaps after failures) or 'unknown', with bounds only. ``whole``: all trials on the GPU stop with
    it.
    """

    hours: Estimate
    how: CapacitySource
    whole: bool = False


def net_throughput(rate_h: float, chance: float, restart_h: float, lost_h: float, part: float = 1.0) -> float:
    """X (1 - p) / (1 - p (1 - f) + X p (R + L)): trials per hour that end well (METHODS 6).

    ``rate_h`` X in trials/h without crashes, ``chance`` p of a crash in a trial (0..1), ``restart_h`` R and ``lost_h``
    L in hours of the whole GPU for each crash; ``part`` f of a whole trial's time that one takes until it crashes:
    1, as METHODS 6 has it, is the dearest.
    """
    return rate_h * (1 - chance) / (1 - chance * (1 - part) + rate_h * chance * (restart_h + lost_h))


def crash_part(crashed_s: Array, well_s: Array) -> Estimate:
    """What part of a whole trial's time one takes until it crashes: means, with two standard errors, at most 1."""
    if min(len(crashed_s), len(well_s)) < MIN_RESTARTS or not np.mean(well_s) > 0:
        return Estimate.bounds(0.0, 1.0, "1", "Too few trials crashed to tell how long they take until then.")
    whole = float(np.mean(well_s))
    mean, error = float(np.mean(crashed_s)) / whole, float(np.std(crashed_s) / np.sqrt(len(crashed_s))) / whole
    value, low, high = (float(np.clip(x, 0.0, 1.0)) for x in (mean, mean - 2 * error, mean + 2 * error))
    return Estimate(value, low, high, "1")


def net_estimate(rate: Estimate, chance: Estimate, restart: Restart, k: int, part: Estimate = WHOLE) -> Estimate:
    """The same with intervals: worst rate with most crashes and the dearest restart, and the other way round.

    ``chance`` in percent; ``part`` of :func:`crash_part`. Where each trial has its own process a restart stops one
    worker of k, and nothing else is lost; otherwise all k stop, and those beside it lose half of what they take:
    (k - 1) / (2 X) hours of trials.
    """

    def at(rate_h: float, chance_pct: float, hours: float, share: float) -> float:
        if restart.whole:
            return net_throughput(rate_h, chance_pct / 100, hours, (k - 1) / (2 * rate_h), share)
        return net_throughput(rate_h, chance_pct / 100, hours / k, 0.0, share)

    r = restart.hours
    ends = at(rate.low, chance.high, r.high, part.high), at(rate.high, chance.low, r.low, part.low)
    value = at(rate.value, chance.value, r.value, part.value if part.known else part.high)
    reason = rate.reason or chance.reason or r.reason
    return Estimate(value, ends[0], ends[1], UNIT, np.isnan(value), reason if np.isnan(value) else "")


def seen_net(run: Run, k: int, n_gpus: int) -> Estimate | None:
    """Trials per hour that ended well while k workers ran on each GPU, counted; None where fewer than 30 trials ended
    then, or most of the time some GPU had more of them than another. Where trials drift, in the last third of the log.

    The interval is that of a count without any rhythm (Poisson, 95 %); trials of similar length vary less.
    """
    workers = k * n_gpus
    if n_gpus > 1 and _unevenly_placed(run, workers):
        return None
    periods = failure_periods(run, _since_us(run))
    mine = periods[periods["n_workers"] == workers]
    hours = float((mine["to_s"] - mine["from_s"]).sum()) / 3600
    if mine["n_ended"].sum() < MIN_SEEN or not hours > 0:
        return None
    n = int(mine["n_ended"].sum() - mine["n_fail"].sum())
    reach = 1.96 * np.sqrt(max(n, 1))
    return Estimate(n / hours, max(n - reach, 0.0) / hours, (n + reach) / hours, UNIT)


def _since_us(run: Run) -> int:
    """From when on a log says what comes next."""
    try:
        log, drift = observe(run), recent(run, lambda: None).drift
    except NotMeasurable:
        return LONG_AGO
    return log.first_us + round(RECENT * log.span_s * SECOND_US) if drift.found else LONG_AGO


def n_gpus_to_use(run: Run) -> int:
    """GPUs that have trials or are free for more of them; all of the record where it does not show which."""
    try:
        return len(observe(run).gpus)
    except NotMeasurable:
        return max(1, len(known_gpus(run)))


def _unevenly_placed(run: Run, workers: int) -> bool:
    """Whether the log shows that so many workers were spread unevenly; False where it does not show their GPUs."""
    try:
        return len(set(observe(run).placed(workers))) > 1
    except NotMeasurable:
        return False


def restart_cost(seconds: Array, oom_seconds: Array, given_min: float | None, whole: bool) -> Restart:
    """Hours until a worker works again: as given, else the median gap after overflows, else after all failures.

    The interval of a median is that of order statistics (binomial, 95 %).
    """
    if given_min is not None:
        hours = given_min / 60
        return Restart(Estimate(hours, hours, hours, "h"), "given", whole)
    for seen in (oom_seconds, seconds):
        if len(seen) >= MIN_RESTARTS:
            ordered = np.sort(seen) / 3600
            reach = 0.98 * np.sqrt(len(seen))
            low, high = (int(np.clip(round(len(seen) / 2 + way * reach), 0, len(seen) - 1)) for way in (-1, 1))
            middle = float(np.median(ordered))
            return Restart(Estimate(middle, float(ordered[low]), float(ordered[high]), "h"), "seen", whole)
    reason = "Nobody said how long a restart takes after a crash, and too few failures show it; give restart_min."
    return Restart(Estimate.bounds(*UNKNOWN_RESTART, "h", reason), "unknown", whole)


def rates_without_crashes(run: Run, levels: Sequence[int], tick: Callable[[], None]) -> dict[int, Estimate]:
    """Trials per hour with k at once on each GPU that is used or free, if none crashed: the forecast of METHODS 10 over
    trials that did not, over the model's of all of them at the present number, times what was measured of that. The
    interval is of the trials that did not, and reaches to what the model says of them alone: what was measured may be
    less or more than the model's because of the trials that failed. Where none did, they are those of
    :func:`gpudiag.what_if`.

    Bounds only where the back-test failed; unknown where nothing says how busy a GPU was.
    """
    try:
        held = recent(run, tick)
    except NotMeasurable as gap:
        return {k: Estimate.unknown(UNIT, str(gap)) for k in levels}
    log, here, clean = held.model.log, held.here, held.crash_free
    few = "" if len(clean.trials) >= MIN_RESTARTS else "Too few trials ended well."
    undisturbed = 1.0 if few else held.model.undisturbed(here)
    modeled = float(held.point.throughput_h.mean())
    out = {}
    for k in levels:
        tick()
        workers = k * len(log.gpus)
        placed = evenly(workers, len(log.gpus))
        reason = held.reason(placed) or few
        if reason:
            least, most = bounded_rate(held.expected, here, placed, log.least_busy_share(held.now, held.model.blocks))
            out[k] = Estimate.bounds(least, most, UNIT, reason)
            continue
        point, many, other = clean.point(placed), clean.bootstrap(placed), clean.undisturbed(placed) / undisturbed
        loss = clean.slowed(placed, here)
        made = held.rate_of(placed, point, many, other, loss)
        if len(clean.trials) < len(held.model.trials):
            out[k] = stretched(made, modeled / held.expected.value)
        else:
            out[k] = held.expected if placed == here else made
    return out


@dataclass(frozen=True)
class NetGains:
    """``by_k``: trials that end well with k at once on each GPU, over those of ``now`` workers, of which a GPU has at
    most ``each``; without a unit. Empty where nothing says how busy a GPU was, the back-test failed, or few trials
    ended well.
    """

    now: int = 0
    each: int = 0
    by_k: Mapping[int, Estimate] = field(default_factory=dict)


def net_gains(
    run: Run, chances: Mapping[int, Estimate], restart: Restart, part: Estimate, tick: Callable[[], None]
) -> NetGains:
    """Over the present workers, whose trials that ended well are counted. The rate that both rest on cancels, and what
    is counted has no other future, so that this tells more than two rates side by side. ``chances``: of a crash in a
    trial by k, in percent.
    """
    try:
        held = recent(run, tick)
    except NotMeasurable:
        return NetGains()
    clean, n, n_gpus, rate = held.crash_free, len(held.model.trials), len(held.model.log.gpus), held.expected.value
    if len(clean.trials) < MIN_RESTARTS or held.test.reason:
        return NetGains()
    least, most = (x / 100 for x in clopper_pearson_pct(len(clean.trials), n))
    present, gains = float(held.point.throughput_h.mean()), {}
    for k, chance in chances.items():
        tick()
        placed = evenly(k * n_gpus, n_gpus)
        if placed == held.here or held.reason(placed):
            continue
        other = clean.undisturbed(placed) / held.model.undisturbed(held.here)
        point, many = float(clean.point(placed).throughput_h.mean()), clean.bootstrap(placed).throughput_h
        gain = by_law(point / present, many / present, held.widening(k * n_gpus), "", also=(other,))
        gain = stretched(gain, clean.slowed(placed, held.here))
        left = net_estimate(Estimate(rate, rate, rate, UNIT), chance, restart, k, part).scaled(1 / rate, "")
        value = gain.value * left.value * n / len(clean.trials)
        gains[k] = Estimate(value, gain.low * left.low / most, gain.high * left.high / least, "", bool(np.isnan(value)))
    return NetGains(held.now, max(held.here), gains)
