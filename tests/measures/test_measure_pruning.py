from __future__ import annotations

import math

import pandas as pd
import pytest
from smallruns import reports, run, trials

from gpudiag.errors import ConfigError, NotMeasurable
from gpudiag.measures.pruning import measure_pruning

NAN = math.nan
PATIENT = "patient(hyperband(min_resource=1,max_resource=100,reduction_factor=3),patience=2)"


def test_case_1_has_three_rates() -> None:
    states = ["COMPLETE"] * 8 + ["PRUNED"] * 173 + ["FAIL"] * 15 + ["RUNNING"] * 4
    p = measure_pruning(run(trials=trials([(s, i, NAN if s == "RUNNING" else i + 1) for i, s in enumerate(states)])))
    assert (p.of_all_pct, p.of_finished_pct, p.of_decided_pct) == pytest.approx((86.5, 88.3, 95.6), abs=0.05)
    assert (p.of_all_low_pct, p.of_all_high_pct) == pytest.approx((81.1, 90.6), abs=0.05)
    assert p.of_finished_low_pct < p.of_finished_pct < p.of_finished_high_pct
    assert p.cost_pct == pytest.approx(100 * 173 / 196)


def test_steps_cost_and_budget_by_hand() -> None:
    table = trials([("COMPLETE", 0, 100), ("PRUNED", 0, 20), ("PRUNED", 0, 30), ("PRUNED", 0, 50), ("RUNNING", 0, NAN)])
    told = reports({0: range(1, 11), 1: [1, 2], 2: [1, 2], 3: [1, 2, 3, 4, 5]})
    p = measure_pruning(run(trials=table, reports=told))
    assert p.steps[["trial", "last_step", "n_reports"]].to_numpy().tolist() == [[1, 2, 2], [2, 2, 2], [3, 5, 5]]
    assert (p.median_step, p.first_step, p.at_first_pct) == (2, 2, pytest.approx(200 / 3))
    assert (p.cost_pct, p.cost_worker_h) == (50, pytest.approx(100 / 3600))
    assert p.budget_pct == pytest.approx(100 * (2 + 2 + 5) / 30)
    assert math.isnan(p.config_first_report) and math.isnan(p.before_possible)


def test_budget_counts_from_step_zero_and_uses_the_stated_maximum() -> None:
    table = trials([("COMPLETE", 0, 1), ("PRUNED", 0, 1)])
    told = reports({0: range(10), 1: [0, 1]})
    assert measure_pruning(run(trials=table, reports=told)).budget_pct == pytest.approx(20)
    stated = run(trials=table, reports=told, settings={"max_steps": 100})
    assert measure_pruning(stated).budget_pct == pytest.approx(2)


def test_patience_of_two_cannot_prune_before_the_fourth_report() -> None:
    table = trials([("PRUNED", 0, 1)] * 3 + [("COMPLETE", 0, 1)])
    told = reports({0: [1, 2], 1: [1, 2, 3], 2: [1, 2, 3, 4], 3: range(1, 20)})
    p = measure_pruning(run(trials=table, reports=told, settings={"pruner": PATIENT}))
    assert (p.config_first_report, p.before_possible) == (4, 2)


@pytest.mark.parametrize(("first", "expected", "early"), [(0, 4, 1), (1, 3, 0)])
def test_warm_up_counts_steps_not_reports(first: int, expected: float, early: float) -> None:
    # n_warmup_steps=3 lets step 3 be pruned: the 4th report from 0, the 3rd from 1.
    table = trials([("PRUNED", 0, 1), ("COMPLETE", 0, 1)])
    told = reports({0: [first, first + 1, first + 2], 1: range(first, 10)})
    p = measure_pruning(run(trials=table, reports=told, settings={"pruner": "median(n_warmup_steps=3)"}))
    assert (p.config_first_report, p.before_possible) == (expected, early)


