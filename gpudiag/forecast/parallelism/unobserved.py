"""Bounds for another number of workers where no telemetry tells how trials share a GPU."""

from __future__ import annotations

import numpy as np

from gpudiag.errors import NotMeasurable
from gpudiag.forecast.estimate import NAN, Estimate
from gpudiag.forecast.parallelism.completing import complete_share
from gpudiag.forecast.parallelism.handover import Handover, handovers
from gpudiag.forecast.parallelism.observed import MIN_TRIALS
from gpudiag.forecast.parallelism.outlook import Overflow, Remaining
from gpudiag.forecast.parallelism.scenario import Scenario
from gpudiag.forecast.parallelism.throughput_bounds import bounded_gain, bounded_rate, measured_rate
from gpudiag.measures._time.window import timed_trials
from gpudiag.measures._trials.failure_periods import LEAST_ENDED
from gpudiag.measures.base import GIVE_TRIALS
from gpudiag.run import Run
from gpudiag.schema import FINISHED


def usual_workers(run: Run) -> int:
    """The number of workers that most of the time had; 1 where no trial has both ends."""
    trials = timed_trials(run)
    return handovers(run, trials).usual if (~trials.rows["open"].astype(bool)).any() else 1


def bounded_scenarios(
    run: Run, wanted: list[int], remaining: Remaining, overflow: Overflow, reason: str
) -> tuple[int, Estimate, tuple[Scenario, ...]]:
    """The present number of workers, its rate, and bounds for each number of ``wanted``; ``reason`` says why no more.

    Raises NotMeasurable with fewer than five finished trials of known times.
    """
    trials = timed_trials(run)
    finished = trials.rows["outcome"].isin(FINISHED).to_numpy() & ~trials.rows["open"].to_numpy()
    if finished.sum() < MIN_TRIALS:
        raise NotMeasurable(
            "Only {n_finished:finished trial} with a start and an end; a forecast needs {n_needed}.",
            GIVE_TRIALS,
            n_finished=int(finished.sum()),
            n_needed=MIN_TRIALS,
        )
    handover = handovers(run, trials)
    now, start, end = handover.usual, trials.start_us[finished], trials.end_us[finished]
    rate = measured_rate(start, end, handover, now)
    complete = trials.rows["outcome"].to_numpy(str)[finished] == "COMPLETE"

    def scenario(k: int) -> Scenario:
        own = measured_rate(start, end, handover, k) if k != now and _seen(handover, end, k) else None
        share = complete_share(handover, end, complete, k)
        return _scenario(k, now, handover.most, rate, own, share, remaining, overflow, reason)

    return now, rate, tuple(map(scenario, wanted))


def _seen(handover: Handover, end_us: np.ndarray, workers: int) -> bool:
    """Whether enough trials ended beside so many workers for a rate of their own."""
    return int((handover.workers_at(end_us - 1) == workers).sum()) >= LEAST_ENDED


def _scenario(
    k: int,
    now: int,
    seen: int,
    rate: Estimate,
    own: Estimate | None,
    complete: tuple[float, float, float],
    remaining: Remaining,
    overflow: Overflow,
    reason: str,
) -> Scenario:
    """``own``: the rate that the log itself has of k, before which no bound stands."""
    least, most = bounded_rate(rate, now, k, NAN)
    gain = bounded_gain(now, k, NAN)
    if own is not None and own.known:
        least, most = own.low, own.high
        gain = own.low / rate.high, own.high / rate.low
    throughput = Estimate.bounds(least, most, "trials/h", reason)
    _, low, high = complete
    return Scenario(
        k=k,
        throughput=throughput,
        complete=Estimate.bounds(least * low, most * high, "trials/h", reason),
        gain=Estimate.bounds(*gain, "", reason),
        util=Estimate.unknown("%", reason),
        overflow=overflow(k),
        left=remaining.hours(throughput, k != now),
        break_even_trials=NAN,
        queueing=NAN,
        least=least,
        most=most,
        beyond=k > seen,
    )
