"""How many trials fit, as far as a run shows it: levels, whole trials and growth, at their edges."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from gpudiag.advice._engine.capacity import growth_of_memory, hard_fit, memory_by_level, safe_level
from gpudiag.measures.base import Profile
from tests.advice.capacities import NAN, at, costs, levels, profiles
from tests.advice.situations import memory


def by_topic(*given: Profile) -> dict[str, Profile]:
    return {type(one).topic: one for one in given}


def test_the_most_memory_at_each_level_once_it_has_settled() -> None:
    readings = {
        5.0: 990.0,  # before any trial
        29.9: 980.0,  # level 1 has not settled
        30.0: 200.0,
        99.0: 250.0,
        119.0: 970.0,  # level 2 has not
        121.0: 400.0,
        130.0: NAN,
        230.0: 960.0,  # nobody runs any more
        330.0: 240.0,
    }
    series = pd.DataFrame({"gpu": "0", "time": at(list(readings)), "mem_used_mib": readings.values()})
    made = profiles(series, [10.0, 100.0, 200.0, 300.0], [1, 2, 0, 1], 1000.0, {1: 700.0, 2: 100.0})
    table = memory_by_level(by_topic(*made))
    assert table.index.tolist() == [1, 2]
    assert table["max_mib"].tolist() == [250.0, 400.0]
    assert table["max_used_pct"].tolist() == [25.0, 40.0]
    assert table["time_s"].tolist() == [700.0, 100.0]


def test_levels_need_one_gpu_memory_and_trials() -> None:
    used, at_once = levels({1: 100.0})
    assert len(memory_by_level(by_topic(used, at_once))) == 1
    for given in (by_topic(used), by_topic(at_once), {}, by_topic(*levels({1: 100.0}, gpus=2))):
        table = memory_by_level(given)
        assert table.empty and list(table) == ["max_mib", "max_used_pct", "time_s"]
        assert safe_level(given) is None


@pytest.mark.parametrize(
    ("most", "safe"),
    [
        ({1: 300.0, 2: 600.0, 3: 899.0}, 3),
        ({1: 300.0, 2: 600.0, 3: 900.0}, 2),
        ({1: 300.0, 2: 950.0, 3: 400.0}, 1),  # all lower ones too
        ({1: 920.0, 2: 100.0}, None),
        ({1: 900.0}, None),
    ],
)
def test_the_safe_level_stayed_below_the_limit_with_all_below_it(most: dict[int, float], safe: int | None) -> None:
    assert safe_level(by_topic(*levels(most))) == safe


@pytest.mark.parametrize(("time_s", "safe"), [(599.0, 1), (600.0, 2), (601.0, 2), (NAN, 1)])
def test_a_level_counts_from_ten_minutes_on(time_s: float, safe: int) -> None:
    assert safe_level(by_topic(*levels({1: 300.0, 2: 600.0}, time_s={1: 6000.0, 2: time_s}))) == safe


@pytest.mark.parametrize(
    ("k", "fits", "need"), [(1, True, "400 MiB"), (2, True, "700 MiB"), (3, False, "900 MiB"), (4, False, "1.0 GiB")]
)
def test_the_largest_trials_fit_into_what_is_usable(k: int, fits: bool, need: str) -> None:
    # 98 % of 1,000 MiB less the fullest baseline of 280: 700 MiB
    seen = memory(g0={"total_mib": 1000.0, "min_mib": 100.0}, g1={"total_mib": 2000.0, "min_mib": 280.0})
    found, said = hard_fit(by_topic(costs([200.0, 400.0, NAN, 150.0], [NAN, 900.0, 300.0, 900.0]), seen), k)
    assert found is fits
    word = "fit" if fits else "do not fit"
    assert said == f"The {k} largest trials together need {need} of 700 MiB: they {word}."


def test_nobody_can_tell_without_the_memory_of_every_trial() -> None:
    seen = memory(g0={"total_mib": 1000.0, "min_mib": 100.0})
    found, said = hard_fit(by_topic(costs([200.0, NAN, 10.0]), seen), 2)
    assert found is None and "known for 2 of 3 only" in said
    unsized = memory(g0={"total_mib": NAN, "min_mib": 100.0}, g1={"total_mib": 10.0, "min_mib": 1.0})
    for given in (by_topic(seen), by_topic(costs([1.0])), by_topic(costs([1.0]), unsized)):
        assert hard_fit(given, 1) == (None, "Memory of the trials was not recorded.")


@pytest.mark.parametrize("factor", [1.0, 2.0, 2.5])
def test_memory_above_the_baseline_grows_on_the_fullest_gpu(factor: float) -> None:
    fullest = {"min_mib": 100.0, "max_mib": 400.0, "total_mib": 800.0, "max_used_pct": 50.0}
    other = {"min_mib": 10.0, "max_mib": 600.0, "total_mib": 2000.0, "max_used_pct": 30.0}
    for used in (50.0, 0.5, 0.0):
        grown = growth_of_memory(by_topic(memory(used, g0=other, g1=fullest)), factor)
        assert grown == pytest.approx((100 + factor * 300) / 8)
    assert math.isnan(growth_of_memory({}, factor)) and math.isnan(growth_of_memory(by_topic(memory(NAN)), factor))
