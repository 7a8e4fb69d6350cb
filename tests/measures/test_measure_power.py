from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from smallruns import gpu, gpus, run

import gpudiag as gd
from gpudiag.errors import NotMeasurable
from gpudiag.manifest import GpuOverride
from gpudiag.measures.power import measure_power


def test_case_5_a_laptop_chip_cannot_draw_590_w() -> None:
    # 89 readings with a mean of 20.5 W and one of 590 W, 300 s / 90 apart.
    power = np.r_[np.full(44, 18.5), 590.0, np.full(45, 18.5 + 4 * 45 / 45 - 0.0)]
    power[45:] = (20.5 * 89 - 44 * 18.5) / 45
    log = gpu(np.arange(90) * 300 / 90, power_w=power, mem_total_mib=6141.0)
    profile = measure_power(run(gpu=log, gpus=gpus(gpu=["0"], name=["NVIDIA GeForce RTX 4050 Laptop GPU"])))
    row = profile.per_gpu.loc["0"]
    assert (row["n_rejected"], profile.n_rejected, row["board"], row["laptop"]) == (1, 1, "RTX 4050 Laptop", True)
    assert (row["limit_w"], row["limit_source"], row["plausible_w"]) == (140, "data sheet", pytest.approx(182))
    assert row["mean_w"] == pytest.approx(20.5, abs=0.05)
    assert row["mean_all_w"] == pytest.approx(26.8, abs=0.05)
    assert (row["max_all_w"], row["rejected_pct"]) == (590, pytest.approx(100 / 90))
    assert row["max_w"] < 30
    assert profile.rejected["power_w"].tolist() == [590]
    assert row["longest_rejected_s"] == pytest.approx(300 / 90)


def test_an_a100_may_exceed_its_limit_by_half() -> None:
    # Acme: 599.7 W on a board of 400 W, read by a sensor without averaging.
    log = gpu(range(4), power_w=[300, 599.7, 641, 300], power_limit_w=400.0, mem_total_mib=81920.0)
    profile = measure_power(run(gpu=log, gpus=gpus(gpu=["0"], name=["NVIDIA A100-SXM4-80GB"])))
    assert profile.rejected["power_w"].tolist() == [641]
    assert math.isnan(profile.per_gpu.at["0", "over_limit_pct"])


def test_an_averaging_sensor_may_not() -> None:
    log = gpu(range(5), power_w=[300, 441, 519, 521, 300], power_limit_w=400.0)
    profile = measure_power(run(gpu=log, gpus=gpus(gpu=["0"], name=["NVIDIA H100 NVL"])))
    assert profile.rejected["power_w"].tolist() == [521]
    assert profile.per_gpu.at["0", "averaged_sensor"] is True or profile.per_gpu.at["0", "averaged_sensor"]
    # 441 and 519 W are above 1.10 x 400 W: the 2nd and 3rd of the readings kept at 0, 1, 2 and 4 s.
    assert profile.per_gpu.at["0", "over_limit_pct"] == pytest.approx(100 * (1 + 1.5) / 5)


def test_without_a_limit_nothing_is_rejected() -> None:
    row = measure_power(run(gpu=gpu(range(4), power_w=[1, 2, 9999, 2]))).per_gpu.loc["0"]
    assert row["n_rejected"] == 0 and row["limit_source"] == "" and math.isnan(row["limit_w"])


def test_the_users_limit_comes_first() -> None:
    log = gpu(range(4), power_w=[50, 60, 200, 50], power_limit_w=590.0)
    profile = measure_power(run(gpu=log, overrides={"0": GpuOverride(power_limit_w=100)}))
    assert profile.n_rejected == 1 and profile.per_gpu.at["0", "limit_source"] == "run.toml"


def test_energy_stops_at_a_gap() -> None:
    log = gpu([0, 1, 2, 3, 100, 101], power_w=[100, 100, 200, 200, 1000, 1000])
    # 100 + 150 + 200 J, nothing across the gap, then 1000 J.
    assert measure_power(run(gpu=log)).energy_kwh == pytest.approx(1450 / 3.6e6)


def test_the_boards_own_counter_is_preferred() -> None:
    log = gpu(range(4), power_w=10.0, energy_j=[1000, 1500, 20, 120])
    row = measure_power(run(gpu=log)).per_gpu.loc["0"]
    assert row["energy_source"] == "both"
    # 500 and 100 J; the driver was loaded anew between, for a second at 10 W.
    assert row["energy_kwh"] == pytest.approx(610 / 3.6e6)
    log = gpu(range(4), power_w=10.0, energy_j=[1000, 1500, 1500, 1600])
    row = measure_power(run(gpu=log)).per_gpu.loc["0"]
    assert (row["energy_source"], row["energy_kwh"]) == ("counter", pytest.approx(600 / 3.6e6))


def test_power_counts_where_the_counter_tells_nothing() -> None:
    """100 W from second 0 to 100; a counter read from 60 to 80, which rises by 120 J a second."""
    time = np.arange(101)
    read = (time >= 60) & (time <= 80) & (time % 5 == 0)
    log = gpu(time, power_w=100.0, energy_j=np.where(read, 7000 + 120.0 * time, math.nan))
    profile = measure_power(run(gpu=log))
    assert profile.energy_kwh == pytest.approx((60 * 100 + 20 * 120 + 20 * 100) / 3.6e6)
    assert profile.per_gpu.at["0", "energy_source"] == "both"
    other = gpu(time, "1", power_w=50.0)
    both = measure_power(run(gpu=pd.concat([log, other])))
    assert both.energy_kwh == pytest.approx((10_400 + 5_000) / 3.6e6)


