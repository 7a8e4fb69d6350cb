"""Simulated trainings: their files say what happened, and the truth about idle time is that of every instant."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gpudiag as gd
from gpudiag.simulation.trainings.spec import Between, LoaderSpec, ProfilerSpec, StepSpec, TrainingSpec
from gpudiag.simulation.trainings.training import SimulatedTraining, simulate_training
from gpudiag.simulation.trainings.truth import CAUSES, busy_s, idle_by_cause

SPEC = TrainingSpec(
    epochs=2,
    steps_per_epoch=120,
    step=StepSpec(gpu_s=0.1, launch_s=0.05, copy_s=0.01, host_s=0.01, sync_every=3),
    loader=LoaderSpec(workers=2, batch_s=0.3, hiccup_rate=0.02),
    between=Between(
        first_step_s=4.0, evaluate_s=7.0, checkpoint_every=50, checkpoint_s=6.0, crashes=(130,), down_s=40.0
    ),
    profiler=ProfilerSpec(first=60, n_steps=9),
    log_every=10,
)


@pytest.fixture(scope="module")
def made() -> SimulatedTraining:
    return simulate_training(SPEC, seed=4)


def test_the_states_of_the_host_tile_the_training(made: SimulatedTraining) -> None:
    for rank in made.history.ranks:
        starts, ends = np.array([(start, end) for start, end, _ in rank.host]).T
        assert starts[0] == 0 and np.allclose(starts[1:], ends[:-1]) and ends[-1] == pytest.approx(made.history.end_s)
        assert {state for *_, state in rank.host} <= set(CAUSES)
        kernels = np.array(rank.kernels)
        assert (kernels[1:, 0] >= kernels[:-1, 1] - 1e-9).all(), "one kernel at a time"


@pytest.mark.parametrize("pace", [(1.0,), (1.0, 1.3, 0.9)])
def test_idle_time_is_that_of_every_instant(pace: tuple[float, ...]) -> None:
    made = simulate_training(replace(SPEC, pace=pace, step=replace(SPEC.step, communication_s=0.01)), seed=9)
    low, high = made.span_s
    instants = np.linspace(low, high, 20_001)[:-1] + (high - low) / 40_000
    for rank in made.history.ranks:
        starts, ends = np.array(rank.kernels).T
        at = np.searchsorted(starts, instants, "right") - 1
        idle = ~((at >= 0) & (instants < ends[at]))
        states = np.array([*(state for *_, state in rank.host), "end"])
        edges = np.array([start for start, *_ in rank.host])
        where = np.searchsorted(edges, instants, "right") - 1
        inside = (where >= 0) & (instants < made.history.end_s)
        causes = np.array([CAUSES[state] for state in states[where]])
        causes[~inside] = "outside"
        found = idle_by_cause(rank, low, high)
        assert sum(found.values()) + busy_s(rank, low, high) == pytest.approx(high - low)
        for cause, seconds in found.items():
            share = np.mean(idle & (causes == cause)) * (high - low)
            assert seconds == pytest.approx(share, abs=0.01 * (high - low))


@pytest.mark.slow
def test_the_files_are_a_run_with_a_log_and_a_trace(made: SimulatedTraining, tmp_path: Path) -> None:
    run = gd.load_run(made.write(tmp_path))
    assert len(run.gpu) == len(made.samples) and len(run.host) == len(made.host)
    assert run.host["cpu_max_core_pct"].max() > 50
    assert len(run.steps) == sum("Epoch(train)" in line for line in made.log) > 20
    assert json.loads((tmp_path / "truth.json").read_text())["idle_s"].keys() == made.idle_s().keys()
    (row,) = run.profiled.to_dict("records")
    assert row["n_steps"] == 9
    rank = made.history.ranks[0]
    steps = [step for step in rank.steps if 60 <= step.number < 69]
    low, high = steps[0].start_s, steps[-1].end_s
    true = {cause: 100 * seconds / (high - low) for cause, seconds in idle_by_cause(rank, low, high).items()}
    found = {"loader": "data_pct", "copy": "copy_pct", "host": "other_pct"}
    for cause, column in found.items():
        assert row[column] == pytest.approx(true[cause], abs=0.1), cause
    assert row["operator_pct"] + row["sync_pct"] == pytest.approx(true["launch"], abs=0.1)
    assert row["compute_pct"] == pytest.approx(100 * busy_s(rank, low, high) / (high - low), abs=0.1)


@pytest.mark.parametrize("style", ["mmengine", "timm", "plain"])
def test_logs_say_how_long_a_step_took(style: str) -> None:
    spec = replace(SPEC, log=style, between=Between(), loader=LoaderSpec(batch_s=0.001), profiler=None)
    made = simulate_training(spec, seed=1)
    assert any("Train" in line or "step" in line for line in made.log)
    took = [step.end_s - step.start_s for step in made.history.ranks[0].steps]
    assert np.median(took) == pytest.approx(0.1 + 0.05 / 6 + 0.02, rel=0.3)


def test_the_same_seed_is_the_same_training(tmp_path: Path) -> None:
    folders = [simulate_training(SPEC, seed=seed).write(tmp_path / str(at)) for at, seed in enumerate((3, 3, 5))]
    first, same, other = ({path.name: path.read_bytes() for path in sorted(folder.iterdir())} for folder in folders)
    assert first == same and first != other


def test_a_loader_that_cannot_keep_up_sets_the_pace() -> None:
    slow = replace(SPEC, loader=LoaderSpec(workers=2, batch_s=1.0, batch_cv=0.0), between=Between(), profiler=None)
    steps = simulate_training(slow, seed=0).history.ranks[0].steps[20:]
    assert (steps[-1].end_s - steps[0].start_s) / len(steps) == pytest.approx(1.0 / 2, rel=0.02)


@pytest.mark.parametrize(
    ("change", "said"),
    [({"epochs": 0}, "at least 1"), ({"pace": ()}, "pace"), ({"between": Between(crashes=(5,))}, "checkpoints")],
)
def test_what_cannot_be_simulated_is_said(change: dict[str, object], said: str) -> None:
    with pytest.raises(gd.ConfigError, match=said):
        simulate_training(replace(SPEC, **change))
