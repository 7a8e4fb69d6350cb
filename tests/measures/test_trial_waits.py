"""What each trial waited for: it adds up trial by trial, and is right where the truth is known."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from drawn import few_of
from hypothesis import given, settings
from hypothesis import strategies as st
from smallruns import SECOND, T0, gpu, run, steps_of, trials

import gpudiag as gd
from gpudiag.measures.causes import measure_causes
from gpudiag.measures.trial_waits import measure_trial_waits
from gpudiag.schema import STEPS, conform
from gpudiag.simulation.trainings.training import simulate_training
from gpudiag.simulation.trainings.truth import idle_by_cause

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
import accuracy_causes

LINES = [(10.0 * k, 10 * k) for k in range(1, 61)]
"""A step a second."""


def later(lines: list[tuple[float, int]], seconds: float) -> list[tuple[float, int]]:
    return [(at + seconds, step) for at, step in lines]


def two_trials(**columns: object) -> gd.Run:
    """The first waits for data for 0.6 of each second, the second has a checkpoint of 100 s after 300 steps."""
    util = np.concatenate([np.full(620, 40.0), np.full(80, 0.0), np.full(720, 100.0)])
    util[1010:1110] = 0.0
    second = [(at if step <= 300 else at + 100, step) for at, step in later(LINES, 710)]
    logs = [
        steps_of(LINES, step_s=1.0, loader_s=0.6, path="a.log", **{name: 0 for name in columns}),
        steps_of(second, since={310: "checkpoint"}, path="b.log", **{name: 1 for name in columns}),
    ]
    table = trials([("COMPLETE", 0, 610), ("COMPLETE", 700, 1415)])
    return run(gpu=gpu(range(1420), util_pct=util), trials=table, steps=conform(pd.concat(logs), STEPS))


@pytest.mark.parametrize("named", [{}, {"trial": 0}])
def test_each_trial_waits_for_its_own_cause(named: dict[str, object]) -> None:
    found = measure_trial_waits(two_trials(**named))
    assert found.n_told == 2
    by = found.causes.set_index(["trial", "cause"])
    assert by.loc[(0, "loader"), "gpu_s"] == pytest.approx(0.6 * 610, rel=0.03)
    assert by.loc[(0, "loader"), "share_pct"] == pytest.approx(60, abs=2)
    assert by.loc[(1, "checkpoint"), "gpu_s"] == pytest.approx(100, abs=2)
    assert (0, "checkpoint") not in by.index and (1, "loader") not in by.index
    assert found.largest["n_trials"].to_dict() == {"loader": 1, "checkpoint": 1}
    assert found.unused_pct == pytest.approx(100 * (0.6 * 610 + 100) / (610 + 715), abs=1)


def test_a_log_that_reaches_beyond_its_trial_tells_nothing_of_it() -> None:
    what = two_trials()
    short = trials([("COMPLETE", 0, 300), ("COMPLETE", 300, 1415)])
    with pytest.raises(gd.NotMeasurable, match="one trial alone"):
        measure_trial_waits(replace(what, trials=short, steps=what.steps[what.steps["path"] == "a.log"]))


def test_trials_that_share_a_gpu_are_not_told_apart() -> None:
    what = two_trials()
    beside = trials([("COMPLETE", 0, 610), ("COMPLETE", 0, 1415)])
    with pytest.raises(gd.NotMeasurable):
        measure_trial_waits(replace(what, trials=beside))


@pytest.mark.slow
def test_a_log_without_a_trial_is_of_no_trial_where_two_gpus_work() -> None:
    """Which of the two trials wrote it is open, unless it names its trial: then all of it is certain."""
    both = pd.concat([gpu(range(610), name, util_pct=40.0) for name in ("0", "1")], ignore_index=True)
    table = trials([("COMPLETE", 0, 610), ("COMPLETE", 0, 610)], gpu=["0", "1"])
    unnamed = run(gpu=both, trials=table, steps=steps_of(LINES, step_s=1.0, loader_s=0.7))
    with pytest.raises(gd.NotMeasurable):
        measure_trial_waits(unnamed)
    logs = [steps_of(LINES, step_s=1.0, loader_s=0.7, trial=n, path=f"{n}.log") for n in (0, 1)]
    named = run(gpu=both, trials=table, steps=conform(pd.concat(logs), STEPS))
    assert measure_trial_waits(named).n_told == 2
    assert measure_causes(named).by_cause.at["loader", "low_gpu_s"] == pytest.approx(2 * 0.3 * 600, rel=0.05)


@pytest.mark.slow
@given(
    util=st.lists(st.floats(0, 100), min_size=60, max_size=200),
    cut=st.floats(0.2, 0.8),
    wait=st.floats(0, 3),
)
@settings(max_examples=few_of(16), deadline=None)
def test_the_causes_of_a_trial_add_up_to_its_time_without_a_kernel(util: list[float], cut: float, wait: float) -> None:
    ends = [0, int(cut * len(util)), len(util) - 1]
    table = trials([("COMPLETE", ends[0], ends[1]), ("COMPLETE", ends[1], ends[2])])
    lines = [[(float(at), at - low + 1) for at in range(low, high, 2)] for low, high in pairwise(ends)]
    logs = [steps_of(of, step_s=1.0, loader_s=wait, trial=n, path=str(n)) for n, of in enumerate(lines)]
    what = run(gpu=gpu(range(len(util)), util_pct=util), trials=table, steps=conform(pd.concat(logs), STEPS))
    try:
        found = measure_trial_waits(what)
    except gd.NotMeasurable:
        return
    idle = 1 - np.array(util) / 100
    for trial, rows in found.causes.groupby("trial"):
        low, high = ends[trial], ends[trial + 1]
        held = float(idle[low + 1 : high].sum())  # a sample stands for the time around it: half of the outer two
        assert rows["gpu_s"].sum() == pytest.approx(held, abs=1.0 + 1e-6)
        assert (rows["low_gpu_s"] <= rows["gpu_s"] + 1e-9).all() and (rows["gpu_s"] <= rows["high_gpu_s"] + 1e-9).all()


@pytest.mark.slow
@pytest.mark.many
@pytest.mark.parametrize("seed", [951, 952])
def test_simulated_trainings_one_after_the_other(tmp_path: Path, seed: int) -> None:
    """Three trainings on one GPU, each a trial with its own log: the truth of each is known by itself."""
    rng, tables, spans, truths, begins = np.random.default_rng(seed), [], [], [], T0
    for number in range(3):
        spec = replace(
            accuracy_causes.drawn(rng), start=begins.strftime("%Y-%m-%dT%H:%M:%S"), timezone="UTC", profiler=None
        )
        spec = replace(spec, log="mmengine", between=replace(spec.between, crashes=()))
        made = simulate_training(spec, seed=seed + number)
        folder = made.write(tmp_path / str(number))
        tables.append(gd.load_run(telemetry=folder / "gpu.csv", artifacts=folder / "train.log", timezone="UTC"))
        rank, low, high = made.history.ranks[0], max(0.0, made.span_s[0]), made.history.end_s
        zero = (begins - T0) / SECOND
        spans.append(("COMPLETE", zero + low, zero + high))
        truths.append((idle_by_cause(rank, low, high), high - low))
        begins += (high + 90) * SECOND
    what = run(
        gpu=pd.concat([one.gpu for one in tables], ignore_index=True),
        host=pd.concat([one.host for one in tables], ignore_index=True),
        steps=pd.concat([one.steps for one in tables], ignore_index=True),
        trials=trials(spans),
    )
    found = measure_trial_waits(what)
    assert found.n_told == 3
    for trial, (truth, span_s) in enumerate(truths):
        rows = found.causes[found.causes["trial"] == trial].set_index("cause")
        for cause in ("loader", "evaluation", "checkpoint"):
            row = rows.loc[cause] if cause in rows.index else None
            said, low, high = (0.0, 0.0, 0.0) if row is None else row[["gpu_s", "low_gpu_s", "high_gpu_s"]]
            open_s = float(rows.at["unknown", "gpu_s"]) if row is None else 0.0
            true = truth[cause]
            assert low - 0.04 * span_s <= true <= high + open_s + 0.04 * span_s, (trial, cause, said, true)
            assert abs(said - true) <= 0.08 * span_s + open_s, (trial, cause, said, true)


@pytest.mark.slow
def test_the_page_says_the_largest_wait_of_the_trials() -> None:
    text = gd.diagnose(two_trials()).to_markdown()
    assert (
        "Of 2 trials with a log of their own, the largest wait was waiting for data in 1 (59 %) and pauses with "
        "a checkpoint in 1 (14 %); in brackets its share of a trial's GPU time."
    ) in text


@pytest.mark.slow
def test_trials_that_wait_for_little_have_no_largest_wait() -> None:
    """Two trials, one of them at work but for a hundredth of its time; the other waits for data."""
    util = np.concatenate([np.full(620, 40.0), np.full(80, 0.0), np.full(720, 99.0)])
    logs = [
        steps_of(LINES, step_s=1.0, loader_s=0.6, path="a.log"),
        steps_of(later(LINES, 710), step_s=1.0, loader_s=0.01, path="b.log"),
    ]
    table = trials([("COMPLETE", 0, 610), ("COMPLETE", 700, 1315)])
    what = run(gpu=gpu(range(1420), util_pct=util), trials=table, steps=conform(pd.concat(logs), STEPS))
    found = measure_trial_waits(what)
    assert (found.n_told, found.largest["n_trials"].to_dict()) == (2, {"loader": 1})
    text = gd.diagnose(what).to_markdown()
    assert "the largest wait was waiting for data in 1 (59 %); in brackets" in text
    assert "1 waited less than 5 % of their time for any one thing." in text


def test_a_trial_on_two_gpus_is_one_trial() -> None:
    both = pd.concat([gpu(range(610), name, util_pct=40.0) for name in ("0", "1")], ignore_index=True)
    table = trials([("COMPLETE", 0, 609), ("COMPLETE", 0, 609)], trial=[0, 0], gpu=["0", "1"])
    what = run(gpu=both, trials=table, steps=steps_of(LINES, step_s=1.0, loader_s=0.6, trial=0))
    found = measure_trial_waits(what)
    assert found.n_told == 1 and found.largest["n_trials"].to_dict() == {"loader": 1}
    assert found.largest.at["loader", "most_pct"] == pytest.approx(60, abs=2)