def test_a_counter_tells_of_a_hole_between_its_readings_and_power_does_not() -> None:
    """Nothing was recorded from 10 to 1000 s; the counter rose by 150 kJ meanwhile. It ended 10 s before power."""
    time = np.r_[0:11, 1000:1021]
    counter = np.r_[100.0 * np.arange(11), 151_000 + 100.0 * np.arange(11), np.full(10, math.nan)]
    profile = measure_power(run(gpu=gpu(time, power_w=90.0, energy_j=counter)))
    assert profile.energy_kwh == pytest.approx((1000 + 150_000 + 1000 + 10 * 90) / 3.6e6)


@pytest.mark.parametrize("seed", range(12))
def test_counter_and_power_together_make_the_whole_energy(seed: int) -> None:
    """Power is read each second and the counter now and then, from one second to another; it may start anew once."""
    rng = np.random.default_rng(seed)
    time, watts = np.arange(101), rng.uniform(50, 300, 101)
    used = np.r_[0, np.cumsum((watts[1:] + watts[:-1]) / 2)]
    first, last = sorted(rng.choice(101, 2, replace=False))
    read = (time >= first) & (time <= last) & (rng.random(101) < 0.4)
    anew = int(rng.integers(101)) if seed % 2 else 101
    counter = np.where(time < anew, 5000 + used, used - used[min(anew, 100)])
    log = gpu(time, power_w=watts, energy_j=np.where(read, counter, math.nan))
    assert measure_power(run(gpu=log)).energy_kwh == pytest.approx(used[-1] / 3.6e6)


def test_frozen_readings_are_measured_in_seconds() -> None:
    power = np.full(100, 20.0)
    power[10:80] = 588.0
    log = gpu(range(100), power_w=power, power_limit_w=140.0, throttle_reasons=np.where(power > 500, 0x4, 0))
    row = measure_power(run(gpu=log)).per_gpu.loc["0"]
    assert (row["longest_rejected_s"], row["rejected_capped_pct"]) == (70, 100)


def test_temperatures_that_are_none_are_dropped() -> None:
    log = gpu(range(5), power_w=50.0, temp_c=[0, 60, 70, 80, 150])
    row = measure_power(run(gpu=log)).per_gpu.loc["0"]
    assert (row["mean_temp_c"], row["max_temp_c"]) == (pytest.approx(70), 80)


def test_zero_watts_are_an_absent_sensor() -> None:
    with pytest.raises(NotMeasurable, match="above 0 W"):
        measure_power(run(gpu=gpu(range(5), power_w=0.0)))


def test_load_is_the_time_at_each_utilization_and_share_of_the_limit() -> None:
    # One second a sample: busy at 80 W of 400 for three, at 401 W and 100 % for two; 900 W is impossible.
    log = gpu(range(6), power_w=[80, 80, 80, 401, 401, 900], util_pct=[97, 97, 96, 100, 100, 50], power_limit_w=400.0)
    load = measure_power(run(gpu=log)).load
    assert load[["gpu", "util_pct", "load_pct"]].to_numpy().tolist() == [["0", 97.5, 22.5], ["0", 97.5, 102.5]]
    assert load["observed_s"].tolist() == [3, 2]
    assert measure_power(run(gpu=log.drop(columns="util_pct"))).load.empty


def test_load_without_a_limit_is_a_share_of_the_greatest_reading() -> None:
    log = gpu(range(3), power_w=[50, 100, 100], util_pct=[0.0, 80.0, math.nan])
    load = measure_power(run(gpu=log)).load
    assert load[["util_pct", "load_pct"]].to_numpy().tolist() == [[2.5, 52.5], [82.5, 102.5]]


def test_a_counter_alone_gives_the_energy() -> None:
    """Without any reading of power; the step in which the counter starts anew is not known."""
    joules = [1e6, 1e6 + 3000, 1e6 + 9000, 500, 3500, 6500]
    log = gpu(range(0, 60, 10), energy_j=joules, util_pct=50.0)
    profile = measure_power(run(gpu=log))
    row = profile.per_gpu.loc["0"]
    assert row["energy_kwh"] == profile.energy_kwh == pytest.approx((9000 + 6000) / 3.6e6)
    assert row["energy_source"] == "counter" and math.isnan(row["mean_w"]) and row["n_rejected"] == 0
    # Seen are 0-20 and 30-50 s, and 5 s before and after them, of 60 s.
    assert profile.coverage_pct == row["coverage_pct"] == pytest.approx(100 * 50 / 60)
    assert profile.rejected.empty and profile.load.empty


def test_a_counter_of_one_gpu_and_power_of_another() -> None:
    one = gpu(range(0, 60, 10), energy_j=np.arange(6) * 1800.0)
    other = gpu(range(0, 60, 10), name="1", power_w=360.0)
    table = measure_power(run(gpu=pd.concat([one, other], ignore_index=True))).per_gpu
    assert table["energy_kwh"].tolist() == pytest.approx([9000 / 3.6e6, 360 * 50 / 3.6e6])
    assert table["energy_source"].tolist() == ["counter", "power"]
    assert table["mean_w"].fillna(-1).tolist() == [-1, 360] and table["coverage_pct"].tolist() == [100, 100]


def test_a_counter_that_never_rises_is_none() -> None:
    still = gpu(range(4), energy_j=5.0)
    with pytest.raises(NotMeasurable, match="power_w"):
        measure_power(run(gpu=still))
    assert measure_power(run(gpu=still.assign(power_w=100.0))).energy_kwh == pytest.approx(300 / 3.6e6)


def test_a_report_shows_the_energy_of_a_counter_without_power() -> None:
    log = gpu(range(0, 600, 10), energy_j=np.arange(60) * 36_000.0, util_pct=50.0)
    text = gd.diagnose(run(gpu=log)).to_markdown()
    assert "590 Wh" in text.replace("\N{NO-BREAK SPACE}", " ")
