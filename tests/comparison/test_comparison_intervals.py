"""Ratios, effective sample sizes and adjusted p-values against scipy and against arithmetic done by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from batchruns import unlike
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gpudiag.comparison.autocorrelation import neighbors
from gpudiag.comparison.intervals import (
    Mean,
    adjusted,
    has_outliers,
    log_ratio,
    mean_ratio,
    paired_ratio,
    rate_ratio,
    share_ratio,
    signed_rank,
    unpaired_ratio,
)

seconds = st.lists(st.floats(0.5, 500), min_size=6, max_size=40)


def test_paired_is_a_t_interval_on_log_ratios() -> None:
    rng = np.random.default_rng(1)
    a = rng.lognormal(2, 0.5, 12)
    b = 1.3 * a * unlike(rng.lognormal(0, 0.1, 12))
    found, logs = paired_ratio(a, b), np.log(b / a)
    half = stats.t.ppf(0.975, 11) * logs.std(ddof=1) / math.sqrt(12)
    assert found.ratio == pytest.approx(np.exp(logs.mean()))
    assert (found.low, found.high) == pytest.approx((np.exp(logs.mean() - half), np.exp(logs.mean() + half)))
    assert found.p == pytest.approx(stats.ttest_1samp(logs, 0).pvalue)


def test_unpaired_is_welch_on_logs() -> None:
    rng = np.random.default_rng(2)
    a, b = unlike(rng.lognormal(2, 0.3, 9)), unlike(rng.lognormal(2.2, 0.6, 14))
    found = unpaired_ratio(a, b)
    welch = stats.ttest_ind(np.log(b), np.log(a), equal_var=False)
    interval = welch.confidence_interval()
    assert found.p == pytest.approx(welch.pvalue)
    assert (found.low, found.high) == pytest.approx((math.exp(interval.low), math.exp(interval.high)))


def test_an_outlier_moves_the_median_of_differences_little() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.lognormal(2, 0.2, 15), rng.lognormal(2, 0.2, 15)
    plain = unpaired_ratio(a, b)
    b[4] *= 100
    assert has_outliers(np.log(b))
    robust = unpaired_ratio(a, b)
    assert robust.method.startswith("Hodges-Lehmann")
    assert robust.ratio == pytest.approx(np.median(b[:, None] / a[None, :])), "the median of pairwise ratios"
    assert "the ratio is the median of pairwise ratios" in str(robust.note) and not plain.note
    assert robust.ratio == pytest.approx(plain.ratio, rel=0.1)
    assert robust.low < robust.ratio < robust.high
    paired = paired_ratio(a, b)
    assert paired.method.startswith("Hodges-Lehmann")
    i, j = np.triu_indices(len(a))
    each = np.log(b / a)
    assert paired.ratio == pytest.approx(np.exp(np.median((each[i] + each[j]) / 2))), "averaged in pairs"
    assert "the median of the items' ratios, averaged in pairs" in str(paired.note)


@pytest.mark.parametrize("make", [paired_ratio, unpaired_ratio])
def test_fewer_than_six_are_described(make: object) -> None:
    found = make(np.array([1.0, 2, 3, 4, 5]), np.array([2.0, 4, 6, 8, 10]))  # type: ignore[operator]
    assert found.ratio == pytest.approx(2)
    assert math.isnan(found.low) and math.isnan(found.p)


@pytest.mark.slow
@given(seconds, seconds, st.floats(0.1, 10))
def test_swapping_the_sides_inverts_and_scaling_scales(a: list[float], b: list[float], factor: float) -> None:
    one, two = np.array(a), np.array(b)
    found, swapped, scaled = unpaired_ratio(one, two), unpaired_ratio(two, one), unpaired_ratio(one, factor * two)
    assert found.ratio * swapped.ratio == pytest.approx(1, rel=1e-6)
    assert scaled.ratio == pytest.approx(factor * found.ratio, rel=1e-6)
    if math.isnan(found.low):  # neighbors too alike, which they are whichever way round; far from 1 it would be told
        assert math.isnan(swapped.low)
        return
    assert found.low * swapped.high == pytest.approx(1, rel=1e-6)
    assert found.low <= found.ratio * (1 + 1e-9) and found.ratio <= found.high * (1 + 1e-9)


def test_shares_are_fishers() -> None:
    found = share_ratio(17, 576, 2, 36)
    assert found.p == pytest.approx(stats.fisher_exact([[17, 559], [2, 34]]).pvalue)
    assert found.ratio == pytest.approx((2 / 36) / (17 / 576))
    assert found.low < 1 < found.high
    none = share_ratio(0, 20, 3, 20)
    assert math.isnan(none.ratio) and 0 < none.low < 1 and math.isnan(none.high)
    assert (share_ratio(3, 20, 0, 20).ratio, share_ratio(3, 20, 0, 20).low) == (0, 0)
    assert share_ratio(3, 20, 0, 20).high == pytest.approx(1 / none.low)
    assert share_ratio(0, 5, 0, 9).p == 1 and math.isnan(share_ratio(0, 0, 1, 2).p)


def test_shares_have_the_published_interval() -> None:
    found = share_ratio(16, 80, 36, 40)  # the example of Koopman (1984): 2.94 to 7.15
    assert (found.low, found.high) == (pytest.approx(2.94, abs=0.005), pytest.approx(7.15, abs=0.005))


@pytest.mark.parametrize("n", [1, 6, 75, 100])
def test_shares_of_one_hundred_percent_are_not_certain(n: int) -> None:
    found = share_ratio(n, n, n, n)
    least = 1 / (1 + 1.959964**2 / n)  # Wilson's lower end of n of n
    assert (found.ratio, found.p) == (1, 1)
    assert (found.low, found.high) == (pytest.approx(least), pytest.approx(1 / least))


@pytest.mark.parametrize(("n", "a", "b"), [(1, 0.9, 0.9), (6, 0.95, 0.95), (20, 0.9, 0.99), (10, 0.5, 0.3)])
def test_intervals_of_shares_hold_the_truth(n: int, a: float, b: float) -> None:
    """Coverage over every outcome that n of each side can have."""
    held = 0.0
    for x in range(n + 1):
        for y in range(n + 1):
            found = share_ratio(x, n, y, n)
            inside = not (found.low > b / a or found.high < b / a)  # unknown ends exclude nothing
            held += stats.binom.pmf(x, n, a) * stats.binom.pmf(y, n, b) * inside
    assert held > 0.93


@pytest.mark.parametrize("n", [10, 17, 25])
def test_signed_ranks_are_counted(n: int) -> None:
    rng = np.random.default_rng(n)
    logs = rng.normal(0.4, 0.1, n)
    logs[0] = 5.0
    logs = unlike(logs)
    found = paired_ratio(np.ones(n), np.exp(logs))
    walsh = sorted((logs[i] + logs[j]) / 2 for i in range(n) for j in range(i, n))
    assert found.method.startswith("Hodges-Lehmann")
    # Shifted just inside the interval the exact test holds on to a ratio of 1, just outside it rejects it.
    for end, inward in ((math.log(found.low), 1), (math.log(found.high), -1)):
        assert any(end == pytest.approx(value) for value in walsh)
        assert stats.wilcoxon(logs - end - inward * 1e-9, method="exact").pvalue > 0.05
        assert stats.wilcoxon(logs - end + inward * 1e-9, method="exact").pvalue <= 0.05
    assert found.p == pytest.approx(stats.wilcoxon(logs, method="exact").pvalue)


def test_six_pairs_are_held_with_95_percent() -> None:
    """1 of 64 orders of signs puts all six above the truth, 1 all below: 96.9 %, where the second rank has 93.75."""
    assert [signed_rank(n) for n in (5, 6)] == [-1, 0]


def test_rates_are_a_binomial_given_their_sum() -> None:
    found = rate_ratio([4, 12], [2.0, 1.0])
    assert found.ratio == pytest.approx(6.0)
    assert found.p == pytest.approx(stats.binomtest(12, 16, 1 / 3).pvalue)
    assert found.low < 6 < found.high
    assert rate_ratio([3, 3], [1.0, 1.0]).p == pytest.approx(1.0)
    assert math.isnan(rate_ratio([0, 3], [1.0, 1.0]).ratio) and math.isnan(rate_ratio([0, 0], [1.0, 1.0]).p)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_adjusted_is_benjamini_hochberg(p: list[float]) -> None:
    # The definition: the least of n p / rank over all p that are not smaller, 1 at most.
    ranked = [len(p) * value / sum(other <= value for other in p) for value in p]
    wanted = [min(1.0, *(r for r, other in zip(ranked, p, strict=True) if other >= value), 1.0) for value in p]
    assert adjusted(p) == pytest.approx(wanted, abs=1e-12)


def test_unknown_p_values_do_not_count() -> None:
    assert adjusted([0.04, math.nan, 0.9])[0] == pytest.approx(0.08)
    assert math.isnan(adjusted([0.04, math.nan])[1]) and adjusted([]) == []


def test_means_without_an_error_give_a_ratio_alone() -> None:
    found = log_ratio(Mean(10, math.nan, 5), Mean(20, 0.1, 20), "x")
    assert found.ratio == pytest.approx(2) and math.isnan(found.low)
    assert math.isnan(log_ratio(Mean(0, 0.1, 9), Mean(2, 0.1, 9), "x").ratio)


def test_arithmetic_means_need_thirty_for_an_interval() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.lognormal(2, 0.5, 60), rng.lognormal(2, 0.5, 60)
    found = mean_ratio(a, b, paired=False)
    assert found.ratio == pytest.approx(b.mean() / a.mean()) and found.low < found.ratio < found.high
    assert found == mean_ratio(a, b, paired=False)
    assert math.isnan(mean_ratio(a[:29], b[:29], paired=False).low)


@pytest.mark.parametrize(("a", "b"), [(1.0, 2.0), (7.7, 3.3)])
@pytest.mark.parametrize("make", [paired_ratio, unpaired_ratio])
def test_values_that_are_all_the_same_leave_no_interval_to_doubt(make: object, a: float, b: float) -> None:
    found = make(np.full(6, a), np.full(6, b))  # type: ignore[operator]
    assert (found.low, found.high) == pytest.approx((b / a, b / a)) and not found.note


@pytest.mark.slow
def test_noise_is_not_called_alike() -> None:
    """Of pure noise 5 % may be, as in any test at 5 %; a correlation above 0.5 is shown by more."""
    said, high = 0, 0
    for seed in range(400):
        rng = np.random.default_rng([19, seed])
        a, b = (np.exp(0.2 * rng.normal(size=6)) for _ in range(2))
        high += neighbors(np.log(a), np.log(b)).correlation > 0.5
        said += "are alike (correlation" in str(unpaired_ratio(a, b).note)
    assert said < 0.05 * 400 < high
