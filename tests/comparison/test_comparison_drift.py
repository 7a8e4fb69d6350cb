"""What slow drifts leave of a series: against direct sums, and how often a true ratio of 1 is rejected."""

from __future__ import annotations

import math

import numpy as np
import pytest
from batchruns import unlike

from gpudiag.comparison import intervals
from gpudiag.comparison.drift import CHANCE, drift, drifts, has_outliers, usual_drift
from gpudiag.comparison.intervals import paired_ratio, unpaired_ratio
from tests.comparison.test_comparison_autocorrelation import autoregression


def test_the_slowest_waves_by_hand() -> None:
    values = np.array([1.0, 2.0, 4.0, 3.0, 6.0, 5.0, 5.5, 7.0])
    places = [math.pi * (i + 0.5) / 8 for i in range(8)]
    waves = [math.sqrt(2 / 8) * sum(v * math.cos(k * x) for v, x in zip(values, places, strict=True)) for k in (1, 2)]
    found = drift(values)
    assert found.size == 3, "two degrees of freedom and the mean"
    assert found.inflation == pytest.approx((waves[0] ** 2 + waves[1] ** 2) / 2 / values.var(ddof=1))


def test_independent_values_drift_by_chance_alone() -> None:
    rng = np.random.default_rng(3)
    called = [drifts(rng.normal(size=20), rng.normal(size=15)) for _ in range(1000)]
    assert np.mean(called) == pytest.approx(CHANCE, abs=0.03)
    assert not drifts(np.ones(8)) and drift(np.ones(8)).inflation == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("n", "sides"), [(8, 1), (20, 2)])
def test_the_usual_drift_is_the_median_of_chance_drifts(n: int, sides: int) -> None:
    rng = np.random.default_rng([n, sides])
    taken = []
    for _ in range(6000):
        series = [rng.normal(size=n) for _ in range(sides)]
        if drifts(*series):
            plain = sum(x.var(ddof=1) for x in series)
            taken.append(math.sqrt(sum(drift(x).inflation * x.var(ddof=1) for x in series) / plain))
    assert usual_drift(*series) == pytest.approx(np.median(taken), rel=0.1)


def test_an_outlier_is_no_drift() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=40)
    far = values.copy()
    far[0] = 1e6
    assert has_outliers(far) and not has_outliers(values)
    assert drift(far).inflation < 3 * drift(values).inflation + 1


@pytest.mark.slow
@pytest.mark.parametrize("paired", [True, False])
def test_a_drift_beneath_other_differences_is_less_often_a_difference(
    paired: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng([9, paired])

    def times() -> np.ndarray:
        return np.asarray(np.exp(0.25 * autoregression(rng, 50, 0.9) + 0.2 * rng.normal(size=50)))

    ratio = paired_ratio if paired else unpaired_ratio
    pairs = [(times(), times()) for _ in range(200)]
    called = sum(ratio(*pair).p < 0.05 for pair in pairs)
    monkeypatch.setattr(intervals, "drifts", lambda *series: False)
    by_neighbors = sum(ratio(*pair).p < 0.05 for pair in pairs)
    assert by_neighbors > 30 and called < 0.9 * by_neighbors


def test_an_interval_that_follows_from_a_drift_says_why_it_is_wide() -> None:
    """Half a wave beneath greater noise of 24 values a side, whose neighbors are not alike, and the noise alone."""
    rng = np.random.default_rng(4)
    noise = [rng.normal(0, 0.1, 24) for _ in range(2)]
    wave = 0.08 * np.cos(np.pi * (np.arange(24) + 0.5) / 24)
    drifting = unpaired_ratio(*(np.exp(unlike(each) + wave) for each in noise))
    assert "Items seem to drift" in str(drifting.note) and "in 1 of 20 runs by chance" in str(drifting.note)
    plain = unpaired_ratio(*(np.exp(unlike(each)) for each in noise))
    assert "drift" not in str(plain.note)
    assert drifting.high / drifting.low > plain.high / plain.low
