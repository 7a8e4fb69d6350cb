"""The idle power of a GPU: seen in settled idle time, else between bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from smallruns import gpu, run

from gpudiag.measures._gpu.idle_power import IdlePower, idle_powers
from gpudiag.measures.feed import FeedProfile, measure_feed
from gpudiag.run import Run

LIMIT_W, THIRD_W = 450.0, 150.0
SECONDS = 600.0


def ticks(seconds: float, period_s: float = 5.0) -> np.ndarray:
    return np.arange(0.5, seconds / period_s) * period_s


def log(at: np.ndarray, **columns: Any) -> Run:
    return run(gpu=gpu(at.tolist(), **{"power_limit_w": LIMIT_W, **columns}))


def one(made: Run) -> IdlePower:
    (found,) = idle_powers(made).values()
    return found


def of(period_s: float = 1.0, **columns: Any) -> IdlePower:
    return one(log(ticks(SECONDS, period_s), **columns))


def test_readings_of_idle_minutes_are_the_idle_power() -> None:
    at = ticks(SECONDS, 1.0)
    rest = at < 120
    watts = np.where(rest, 40.0 + np.arange(len(at)) % 3, 400.0)
    seen = of(util_pct=np.where(rest, 0.0, 97.0), power_w=watts)
    assert seen == IdlePower(40.0, 40.0) and seen.seen_w == 40.0


def test_what_the_sensor_reads_while_it_falls_is_none() -> None:
    at = ticks(SECONDS, 1.0)
    phase = at % 60
    idle = phase >= 50
    lagging = np.where(phase < 51, 380.0, np.where(phase < 52, 200.0, 45.0))
    assert of(util_pct=np.where(idle, 0.0, 97.0), power_w=np.where(idle, lagging, 400.0)).seen_w == 45.0
    # The same waits cut to two samples never show it: what is left is a bound.
    short = phase >= 58
    unknown = of(util_pct=np.where(short, 0.0, 97.0), power_w=np.where(short, 380.0, 400.0))
    assert unknown == IdlePower(0.0, THIRD_W) and math.isnan(unknown.seen_w)


@pytest.mark.parametrize("period_s", [0.1, 0.5, 1.0, 5.0, 10.0, 60.0])
def test_waits_shorter_than_the_mean_of_the_sensor_show_no_idle_power(period_s: float) -> None:
    at = np.arange(0.0, 400 * period_s, period_s) + np.random.default_rng(3).uniform(0, period_s / 20, 400)
    waits = at % 3 > 2.6  # 0.4 s every 3 s, which leaves the mean of a second where it was
    assert one(log(at, util_pct=np.where(waits, 0.0, 97.0), power_w=380.0)) == IdlePower(0.0, THIRD_W)


def test_readings_above_a_third_of_the_limit_are_no_idle_power_however_long() -> None:
    util = np.where(ticks(SECONDS) < 300, 0.0, 97.0)
    assert of(5.0, util_pct=util, power_w=THIRD_W + 1).seen_w != THIRD_W + 1
    assert of(5.0, util_pct=util, power_w=THIRD_W - 1).seen_w == THIRD_W - 1
    lowered = of(5.0, util_pct=util, power_w=100.0, power_limit_w=200.0, power_default_w=400.0)
    assert lowered.seen_w == 100.0, "a third of the board's own limit counts where it was lowered"


def test_without_idle_time_the_least_readings_are_a_bound() -> None:
    at = ticks(SECONDS)
    busy = of(5.0, util_pct=97.0, power_w=np.where(at < 100, 90.0, 400.0))
    assert busy == IdlePower(0.0, 90.0)
    assert of(5.0, util_pct=97.0, power_w=np.where(at < 6, 1.0, 400.0)).most_w == THIRD_W, "one odd reading is none"


def test_bounds_of_the_idle_power_are_bounds_of_the_shares() -> None:
    least, most = IdlePower(0.0, 100.0).shares(np.array([400.0, 100.0]), 500.0)
    assert least.tolist() == [0.75, 0.0] and most.tolist() == [0.8, 0.2]
    assert all(np.isnan(part).all() for part in IdlePower(0.0, 100.0).shares(np.array([50.0]), 90.0))


def test_a_busy_gpu_between_the_bounds_has_two_shares() -> None:
    made = log(ticks(SECONDS), util_pct=97.0, power_w=0.5 * LIMIT_W)
    profile: FeedProfile = measure_feed(made)
    row = profile.per_gpu.loc["0"]
    assert row["busy_power_ratio"] == pytest.approx(0.5)
    assert row["least_busy_power_ratio"] == pytest.approx((1 / 2 - 1 / 3) / (1 - 1 / 3))


@pytest.mark.parametrize(("reasons", "expected"), [(0x4, 1.0), (0x24, 1.0), (0x0, 0.25), (0x20, 0.25), (None, 0.25)])
def test_a_gpu_at_its_power_cap_uses_all_that_it_may(reasons: int | None, expected: float) -> None:
    told = {} if reasons is None else {"throttle_reasons": reasons}
    row = measure_feed(log(ticks(SECONDS), util_pct=97.0, power_w=0.25 * LIMIT_W, **told)).per_gpu.loc["0"]
    assert row["busy_power_ratio"] == pytest.approx(expected)


def test_a_run_without_power_has_none() -> None:
    assert idle_powers(log(ticks(60.0), util_pct=95.0)) == {}
    assert idle_powers(log(np.zeros(0), util_pct=95.0, power_w=95.0)) == {}
