"""Failed items are no result: what they cost counts against the run, and more of them is no improvement."""

from __future__ import annotations

import numpy as np
import pytest
from batchruns import batch, unlike

from gpudiag.comparison.compare import Comparison, compare
from gpudiag.run import Run

A = unlike(np.random.default_rng(7).lognormal(4.5, 0.2, 40))
"""Seconds of 40 items."""
GOOD = ["COMPLETE"] * 40
HALF = ["FAIL" if i % 2 else "COMPLETE" for i in range(40)]
FAILING_FAST = np.where(np.array(HALF) == "FAIL", 4.0, A)


def against(seconds: np.ndarray, states: list[str], named: bool = False) -> Comparison:
    one, other = (
        batch(name, each, states=ends, named=named, params={"p": 1})
        for name, each, ends in (("a", A, GOOD), ("b", seconds, states))
    )
    return made(one, other)


def made(one: Run, other: Run) -> Comparison:
    found = compare(one, other)
    assert isinstance(found, Comparison)
    return found


@pytest.mark.slow
def test_a_run_that_fails_fast_is_not_faster() -> None:
    found = against(FAILING_FAST, HALF)
    assert FAILING_FAST.sum() / 40 < 0.6 * A.mean()  # over all that ended it would be
    time = found.quantity("time_per_item")
    assert time.experiment == pytest.approx(FAILING_FAST.sum() / 20)
    assert time.title == "Wall time per item that did not fail" and time.n_experiment == 20
    assert found.verdict not in ("faster", "equivalent") and found.fails("regression")
    assert "Keep the change" not in str(found.headline)


@pytest.mark.slow
@pytest.mark.parametrize("named", [False, True])
def test_quicker_results_with_more_failures_are_said_to_fail_more(named: bool) -> None:
    found = against(0.3 * FAILING_FAST, HALF, named)
    assert found.quantity("time_per_complete").ratio == pytest.approx(0.3 * 2 * FAILING_FAST.sum() / 40 / A.mean())
    assert found.leader is not None and found.leader.verdict == "faster" and found.verdict == "fails more"
    assert found.headline["verdict"].startswith("FAILS MORE: 50 % of the items of b fail, 0 % of those of a; ")
    assert "Keep the change" not in str(found.headline) and found.fails("regression")
    assert "FAILS MORE" not in against(0.3 * A, GOOD, named).summary()


@pytest.mark.slow
def test_as_many_failures_in_both_leave_the_verdict_to_the_time() -> None:
    one, other = (
        batch(name, each, states=HALF, named=False, params={"p": 1}) for name, each in (("a", A), ("b", 0.4 * A))
    )
    found = made(one, other)
    assert found.verdict == "faster" and not found.fails("regression")
    assert found.quantity("time_per_item").baseline == pytest.approx(A.sum() / 20)


@pytest.mark.slow
def test_without_any_result_speed_has_no_measure() -> None:
    found = against(0.1 * A, ["FAIL"] * 40)
    assert found.leader is None and found.verdict == "fails more" and found.fails("regression")
    assert found.headline["verdict"] == "FAILS MORE: 100 % of the items of b fail, 0 % of those of a."


@pytest.mark.slow
def test_where_every_trial_is_pruned_none_is_a_result() -> None:
    pruned = against(0.1 * A, ["PRUNED"] * 40)
    assert pruned.leader is None and pruned.verdict == "no evidence"


@pytest.mark.slow
def test_faster_items_among_long_failures_are_slower_results() -> None:
    """Items by name, two of three of which fail after three times as long: what succeeds is a tenth faster."""
    states = ["COMPLETE" if i % 3 == 0 else "FAIL" for i in range(40)]
    seconds = np.where(np.array(states) == "FAIL", 3 * A, 0.9 * A)
    found = against(seconds, states, named=True)
    assert found.quantity("duration").verdict == "faster"
    assert found.leader is not None and found.leader.name == "time_per_complete" and found.verdict == "slower"


@pytest.mark.slow
@pytest.mark.parametrize("states", [HALF, ["FAIL"] * 40])
def test_an_experiment_that_mends_failures_fails_less(states: list[str]) -> None:
    one = batch("a", A, states=states, named=False, params={"p": 1})
    found = made(one, batch("b", 0.99 * A[::-1], named=False, params={"p": 1}, begin_s=9e4))
    shown = found if found.verdict == "fails less" else None
    assert found.fails_less and not found.fails_more and not found.fails("regression")
    if states == HALF:  # every other result was lost, so a result takes half the time
        assert found.verdict == "faster"
    else:
        assert shown is not None and found.headline["level"] == "ok"
        assert found.headline["verdict"] == "FAILS LESS: 0 % of the items of b fail, 100 % of those of a."
        assert found.headline["sentences"][2].startswith("Keep the change")


@pytest.mark.slow
def test_where_only_the_baseline_has_failed_items_nothing_is_left_to_mend() -> None:
    """Two of 40 items by name, which chance gives: no verdict rests on it."""
    states = ["FAIL" if i < 2 else "COMPLETE" for i in range(40)]
    found = made(batch("a", A, states=states, params={"p": 1}), batch("b", 0.99 * A, params={"p": 1}, begin_s=9e4))
    assert found.verdict != "fails less"
    assert "Mend what fails" not in found.headline["sentences"][2]
    assert found.headline["sentences"][2].startswith("Repeat the experiment")
