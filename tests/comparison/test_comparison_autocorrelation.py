"""What series of alike neighbors are worth: against closed forms, and how often a true ratio of 1 is rejected."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from gpudiag.comparison.autocorrelation import (
    dependence,
    effective_size,
    mean_inflation,
    neighbor_correlation,
    neighbors,
)
from gpudiag.comparison.compare import Comparison, compare
from gpudiag.comparison.intervals import log_ratio, paired_ratio, series_mean, unpaired_ratio
from gpudiag.manifest import Settings
from gpudiag.run import Run, RunInfo
from gpudiag.schema import TRIALS, conform


def autoregression(rng: np.random.Generator, n: int, phi: float) -> np.ndarray:
    """Values of variance 1, each correlated by ``phi`` with the one before."""
    noise, out = rng.normal(size=n), np.empty(n)
    out[0] = noise[0]
    for i in range(1, n):
        out[i] = phi * out[i - 1] + math.sqrt(1 - phi * phi) * noise[i]
    return out


def test_effective_size_of_an_autoregression() -> None:
    rng = np.random.default_rng(4)
    phi, x = 0.9, np.zeros(20_000)
    for i in range(1, len(x)):
        x[i] = phi * x[i - 1] + rng.normal()
    assert effective_size(x) == pytest.approx(len(x) * (1 - phi) / (1 + phi), rel=0.2)
    assert effective_size(rng.normal(size=5000)) == pytest.approx(5000, rel=0.15)
    assert effective_size(np.ones(7)) == 7


def test_a_series_of_few_effective_samples_has_no_interval() -> None:
    trend = np.linspace(10, 90, 200)
    assert math.isnan(series_mean(trend, 50.0).log_se)
    assert series_mean(np.tile([40.0, 60.0, 50.0], 40), 50.0).log_se > 0


def test_intervals_of_autocorrelated_means_hold_the_truth() -> None:
    rng = np.random.default_rng(5)
    held = []
    for _ in range(200):
        noise = rng.normal(size=720)
        x = np.zeros(720)
        for i in range(1, 720):
            x[i] = 0.9 * x[i - 1] + noise[i]
        mean = series_mean(50 + x, float((50 + x).mean()))
        if not math.isnan(mean.log_se):
            half = stats.t.ppf(0.975, mean.n - 1) * mean.log_se
            held.append(abs(math.log(mean.mean / 50)) <= half)
    assert np.mean(held) > 0.87  # the naive interval would hold it in a third


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_inflation_is_the_sum_over_the_covariance_matrix(phi: float) -> None:
    n = 11
    place = np.arange(n)
    covariance = phi ** np.abs(place[:, None] - place)
    assert mean_inflation(n, phi) == pytest.approx(covariance.sum() / n)
    # The spread about the series' own mean, in expectation: (trace - sum / n) / (n - 1).
    spread = (np.trace(covariance) - covariance.sum() / n) / (n - 1)
    found = dependence(place.astype(float), phi)
    assert found.inflation * spread / n == pytest.approx(covariance.sum() / n**2)
    assert found.size == pytest.approx(n * n / covariance.sum())


@pytest.mark.parametrize("phi", [0.0, 0.3, 0.6])
def test_the_correlation_of_neighbors_is_right_on_average(phi: float) -> None:
    rng = np.random.default_rng(8)
    each = [neighbor_correlation(*(autoregression(rng, 40, phi) for _ in range(8))) for _ in range(60)]
    assert np.mean(each) == pytest.approx(phi, abs=0.04)
    assert neighbor_correlation(np.ones(9)) == 0 and neighbor_correlation(np.tile([1.0, 2.0], 10)) < -0.9


@pytest.mark.slow
@pytest.mark.many
@pytest.mark.parametrize("phi", [0.0, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("n", [6, 8, 12, 19])
def test_few_alike_durations_are_seldom_called_different(phi: float, n: int) -> None:
    """Welch's test alone does so in 5, 15, 35 and 65 %."""
    rng = np.random.default_rng([n, int(10 * phi)])
    p = [unpaired_ratio(*(np.exp(0.3 * autoregression(rng, n, phi)) for _ in range(2))).p for _ in range(300)]
    assert np.mean(np.array(p) < 0.05) < 0.08


