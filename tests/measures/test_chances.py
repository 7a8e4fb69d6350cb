"""SciPy's ``stats`` has the same tests, and says the same."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import example, given
from hypothesis import strategies as st

from gpudiag.measures._trials.chances import p_greater, p_more_often, spearman, spearman_drawn
from gpudiag.measures._trials.split import _convolved

N_TRIALS = st.integers(0, 30) | st.integers(0, 100_000)


@given(N_TRIALS, N_TRIALS, st.data())
def test_hits_are_as_likely_as_fisher_says(n: int, m: int, data: st.DataObject) -> None:
    a, b = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    told = scipy.stats.fisher_exact([[a, n - a], [b, m - b]], "greater").pvalue
    assert p_more_often(a, n, b, m) == pytest.approx(told, rel=1e-8, abs=1e-300)


VALUES = st.lists(st.integers(-9, 9), min_size=1, max_size=40) | st.lists(st.floats(-9, 9), min_size=1, max_size=40)


@example([1.0] * 20, [1.0] * 20)
@given(VALUES, VALUES)
def test_values_are_greater_by_chance_as_mann_and_whitney_say(x: list[float], y: list[float]) -> None:
    told = scipy.stats.mannwhitneyu(x, y, alternative="greater").pvalue
    assert p_greater(np.array(x, float), np.array(y, float)) == pytest.approx(told, rel=1e-12)


@pytest.mark.parametrize("n", [1, 5, 8])
@pytest.mark.parametrize("m", [5, 60, 5000])
def test_the_rarest_order_of_few_values_is_counted_exactly(n: int, m: int) -> None:
    chances = [p_greater(np.arange(n) + m - moved + 0.5, np.arange(m)) for moved in (0, 2)]
    assert chances == pytest.approx([1 / scipy.special.comb(n + m, n), 2 / scipy.special.comb(n + m, n)], rel=1e-12)


def test_no_values_have_no_chance() -> None:
    assert np.isnan([p_greater(np.array([]), np.ones(3)), p_greater(np.array([np.nan]), np.ones(3))]).all()


@given(st.lists(st.integers(0, 1), min_size=1, max_size=60), st.lists(st.integers(0, 1), min_size=1, max_size=60))
def test_sums_by_fourier_transforms_are_those_by_hand(x: list[int], y: list[int]) -> None:
    assert _convolved(np.array(x, float), np.array(y, float)).tolist() == np.convolve(x, y).tolist()


@pytest.mark.parametrize("levels", [3, 10**9])
def test_draws_correlate_by_rank_as_spearman_says(levels: int) -> None:
    rng = np.random.default_rng(7)
    x = rng.integers(0, levels, 30)
    y = x + rng.integers(0, levels, 30)
    drawn = rng.integers(0, 30, (40, 25))
    told = [scipy.stats.spearmanr(x[one], y[one]).statistic for one in drawn]
    assert spearman_drawn(x, y, drawn) == pytest.approx(told, rel=1e-12)
    assert spearman(x, y) == pytest.approx(scipy.stats.spearmanr(x, y).statistic, rel=1e-12)
    assert np.isnan(spearman(x, np.ones(30)))
