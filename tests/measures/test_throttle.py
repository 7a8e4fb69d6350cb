"""Throttling of one GPU by hand: twenty samples of 10 s, of which fifteen are busy."""

from __future__ import annotations

import math
from typing import Any

import pytest
from smallruns import gpu, run

from gpudiag.errors import NotMeasurable
from gpudiag.measures.throttle import ThrottleProfile, measure_throttle

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
    assert (row["thermal_pct"], row["power_pct"]) == (pytest.approx(300 / 17), pytest.approx(300 / 17))
    assert row["capped_low_pct"] == pytest.approx(100 / 17)
    assert row["low_pct"] == pytest.approx(200 / 18)
    assert (row["max_clock_mhz"], row["busy_clock_mhz"]) == (2000.0, 2000.0)


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
