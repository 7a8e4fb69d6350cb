"""Nodes of one training whose clocks differ: its work begins, pauses and ends on one by the same time later."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.alignment.nodes import nodes_on_one_clock, work_of
from gpudiag.measures.ledger import measure_ledger
from gpudiag.run import Run
from gpudiag.schema import TABLES, conform

START = pd.Timestamp("2026-03-02 09:00", tz="UTC")
PAUSES = [(300.0, 340.0), (520.0, 560.0), (900.0, 930.0)]
END_S = 1100.0


def node(
    name: str,
    seed: int,
    late_s: float = 0.0,
    begin_s: float = 80.0,
    end_s: float = 1080.0,
    pauses: Sequence[tuple[float, float]] = (),
    span_s: tuple[float, float] = (0.0, END_S),
    every_s: float = 2.0,
) -> pd.DataFrame:
    """Samples of two GPUs of a node, each a little later; work as on a right clock, which is ``late_s`` ahead here."""
    rng = np.random.default_rng(seed)
    parts = []
    for gpu in "01":
        at = np.arange(*span_s, every_s) + rng.uniform(0, every_s / 4)
        works = (at > begin_s) & (at < end_s)
        for low, high in pauses:
            works &= (at < low) | (at > high)
        util = np.where(works & (rng.random(len(at)) > 0.02), rng.uniform(80, 100, len(at)).round(), 0.0)
        time = (START + pd.to_timedelta((at + late_s).round(3), unit="s")).astype("datetime64[us, UTC]")
        parts.append(pd.DataFrame({"time": time, "gpu": f"{name}/{gpu}", "util_pct": util}))
    return pd.concat(parts)


def run_of(*nodes: pd.DataFrame, log_end_s: float | None = None) -> Run:
    rows = pd.concat(nodes, ignore_index=True)
    gpus = pd.DataFrame({"gpu": sorted(set(rows["gpu"]))})
    made = Run(gpu=conform(rows, TABLES["gpu"]), gpus=conform(gpus, TABLES["gpus"]))
    if log_end_s is None:
        return made
    time = START + pd.to_timedelta([log_end_s - 900, log_end_s], unit="s")
    steps = pd.DataFrame({"time": time, "step": [10, 1000], "unit": "step", "path": "train.log", "line": [1, 2]})
    return replace(made, steps=conform(steps, TABLES["steps"]))


def moves_s(run: Run) -> dict[str, float]:
    """By how much the samples of each node came to lie elsewhere."""
    after = nodes_on_one_clock(run)
    by_s = (after.gpu["time"] - run.gpu["time"]) / pd.Timedelta("1s")
    return by_s.groupby(run.gpu["gpu"].str.rpartition("/")[0]).agg(["min", "max"]).max(axis=1).to_dict()


@pytest.mark.parametrize("late_s", [-180.0, -40.0, 12.0, 40.0, 180.0, 3630.0])
@pytest.mark.parametrize("pauses", [(), PAUSES])
def test_a_clock_that_is_off_is_told_and_its_samples_are_moved(
    late_s: float, pauses: list[tuple[float, float]]
) -> None:
    run = run_of(node("a", 1, pauses=pauses), node("b", 2, late_s, pauses=pauses))
    found = moves_s(run)
    assert found["a"] == 0 and found["b"] == pytest.approx(-late_s, abs=2)
    (note,) = nodes_on_one_clock(run).info.notes
    side = "after" if late_s > 0 else "before"
    assert f"{side} those of a, and so do their recordings. The clocks were assumed to differ" in note
    assert note.startswith("GPUs of b begin and end their work") and "NTP" in note


@pytest.mark.parametrize("late_s", [-1800.0, 900.0, 3600.0])
def test_whole_quarters_of_an_hour_are_said_to_be_time_zones(late_s: float) -> None:
    run = run_of(node("a", 1, pauses=PAUSES), node("b", 2, late_s, pauses=PAUSES))
    assert moves_s(run)["b"] == pytest.approx(-late_s, abs=2)
    (note,) = nodes_on_one_clock(run).info.notes
    assert "time zone" in note and "write UTC" in note and "NTP" not in note


def test_samples_years_apart_take_memory_of_the_samples_alone() -> None:
    samples = node("a", 1, pauses=PAUSES)
    early = samples[:60].assign(time=samples["time"][:60] - pd.Timedelta(days=2200), util_pct=0.0)
    tracemalloc.start()
    try:
        work = work_of(pd.concat([early, samples]))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert work is not None and len(work.at_s) == 2 + 2 * len(PAUSES) and most < 10_000_000


LATER = {
    "in time": node("b", 2),
    "five seconds ahead": node("b", 2, 5.0),
    "begun later": node("b", 2, begin_s=120.0),
    "begun and ended later, recorded from the same time": node("b", 2, begin_s=120.0, end_s=1098.0, span_s=(0, 1140)),
    "recorded later, ended together": node("b", 2, begin_s=120.0, span_s=(40.0, END_S)),
    "ended earlier": node("b", 2, end_s=900.0),
    "idle": node("b", 2, begin_s=END_S),
    "at work from the first sample": node("b", 2, 40.0, span_s=(100.0, END_S)),
    "at work to the last": node("b", 2, 40.0, span_s=(0.0, 1000.0)),
    "with other pauses": node("b", 2, 40.0, pauses=[(400, 430), (450, 480), (600, 650)]),
    "half as long": node("b", 2, 40.0, end_s=500.0),
}


@pytest.mark.parametrize("name", LATER)
def test_what_is_no_other_clock(name: str) -> None:
    run = run_of(node("a", 1, pauses=PAUSES if "pauses" in name else ()), LATER[name])
    assert nodes_on_one_clock(run) is run


def test_the_clock_of_most_nodes_counts_and_that_of_the_log() -> None:
    ahead = [node("a", 1, 40.0), node("b", 2), node("c", 3)]
    assert moves_s(run_of(*ahead)) == pytest.approx({"a": -40.0, "b": 0.0, "c": 0.0}, abs=2)
    for log_end_s, moved in ((1079.0, {"a": -40.0, "b": 0.0}), (1119.0, {"a": 0.0, "b": 40.0})):
        assert moves_s(run_of(*ahead[:2], log_end_s=log_end_s)) == pytest.approx(moved, abs=2)
        assert moves_s(run_of(*ahead[:2], log_end_s=log_end_s - 8 * 3600)) == pytest.approx(moved, abs=2)


def test_searches_single_machines_and_logs_of_several_files_are_left() -> None:
    run = run_of(node("a", 1), node("b", 2, 40.0), log_end_s=1079.0)
    trials = conform(pd.DataFrame({"study": ["s"], "trial": [0], "state": ["COMPLETE"]}), TABLES["trials"])
    searched = replace(run, trials=trials)
    assert nodes_on_one_clock(searched) is searched
    ranks = replace(run, steps=run.steps.assign(path=["r0.log", "r1.log"]))
    assert nodes_on_one_clock(ranks) is ranks
    bare = replace(run, gpus=run.gpus.assign(gpu=run.gpus["gpu"].str.rpartition("/")[2]))
    assert nodes_on_one_clock(bare) is bare


def test_gpu_time_is_that_of_the_recordings(tmp_path: Path) -> None:
    """Two nodes of two GPUs, 1100 s each, and one clock three minutes ahead: 1.2 GPU-h, all of it observed."""
    for name, seed, late_s in (("node1", 1, 0.0), ("node2", 2, 180.0)):
        rows = node("x", seed, late_s, pauses=PAUSES, every_s=5.0)
        lines = [
            f"{t:%Y/%m/%d %H:%M:%S.%f}, {gpu[-1]}, GPU-{name}{gpu[-1]}-aaaaaaaa, {util:.0f} %"
            for t, gpu, util in zip(rows["time"], rows["gpu"], rows["util_pct"], strict=True)
        ]
        head = "timestamp, index, uuid, utilization.gpu [%]"
        (tmp_path / f"gpu.{name}.csv").write_text("\n".join([head, *lines, ""]))
    run = gd.load_run(tmp_path, timezone="UTC")
    ledger = measure_ledger(run)
    assert ledger.total_gpu_s == pytest.approx(4 * END_S, rel=0.01)
    assert ledger.coverage_pct > 99
    assert any("GPUs of gpu-node2 begin and end their work about 3 min after" in note for note in run.info.notes)
