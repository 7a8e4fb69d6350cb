"""Bounds for another number of workers where no telemetry tells how trials share a GPU."""

from __future__ import annotations

from gpudiag.errors import NotMeasurable
from gpudiag.forecast.estimate import NAN, Estimate
from gpudiag.forecast.parallelism.handover import handovers
from gpudiag.forecast.parallelism.observed import MIN_TRIALS
from gpudiag.forecast.parallelism.outlook import Overflow, Remaining
from gpudiag.forecast.parallelism.scenario import Scenario
from gpudiag.forecast.parallelism.throughput_bounds import bounded_gain, bounded_rate, measured_rate
from gpudiag.measures._time.window import timed_trials
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
    now = handover.usual
    rate = measured_rate(trials.start_us[finished], trials.end_us[finished], handover, now)
    done = float((trials.rows["outcome"].to_numpy(str)[finished] == "COMPLETE").mean())
    return now, rate, tuple(_scenario(k, now, handover.most, rate, done, remaining, overflow, reason) for k in wanted)


def _scenario(
    k: int, now: int, seen: int, rate: Estimate, complete: float, remaining: Remaining, overflow: Overflow, reason: str
) -> Scenario:
    least, most = bounded_rate(rate, now, k, NAN)
    throughput = Estimate.bounds(least, most, "trials/h", reason)
    return Scenario(
        k=k,
        throughput=throughput,
        complete=Estimate.bounds(least * complete, most * complete, "trials/h", reason),
        gain=Estimate.bounds(*bounded_gain(now, k, NAN), "", reason),
        util=Estimate.unknown("%", reason),
        overflow=overflow(k),
        left=remaining.hours(throughput, k != now),
        break_even_trials=NAN,
        queueing=NAN,
        least=least,
        most=most,
        beyond=k > seen,
    )