def test_a_pruner_that_never_prunes() -> None:
    p = measure_pruning(run(trials=trials([("PRUNED", 0, 1)]), reports=reports({0: [1]}), settings={"pruner": "nop"}))
    assert math.isinf(p.config_first_report) and p.before_possible == 1


def test_pruned_without_any_report_was_not_the_pruner() -> None:
    table = trials([("PRUNED", 0, 1), ("PRUNED", 0, 1)])
    p = measure_pruning(run(trials=table, reports=reports({0: [1]}), settings={"pruner": "median()"}))
    assert (p.before_possible, p.n_with_reports) == (1, 1)


def test_without_reports_nothing_is_known_of_steps() -> None:
    p = measure_pruning(run(trials=trials([("PRUNED", 0, 1)]), settings={"pruner": PATIENT}))
    assert p.config_first_report == 4
    assert all(math.isnan(x) for x in (p.before_possible, p.median_step, p.at_first_pct, p.budget_pct))


def test_needs_a_finished_trial() -> None:
    with pytest.raises(NotMeasurable, match="No trial has finished"):
        measure_pruning(run(trials=trials([("RUNNING", 0, NAN)])))


def test_an_illegible_pruner_is_a_config_error() -> None:
    with pytest.raises(
        ConfigError, match=r"^key 'settings.pruner' of run.toml: pruner 'meidan\(\)': there is no pruner"
    ):
        measure_pruning(run(trials=trials([("PRUNED", 0, 1)]), settings={"pruner": "meidan()"}))


def test_curves_hold_every_finite_report_in_order_of_its_step() -> None:
    table = trials([("COMPLETE", 0, 1), ("PRUNED", 0, 1)])
    told = reports({1: [2, 1], 0: [0, 3, 1]})
    told["value"] = [0.2, 0.1, 5.0, math.inf, 4.0]
    curves = measure_pruning(run(trials=table, reports=told)).curves
    assert curves[["trial", "state", "step", "value"]].to_numpy().tolist() == [
        [0, "COMPLETE", 0, 5.0], [0, "COMPLETE", 1, 4.0], [1, "PRUNED", 1, 0.1], [1, "PRUNED", 2, 0.2],
    ]  # fmt: skip


def test_late_is_as_long_and_as_far_as_a_whole_trial_of_the_study() -> None:
    """Of 100 s and 10 steps; 95 s with 4 steps is a slow trial that pruning cut short, 50 s with 10 a fast one."""
    rows = [("COMPLETE", 0, 100)] * 5 + [("PRUNED", 0, d) for d in (95, 95, 50, 90, 89)]
    told = reports({i: range(1, 11) for i in range(5)} | {5: range(1, 11), 6: range(1, 5), 7: range(1, 11)})
    p = measure_pruning(run(trials=trials(rows), reports=told))
    assert (p.n_late, p.n_late_known) == (2, 5), "the first, and the one of 90 s without reports"
    assert (p.pruned_median_s, p.complete_median_s) == (90, 100)
    twice = pd.concat([trials(rows), trials([(s, 0, d * 9) for s, _, d in rows]).assign(study="slow")])
    both = measure_pruning(run(trials=twice, reports=told))
    assert both.n_late_known == 10 and math.isnan(both.pruned_median_s) and math.isnan(both.complete_median_s)
    few = measure_pruning(run(trials=trials(rows[1:]), reports=told))
    assert few.n_late_known == 0 and math.isnan(few.pruned_median_s) and math.isnan(few.late_low_pct)


def test_trials_without_length_are_not_late_and_those_without_reports_are_held_to_long_ones() -> None:
    none = measure_pruning(run(trials=trials([("COMPLETE", 0, 0)] * 6 + [("PRUNED", 0, 0)] * 6)))
    assert none.n_late_known == 0
    kinds = [("COMPLETE", 0, 100)] * 5 + [("COMPLETE", 0, 990)] * 5 + [("PRUNED", 0, 600)] * 9 + [("PRUNED", 0, 900)]
    assert measure_pruning(run(trials=trials(kinds))).n_late == 1, "0.9 of 990 s"
