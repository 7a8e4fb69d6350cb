"""Throttling of one GPU by hand: twenty samples of 10 s, of which fifteen are busy."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from smallruns import gpu, run

from gpudiag.errors import NotMeasurable
from gpudiag.measures.throttle import ThrottleProfile, measure_throttle
from gpudiag.schema import GPUS, conform

SECONDS = [10.0 * place for place in range(20)]
BUSY = {place: 95.0 for place in range(3, 18)}


def column(usual: float, **at: float) -> list[float]:
    """One value throughout but at the places named ``p3`` ..."""
    return [at.get(f"p{place}", usual) for place in range(20)]


def measured(**columns: Any) -> Any:
    usual = {"util_pct": [BUSY.get(place, 49.9) for place in range(20)], **columns}
    profile: ThrottleProfile = measure_throttle(run(gpu=gpu(SECONDS, **usual)))
    return profile.per_gpu.loc["0"]


def test_reasons_are_shares_of_the_busy_time_in_which_they_are_known() -> None:
    reasons = column(0, p1=0x60, p3=0x20, p4=0x40, p5=0x60, p6=0x4, p7=0x4, p8=0x80, p17=math.nan)
    clock = column(2000.0, p6=1599.0, p7=1600.0, p9=1000.0)
    row = measured(throttle_reasons=reasons, sm_clock_mhz=clock, util_pct=column(95.0, p1=0.0, p3=50.0, p0=49.0))
    assert row["busy_s"] == pytest.approx(measured(temp_c=40.0)["busy_s"] + 30)  # 2, 18 and 19 too
    assert (row["thermal_pct"], row["power_pct"]) == (pytest.approx(300 / 17), pytest.approx(200 / 17))
    assert (row["hardware_pct"], row["brake_pct"]) == (pytest.approx(100 / 17), pytest.approx(100 / 17))
    assert row["capped_low_pct"] == pytest.approx(100 / 17)
    assert row["low_pct"] == pytest.approx(200 / 18)
    assert (row["max_clock_mhz"], row["busy_clock_mhz"]) == (2000.0, 2000.0)


@pytest.mark.parametrize(
    ("known", "unknown"),
    [
        (0x64, {"hardware_pct", "brake_pct"}),
        (0x8, {"thermal_pct", "brake_pct", "power_pct", "capped_low_pct"}),
        (0x60 | 0x80, {"hardware_pct", "power_pct", "capped_low_pct"}),
        (math.nan, set()),
    ],
)
def test_reasons_that_a_source_never_tells_of_are_unknown(known: float, unknown: set[str]) -> None:
    shares = ("thermal_pct", "hardware_pct", "brake_pct", "power_pct", "capped_low_pct")
    none = measured(throttle_reasons=column(0), throttle_known=known, sm_clock_mhz=2000.0)
    assert {name for name in shares if math.isnan(none[name])} == unknown
    assert all(none[name] == 0 for name in shares if name not in unknown)


def test_a_reason_that_was_seen_is_known_though_others_like_it_are_not_told() -> None:
    row = measured(throttle_reasons=column(0, p5=0x40), throttle_known=0x40)
    assert row["thermal_pct"] == pytest.approx(100 / 15)


def test_each_reason_has_the_clock_of_its_own_time() -> None:
    reasons = column(0, p1=0x20, p4=0x20, p5=0x40, p6=0x60, p8=0x4, p9=0x4, p10=0x4, p12=0x8, p13=0x88)
    slowed = {"p1": 300.0, "p4": 700.0, "p5": 800.0, "p6": 900.0, "p8": 1900.0, "p9": 1500.0, "p10": 1300.0}
    row = measured(throttle_reasons=reasons, sm_clock_mhz=column(2000.0, **slowed, p12=600.0, p13=500.0))
    assert row["busy_clock_mhz"] == 1900.0, "of all fifteen"
    assert row["thermal_clock_mhz"] == 800.0, "p1 was idle"
    assert (row["capped_clock_mhz"], row["capped_low_clock_mhz"]) == (1500.0, 1400.0)
    assert row["hardware_clock_mhz"] == 550.0
    warm = measured(sm_clock_mhz=column(2000.0, p6=1600.0, p7=1400.0), temp_c=85.0)
    assert warm["warm_low_clock_mhz"] == 1500.0 and math.isnan(warm["thermal_clock_mhz"])


def test_busy_time_is_at_half_utilization_or_more() -> None:
    assert measured(temp_c=40.0)["busy_s"] == 150
    assert measured(temp_c=40.0, util_pct=column(49.9, p5=50.0, p6=100.0))["busy_s"] == 20


def test_heat_and_low_clocks_in_it() -> None:
    clock = column(2000.0, p6=1600.0, p7=1600.0, p9=1000.0, p10=1700.0)
    temp = column(40.0, p6=81.9, p7=82.0, p9=90.0, p10=91.0, p11=87.0, p12=86.9, p13=0.0, p14=111.0, p15=-5.0)
    row = measured(sm_clock_mhz=clock, temp_c=temp)
    assert row["warm_low_pct"] == pytest.approx(200 / 12), "of 15 busy samples three have no temperature"
    assert (row["hot_s"], row["max_temp_c"]) == (30.0, 91.0)
    assert row["hot_pct"] == pytest.approx(100 * 30 / 170)
    assert math.isnan(row["thermal_pct"]) and math.isnan(row["power_pct"]) and math.isnan(row["frozen_cap_s"])


@pytest.mark.parametrize(("power", "frozen_s"), [(160.0, 0.0), (161.0, 30.0)])
def test_a_frozen_cap_is_implausible_power_at_a_low_clock(power: float, frozen_s: float) -> None:
    low = {"p4": 500.0, "p5": 500.0, "p6": 500.0, "p9": 500.0, "p10": 500.0}
    reasons = column(0, p4=0x4, p5=0x4, p6=0x4, p8=0x4, p9=0x80, p10=0x4)
    watts = column(power, p10=90.0)  # of a limit of 100, an instant sensor may read 1.6 times as much
    row = measured(throttle_reasons=reasons, sm_clock_mhz=column(2000.0, **low), power_w=watts, power_limit_w=100.0)
    assert row["frozen_cap_s"] == frozen_s


def test_what_was_not_recorded_is_not_known() -> None:
    row = measured(temp_c=40.0)
    assert all(math.isnan(row[name]) for name in ("thermal_pct", "low_pct", "busy_clock_mhz", "max_clock_mhz"))
    assert (row["hot_s"], row["hot_pct"], row["max_temp_c"]) == (0.0, 0.0, 40.0)
    with pytest.raises(NotMeasurable, match="neither clocks nor temperature"):
        measured(power_w=90.0)
    with pytest.raises(NotMeasurable, match="only one sample"):
        measure_throttle(run(gpu=gpu([0.0], util_pct=95.0, temp_c=40.0)))


def test_a_clock_that_was_held_down_at_all_times_is_no_reference() -> None:
    held = measured(throttle_reasons=column(0x80, p0=0x1), sm_clock_mhz=column(900.0, p0=345.0, p5=910.0))
    assert math.isnan(held["reference_mhz"]) and held["reference_source"] == ""
    assert math.isnan(held["low_pct"]) and math.isnan(held["capped_low_pct"])
    assert (held["hardware_pct"], held["max_clock_mhz"]) == (100.0, 910.0)
    once = measured(throttle_reasons=column(0x80, p0=0x0), sm_clock_mhz=column(900.0, p0=1980.0))
    assert (once["reference_mhz"], once["reference_source"], once["low_pct"]) == (1980.0, "seen", 100.0)
    near = measured(throttle_reasons=column(0x4, p0=0x0), sm_clock_mhz=column(1400.0, p0=1380.0))
    assert (near["reference_mhz"], near["reference_source"]) == (1400.0, "seen"), "hardly any lower without the cap"


def test_the_reference_is_the_highest_clock_that_somebody_states() -> None:
    held = {"throttle_reasons": 0x80, "sm_clock_mhz": 900.0}
    stated = measured(**held, sm_clock_max_mhz=1980.0)
    assert (stated["reference_mhz"], stated["reference_source"], stated["low_pct"]) == (1980.0, "stated", 100.0)
    lower = measured(throttle_reasons=0x4, sm_clock_mhz=2000.0, sm_clock_max_mhz=1980.0)
    assert (lower["reference_mhz"], lower["reference_source"]) == (2000.0, "seen"), "above what the driver allows"


def several(clocks: dict[str, float], names: dict[str, str]) -> Any:
    """GPUs that are busy throughout at their clock, the slow one with the thermal bit."""
    slow = min(clocks, key=lambda name: clocks[name])
    parts = [
        gpu(SECONDS, name, util_pct=95.0, sm_clock_mhz=clock, throttle_reasons=0x40 if name == slow else 0)
        for name, clock in clocks.items()
    ]
    listed = conform(pd.DataFrame({"gpu": list(names), "name": list(names.values())}), GPUS)
    profile: ThrottleProfile = measure_throttle(run(gpu=pd.concat(parts, ignore_index=True), gpus=listed))
    return profile.per_gpu


def test_peers_are_gpus_of_the_same_name() -> None:
    clocks = {"0": 1980.0, "1": 1900.0, "2": 1000.0}
    alike = several(clocks, dict.fromkeys(clocks, "Some Board"))
    assert (alike.at["2", "reference_mhz"], alike.at["2", "reference_source"]) == (1940.0, "peers")
    assert (alike.at["0", "reference_mhz"], alike.at["0", "reference_source"]) == (1980.0, "seen")
    assert alike.at["2", "low_pct"] == 100.0 and alike.at["1", "low_pct"] == 0.0
    apart = several(clocks, {"0": "Some Board", "1": "Some Board", "2": "Another Board"})
    assert apart.at["2", "reference_source"] == "" and math.isnan(apart.at["2", "low_pct"])
    unnamed = several(clocks, dict.fromkeys(clocks, ""))
    assert unnamed.at["2", "reference_source"] == "", "GPUs without a name need not be alike"


def test_a_known_board_has_a_boost_clock() -> None:
    row = several({"0": 1200.0}, {"0": "NVIDIA H100 80GB HBM3"}).loc["0"]
    assert (row["reference_mhz"], row["reference_source"], row["default_w"]) == (1830.0, "board", 700.0)


def test_low_clocks_at_the_power_cap_are_apart_by_bits_else_by_power() -> None:
    clock = column(900.0, p0=2000.0)
    by_bits = measured(throttle_reasons=column(0x4, p0=0), sm_clock_mhz=clock)
    assert (by_bits["low_pct"], by_bits["uncapped_low_pct"]) == (100.0, 0.0)
    for power, default, uncapped in ((96.0, 100.0, 0.0), (94.0, 100.0, 100.0), (96.0, 200.0, 100.0)):
        by_power = measured(sm_clock_mhz=clock, power_w=power, power_limit_w=100.0, power_default_w=default)
        assert by_power["uncapped_low_pct"] == uncapped, (power, default)
