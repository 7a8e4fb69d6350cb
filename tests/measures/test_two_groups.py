"""Whether durations of failures form two groups: not by chance, and as a plain search of all splits finds them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from gpudiag.measures._trials.two_groups import two_groups

MAX_P = 0.01


def best_by_hand(logs: np.ndarray) -> tuple[int, float]:
    """The low group's size and Ashman's D = sqrt(2) * distance / sqrt(sum of variances), by trying each split."""
    logs = np.sort(logs)
    within = {
        cut: sum(((g - g.mean()) ** 2).sum() for g in (logs[:cut], logs[cut:])) for cut in range(3, len(logs) - 2)
    }
    cut = min(within, key=lambda one: within[one])
    low, high = logs[:cut], logs[cut:]
    return cut, math.sqrt(2) * (high.mean() - low.mean()) / math.sqrt(low.var(ddof=1) + high.var(ddof=1))


@pytest.mark.parametrize("n", [6, 7, 20, 61])
def test_the_split_is_the_best_of_all(n: int) -> None:
    seconds = np.random.default_rng(n).lognormal(4, 1.5, n)
    found = two_groups(np.append(seconds, math.nan))
    cut, distance = best_by_hand(np.log(seconds))
    low, high = np.sort(seconds)[:cut], np.sort(seconds)[cut:]
    assert (found["short_n"], found["long_n"]) == (cut, n - cut)
    assert found["ashman_d"] == pytest.approx(distance) and low[-1] < found["split_s"] < high[0]
    assert found["short_s"] == pytest.approx(math.prod(low ** (1 / cut)))
    assert found["long_s"] == pytest.approx(math.prod(high ** (1 / (n - cut))))


def test_of_fewer_than_six_nothing_is_known() -> None:
    found = two_groups(np.array([1.0, 2.0, 3.0, 400.0, 500.0]))
    assert (found["short_n"], found["long_n"]) == (0, 0) and math.isnan(found["p_one_group"])


KINDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "even": lambda rng, n: rng.uniform(0, 600, n),
    "a part of a trial": lambda rng, n: rng.uniform(size=n) * rng.normal(600, 20, n),
    "exponential": lambda rng, n: rng.exponential(300, n),
    "lognormal": lambda rng, n: rng.lognormal(4, 1.2, n),
    "even in logarithms": lambda rng, n: np.exp(rng.uniform(math.log(5), math.log(3600), n)),
}


@pytest.mark.parametrize("n", [8, 20, 50])
@pytest.mark.parametrize("kind", KINDS)
def test_failures_of_one_kind_are_not_two(kind: str, n: int) -> None:
    """In 1 % at most: 12 or fewer of 500 in 99.8 % of cases. D >= 4 alone took 60 of 500 with 20 failures for two."""
    rng = np.random.default_rng([2024, n])
    drawn = [two_groups(KINDS[kind](rng, n)) for _ in range(500)]
    assert sum(one["p_one_group"] < MAX_P and one["long_s"] >= 5 * one["short_s"] for one in drawn) <= 12


@pytest.mark.parametrize(("short", "long"), [(3, 3), (5, 5), (3, 17), (17, 3), (40, 60)])
def test_five_seconds_and_five_minutes_are_two_kinds(short: int, long: int) -> None:
    rng = np.random.default_rng([7, short, long])
    drawn = [
        two_groups(np.concatenate([rng.lognormal(math.log(5), 0.2, short), rng.lognormal(math.log(300), 0.2, long)]))
        for _ in range(200)
    ]
    found = [one for one in drawn if one["p_one_group"] < MAX_P and (one["short_n"], one["long_n"]) == (short, long)]
    assert len(found) >= 190


def test_equal_durations_of_each_kind_are_two_kinds() -> None:
    found = two_groups(np.array([5.0] * 3 + [300.0] * 3))
    assert found["p_one_group"] < MAX_P and found["short_s"] == pytest.approx(5)
    assert not two_groups(np.full(9, 60.0))["p_one_group"] < MAX_P
