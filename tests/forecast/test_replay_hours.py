"""Hours that another pruner saves: start-ups, paces, crowding and failures, against pairs of runs with known truth."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from replayruns import hand_run

import gpudiag as gd
from gpudiag.forecast.pruning.startup_bounds import startup_of_lengths
from gpudiag.forecast.pruning.trial_time import _beside
from gpudiag.simulation import Gpu
from gpudiag.simulation.simulator import Simulated

ONE = {"n_trials": 60, "epochs": 20, "startup_s": (20.0, 40.0), "workers": 1, "period_s": 5.0}


def hours(made: Simulated) -> float:
    trials = made.truth.trials
    return float((trials["end"] - trials["start"]).dt.total_seconds().sum() / 3600)


@pytest.mark.slow
@pytest.mark.parametrize("candidate", ["median()", "hyperband(max_resource=20)"])
def test_the_interval_holds_the_run_of_the_candidate(candidate: str) -> None:
    """Every trial of the log has 20 reports, so that the lengths say nothing of the start-up: its GPU does."""
    log, other = (gd.simulate(seed=4, pruner=pruner, **ONE) for pruner in ("nop()", candidate))
    found = gd.replay_pruner(log.run, candidate)
    true = hours(log) - hours(other)
    assert found.level == "exact"
    assert found.saved_steps.low == found.saved_steps.high == len(log.run.reports) - len(other.run.reports)
    for saved in (found.saved_worker_h, found.saved_gpu_h):  # one trial at once: the same
        assert saved.low <= true <= saved.high
        assert 0 < saved.high - saved.low < 0.15 * true
        assert abs(saved.value / true - 1) < 0.06
    without_startup = hours(log) * found.saved_steps.value / len(log.run.reports)
    assert without_startup > found.saved_worker_h.high


@pytest.mark.slow
def test_bounds_without_pruning_hold_slower_steps() -> None:
    """Four at once that are pruned are in start-up much of their time; without pruning they slow each other down."""
    shape = {**ONE, "workers": 4, "gpu_share_pct": (60.0, 80.0), "gpus": (Gpu(sharing="saturating"),)}
    log, other = (gd.simulate(seed=5, pruner=pruner, **shape) for pruner in ("median()", "nop()"))
    saved = gd.replay_pruner(log.run, "nop()").saved_worker_h
    paces = [(made.truth.trials["tail_start"] - made.truth.trials["startup_end"]).dt.total_seconds().sum()
             / len(made.run.reports) for made in (log, other)]  # fmt: skip
    assert paces[1] > 1.05 * paces[0]
    assert not saved.known
    assert saved.low <= hours(log) - hours(other) <= saved.high


def test_reports_with_times_say_when_a_trial_came_to_a_step() -> None:
    """Trial 1 is cut at its second report, 70 s after its start; it lasted 250 s and ended at its last report."""
    run = hand_run({0: [0.5, 0.4, 0.3, 0.2], 1: [0.5, 0.9, 0.3, 0.2]}, {0: "COMPLETE", 1: "COMPLETE"})
    start = run.trials.set_index("trial")["start"]
    after = pd.to_timedelta([60, 120, 180, 250, 30, 70, 180, 250], unit="s")
    run.reports["time"] = pd.Series(start.reindex(run.reports["trial"]).array + after).array
    saved = gd.replay_pruner(run, "threshold(upper=0.8)").saved_worker_h
    assert saved.low == saved.value == saved.high == pytest.approx(180 / 3600)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("every", "from_step", "more"), [(3, 0, 2), (5, 0, 0), (5, 0, 4), (4, 1, 3), (500, 0, 0), (1, 1, 0)]
)
def test_hours_hold_where_reports_are_sparse(every: int, from_step: int, more: int) -> None:
    """Trials of 24 s start-up that report after every so many steps, 100 s apart, and go on for some steps after the
    last report. All odd ones are cut at their first report.
    """
    pace_s, n = 100 / every, 8
    curves = {i: [0.9 if i % 2 else 0.5] * (3 + i % 5) for i in range(2 * n)}
    run = hand_run(curves, dict.fromkeys(curves, "COMPLETE"))
    place = run.reports.groupby("trial").cumcount()
    run.reports["step"] = (place + 1) * every - 1 + from_step
    length_s = np.array([24 + pace_s * (len(curve) * every + more) for curve in curves.values()])
    first = run.trials["start"].min()
    begin_s = np.concatenate([[0], np.cumsum(length_s + 5)[:-1]])
    run.trials["start"] = first + pd.to_timedelta(begin_s, unit="s")
    run.trials["end"] = run.trials["start"] + pd.to_timedelta(length_s, unit="s")
    true_s = sum(length_s[i] - 24 - pace_s * every for i in curves if i % 2)
    saved = gd.replay_pruner(run, "threshold(upper=0.8)").saved_worker_h
    assert saved.low <= true_s / 3600 <= saved.high
    assert abs(saved.value / (true_s / 3600) - 1) < 0.16


def test_who_would_have_been_pruned_before_failing_counts_as_pruned() -> None:
    curves = {0: [0.5, 0.4, 0.3], 1: [0.5, 0.9, 0.9], 2: [0.9, 0.5, 0.4], 3: [0.5, 0.4]}
    states = {0: "COMPLETE", 1: "FAIL", 2: "COMPLETE", 3: "FAIL"}
    found = gd.replay_pruner(hand_run(curves, states), "threshold(upper=0.8)")
    assert found.pruned_pct.value == pytest.approx(200 / 3)  # 1 and 2, of 0, 1 and 2
    assert found.pruned_pct.low == pytest.approx(50)
    assert found.pruned_pct.high == pytest.approx(200 / 3)


def test_the_last_report_of_a_failed_trial_may_not_have_been_asked_about() -> None:
    """Successive halving counts every value that it was asked about; the failed trial's last one could be its best."""
    curves = {0: [0.5, 0.5, 0.5, 0.5], 1: [0.1], 2: [0.4, 0.4, 0.4, 0.4]}
    found = gd.replay_pruner(hand_run(curves, {0: "COMPLETE", 1: "FAIL", 2: "COMPLETE"}), "sha(reduction_factor=2)")
    assert found.level == "value"
    assert found.steps.low < found.steps.high


def test_lengths_tell_the_start_up_where_they_differ() -> None:
    rng = np.random.default_rng(1)
    n = rng.integers(3, 20, 60)
    found = startup_of_lengths(25.0 + rng.uniform(8, 12, 60) * n, n)
    assert found.known and found.low_s <= 25 <= found.high_s
    assert found.high_s - found.low_s < 30


def test_equal_lengths_do_not_tell_it() -> None:
    found = startup_of_lengths(np.linspace(100, 200, 40), np.full(40, 12))
    assert not found.known
    assert (found.low_s, found.typical_s, found.high_s) == (0.0, 0.0, pytest.approx(90.0))


@pytest.mark.parametrize(("share", "at_once"), [(0.3, 2), (0.76, 6), (1.0, 4)])
def test_crowding_is_the_harmonic_mean_over_those_that_train(share: float, at_once: int) -> None:
    chance = [math.comb(at_once, m) * share**m * (1 - share) ** (at_once - m) for m in range(at_once + 1)]
    in_time = [m * p for m, p in enumerate(chance)]  # trial time at each level
    inverse = sum(w / m for m, w in enumerate(in_time) if m) / sum(in_time)
    assert _beside(share, at_once) == pytest.approx(1 / inverse)
