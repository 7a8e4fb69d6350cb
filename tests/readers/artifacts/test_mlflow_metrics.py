"""What a training logged with MLflow, in the layout of its file store (as version 3.17 writes it)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.errors import InputError
from gpudiag.measures.steps import measure_steps
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import mlflow_metrics
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.readers.identify import identify
from gpudiag.readers.telemetry.mlflow import recognises_database
from gpudiag.timezones import parse_zone

BEGIN_MS = 1_767_607_200_000
RUN = """artifact_uri: file:///data/mlruns/643/dbb9/artifacts
end_time: 1767608300000
entry_point_name: ''
experiment_id: '643'
lifecycle_stage: active
run_id: dbb9
run_name: big-one
source_type: 4
start_time: 1767607200000
status: 3
tags: []
user_id: ada
"""

Values = list[tuple[int, float, int]]
"""Milliseconds since the run began, value, step."""


def run(folder: Path, metrics: dict[str, Values], meta: str = RUN) -> Path:
    for name, values in metrics.items():
        path = folder / "metrics" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{BEGIN_MS + at} {value} {step}\n" for at, value, step in values))
    (folder / "meta.yaml").write_text(meta)
    return folder


def training(each_ms: int = 5000, evaluation_ms: int = 20_000) -> dict[str, Values]:
    """100 losses, 10 steps apart; behind each 25th an evaluation, which its own value follows."""
    loss: Values = []
    evaluated: Values = []
    at = 0
    for k in range(1, 101):
        at += each_ms
        loss.append((at, 2 / k, 10 * k))
        if k % 25 == 0:
            at += evaluation_ms
            evaluated.append((at, 1 / k, 10 * k))
    return {"train/loss": loss, "lr": [(at, 1e-3, step) for at, _, step in loss], "val_loss": evaluated}


SYSTEM: dict[str, Values] = {
    "system/gpu_0_utilization_percentage": [(10_000 * k, 80.0 + k % 3, k) for k in range(58)],
    "system/gpu_0_memory_usage_megabytes": [(10_000 * k, 30_000.0, k) for k in range(58)],
}


def read(folder: Path) -> Trials:
    return mlflow_metrics.read(Source.open(folder / "metrics"), ReadOptions(parse_zone("UTC")))


@pytest.mark.parametrize("below", ["", "643/dbb9"])
@pytest.mark.slow
def test_steps_and_telemetry_of_a_run(tmp_path: Path, below: str) -> None:
    run(tmp_path / below, training() | SYSTEM)
    found = gd.load_run(tmp_path)
    assert len(found.gpu) == 58
    said = measure_steps(found)
    assert said.step_s == pytest.approx(0.5) and said.n_steps == 990
    assert said.evaluations_s == pytest.approx(4 * 20, abs=1)
    assert {record.reader for record in found.info.inputs} == {"MLflow metrics", mlflow_metrics.NAME}


def test_a_run_without_system_metrics(tmp_path: Path) -> None:
    run(tmp_path / "643" / "dbb9", training())
    assert len(gd.load_run(tmp_path).steps) == 100
    assert read(tmp_path / "643" / "dbb9").notes == ("big-one: 100 lines on steps of training (MLflow).",)


def test_epochs_where_the_metric_epoch_is_the_step(tmp_path: Path) -> None:
    values = [(60_000 * k, 1 / (k + 1), k) for k in range(20)]
    steps = read(run(tmp_path, {"loss": values, "epoch": [(at, step, step) for at, _, step in values]})).steps
    assert set(steps["unit"]) == {"epoch"} and steps["step"].tolist() == list(range(1, 21))


def test_values_without_a_step_tell_no_time_of_one(tmp_path: Path) -> None:
    said = read(run(tmp_path, {"loss": [(1000 * k, 0.5, 0) for k in range(20)]}))
    assert said.steps.empty and "'loss' was logged without steps" in said.notes[0]


def test_torn_lines_and_data_sets_behind_the_step(tmp_path: Path) -> None:
    folder = run(tmp_path, {"loss": [(1000 * k, 0.5, k) for k in range(20)]})
    with (folder / "metrics" / "loss").open("a") as file:
        file.write(f"{BEGIN_MS + 20_000} 0.5 20 wiki abcd\n{BEGIN_MS}\n17 0.5 3\n{BEGIN_MS} nan 1e3\n")
    said = read(folder)
    assert said.steps["step"].max() == 20
    assert [(one.kind, one.count, one.line, one.lost) for one in said.problems] == [("torn line", 3, 22, True)]


@pytest.mark.parametrize(
    "meta",
    [
        "model_id: m-1\nsource_run_id: dbb9\n",
        "- 1\n",
        "run_id: [\n",
        "",
        "run_id: !!python/object/apply:os.getcwd []\n",
    ],
)
def test_what_is_no_run_is_not_claimed(tmp_path: Path, meta: str) -> None:
    """A logged model beside the runs repeats their metrics; Python's own tags are never run."""
    run(tmp_path, training(), meta)
    assert not mlflow_metrics.recognises(Source.open(tmp_path / "metrics"))


def test_a_run_without_a_loss_is_no_training(tmp_path: Path) -> None:
    run(tmp_path, {"accuracy": [(1000 * k, 0.5, k) for k in range(20)]})
    assert identify(Source.open(tmp_path / "metrics")) is None


def test_nothing_is_written_into_the_store(tmp_path: Path) -> None:
    run(tmp_path, training() | SYSTEM)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    gd.load_run(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def database(path: Path, samples: int) -> Path:
    """A database as the migrations of version 3 leave it: experiments stand far behind the other tables."""
    with sqlite3.connect(path) as connection:
        connection.execute(
            'CREATE TABLE "runs" (run_uuid VARCHAR(32) NOT NULL, status VARCHAR(9), experiment_id INTEGER, '
            "FOREIGN KEY(experiment_id) REFERENCES experiments (experiment_id))"
        )
        connection.execute(
            'CREATE TABLE "metrics" (key VARCHAR(250), value FLOAT, timestamp BIGINT, run_uuid VARCHAR(32), step INT)'
        )
        for k in range(100):
            connection.execute(f"CREATE TABLE other{k} (a TEXT, {', '.join(f'column_{n} TEXT' for n in range(100))})")
        connection.execute('CREATE TABLE "experiments" (experiment_id INTEGER NOT NULL)')
        rows = [("system/gpu_0_utilization_percentage", 80, BEGIN_MS + 10_000 * k, "a", k) for k in range(samples)]
        connection.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?)", [*rows, ("loss", 0.5, BEGIN_MS, "a", 0)])
    connection.close()
    return path


def test_a_database_whose_head_only_names_the_experiments(tmp_path: Path) -> None:
    source = Source.open(database(tmp_path / "mlflow.db", 50))
    assert b'CREATE TABLE "experiments"' not in source.head and recognises_database(source)
    run = gd.load_run(tmp_path)
    assert len(run.gpu) == 50 and any("mlflow:RUN_ID" in note for record in run.info.inputs for note in record.notes)


def test_a_database_without_system_metrics_says_how_to_read_its_runs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="mlflow:RUN_ID"):
        gd.load_run(database(tmp_path / "mlflow.db", 0))
