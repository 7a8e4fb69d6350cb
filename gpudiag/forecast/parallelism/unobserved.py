"""Bounds for another number of workers where no telemetry tells how trials share a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gpudiag.errors import NotMeasurable
from gpudiag.forecast.estimate import NAN, Estimate
from gpudiag.forecast.parallelism.completing import complete_share, ended_beside
from gpudiag.forecast.parallelism.drift import Drift, find_drift
from gpudiag.forecast.parallelism.handover import handovers
from gpudiag.forecast.parallelism.observed import MIN_TRIALS
from gpudiag.forecast.parallelism.outlook import Overflow
from gpudiag.forecast.parallelism.recent import CUT_SHORT, RECENT, go_on, recent_rate
from gpudiag.forecast.parallelism.remaining import Remaining
from gpudiag.forecast.parallelism.scenario import Scenario
from gpudiag.forecast.parallelism.spread import stretched
from gpudiag.forecast.parallelism.throughput_bounds import bounded_gain, bounded_rate, measured_rate
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.trial_intervals import need_own_times
from gpudiag.measures._time.window import TimedTrials, timed_trials
from gpudiag.measures._trials.failure_periods import LEAST_ENDED
from gpudiag.measures.base import GIVE_TRIALS
from gpudiag.run import Run
from gpudiag.schema import FINISHED


def usual_workers(run: Run) -> int:
    """The number of workers that most of the time had; 1 where no trial has both ends."""
    trials = timed_trials(run)
    return handovers(run, trials).usual if (~trials.rows["open"].astype(bool)).any() else 1


def bounded_scenarios(
    run: Run, fullest: Mapping[int, int], remaining: Remaining, overflow: Overflow, reason: str
) -> tuple[int, Estimate, tuple[Scenario, ...], Drift]:
    """The present number of workers, its rate, bounds for each other one, and whether the trials drift; ``reason`` says
    why no more. ``fullest``: the trials on the fullest GPU by number of workers.

    Raises NotMeasurable with fewer than five finished trials of known times.
    """
    need_own_times(run)
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
    beside, complete = ended_beside(handover, end), trials.rows["outcome"].to_numpy(str)[finished] == "COMPLETE"
    drift, onward = _drift(run, trials, finished, beside == now)
    rate = recent_rate(start, end, handover, now, drift)
    expected = stretched(rate, onward)

    def bounds(k: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """Of the rate and of the gain: what the log itself has of k stands before any bound."""
        if k != now and (beside == k).sum() >= LEAST_ENDED:
            own = measured_rate(start, end, handover, k)
            if own.known and not drift.found:
                return (own.low, own.high), (own.low / rate.high, own.high / rate.low)
        return bounded_rate(expected, (now,), (k,)), bounded_gain((now,), (k,))

    def scenario(k: int) -> Scenario:
        (least, most), gain = bounds(k)
        throughput = Estimate.bounds(least, most, "trials/h", reason)
        _, low, high = complete_share(beside, complete, k)
        return Scenario(
            k=k,
            placed={},
            throughput=throughput,
            complete=Estimate.bounds(least * low, most * high, "trials/h", reason),
            gain=Estimate.bounds(*gain, "", reason),
            util=Estimate.unknown("%", reason),
            overflow=overflow(fullest[k]),
            left=remaining.hours(throughput, k != now),
            break_even_trials=NAN,
            queueing=NAN,
            least=least,
            most=most,
            beyond=k > handover.most,
        )

    return now, rate, tuple(map(scenario, fullest)), drift


def _drift(run: Run, trials: TimedTrials, finished: np.ndarray, usual: np.ndarray) -> tuple[Drift, float]:
    """Whether trials of the usual number of workers drift, by their durations, and how throughput changes if they go on
    to.

    ``usual``: of the finished trials those that ended beside so many.
    """
    rows = trials.rows[finished]
    start, end = trials.start_us[finished], trials.end_us[finished]
    tested = np.flatnonzero(usual & ~rows["outcome"].isin(CUT_SHORT).to_numpy() & (end > start))
    tested = tested[np.argsort(start[tested], kind="stable")]
    length_s, study = (end - start)[tested] / SECOND_US, rows["study"].to_numpy(str)[tested]
    drift = replace(find_drift(length_s, study), studies_differ=False) if len(tested) else Drift()
    if not drift.found:
        return drift, 1.0
    mine = study == (drift.study or study)
    since_us = start.min() + RECENT * (end.max() - start.min())
    return drift, go_on(run, length_s[mine], end[tested][mine] > since_us)
