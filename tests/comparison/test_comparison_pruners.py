"""Searches of which one prunes: pruned trials are short and no result, so no time per item tells which is faster."""

from __future__ import annotations

import numpy as np
import pytest
from batchruns import batch, unlike, with_telemetry

from gpudiag.comparison.compare import Comparison, compare

A = unlike(np.random.default_rng(3).lognormal(4, 0.15, 60))
"""Seconds of 60 trials."""
HALF = ["PRUNED" if i % 2 else "COMPLETE" for i in range(60)]
SHORT = np.where(np.array(HALF) == "PRUNED", 0.3 * A, A)
"""Seconds where every second one is stopped at 30 %."""
BOTH = ("time_per_item", "time_per_complete")


def searched(one: tuple[np.ndarray, list[str] | None], other: tuple[np.ndarray, list[str] | None]) -> Comparison:
    runs = [
        batch(name, seconds, states=states, named=False, params={"p": 1}, begin_s=begin)
        for name, (seconds, states), begin in (("a", one, 0.0), ("b", other, 9e4))
    ]
    found = compare(*runs)
    assert isinstance(found, Comparison)
    return found


@pytest.mark.slow
def test_a_pruner_alone_is_neither_slower_nor_faster() -> None:
    found = searched((A, None), (SHORT, HALF))
    item, complete = (found.quantity(name) for name in BOTH)
    assert item.ratio == pytest.approx(SHORT.sum() / A.sum()) and item.verdict == "lower"
    assert complete.ratio == pytest.approx(2 * SHORT.sum() / A.sum()) and complete.verdict == "higher"
    assert (found.verdict, found.leader, found.fails("regression")) == ("no evidence", None, False)
    head = found.headline
    assert "b prunes 50 % of its trials and a 0 %" in head["verdict"]
    assert (
        f"{SHORT.sum() / A.sum():.2f}" in head["sentences"][0]
        and "per COMPLETE trial, which any pruner makes longer" in head["sentences"][0]
    )
    assert "Take the change back" not in str(head) and "same best value" in head["sentences"][2]
    back = searched((SHORT, HALF), (A, None))
    assert (back.verdict, back.leader) == ("no evidence", None) and "Keep the change" not in str(back.headline)


@pytest.mark.slow
@pytest.mark.parametrize(("times", "verdict"), [(0.4, "faster"), (2.0, "slower")])
def test_what_moves_against_the_pruning_is_speed(times: float, verdict: str) -> None:
    """At 0.4 of the time a COMPLETE trial takes 0.52 of it in all; at twice the time a configuration takes 1.3."""
    found = searched((A, None), (times * SHORT, HALF))
    assert found.verdict == verdict and found.leader is not None
    assert found.leader.name == ("time_per_complete" if times < 1 else "time_per_item")
    assert found.fails("regression") == (verdict == "slower")


@pytest.mark.slow
def test_other_shares_of_pruned_trials_are_apart_by_more_than_chance_only() -> None:
    """30 of 60 against 24 of 60 are the same by Fisher (p = 0.36), 30 against 10 are not (p < 0.001)."""
    states = [["PRUNED" if i < n else "COMPLETE" for i in np.random.default_rng(1).permutation(60)] for n in (24, 10)]
    seconds = [np.where(np.array(some) == "PRUNED", 0.3 * A, A) for some in states]
    assert searched((SHORT, HALF), (seconds[0], states[0])).quantity("time_per_complete").kind == "time"
    few = searched((SHORT, HALF), (seconds[1], states[1]))
    assert few.quantity("time_per_complete").kind == "price" and few.leader is None


@pytest.mark.slow
def test_one_pruned_trial_is_no_pruner() -> None:
    found = searched((A, None), (0.5 * A, ["PRUNED", *["COMPLETE"] * 59]))
    assert found.verdict == "faster" and found.quantity("time_per_item").verdict == "faster"


@pytest.mark.slow
def test_less_gpu_work_of_pruned_trials_is_no_riddle() -> None:
    """Nine of ten trials end after a fifth of their time, so that an item is 0.28 times the work on average."""
    states = ["COMPLETE" if i % 10 == 0 else "PRUNED" for i in range(60)]
    seconds = np.where(np.array(states) == "PRUNED", 0.2 * A, A)
    runs = (
        batch("a", A, named=False, params={"p": 1}),
        batch("b", seconds, states=states, named=False, params={"p": 1}, begin_s=9e4),
    )
    found = compare(*(with_telemetry(run, [80, 70]) for run in runs))
    assert isinstance(found, Comparison)
    assert next(one for one in found.consistency if one.claim == "GPU work per item").values["busy_ratio"] < 0.5
    assert "less work for an item" not in found.headline["sentences"][1]
    assert "PRUNED of decided" in found.headline["sentences"][1]
