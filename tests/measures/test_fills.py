"""Memory that fills up, is freed and fills up again: growth between the falls, none over the whole."""

from __future__ import annotations

import math

import numpy as np
import pytest
from smallruns import gpu, run, trials

from gpudiag.measures._gpu.fills import fills
from gpudiag.measures.leak import LeakProfile, measure_leak
from gpudiag.run import Run

TOTAL = 80000.0
RAMP = np.linspace(30000.0, 79000.0, 400)
EVERY_S = 30.0


def recorded(used: np.ndarray, **tables: object) -> Run:
    seconds = (EVERY_S * np.arange(len(used))).tolist()
    return run(gpu=gpu(seconds, mem_used_mib=used, mem_total_mib=TOTAL), **tables)


def row(made: Run) -> dict[str, float]:
    profile: LeakProfile = measure_leak(made)
    return dict(profile.per_gpu.loc["0"])


def test_each_stretch_ends_with_the_last_sample_before_its_fall() -> None:
    used = np.array([10.0, 50, 95, 20, 15, 60, 91, 40, 80, 30, 99])
    # To 80 of 100 is not nearly full, and after 99 nothing was seen to be freed.
    assert fills(used, 100.0) == [slice(0, 3), slice(4, 7)]
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
    assert seen["n_fills"] == 3 and seen["fill_slope_pct_h"] == 0 and seen["p_fill"] == 1


def test_a_stretch_that_is_too_short_leaves_the_growth_unknown() -> None:
    seen = row(recorded(np.concatenate([RAMP, [30000.0, 79000.0], RAMP])))
    assert seen["n_fills"] == 2 and math.isnan(seen["fill_slope_pct_h"]) and math.isnan(seen["p_fill"])


def test_trials_free_their_memory_at_each_end() -> None:
    ran = trials([("COMPLETE", 0.0, 12000.0), ("COMPLETE", 12000.0, 24000.0)], gpu="0")
    assert row(recorded(np.tile(RAMP, 2), trials=ran))["n_fills"] == 0
