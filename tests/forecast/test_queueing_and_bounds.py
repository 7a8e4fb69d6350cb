"""Mean value analysis, bounds, drift and the laws of co-location: against formulas written down independently."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.parallelism.assignment import choose_gpu
from gpudiag.forecast.parallelism.colocation import BUSY_LAWS, SPEED_LAWS, busy_of_equal
from gpudiag.forecast.parallelism.drift import find_drift
from gpudiag.forecast.parallelism.mva import calibrated_other, mva_throughput, placed_throughput
from gpudiag.forecast.parallelism.processor_sharing import Futures
from gpudiag.forecast.parallelism.spread import by_law, ratio_estimate, stretched, widening
from gpudiag.forecast.parallelism.throughput_bounds import bounded_gain, bounded_rate, shares_within

SHARES = st.floats(0.02, 1.0)


def closed_form(k: int, busy: float, other: float) -> float:
    """Throughput of the machine-repair queue with exponential times, from its balance equations."""
    weight = [math.perm(k, n) * (busy / other) ** n for n in range(k + 1)]
    return (1 - weight[0] / sum(weight)) / busy


@pytest.mark.parametrize("k", [1, 2, 3, 6, 12])
def test_mva_is_exact(k: int) -> None:
    assert mva_throughput(k, 20.0, 45.0) == pytest.approx(closed_form(k, 20.0, 45.0))


def test_calibration_gives_back_the_rate() -> None:
    rate = mva_throughput(4, 20.0, 37.0)
    assert calibrated_other((4,), 20.0, rate) == pytest.approx(37.0, rel=1e-6)


def test_each_gpu_has_its_own_queue() -> None:
    both = mva_throughput(3, 20.0, 37.0) + mva_throughput(1, 20.0, 37.0)
    assert placed_throughput((3, 1), 20.0, 37.0) == pytest.approx(both)
    assert calibrated_other((3, 1), 20.0, both) == pytest.approx(37.0, rel=1e-6)


def test_a_rate_that_the_gpu_cannot_reach_is_unknown() -> None:
    assert math.isnan(calibrated_other((4,), 20.0, 1 / 19))


def test_bounds_down_and_up() -> None:
    now = Estimate(10, 9, 11, "trials/h")
    assert bounded_rate(now, (4,), (2,), 0.8) == pytest.approx((4.5, 11 / (0.92 * 0.92)))
    assert bounded_rate(now, (4,), (6,), 0.8) == pytest.approx((9 * 0.92 * 0.92, 11 * 1.25))
    assert bounded_rate(now, (4,), (5,), 0.5) == pytest.approx((9 * 0.92, 11 * 1.25))
    assert bounded_rate(now, (4,), (5,), 1.0) == pytest.approx((9 * 0.92, 11))
    assert bounded_rate(now, (4,), (8,), math.nan) == pytest.approx((9 * 0.92**4, 22))
    assert bounded_rate(now, (4,), (4,), 0.8) == pytest.approx((9, 11))


def test_on_several_gpus_a_process_costs_those_of_its_own() -> None:
    assert bounded_gain((1,) * 4, (2,) * 4) == pytest.approx((0.92, 2.0))
    assert bounded_gain((2,) * 4, (1,) * 4) == pytest.approx((0.5, 1 / 0.92))


def test_one_more_beside_a_lonely_worker_may_bring_more_than_its_share() -> None:
    """Of two GPUs that two trials fill, three and one do the work of three: the fifth trial is a third more."""
    assert bounded_gain((3, 1), (3, 2))[1] == pytest.approx(4 / 3)
    assert bounded_gain((3, 1), (3, 3))[1] == pytest.approx(1.5)
    low, high = bounded_gain((3, 1), (1, 1))
    assert low == pytest.approx(0.5) and 1.0 < high < 1 / 0.92


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.lists(st.floats(0, 1), min_size=8, max_size=8))
def test_bounds_hold_for_any_throughput_that_rises_less_and_less(now: list[int], rises: list[float]) -> None:
    """Each further worker of a GPU brings at most what the one before it brought."""
    rate = np.cumsum([0.0, 1.0, *np.cumprod(rises)])
    then = [workers + 1 for workers in now]
    gain = sum(rate[k] for k in then) / sum(rate[k] for k in now)
    low, high = bounded_gain(tuple(now), tuple(then))
    assert low <= gain + 1e-9 and gain <= high + 1e-9


def test_a_cost_moves_one_end_away_from_the_value() -> None:
    made = Estimate(1.2, 1.1, 1.3, "")
    for factor, low, high in ((0.9, 0.99, 1.3), (1.0, 1.1, 1.3), (1.1, 1.1, 1.43)):
        ends = stretched(made, factor)
        assert (ends.low, ends.value, ends.high) == pytest.approx((low, 1.2, high))
    kept = stretched(made, 0.9, (1.05, 1.15))
    assert (kept.low, kept.value, kept.high) == (1.05, 1.15, 1.15)


def test_a_trial_counts_by_the_share_of_its_life() -> None:
    start, end = np.array([0.0, 10.0, 95.0, 20.0]), np.array([20.0, 20.0, 105.0, 20.0])
    assert shares_within(start, end, 10.0, 100.0).tolist() == [0.5, 1.0, 0.5, 1.0]


@given(st.lists(SHARES, min_size=1, max_size=6))
def test_laws_are_shares_and_order_as_they_must(shares: list[float]) -> None:
    alone = np.array(shares)
    busy = {name: float(law(alone)) for name, law in BUSY_LAWS.items()}
    assert 0 < busy["overlapping"] <= busy["saturating"] + 1e-12 <= 1 + 2e-12
    for law in SPEED_LAWS.values():
        assert 1 / len(shares) - 1e-9 <= float(law(alone)) <= 1 + 1e-9


@given(SHARES, st.integers(0, 8))
def test_equal_jobs_are_the_general_law(share: float, k: int) -> None:
    for name, law in BUSY_LAWS.items():
        expected = float(law(np.full(k, share))) if k else 0.0
        assert float(busy_of_equal(name, np.array(share), k)) == pytest.approx(expected)


def test_queueing_of_a_pair_is_its_closed_form() -> None:
    assert float(SPEED_LAWS["queueing"](np.array([0.5, 0.8]))) == pytest.approx(1 / (1 + 0.5 * 0.8))


def test_drift_is_found_and_its_absence_too() -> None:
    rng = np.random.default_rng(5)
    work = rng.lognormal(4, 0.3, 300)
    one = np.full(300, "s")
    assert not find_drift(work, one).found
    found = find_drift(work * np.linspace(1, 2, 300), one)
    assert found.found and found.rho > 0.2 and not found.study
    assert math.isnan(find_drift(work[:5], one[:5]).rho)


def test_studies_of_other_lengths_do_not_drift() -> None:
    rng = np.random.default_rng(5)
    work, study = rng.lognormal(4, 0.3, 200), np.repeat(["a", "b"], 100)
    apart = find_drift(work * np.repeat([1.0, 2.0], 100), study)
    assert not apart.found and apart.studies_differ
    assert find_drift(work * np.repeat([1.0, 2.0], 100), np.full(200, "a")).found
    within = find_drift(work * np.append(np.ones(100), np.linspace(1, 3, 100)), study)
    assert within.found and within.study == "b"
    assert not find_drift(np.tile(work[:100], 2), study).studies_differ


@pytest.mark.slow
def test_drift_keeps_its_false_alarm_rate() -> None:
    rng = np.random.default_rng(9)
    alarms = sum(find_drift(rng.lognormal(4, 0.4, 100), np.full(100, "s")).found for _ in range(400))
    assert 0.02 <= alarms / 400 <= 0.09
    four = np.arange(400) % 4
    alarms = sum(find_drift(rng.lognormal(4, 0.4, 400), four).found for _ in range(200))
    assert alarms / 200 <= 0.1, "the best of several studies is no easier to find"


def test_widening_is_the_larger_of_table_and_backtest() -> None:
    assert widening(4, 4) == 2.0 and widening(6, 4) == 2.0 and widening(7, 4) == 2.5
    assert widening(3, 4, from_backtest=3.1) == 3.1


@given(st.lists(st.floats(1, 100), min_size=5, max_size=50), st.floats(1, 100), st.floats(1, 100))
def test_an_interval_holds_its_value_and_what_it_must_reach(sample: list[float], value: float, other: float) -> None:
    estimate = by_law(value, np.array(sample), 2.0, "x", also=(other,))
    assert estimate.low <= min(value, other) and estimate.high >= max(value, other)
    clipped = by_law(value, np.array(sample), 2.0, "x", also=(other,), within=(10.0, 20.0))
    assert 10 <= clipped.low <= clipped.value <= clipped.high <= 20


def test_that_laws_differ_is_no_noise_to_be_widened() -> None:
    """Half of the futures follow a law with 40 trials an hour, half one with 50, each with 2 of noise: twice that is
    allowed for around either law, and not twice the 10 between them.
    """
    noise = np.linspace(-2.0, 2.0, 201)
    rate = by_law(50.0, np.concatenate([50.0 + noise, 40.0 + noise]), 2.0, "trials/h")
    assert (rate.low, rate.value, rate.high) == pytest.approx((40 * (38.2 / 40) ** 2, 50.0, 50 * (51.8 / 50) ** 2))
    assert by_law(50.0, np.concatenate([50.0 + noise, 40.0 + noise]), 2.0, "", within=(38.0, 52.0)).low == 38.0


def test_assignment_by_load_and_by_memory() -> None:
    gpu, worker = np.array([[0, 0, 1, 0]]), np.array([3])
    assert choose_gpu("least loaded", gpu, worker, None, 2).tolist() == [1]
    held = np.array([[1000.0, 1000.0, 9000.0, 0.0]])
    assert choose_gpu("by memory", gpu, worker, held, 2).tolist() == [0]
    assert choose_gpu("by memory", gpu, worker, None, 2).tolist() == [1]


def test_that_laws_differ_is_not_widened() -> None:
    """Each law by itself gives 1.5 and 1.9 without noise: the interval ends there, whatever the widening."""
    ones = np.ones(80)
    many = Futures(np.concatenate([1.9 * ones, 1.5 * ones]), 0 * ones)
    now = Futures(np.ones(160), 0 * ones)
    made = ratio_estimate(Futures(1.9 * ones, ones), many, Futures(ones, ones), now, 2.0)
    assert (made.low, made.value, made.high) == pytest.approx((1.5, 1.9, 1.9))
    noise = np.tile(np.linspace(-0.1, 0.1, 81), 2)
    noisy = Futures(np.repeat([1.9, 1.5], 81) + noise, ones)
    made = ratio_estimate(Futures(1.9 * ones, ones), noisy, Futures(ones, ones), Futures(np.ones(162), ones), 2.0)
    assert (made.low, made.high) == pytest.approx((1.5 * (1.41 / 1.5) ** 2, 1.9 * (1.99 / 1.9) ** 2))
