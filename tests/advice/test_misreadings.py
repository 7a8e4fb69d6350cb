"""What the numbers of a run refute: when each sentence is said, and the numbers in it, worked out again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd
import pytest

from gpudiag.advice._engine.gains import GainBounds
from gpudiag.advice._engine.misreadings import corrections
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.measures.utilization import UtilizationProfile
from tests.advice.situations import memory, situation, trials, use
from tests.rules.small_profiles import profile

NAN = math.nan


def said(*given: Any, rules: Iterable[str] = (), bounds: GainBounds | None = None, **stated: Any) -> str:
    """All sentences, one a line."""
    return "\n".join(corrections(situation(*given, rules=rules, bounds=bounds or GainBounds(), **stated)))


def test_nothing_is_corrected_where_nothing_is_known() -> None:
    assert corrections(situation(bounds=GainBounds())) == ()


@pytest.mark.parametrize(
    ("busy", "most"), [(40.0, "2.5×"), (83.5, "1.2×"), (0.5, "200×"), (100.0, "1×"), (0.0, ""), (NAN, "")]
)
def test_the_ceiling_is_all_idle_time(busy: float, most: str) -> None:
    text = said(bounds=GainBounds(busy_pct=busy))
    assert (f"brings at most {most}, however many" in text) if most else not text


@pytest.mark.parametrize("rule", ["power-throttling", "clocks-low", "memory-headroom"])
def test_higher_clocks_are_no_idle_time_that_is_filled(rule: str) -> None:
    text = said(rules=(rule,), bounds=GainBounds(busy_pct=94.0))
    assert "brings at most 1.07×" in text and ("what they bring comes on top" in text) is (rule != "memory-headroom")


@pytest.mark.parametrize(
    ("rules", "of_all", "most"),
    [
        (("gpu-unused",), 20.0, "5×"),
        (("gpu-idle-beside-busy",), 32.0, "3.13×"),
        (("gpu-imbalance",), 20.0, "2.5×"),  # both work: the ceiling is that of the GPUs with trials
        (("gpu-unused",), 0.0, "2.5×"),
        (("gpu-unused",), NAN, "2.5×"),
    ],
)
def test_beside_an_unused_gpu_the_ceiling_is_that_of_all(rules: tuple[str, ...], of_all: float, most: str) -> None:
    both = use(of_all, {"0": {"mean_pct": 40.0}, "1": {"mean_pct": 0.0}})
    text = said(both, rules=rules, bounds=GainBounds(busy_pct=40.0, busy_all_pct=of_all))
    assert f"brings at most {most}, however many" in text
    assert ("of all 2 GPUs" in text) is (most != "2.5×")


@pytest.mark.parametrize(
    ("rule", "of_all", "most"),
    [("trial-gaps", 50.0, "2×"), ("idle-without-trial", 40.0, "2.5×"), ("memory-headroom", 50.0, ""),
     ("trial-gaps", 80.0, ""), ("trial-gaps", NAN, "")],
)  # fmt: skip
def test_time_without_a_trial_is_beyond_the_ceiling_of_trials(rule: str, of_all: float, most: str) -> None:
    """GPUs at 80 % while trials run, in a search with pauses between these."""
    text = said(rules=(rule,), bounds=GainBounds(busy_pct=80.0, busy_all_pct=of_all))
    assert "brings at most 1.25×, however many" in text
    assert (f"that without a trial included, it was {of_all:.0f} %: at most {most}." in text) is bool(most)
    assert ("without a trial included" in text) is bool(most)


@pytest.mark.parametrize(
    ("workers", "only", "told"),
    [
        (9.9, 1.0, False),
        (10.0, 9.9, True),
        (34.0, 4.0, True),
        (34.0, 10.0, False),
        (34.0, 20.0, False),
        (34.0, NAN, False),
        (NAN, 1.0, True),
        (NAN, 0.0, False),
        (NAN, 10.0, False),
    ],
)
def test_start_up_of_workers_is_not_that_of_the_gpu(workers: float, only: float, told: bool) -> None:
    bounds = GainBounds(startup_pct=workers, startup_only_pct=only, startup_law_pct=1.34, parallel=3.96, busy_pct=40.0)
    text = said(bounds=bounds)
    assert ("Start-up does not dominate" in text) is told
    if math.isnan(workers) and told:
        assert "for 1 % of the time with a trial" in text and "F = " not in text
    if workers == 34 and told:
        assert "F = 34 % of the workers" in text and "k = 3.96 trials" in text and "for 4 % of" in text
        assert "(F^k = 1.3 % if" in text and "Removing them all brings at most 1.52×." in text


def test_free_memory_is_what_fits() -> None:
    assert said(rules=("memory-headroom",)).startswith("Free memory says what fits")
    assert said(rules=("gpu-unused",)) == ""


@pytest.mark.parametrize(
    ("rule", "parallel", "told"),
    [
        ("memory-near-limit", 2, True),
        ("failures-out-of-memory", 4, True),
        ("memory-near-limit", 1, False),
        ("memory-near-limit", None, False),
        ("gpu-unused", 4, False),
    ],
)
def test_throughput_is_not_in_proportion_where_memory_is_short(rule: str, parallel: int | None, told: bool) -> None:
    assert ("not in proportion" in said(rules=(rule,), parallel=parallel)) is told


@pytest.mark.parametrize(("used", "beside"), [(89.9, ""), (90.0, ", and 90 % of"), (97.0, ", and 97 % of"), (NAN, "")])
def test_an_assert_is_no_lack_of_memory(used: float, beside: str) -> None:
    text = said(memory(used), rules=("failures-device-assert",))
    assert f"was out of range{beside}{' memory in use beside it is no proof' if beside else ''}. It ends" in text
    assert said(memory(used)) == ""


@pytest.mark.parametrize(
    ("rate", "streak", "rule", "told"),
    [
        (6.0, 40, "failures-out-of-memory", True),
        (6.0, 0, "failures-device-assert", True),
        (0.0, 40, "failures-out-of-memory", False),
        (0.4, 1, "failures-out-of-memory", True),
        (6.0, 40, "gpu-unused", False),
        (NAN, 40, "failures-out-of-memory", False),
    ],
)
def test_fifty_successes_prove_little(rate: float, streak: int, rule: str, told: bool) -> None:
    seen = trials(fail_pct=rate, fail_low_pct=0.5, fail_high_pct=10.0, success_streak=streak)
    text = said(seen, rules=(rule,))
    assert ("The longest streak of successes" in text) is told
    if told:
        assert f"successes was {streak}. At 0.5–10 % failures" in text
        low, high = math.exp(50 * math.log(0.9)), math.exp(50 * math.log(0.995))
        assert (round(100 * low, 1), round(100 * high)) == (0.5, 78)
        assert "50 in a row come by chance in 0.5 % to 78 % of attempts" in text
        shown = 100 * (1 - math.exp(math.log(0.05) / 50))  # p at which 50 in a row have a chance of 5 %
        assert f"p < {shown:.1f} %" in text
        assert "5,000" not in text, "nobody asked for it"


def test_one_rate_of_a_run_whose_workers_changed_is_no_rate_of_any_part_of_it() -> None:
    seen = trials(fail_pct=6.0, fail_low_pct=0.5, fail_high_pct=10.0, success_streak=40)
    for numbers, told in ((["2"], True), (["4", "2"], False)):
        steps = pd.DataFrame({"from_s": 0.0, "n_workers": [int(n) for n in numbers]}, index=numbers)
        text = said(seen, profile(ParallelismProfile, workers=steps), rules=("failures-out-of-memory",))
        assert ("in a row come by chance" in text) is told


def outside(**row: float) -> UtilizationProfile:
    usual = {"mean_pct": 30.0, "observed_s": 1000.0, "trial_s": 250.0, "trial_mean_pct": 35.0}
    return use(30.0, {"0": {**usual, **row}})


@pytest.mark.parametrize(
    ("row", "needed"),
    [
        ({}, 120),
        ({"trial_s": 0.0}, None),
        ({"trial_s": 0.5}, 60_000),
        ({"trial_s": 300.0}, None),  # 100 % would have done
        ({"trial_s": 299.0}, 100.3),
        ({"mean_pct": 60.0, "trial_s": 500.0}, None),  # half of the time is theirs
        ({"mean_pct": 60.0, "trial_s": 499.0}, 120.2),
    ],
)
def test_a_mean_over_more_than_the_trials_is_not_theirs(row: dict[str, float], needed: float | None) -> None:
    text = said(outside(**row))
    assert ("is not that of the trials" in text) is (needed is not None)
    if needed == 120:
        assert "The mean of 30 % of GPU 0" in text and "they ran for 4 min 10 s of 16 min 40 s observed (25 %)" in text
        assert "would have needed 120 % meanwhile. While they ran it was 35 %" in text


def test_the_busiest_gpu_is_the_one_that_is_told() -> None:
    row = {"mean_pct": 30.0, "observed_s": 1000.0, "trial_s": 250.0}
    text = said(use(30.0, {"0": row, "1": {**row, "mean_pct": 50.0}, "2": {**row, "mean_pct": 90.0, "trial_s": 900.0}}))
    assert "The mean of 50 % of GPU 1" in text and "needed 200 % meanwhile" in text
