"""Bounds on gains: by hand on small ledgers, and what holds for every combination."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toyrun import toy_run

from gpudiag.advice._engine.gains import GainBounds, bounds_of, combine, fill_gain, saved_gain, speedup
from gpudiag.advice._engine.proposal import Gain
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.ledger import measure_ledger

CASE_1 = GainBounds(busy_pct=83.0, coverage_pct=100.0, startup_pct=34.0, parallel=4.0, trial_gpu_h=2.5)


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
