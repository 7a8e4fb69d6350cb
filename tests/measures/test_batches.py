"""Trials that were asked for together and told in turn have no times of their own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from smallruns import run, study, trials

from gpudiag.errors import NotMeasurable
from gpudiag.forecast.parallelism.unobserved import bounded_scenarios
from gpudiag.measures._time.trial_intervals import intervals_of, without_own_times
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.failure_rates import measure_failure_rates
from gpudiag.measures.parallelism import measure_parallelism
from gpudiag.measures.search import measure_search
from gpudiag.measures.trials import measure_trials
from gpudiag.run import Run

ONE_S = 60.0


def batches(n: int, size: int, *, told: str, gap_s: float = 5.0, **columns: object) -> Run:
    """``n`` batches of ``size``: told one by one, all after the last one, or as they end side by side."""
    rng, rows, now = np.random.default_rng(1), [], 0.25
    for _ in range(n):
        starts = now + 0.01 * np.arange(size)
        took = ONE_S + rng.uniform(0, 30, size)
        ends = {"in turn": now + np.cumsum(took), "at last": now + took.sum() + 0.01 * np.arange(size)}.get(
            told, now + took
        )
        rows += [("COMPLETE", float(start), float(end)) for start, end in zip(starts, ends, strict=True)]
        now = float(ends.max()) + gap_s
    return run(trials=trials(rows, **columns), studies=study("MINIMIZE"))


@pytest.mark.parametrize("told", ["in turn", "at last"])
def test_lengths_numbers_at_once_and_waits_are_withheld(told: str) -> None:
    made = batches(10, 8, told=told)
    assert without_own_times(made).all()
    for measure in (measure_parallelism, measure_failure_rates):
        with pytest.raises(NotMeasurable, match="80 trials were asked for several at once and told in turn"):
            measure(made)
    with pytest.raises(NotMeasurable, match="nothing says when each ran"):
        bounded_scenarios(made, [1], None, None, "")  # type: ignore[arg-type]
    found, costs, search = measure_trials(made), measure_costs(made), measure_search(made)
    assert found.n == found.n_together == 80 and math.isnan(found.by_state.at["COMPLETE", "median_s"])
    assert math.isnan(found.to_best_worker_h)
    assert math.isnan(costs.total_worker_h) and math.isnan(costs.parallel) and costs.n_workers == 0
    assert search.n_timed == 0 and math.isnan(search.tail_s)
    assert intervals_of(made)["known"].all(), "when any of them ran is known"


def test_batches_that_run_side_by_side_have_their_times() -> None:
    assert not without_own_times(batches(10, 8, told="side by side")).any()
    workers = [f"w{n % 8}" for n in range(80)]
    assert not without_own_times(batches(10, 8, told="in turn", worker=workers)).any()


def test_few_batches_may_end_in_order_by_chance() -> None:
    flagged = [without_own_times(batches(n, 2, told="in turn")).all() for n in (9, 10)]
    assert flagged == [2.0**9 >= 1000, 2.0**10 >= 1000] == [False, True]


def test_workers_that_take_one_trial_each_are_no_batch() -> None:
    rng, rows = np.random.default_rng(2), []
    for worker in range(4):
        now = 0.01 * worker
        for _ in range(20):
            took = ONE_S + rng.uniform(0, 30)
            rows.append(("COMPLETE", now, now + took))
            now += took + 1
    rows.sort(key=lambda row: row[1])
    made = run(trials=trials(rows), studies=study("MINIMIZE"))
    assert not without_own_times(made).any() and measure_parallelism(made).n_workers == 4
