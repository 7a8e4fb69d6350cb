"""Bounds on gains: by hand on small ledgers, and what holds for every combination."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toyrun import toy_run

from gpudiag.advice._engine.gains import (
    GainBounds,
    bounds_of,
    combine,
    fill_gain,
    gpus_at_work,
    in_step_gain,
    saved_gain,
    speedup,
)
from gpudiag.advice._engine.proposal import Gain
from gpudiag.measures.costs import CostsProfile, measure_costs
from gpudiag.measures.ledger import LedgerProfile, measure_ledger
from gpudiag.measures.steps import StepsProfile
from tests.advice.situations import ledger
from tests.rules.small_profiles import profile

CASE_1 = GainBounds(busy_pct=83.0, coverage_pct=100.0, startup_pct=34.0, parallel=4.0, trial_gpu_h=2.5)


@pytest.mark.slow
def test_bounds_of_the_toy_are_its_plain_numbers() -> None:
    run = toy_run()
    bounds = bounds_of({"ledger": measure_ledger(run), "costs": measure_costs(run)})
    # GPU 0 runs at 80 % throughout, GPU 1 at 0 %, and every trial ran on GPU 0.
    assert bounds.busy_pct == pytest.approx(80.0)
    assert bounds.fill == pytest.approx(1.25)
    assert bounds.busy_all_pct == pytest.approx(40.0, abs=0.5)
    assert bounds.covered


def test_without_profiles_nothing_is_known() -> None:
    bounds = bounds_of({})
    assert math.isnan(bounds.fill) and math.isnan(bounds.startup) and not bounds.covered
    assert fill_gain(bounds) is None and saved_gain(bounds, "failures") is None
    assert combine([Gain(1.0, 2.0)], bounds) is None


def test_startup_is_bounded_by_both_views() -> None:
    assert CASE_1.startup == pytest.approx(1 / 0.83)  # 1/(1-F) = 1.52 is more than the GPU can take
    idle = GainBounds(busy_pct=20.0, startup_pct=34.0)
    assert idle.startup == pytest.approx(1 / 0.66)


def test_percentages_are_never_added_and_never_beyond_the_ceiling() -> None:
    together = combine([Gain(1.0, 1.1), Gain(1.0, 1.15), Gain(1.0, 1.2)], CASE_1)
    assert together is not None and together.clipped
    assert together.high == pytest.approx(1 / 0.83)
    alone = combine([Gain(1.0, 1.1), Gain(1.0, 1.05)], CASE_1)
    assert alone is not None and not alone.clipped and alone.high == pytest.approx(1.155)


def test_hours_of_one_source_count_once() -> None:
    failures = [Gain(0, hours, "GPU-h", "failures") for hours in (2, 3)]
    together = combine([*failures, Gain(0, 1, "GPU-h", "abandoned")], CASE_1)
    assert together is not None and together.saved_gpu_h == 4


def test_another_gpu_lifts_the_ceiling_to_that_of_all() -> None:
    bounds = GainBounds(busy_pct=50.0, busy_all_pct=25.0)
    devices, loader = Gain(1.0, 2.0, "x", "devices"), Gain(1.0, 10.0)
    assert combine([loader], bounds).high == 2  # type: ignore[union-attr]
    assert combine([loader, devices], bounds).high == 4  # type: ignore[union-attr]


def test_other_work_is_not_held_to_the_ceiling() -> None:
    bounds = GainBounds(busy_pct=50.0)
    loader, batch, precision = Gain(1.0, 2.0), Gain(1.0, 8.0, "x", "batch"), Gain(1.0, 1.25, "x", "work")
    larger = combine([loader, batch], bounds)
    assert larger is not None and (larger.low, larger.high, larger.clipped) == (1.0, 16.0, False)
    # A step of 10 s: without 5 s of idle time and 2 s of work, 3 s are left.
    assert combine([loader, precision], bounds).high == pytest.approx(10 / 3)  # type: ignore[union-attr]
    everything = combine([loader, Gain(1.0, 2.0, "x", "work")], bounds)
    assert everything is not None and not everything.is_bounded, "all idle time and all work may go"


def test_saved_hours_as_a_factor() -> None:
    assert speedup(Gain(0.0, 5.0, "GPU-h", "failures"), 10.0) == (1.0, 2.0)
    assert speedup(Gain(-2.5, 0.0, "GPU-h", "control"), 10.0) == (pytest.approx(0.8), 1.0)
    assert speedup(None, 10.0) == (1.0, 1.0)


@given(
    st.floats(1, 100),
    st.lists(st.tuples(st.floats(0.5, 3), st.floats(0, 5)), max_size=6),
)
def test_no_combination_beats_the_ceiling(busy: float, pairs: list[tuple[float, float]]) -> None:
    bounds = GainBounds(busy_pct=busy)
    together = combine([Gain(low, low + more) for low, more in pairs], bounds)
    assert together is not None
    assert together.low <= together.high <= together.ceiling == pytest.approx(100 / busy)


@given(st.floats(0.1, 100), st.floats(1, 1000))
def test_filling_idle_time_is_between_nothing_and_all_of_it(busy: float, most: float) -> None:
    gain = fill_gain(GainBounds(busy_pct=busy), most)
    assert gain is not None and gain.low == 1 <= gain.high <= min(most, 100 / busy) + 1e-9


SECONDS = {
    "busy": 400.0,
    "busy_low": 100.0,
    "waiting": 300.0,
    "startup_only": 155.0,
    "tail_only": 30.0,
    "stalled": 15.0,
}
ELSE = {"idle_no_trial": 500.0, "foreign": 100.0, "unobserved": 50.0}
ACTIVE = {"busy": 360.0, "busy_low": 41.0, "stalled": 1.0, "foreign": 90.0, "idle_no_trial": 8.0}


def test_shares_are_of_the_time_with_a_trial() -> None:
    known = {"has_trials": True, "mean_util_pct": 31.0, "coverage_pct": 80.0}
    bounds = bounds_of({"ledger": ledger({**SECONDS, **ELSE}, ACTIVE, **known)})
    assert (bounds.busy_pct, bounds.idle_pct) == (pytest.approx(40.2), pytest.approx(50.0))
    assert bounds.startup_only_pct == pytest.approx(15.5)
    assert (bounds.busy_all_pct, bounds.coverage_pct, bounds.covered) == (31.0, 80.0, True)
    assert math.isnan(bounds.startup_pct) and bounds.lost_gpu_h is None


def test_without_trials_shares_are_of_all_that_was_observed() -> None:
    bounds = bounds_of({"ledger": ledger({**SECONDS, **ELSE}, ACTIVE, has_trials=False)})
    assert bounds.busy_pct == pytest.approx(100 * 500 / 1600)
    assert bounds.idle_pct == pytest.approx(100 * 1000 / 1600)
    assert math.isnan(bounds.startup_only_pct)


def test_without_trials_a_gpu_that_never_worked_is_not_in_the_mean() -> None:
    both = [
        ledger({"busy": 900.0, "busy_low": 60.0, "idle_no_trial": 40.0}, {"busy": 850.0, "busy_low": 10.0}),
        ledger({"idle_no_trial": 990.0, "unobserved": 10.0}, {"idle_no_trial": 2.0}),
    ]
    cells, compute = (pd.concat([getattr(one, name).assign(gpu=str(i)) for i, one in enumerate(both)])
                      for name in ("cells", "compute"))  # fmt: skip
    two: LedgerProfile = profile(LedgerProfile, cells=cells, compute=compute, has_trials=False, mean_util_pct=43.3)
    bounds = bounds_of({"ledger": two})
    assert (bounds.busy_pct, bounds.idle_pct) == (pytest.approx(86.0), pytest.approx(4.0))
    assert gpus_at_work(two) == ["0"] and gpus_at_work(both[1]) == ["0"]  # where none worked, it is of all


@pytest.mark.parametrize("has_trials", [True, False])
def test_a_ledger_without_time_bounds_nothing(has_trials: bool) -> None:
    bounds = bounds_of({"ledger": ledger({"unobserved": 50.0}, {}, has_trials=has_trials)})
    assert math.isnan(bounds.busy_pct) and math.isnan(bounds.idle_pct) and math.isnan(bounds.startup_only_pct)
    brief = bounds_of({"ledger": ledger({"busy": 0.25, "startup_only": 0.25}, {"busy": 0.25}, has_trials=has_trials)})
    assert (brief.busy_pct, brief.idle_pct) == (50.0, 50.0)


def test_what_was_lost_is_in_hours_by_source() -> None:
    outcomes = pd.DataFrame({"outcome": ["COMPLETE", "FAIL", "ABANDONED"], "gpu_s": [36_000.0, 9_000.0, 1_800.0]})
    stated = {"startup_share_pct": 34.0, "startup_law_pct": 1.5, "parallel": 3.9, "trial_gpu_h": 13.0}
    bounds = bounds_of({"costs": profile(CostsProfile, outcomes=outcomes, **stated)})
    assert bounds.lost_gpu_h == {"failures": 2.5, "abandoned": 0.5}
    assert (bounds.startup_pct, bounds.startup_law_pct, bounds.parallel, bounds.trial_gpu_h) == (34.0, 1.5, 3.9, 13.0)
    assert math.isnan(bounds.busy_pct)


@pytest.mark.parametrize(
    ("bounds", "fill", "everywhere", "startup"),
    [
        (GainBounds(busy_pct=40.0, busy_all_pct=25.0, startup_pct=20.0), 2.5, 4.0, 1.25),
        (GainBounds(busy_pct=0.5, busy_all_pct=0.5, startup_pct=99.5), 200.0, 200.0, 200.0),
        (GainBounds(busy_pct=0.0, busy_all_pct=0.0, startup_pct=100.0), math.nan, math.nan, math.nan),
        (GainBounds(busy_pct=40.0, startup_pct=100.0), 2.5, math.nan, math.nan),
        (GainBounds(busy_pct=40.0, startup_pct=0.0), 2.5, math.nan, 1.0),
        (GainBounds(busy_all_pct=50.0), math.nan, 2.0, math.nan),
    ],
)
def test_ceilings_of_known_shares(bounds: GainBounds, fill: float, everywhere: float, startup: float) -> None:
    assert [bounds.fill, bounds.fill_all, bounds.startup] == pytest.approx([fill, everywhere, startup], nan_ok=True)


@pytest.mark.parametrize(("coverage", "covered"), [(79.9, False), (80.0, True), (100.0, True), (math.nan, False)])
def test_covered_from_80_percent_on(coverage: float, covered: bool) -> None:
    assert GainBounds(coverage_pct=coverage).covered is covered


def test_filling_is_never_a_loss() -> None:
    for bounds, most in ((GainBounds(busy_pct=125.0), math.inf), (CASE_1, 0.5)):
        assert fill_gain(bounds, most) == Gain(1.0, 1.0)
    assert fill_gain(CASE_1) == Gain(1.0, 1 / 0.83) and fill_gain(GainBounds(busy_pct=40.0), 2.0) == Gain(1.0, 2.0)


@pytest.mark.parametrize(("lost", "known"), [(2.5, True), (0.0, True), (-0.5, False), (math.nan, False)])
def test_hours_come_back_where_they_are_known(lost: float, known: bool) -> None:
    saved = saved_gain(GainBounds(lost_gpu_h={"failures": lost}), "failures")
    assert saved == (Gain(0.0, lost, "GPU-h", "failures") if known else None)
    assert saved_gain(GainBounds(lost_gpu_h={"failures": lost}), "abandoned") is None


@pytest.mark.parametrize(
    ("hours", "total", "factor"),
    [
        (2.0, 10.0, 1.25),
        (9.5, 10.0, 20.0),
        (10.0, 10.0, 1e6),
        (11.0, 10.0, 1e6),
        (0.25, 0.5, 2.0),
        (2.0, 0.0, 1.0),
        (2.0, math.nan, 1.0),
    ],
)
def test_hours_saved_of_a_total_are_time_not_needed(hours: float, total: float, factor: float) -> None:
    low, high = speedup(Gain(0.0, hours, "GPU-h", "failures"), total)
    assert low == 1.0 and high == pytest.approx(factor, rel=1e-9)
    assert speedup(Gain(1.2, 1.4), total) == (1.2, 1.4)


def test_a_combination_is_clipped_only_beyond_the_ceiling() -> None:
    half = GainBounds(busy_pct=50.0)
    for highs, high, clipped in (
        ((1.5,), 1.5, False),
        ((2.0,), 2.0, False),
        ((1.5, 1.5), 2.0, True),
        ((4.0,), 2.0, True),
    ):
        together = combine([None, *(Gain(1.25, most) for most in highs)], half)
        assert together is not None and (together.high, together.clipped, together.ceiling) == (high, clipped, 2.0)
        assert together.low == pytest.approx(1.25 ** len(highs)) and together.saved_gpu_h == 0
    above = combine([Gain(3.0, 4.0)], half)
    assert above is not None and above.low == 2.0


def test_changes_that_take_one_cause_away_count_once() -> None:
    """Two remedies for the same wait of a fifth of the time, and one for launches that take a quarter of it."""
    loader, launch = Gain(1.0, 1 / 0.8, source="loader"), Gain(1.0, 1 / 0.75, source="launch")
    bounds = GainBounds(busy_pct=30.0)
    for gains, high in (((loader, loader), 1 / 0.8), ((loader, launch, loader), 1 / 0.55)):
        together = combine(gains, bounds)
        assert together is not None and together.high == pytest.approx(high) and not together.clipped
    together = combine([loader, launch, Gain(1.0, 2.0)], bounds)
    assert together is not None and together.high == pytest.approx(100 / 30) and together.clipped


@pytest.mark.parametrize(
    ("busy", "n_gpus", "most", "high"),
    [
        (80.0, 2, math.inf, 1 / 0.6),
        (80.0, 2, 1.5, 1.5),
        (50.0, 2, 2.0, 2.0),
        (50.0, 2, math.inf, None),
        (0.0, 2, 2.0, None),
    ],
)
def test_gpus_in_step_may_wait_in_turn(busy: float, n_gpus: int, most: float, high: float | None) -> None:
    """Two GPUs at 80 % are both idle for a fifth of the time: two fifths go if never at once."""
    bounds = GainBounds(busy_pct=busy)
    one = in_step_gain(bounds, n_gpus, most)
    assert (None if one is None else one.high) == (None if high is None else pytest.approx(high))
    if one is not None:
        together = combine([one], bounds)
        assert together is not None and together.high == one.high and not together.clipped


def test_only_hours_that_cost_nothing_are_saved() -> None:
    gains = [
        Gain(0.0, 0.5, "GPU-h", "failures"),
        Gain(-1.0, 5.0, "GPU-h", "pruner"),
        Gain(0.25, 0.75, "GPU-h", "abandoned"),
    ]
    together = combine([*gains, Gain(1.0, 1.5)], GainBounds(busy_pct=50.0))
    assert together is not None and together.saved_gpu_h == 1.25 and together.high == 1.5
    assert combine([Gain(1.0, 2.0, "x", "devices")], GainBounds(busy_pct=50.0)) is None
    assert combine([Gain(0.0, 1.0, "GPU-h", "devices")], GainBounds(busy_pct=50.0)) is not None


def test_pauses_are_saved_once_whatever_they_held() -> None:
    """An hour of pauses on two GPUs, of which an evaluation and a checkpoint may each be all."""
    bounds = bounds_of({"steps": profile(StepsProfile, pauses_s=3600.0, logged_gpus=2.0)})
    gains = [Gain(0.0, 1.0, "GPU-h", "evaluation"), Gain(0.0, 2.0, "GPU-h", "checkpoints")]
    both = combine([*gains, Gain(0.0, 0.5, "GPU-h", "restart")], replace(bounds, busy_pct=50.0))
    one = combine(gains[:1], replace(bounds, busy_pct=50.0))
    assert both is not None and one is not None
    assert (one.saved_gpu_h, both.saved_gpu_h) == (1.0, 2.5)