@pytest.mark.slow
@pytest.mark.parametrize("phi", [0.0, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("outlier", [False, True])
@pytest.mark.parametrize("n", [8, 20])
def test_ratios_that_drift_are_seldom_called_different(n: int, phi: float, outlier: bool) -> None:
    """Of the same items, t on logs alone does so in 5, 18, 34 and 63 % of 20."""
    rng = np.random.default_rng([n, int(10 * phi), outlier])
    p = []
    for _ in range(300):
        logs = 0.1 * autoregression(rng, n, phi)
        logs[7] += 2.0 * outlier
        p.append(paired_ratio(np.ones(n), np.exp(logs)).p)
    assert np.mean(np.array(p) < 0.05) < 0.10


@pytest.mark.slow
def test_independent_durations_are_still_told_apart() -> None:
    """Of pairs that Welch's test tells apart in 95 %; what is lost is the price of neighbors and drifts alike."""
    shown = {}
    for n in (8, 12, 20):
        rng = np.random.default_rng([11, n])
        away = 3.9 * 0.2 * math.sqrt(2 / n)
        pairs = [(np.exp(0.2 * rng.normal(size=n)), np.exp(away + 0.2 * rng.normal(size=n))) for _ in range(300)]
        shown[n] = np.mean([unpaired_ratio(*pair).p < 0.05 for pair in pairs])
    assert shown[8] > 0.4 and shown[12] > 0.55 and shown[20] > 0.7


@pytest.mark.slow
def test_too_alike_items_are_described() -> None:
    seconds = np.exp(np.repeat([0.0, 0.4, 1.0], 5) + 0.01 * np.random.default_rng(9).normal(size=15))
    found = unpaired_ratio(seconds, 1.5 * seconds)
    assert found.ratio == pytest.approx(1.5) and math.isnan(found.p) and math.isnan(found.low)
    runs = [_one_by_one(name, factor * seconds) for name, factor in (("a", 1.0), ("b", 1.5))]
    pair = compare(*runs)
    assert isinstance(pair, Comparison) and pair.verdict == "no evidence"
    note = str(pair.quantity("duration").note)
    assert "Items that ran one after the other are alike" in note and "so the interval is left out" in note
    assert math.isnan(pair.quantity("time_per_item").p)


@pytest.mark.slow
def test_what_would_settle_it_is_said() -> None:
    """With so many items at least 4 of 5 series that are as alike are bounded, and with half as many fewer are."""
    series = np.array([0.1, 0.4, 0.3, 0.3, 0.5, 0.7, 0.6, 0.6])
    found = neighbors(series, series[::-1])
    assert not found.bounded and found.enough is not None
    rng = np.random.default_rng(12)
    phi = max(found.correlation, 0.0)

    def share(n: int) -> float:
        return float(np.mean([neighbors(*(autoregression(rng, n, phi) for _ in "ab")).bounded for _ in range(300)]))

    assert share(found.enough) > 0.8 and share(found.enough // 2) < 0.8


def _one_by_one(name: str, seconds: np.ndarray) -> Run:
    end = pd.Timestamp("2026-02-02", tz="UTC") + pd.to_timedelta(np.cumsum(seconds).round(6), unit="s")
    start = end - pd.to_timedelta(seconds.round(6), unit="s")
    frame = pd.DataFrame({"study": "s", "trial": range(len(end)), "state": "COMPLETE", "start": start, "end": end})
    return Run(trials=conform(frame, TRIALS), info=RunInfo(name=name, settings=Settings(parallel=1)))


def test_short_series_are_withheld_and_not_tested_by_luck() -> None:
    """90 values of 0.9 are worth five: of a hundred pairs few may be tested, and few called different."""
    rng = np.random.default_rng(10)
    p = []
    for _ in range(200):
        a, b = (50 + autoregression(rng, 90, 0.9) for _ in range(2))
        p.append(log_ratio(series_mean(a, float(a.mean())), series_mean(b, float(b.mean())), "means").p)
    assert np.mean(~np.isnan(p)) < 0.06 and np.mean(np.array(p) < 0.05) < 0.03
