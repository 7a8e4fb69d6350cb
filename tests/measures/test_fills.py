"""Memory that fills up, is freed and fills up again: growth between the falls, none over the whole."""

from __future__ import annotations

import math

import numpy as np
import pytest
from smallruns import gpu, run, trials
from verdicts import verdict_of

from gpudiag.measures._gpu.fills import fills
from gpudiag.measures.leak import LeakProfile, measure_leak
from gpudiag.run import Run

TOTAL = 80000.0
RAMP = np.linspace(30000.0, 79000.0, 400)
EVERY_S = 30.0


def recorded(used: np.ndarray, every_s: float = EVERY_S, idle: bool = True, **tables: object) -> Run:
    """The GPU is idle for two samples from each fall on, or never."""
    util = np.full(len(used), 95.0)
    for fall in np.flatnonzero(np.diff(used) < -10000) + 1 if idle else ():
        util[fall : fall + 2] = 0.0
    seconds = (every_s * np.arange(len(used))).tolist()
    return run(gpu=gpu(seconds, mem_used_mib=used, mem_total_mib=TOTAL, util_pct=util), **tables)


def row(made: Run) -> dict[str, float]:
    profile: LeakProfile = measure_leak(made)
    return dict(profile.per_gpu.loc["0"])


def test_each_stretch_ends_with_the_last_sample_before_its_fall() -> None:
    used = np.array([10.0, 50, 95, 20, 15, 60, 91, 40, 80, 30, 99])
    # To 80 of 100 is not nearly full, and after 99 nothing was seen to be freed.
    assert fills(used, 100.0) == [(slice(0, 3), 4), (slice(4, 7), 7)]
    assert fills(np.array([95.0, 94, 80]), 100.0) == [], "a fall by 15 of 100"
    assert fills(np.array([5.0]), 100.0) == [] and fills(used, math.nan) == []


def test_growth_up_to_each_fall() -> None:
    seen = row(recorded(np.tile(RAMP, 3)))
    per_h = (79000 - 30000) / (399 * EVERY_S / 3600)
    assert seen["n_fills"] == 2, "the third ends with the record"
    assert seen["fill_slope_pct_h"] == pytest.approx(100 * per_h / TOTAL, rel=0.01)
    assert seen["p_fill"] < 1e-6 and seen["fill_mib"] == pytest.approx(per_h * seen["fill_s"] / 3600, rel=0.01)
    assert 0.8 * 399 * EVERY_S < seen["fill_s"] < 0.95 * 399 * EVERY_S, "the middle 90 %, from block to block"


def test_full_memory_that_stays_full_does_not_grow() -> None:
    seen = row(recorded(np.tile(np.append(np.full(399, 78000.0), 2000.0), 3)))
    assert (seen["n_fills"], seen["n_open_fills"]) == (2, 1), "nothing follows the third fall"
    assert seen["fill_slope_pct_h"] == 0 and seen["p_fill"] == 1


def test_a_stretch_that_is_too_short_leaves_the_growth_unknown() -> None:
    seen = row(recorded(np.concatenate([RAMP, [30000.0, 79000.0], RAMP])))
    assert seen["n_fills"] == 2 and math.isnan(seen["fill_slope_pct_h"]) and math.isnan(seen["p_fill"])


def test_a_cache_that_a_busy_gpu_fills_and_frees_is_no_leak() -> None:
    seen = row(recorded(np.tile(RAMP, 3), every_s=10.0, idle=False))
    assert seen["n_fills"] == seen["n_open_fills"] == 0 and math.isnan(seen["fill_slope_pct_h"])


@pytest.mark.parametrize(
    ("every_s", "idle", "status"), [(30.0, True, "found"), (30.0, False, "not_assessed"), (10.0, False, "ok")]
)
def test_growth_up_to_falls_is_a_leak_where_restarts_show(every_s: float, idle: bool, status: str) -> None:
    found = verdict_of(recorded(np.tile(RAMP, 3), every_s=every_s, idle=idle), "memory-leak")
    assert found.status.value == status


def test_the_rise_is_that_which_was_measured() -> None:
    flat = np.append(np.linspace(30000.0, 79000.0, 300), np.full(100, 79000.0))
    seen = row(recorded(np.tile(flat, 3)))
    # The middle 90 % begin at sample 20 of the ramp's 300.
    assert 49000 * 279 / 299 >= seen["fill_mib"] > 0.97 * 49000 * 279 / 299


@pytest.mark.parametrize(("levels", "grew"), [(3, False), (8, True)])
def test_a_few_levels_may_rise_by_chance(levels: int, grew: bool) -> None:
    used = np.linspace(30000.0, 79000.0, levels)[np.arange(400) * levels // 400]
    used = used + np.random.default_rng(1).integers(0, 100, 400)
    assert (row(recorded(used))["p_rise"] < 0.01) == grew
    assert (row(recorded(np.tile(used, 3)))["p_fill"] < 0.01) == grew


def test_trials_free_their_memory_at_each_end() -> None:
    ran = trials([("COMPLETE", 0.0, 12000.0), ("COMPLETE", 12000.0, 24000.0)], gpu="0")
    assert math.isnan(row(recorded(np.tile(RAMP, 2), trials=ran))["n_fills"])
