from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.measures._trials.proportions import clopper_pearson_pct, streak_probability, wilson_pct


@given(st.integers(1, 500), st.data())
def test_wilson_bounds_are_where_the_score_test_ends(n: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    low, high = (bound / 100 for bound in wilson_pct(hits, n))
    assert 0 <= low <= hits / n <= high <= 1
    for bound in (low, high):
        if 0 < bound < 1:  # the definition: |p_hat - p| = z sqrt(p (1 - p) / n)
            assert abs(hits / n - bound) == pytest.approx(1.959964 * math.sqrt(bound * (1 - bound) / n), rel=1e-5)


def binomial_tail(n: int, p: float, hits: range) -> float:
    return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in hits)


@pytest.mark.slow
@given(st.integers(1, 60), st.data())
def test_clopper_pearson_bounds_leave_half_of_the_rest_in_each_tail(n: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    low, high = (bound / 100 for bound in clopper_pearson_pct(hits, n))
    if hits > 0:
        assert binomial_tail(n, low, range(hits, n + 1)) == pytest.approx(0.025, rel=1e-6)
    if hits < n:
        assert binomial_tail(n, high, range(hits + 1)) == pytest.approx(0.025, rel=1e-6)


def test_numbers_of_the_method_book() -> None:
    assert wilson_pct(173, 200) == pytest.approx((81.1, 90.6), abs=0.05)
    assert clopper_pearson_pct(2, 36) == pytest.approx((0.7, 18.7), abs=0.05)
    # 0 of 50, one-sided 95 %: 1 - 0.05 ** (1 / 50).
    assert clopper_pearson_pct(0, 50, level=0.9) == pytest.approx((0, 5.8), abs=0.05)


def test_nothing_from_nothing() -> None:
    assert all(math.isnan(bound) for bound in (*wilson_pct(0, 0), *clopper_pearson_pct(0, 0)))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("length", [1, 2, 3, 5, 11])
def test_streaks_by_listing_every_sequence(p: float, length: int) -> None:
    n = 10
    listed = 0.0
    for throws in product("HM", repeat=n):
        text = "".join(throws)
        if "H" * length in text:
            listed += p ** text.count("H") * (1 - p) ** text.count("M")
    assert streak_probability(p, n, length) == pytest.approx(listed)


def test_a_streak_of_fifty_successes_in_case_4() -> None:
    # "Never 50 in a row" in 184 trials has a probability of 5 % at a failure rate of 1.9 %, 50 % at 5.1 %.
    assert streak_probability(1 - 0.019, 184, 50) == pytest.approx(0.95, abs=0.01)
    assert streak_probability(1 - 0.051, 184, 50) == pytest.approx(0.5, abs=0.01)


def test_small_probabilities_keep_their_digits() -> None:
    assert streak_probability(1e-3, 100, 10) == pytest.approx(91e-30, rel=1e-2)
