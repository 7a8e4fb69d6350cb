"""A small part of the accuracy tables, in a generator that shares nothing with gpudiag (benchmarks/other_world.py)."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

import accuracy_clock_short
import accuracy_clock_skew
import accuracy_faults
import accuracy_gains
import accuracy_killed
import accuracy_ledger
import accuracy_memory
from other_world import WORLD

pytestmark = pytest.mark.slow
BLOCK = 60_000
"""Seeds of no committed table."""


@pytest.fixture(autouse=True)
def _world() -> None:
    if not WORLD.is_file():
        if os.environ.get("GPUDIAG_REQUIRE_CORPUS") == "1":
            pytest.fail(f"the other generator is required but absent at {WORLD}")
        pytest.skip("no other generator (set GPUDIAG_WORLDS)")


@pytest.mark.parametrize("seed", range(BLOCK, BLOCK + 2))
def test_start_up_and_stall(seed: int) -> None:
    found = accuracy_ledger.other_ledger_errors(seed)
    assert abs(found["startup_only"]) <= 2 + found["waiting"] and abs(found["stalled"]) <= 2 + found["waiting"]
    assert math.isnan(found["startup"]) or abs(found["startup"]) < 0.2
    assert found["shift_s"] in (None, 0.0)


@pytest.mark.parametrize("seed", range(BLOCK, BLOCK + 3))
def test_no_clock_is_moved_that_is_right(seed: int) -> None:
    found = accuracy_ledger.other_clock_result(seed)
    assert not found["wrong"] and not found["moved"]


@pytest.mark.parametrize("seed", range(BLOCK, BLOCK + 3))
def test_clocks_that_are_minutes_apart_and_logs_of_minutes(seed: int) -> None:
    skew, short = accuracy_clock_skew.other_skew_result(seed), accuracy_clock_short.other_short_result(seed)
    assert not skew["wrong"] and skew["inside"] == skew["told"]
    assert not short["wrong"]


@pytest.mark.parametrize("seed", range(BLOCK, BLOCK + 2))
def test_killed_workers(seed: int) -> None:
    found = accuracy_killed.other(seed)
    assert found["held"] and found["complete"] < 15


@pytest.mark.many
@pytest.mark.parametrize("number", range(len(accuracy_faults.FAULTS)), ids=list(accuracy_faults.FAULTS))
def test_planted_faults_are_found_at_their_price(number: int) -> None:
    found = accuracy_faults.faulty_result(100 * len(accuracy_faults.FAULTS) + number)
    assert found["found"]
    if not math.isnan(found["said"] / found["true"]):
        assert found["said"] == pytest.approx(found["true"], rel=0.1)


@pytest.mark.parametrize("seed", [BLOCK])
def test_one_more_at_once_brings_what_is_said(seed: int) -> None:
    found = accuracy_gains.gains(seed)
    assert found["same 1"] and found["others 1"]


@pytest.mark.many
@pytest.mark.parametrize("seed", range(BLOCK, BLOCK + 12))
def test_memory_of_single_trials(seed: int) -> None:
    """All lengths of trials, and all ways of taking memory."""
    found = accuracy_memory.other(seed)
    assert found["refused"] or found["values"] or found["bounds"]
    assert not found["values"] or (found["error"] < 15 and not math.isnan(found["said"]))
    assert found["inside"] >= 0.75 * found["bounded"]
    for chance in found["chances"]:
        assert chance["low"] <= chance["truth"] <= chance["most"] and chance["said"] <= chance["most"]
