"""Steps in drawn series: how often one is called where there is none, and found where there is one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gpudiag.fleets.steps import FEWEST, SIDE, clearest, steps


def series(rng: np.random.Generator, n: int, correlation: float) -> np.ndarray:
    out = rng.standard_normal(n)
    out[0] /= np.sqrt(1 - correlation**2)
    for at in range(1, n):
        out[at] += correlation * out[at - 1]
    return out


@pytest.mark.slow
@pytest.mark.many
@pytest.mark.parametrize(
    ("correlation", "most", "lengths"),
    [
        (0.5, 0.10, (12, 20)),
        (0.0, 0.04, (10, 16, 26, 52)),
        (0.5, 0.10, (10, 16, 26, 52)),
        (0.8, 0.20, (10, 16, 26, 52)),
    ],
)
def test_of_series_without_a_step_few_are_called_one(correlation: float, most: float, lengths: tuple[int, ...]) -> None:
    """2,000 series at the level of 5 %."""
    rng = np.random.default_rng(20261123)
    wrong = sum(bool(steps(series(rng, n, correlation), 0.05, 0.0)) for n in rng.choice(lengths, 2000))
    assert wrong / 2000 <= most


@pytest.mark.slow
@pytest.mark.parametrize(("n", "size", "least"), [(12, 4.0, 0.7), (20, 3.0, 0.8), (40, 2.0, 0.85)])
def test_clear_steps_are_found_where_they_are(n: int, size: float, least: float) -> None:
    rng = np.random.default_rng(7)
    near = 0
    for _ in range(200):
        at = int(rng.integers(n // 3, n - n // 3))
        found = steps(rng.standard_normal(n) + size * (np.arange(n) >= at), 0.05, 0.0)
        near += any(abs(one.at - at) <= 1 for one in found)
    assert near / 200 >= least


def test_the_clearest_place_is_that_of_the_largest_t() -> None:
    held = np.random.default_rng(3).standard_normal(25) + 1.5 * (np.arange(25) >= 9)
    places = range(SIDE, 25 - SIDE + 1)
    sizes = [abs(stats.ttest_ind(held[:k], held[k:]).statistic) for k in places]
    assert clearest(held, 0.0).at == places[int(np.argmax(sizes))]


def test_two_steps_are_two() -> None:
    """Also one that was undone, which has nearly no trend."""
    for levels in ([1.0, 5.0, 1.0], [1.0, 3.0, 9.0], [5.0, 1.0, 5.0]):
        held = np.repeat(levels, 12) + np.random.default_rng(1).normal(0, 0.3, 36)
        assert [one.at for one in steps(held, 0.05, 0.0)] == [12, 24]


def test_short_and_constant_series_have_no_step_and_the_same_series_the_same_answer() -> None:
    assert steps([0.0] * 3 + [9.0] * (FEWEST - 4), 0.05, 0.0) == []
    assert steps([7.0] * 30, 0.05, 0.1) == []
    held = np.random.default_rng(4).standard_normal(20)
    assert clearest(held, 0.0) == clearest(held, 0.0)
    assert clearest(held + 1e6, 0.0).p == pytest.approx(clearest(held, 0.0).p, rel=1e-6)
