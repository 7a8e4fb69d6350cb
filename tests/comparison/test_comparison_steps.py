"""Whether a trial is the same number of steps: what chance gives passes, another budget does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from batchruns import batch
from scipy import stats

from gpudiag.comparison.compare import Comparison, compare
from gpudiag.comparison.steps import chance_of_steps, steps_of_items
from gpudiag.run import Run
from gpudiag.schema import REPORTS, conform


def search(name: str, steps: np.ndarray, begin_s: float = 0.0) -> Run:
    """A trial after the other of so many steps, 20 s each, the last third PRUNED after one of them."""
    pruned = np.arange(len(steps)) >= 2 * len(steps) // 3
    run = batch(name, 20.0 * np.where(pruned, 1, steps), named=False, begin_s=begin_s,
                states=np.where(pruned, "PRUNED", "COMPLETE").tolist(), params={"lr": 0.1})  # fmt: skip
    rows = [("batch", i, s, 0.0) for i, n in enumerate(np.where(pruned, 1, steps)) for s in range(int(n))]
    return replace(run, reports=conform(pd.DataFrame(rows, columns=["study", "trial", "step", "value"]), REPORTS))


def same_unit(a: np.ndarray, b: np.ndarray) -> tuple[str, str]:
    pair = compare(search("a", a), search("b", b, 7.0))
    assert isinstance(pair, Comparison)
    return next((check.status, str(check.evidence)) for check in pair.gate if check.check == "same-unit")


def test_steps_are_those_of_complete_trials() -> None:
    from gpudiag.comparison.side import as_side

    assert steps_of_items(as_side(search("a", np.array([6, 9, 12])), "baseline")).tolist() == [6, 9]


@pytest.mark.slow
def test_drawn_steps_that_differ_by_chance_are_one_unit() -> None:
    """Means of 12 trials with 6 to 14 steps differ by over 10 % in a third of pairs: such pairs are looked for."""
    rng = np.random.default_rng(1)
    pairs = [tuple(rng.integers(6, 15, 18) for _ in range(2)) for _ in range(30)]
    far = [pair for pair in pairs if abs(pair[1][:12].mean() / pair[0][:12].mean() - 1) > 0.1]
    assert len(far) >= 4
    for a, b in far[:4]:
        status, evidence = same_unit(a, b)
        assert status == "pass" and "differ no more than trials of one run do" in evidence


@pytest.mark.slow
def test_another_budget_is_another_unit() -> None:
    rng = np.random.default_rng(2)
    drawn, twice = rng.integers(6, 15, 18), rng.integers(12, 29, 18)
    assert same_unit(drawn, twice)[0] == "fail"
    assert same_unit(np.full(9, 10), np.full(9, 20)) == (
        "fail",
        "A COMPLETE trial is 10 steps in a and 20 in b: compare time per step. Both have durations of their items; 1 "
        "and 1 ran at once, which time per item (wall time over n) takes into account.",
    )
    assert same_unit(np.full(9, 100), np.full(9, 105))[0] == "pass"


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.parametrize("few", [90, 100])
def test_which_run_is_the_baseline_does_not_decide_what_is_one_unit(few: int) -> None:
    """A tenth of the larger budget may be missing in either."""
    one, other = np.full(20, few), np.full(20, 111)
    status = "fail" if few < 0.9 * 111 else "pass"
    assert [same_unit(one, other)[0], same_unit(other, one)[0]] == [status, status]


@pytest.mark.slow
def test_one_or_two_trials_do_not_show_a_budget() -> None:
    status, evidence = same_unit(np.full(3, 10), np.full(3, 20))
    assert status == "pass" and "10 steps in a and 20 in b: too few trials to tell why" in evidence


def test_chance_is_welchs() -> None:
    a, b = np.array([6.0, 9, 14, 8]), np.array([12.0, 19, 15])
    difference, variance = b.mean() - a.mean(), (a.var(ddof=1) / 4, b.var(ddof=1) / 3)
    freedom = sum(variance) ** 2 / (variance[0] ** 2 / 3 + variance[1] ** 2 / 2)
    wanted = 2 * stats.t.sf(abs(difference) / np.sqrt(sum(variance)), freedom)
    assert chance_of_steps(a, b) == pytest.approx(wanted)
    assert chance_of_steps(np.full(3, 8.0), np.full(5, 8.0)) == 1 and chance_of_steps(a, np.full(3, 80.0)) < 1e-3
    assert np.isnan(chance_of_steps(np.zeros(0), b)) and np.isnan(chance_of_steps(a, np.array([9.0])))
