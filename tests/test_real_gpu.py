"""Real searches on one H100 against what was written down beside them (data/samples/real-h100)."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.alignment import establish_clock
from gpudiag.forecast.memory.peaks import trial_peaks
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.ledger import measure_ledger

COUNTS = {"one-worker": 1, "two-workers": 2, "three-workers": 3, "four-workers": 4, "six-workers": 6}
NAMES = (*COUNTS, "process-per-trial", "killed-worker", "three-workers-again", "process-per-trial-again")
DRIVER_MIB = 100.0
"""What the driver keeps for a process beside what NVML counts for it: 75 MiB here."""


@pytest.fixture(scope="module")
def runs(samples: Path) -> dict[str, gd.Run]:
    return {name: gd.load_run(samples / "real-h100" / name) for name in NAMES}


@pytest.fixture(scope="module")
def truth(samples: Path) -> dict[str, list[dict[str, Any]]]:
    return {name: json.loads((samples / "real-h100" / name / "truth.json").read_text())["trials"] for name in NAMES}


def share_starting(trials: list[dict[str, Any]]) -> float:
    """Percent of the time from the first start to the last end in which trials ran and none had begun to train."""
    ended = [t for t in trials if "end" in t]
    borders = sorted({t[name] for t in ended for name in ("start", "training_start", "end")})
    total = 0.0
    for low, high in pairwise(borders):
        live = [t for t in ended if t["start"] <= low < t["end"]]
        if live and all(low < t["training_start"] for t in live):
            total += high - low
    return 100 * total / (borders[-1] - borders[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_clocks_agree_and_start_ups_are_found(name: str, runs: dict[str, gd.Run], truth: dict[str, Any]) -> None:
    run = runs[name]
    assert run.info.clock.joined and run.info.clock.applied_s == 0
    cells = measure_ledger(run).totals.set_index("cell")["share_pct"]
    assert cells.sum() == pytest.approx(100)
    assert cells["startup_only"] == pytest.approx(share_starting(truth[name]), abs=3.0)


PLACED = {"three-workers", "four-workers", "six-workers", "process-per-trial", "killed-worker"}
"""What two minutes of telemetry determine; in the others trials are too few, or keep the GPU busy without a break."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("hours", [8.0, 5.5])
def test_logs_of_two_minutes_are_placed_or_left(name: str, hours: float, runs: dict[str, gd.Run]) -> None:
    """The zone of the runs is 8 h ahead of UTC; other offsets need more evidence."""
    run = runs[name]
    moved = run.gpu.assign(time=run.gpu["time"] + pd.Timedelta(hours=hours))
    clock = establish_clock(replace(run, gpu=moved, info=replace(run.info, inputs=())))
    placed = name in PLACED
    assert clock.confidence == ("strong" if placed else "undetermined")
    assert clock.applied_s == (3600 * hours if placed else 0) and clock.joined == placed
    assert placed or "share no time" in str(clock.evidence), "a fit that chance explains is not named"


@pytest.mark.slow
@pytest.mark.parametrize("hours", [0.0, 8.0])
def test_telemetry_of_another_search_is_not_moved(hours: float, runs: dict[str, gd.Run]) -> None:
    for one, other in [("three-workers", "three-workers-again"), ("process-per-trial", "killed-worker")]:
        trials, gpu = runs[one], runs[other].gpu
        begin = trials.trials["start"].min() - gpu["time"].min() + pd.Timedelta(hours=hours + 3)
        mixed = replace(trials, gpu=gpu.assign(time=gpu["time"] + begin), info=replace(trials.info, inputs=()))
        assert establish_clock(mixed).applied_s == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_typical_start_up_is_right_or_withheld(name: str, runs: dict[str, gd.Run], truth: dict[str, Any]) -> None:
    said = measure_costs(runs[name]).startup_median_s
    true = np.median([t["training_start"] - t["start"] for t in truth[name] if "training_start" in t])
    assert np.isnan(said) or said == pytest.approx(true, rel=0.15)
    assert np.isfinite(said) == (name in {"one-worker", "process-per-trial", "killed-worker"})


@pytest.mark.slow
@pytest.mark.parametrize(("now", "more"), [("one-worker", "two-workers"), ("three-workers", "four-workers")])
def test_a_forecast_holds_what_more_workers_did(now: str, more: str, runs: dict[str, gd.Run]) -> None:
    k = COUNTS[more]
    said, measured = gd.what_if(runs[now], [k]).at(k), gd.what_if(runs[more], [k]).rate.value
    assert said.throughput.low <= measured <= said.throughput.high
    assert said.queueing == pytest.approx(measured, rel=0.15)


@pytest.mark.parametrize(
    "name", ["one-worker", "two-workers", "process-per-trial", "killed-worker", "process-per-trial-again"]
)
def test_a_peak_is_that_of_the_process(name: str, runs: dict[str, gd.Run], truth: dict[str, Any]) -> None:
    """Workers that run many trials in one process keep 817 MiB of it between them."""
    true = {t["number"]: t["process_mib"] for t in truth[name] if "process_mib" in t}
    rows = trial_peaks(runs[name], np.random.default_rng(0)).trials
    rows = rows[rows["peak_mib"].notna()]
    error = (rows["peak_mib"] / rows["trial"].map(true) - 1).abs()
    actual = rows["trial"].map(true)
    held = (rows["low_mib"] - DRIVER_MIB <= actual) & (actual <= rows["high_mib"] + DRIVER_MIB)
    assert len(rows) >= 6
    assert error.median() < 0.02 and held.mean() >= 0.9
