"""Traces of several ranks: laid beside each other, the late one named; and one trace on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner
from verdicts import verdicts_of

import gpudiag as gd
from gpudiag.cli import app
from gpudiag.measures.causes import measure_causes
from gpudiag.simulation.trainings.spec import Between, LoaderSpec, ProfilerSpec, StepSpec, TrainingSpec
from gpudiag.simulation.trainings.training import simulate_training
from tests.traces.writtentrace import training

RANKS = TrainingSpec(
    epochs=1,
    steps_per_epoch=300,
    log_every=10,
    pace=(1.0, 1.0, 1.4),
    step=StepSpec(gpu_s=0.2, launch_s=0.02, communication_s=0.01),
    loader=LoaderSpec(batch_s=0.5),
    between=Between(startup_s=20.0, checkpoint_every=100, checkpoint_s=15.0),
    profiler=ProfilerSpec(first=60, n_steps=6),
)


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate_training(RANKS, seed=3).write(tmp_path_factory.mktemp("ranks"))


def said(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.slow
def test_the_rank_that_others_wait_for_is_named(ranks: Path) -> None:
    text = said("trace", *sorted(ranks.glob("*.gz")))
    assert "One rank keeps the others waiting" in text and "Rank 2 spent" in text
    assert [line.split()[0] for line in text.splitlines() if line.strip()[:1] in "012" and "%" in line][:3] == [*"012"]
    verdicts = verdicts_of(gd.load_run(ranks), "rank-behind", "steps-communication")
    assert verdicts["rank-behind"].status.value == "found" and verdicts["rank-behind"].evidence["late_rank"] == 2
    assert verdicts["steps-communication"].caused_by == "rank-behind"


@pytest.mark.slow
def test_one_log_tells_of_as_many_gpus_as_the_trace_names_ranks(ranks: Path) -> None:
    """The log's time is that of all three GPUs: beside each, a log alone would prove nothing. How much of a pause a
    checkpoint took, no line states.
    """
    whole = measure_causes(gd.load_run(ranks)).by_cause
    alone = gd.load_run(telemetry=ranks / "gpu.csv", artifacts=ranks / "train.log", timezone=RANKS.timezone)
    log = measure_causes(alone).by_cause
    true_s = 3 * 3 * 15.0
    assert whole.at["checkpoint", "gpu_s"] == pytest.approx(true_s, rel=0.1)
    assert whole.at["first_steps", "low_gpu_s"] > 1 and log.at["first_steps", "low_gpu_s"] == 0


@pytest.mark.slow
def test_several_as_json_are_a_list(ranks: Path) -> None:
    files = sorted(ranks.glob("*.gz"))
    several, one = (json.loads(said("trace", *given, "--format", "json")) for given in (files, files[:1]))
    assert [held["rank"] for held in several] == [0, 1, 2] and several[0] == one


def test_one_trace_is_said_in_a_screen(tmp_path: Path) -> None:
    text = said("trace", training(4).write(tmp_path / "t.json"))
    assert "4 profiled steps of rank 1 of 4" in text and len(text.splitlines()) < 40
