"""A run of MLflow read back: what was logged stands in the tables, and the server is asked for reading only."""

from __future__ import annotations

import logging
import math
import os
import random
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from mlflowserver import MlflowError, Server, mlflow_in_place

import gpudiag as gd
from gpudiag._load.inspection import inspect
from gpudiag.errors import ConfigError, InputError

T0 = 1_764_000_000.0
LOG = b"timestamp,gpu,util_pct\n2025-11-24T16:00:00Z,1,50\n2025-11-24T16:00:10Z,1,70\n"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    made = Server()
    with mlflow_in_place(monkeypatch, made):
        yield made


def training() -> dict[str, list[tuple[float, float, int]]]:
    """90 steps of 2 s, an evaluation of 30 s after step 59, two GPUs every 10 s, what gpudiag itself wrote."""
    times = [T0 + 20 + 2 * step + 30 * (step >= 60) for step in range(90)]
    metrics = {
        "train_loss": [(at, math.nan if step == 5 else 1 / (step + 1), step) for step, at in enumerate(times)],
        "lr": [(at + 0.004, 1e-3, step) for step, at in enumerate(times) if step % 10 == 0],
        "val_loss": [(times[60] - 3, 0.7, 59)],
        "gpudiag.gpu_h": [(T0 + 999, 3.0, 0)],
    }
    for gpu in (0, 1):
        every = [(T0 + 10 * k, float((k * 7 + gpu) % 100), k) for k in range(20)]
        metrics[f"system/gpu_{gpu}_utilization_percentage"] = every
        metrics[f"system/gpu_{gpu}_memory_usage_megabytes"] = [(at, 1048.576, k) for at, _, k in every]
    return metrics


def test_what_was_logged_stands_in_the_tables(server: Server) -> None:
    logged = training()
    tags = {"mlflow.user": "me", "mlflow.source.git.commit": "4f2a91c", "team": "vision"}
    server.add("abc", T0, T0 + 230, logged, params={"lr": "0.001", "layers": "3", "opt": "adam"}, tags=tags)
    run = gd.load_run("mlflow:abc")
    for gpu in ("0", "1"):
        own = run.gpu[run.gpu["gpu"] == gpu].sort_values("time")
        expected = logged[f"system/gpu_{gpu}_utilization_percentage"]
        assert own["util_pct"].tolist() == [value for _, value, _ in expected]
        assert [time.timestamp() for time in own["time"]] == [at for at, _, _ in expected]
        assert own["mem_used_mib"].unique().tolist() == [pytest.approx(1000)]
    assert [(step, time.timestamp()) for step, time in zip(run.steps["step"], run.steps["time"], strict=True)] == [
        (step, at) for at, _, step in logged["train_loss"]
    ]
    assert run.steps.loc[run.steps["since"].notna(), ["step", "since"]].to_numpy().tolist() == [[60, "evaluation"]]
    (trial,) = run.trials.to_dict("records")
    assert (trial["state"], trial["start"].timestamp(), trial["end"].timestamp()) == ("COMPLETE", T0, T0 + 230)
    assert (trial["params.lr"], trial["params.layers"], trial["params.opt"]) == (0.001, 3, "adam")
    assert trial["user_attrs.tags.team"] == "vision" and "gpudiag" not in " ".join(run.trials.columns)
    info = run.info
    assert (info.name, info.user, info.project) == ("name of abc", "me", "experiment 7")
    assert info.settings.commit == "4f2a91c"
    assert {record.path for record in info.inputs} == {
        f"mlflow:abc/{x}" for x in ("metrics.jsonl", "runs.jsonl", "system")
    }
    assert set(run.steps["path"]) == {"mlflow:abc/metrics.jsonl"}


def test_runs_within_a_run_are_its_trials_and_bring_their_gpus(server: Server) -> None:
    server.add("p", T0, T0 + 100, {})
    for k, status in enumerate(("FINISHED", "FAILED", "KILLED", "RUNNING", "KILLED", "SCHEDULED")):
        start = T0 + 20 * k
        server.add(
            f"c{k}",
            start,
            None if status in ("RUNNING", "SCHEDULED") else start + 15,
            {"system/gpu_0_utilization_percentage": [(start + 5, 10.0 * k, 0), (start + 10, 10.0 * k, 1)]},
            status,
            tags={"mlflow.parentRunId": "p", **({"param_directions": "{}"} if k == 4 else {})},
            params={"x": str(k)},
        )
    run = gd.load_run("mlflow:p")
    assert run.trials["name"].tolist() == [f"name of c{k}" for k in range(6)]
    assert run.trials["state"].tolist() == ["COMPLETE", "FAIL", "FAIL", "RUNNING", "PRUNED", "WAITING"]
    assert run.trials["detail"].tolist()[2] == "canceled"  # which no check takes for a failure
    assert run.trials["params.x"].tolist() == [0, 1, 2, 3, 4, 5]
    assert run.studies["study"].tolist() == ["name of p"]
    assert sorted(run.gpu["util_pct"]) == [0, 0, 10, 10, 20, 20, 30, 30, 40, 40, 50, 50]


@pytest.mark.parametrize("n_children", [0, 2])
@pytest.mark.parametrize("is_artifact", [True, False])
def test_a_run_is_no_trial_beside_those_of_its_own_study(
    server: Server, samples: Path, is_artifact: bool, n_children: int
) -> None:
    folder = samples / "hpo-aggressive-pruning"
    server.add("h", T0, T0 + 100, {})
    for k in range(n_children):
        server.add(f"c{k}", T0, T0 + 50, {}, tags={"mlflow.parentRunId": "h"})
    if is_artifact:
        server.files = {"optuna.db": (folder / "optuna.db").read_bytes()}
    run = gd.load_run("mlflow:h" if is_artifact else [folder / "optuna.db", "mlflow:h"])
    assert len(run.trials) == 200 and len(run.studies) == 1 and run.info.name == "name of h"
    path = "mlflow:h/artifacts/optuna.db" if is_artifact else str(folder / "optuna.db")
    note = f"Trials are those of {path}; the 2 runs within the run are not counted."
    assert (note in run.info.notes) == bool(n_children)


def test_gpus_of_nodes_stay_apart(server: Server) -> None:
    metrics = {
        f"system/{node}/gpu_{gpu}_utilization_percentage": [(T0, 10.0 * k, 0)]
        for k, (node, gpu) in enumerate([("a", 0), ("a", 1), ("b", 0)])
    }
    server.add("n", T0, T0 + 9, metrics | {"system/a/cpu_utilization_percentage": [(T0, 5.0, 0)]})
    run = gd.load_run("mlflow:n")
    assert dict(zip(run.gpu["gpu"], run.gpu["util_pct"], strict=True)) == {"0": 0, "1": 10, "2": 20}
    assert run.host.empty and any("b from 2" in note for note in run.info.notes)
    assert any("b from 2" in note for record in inspect(["mlflow:n"]) for note in record.notes)
    named = gd.load_run(["mlflow:n"], name="mine", timezone=ZoneInfo("Asia/Taipei"))
    assert (named.info.name, named.info.timezone) == ("mine", "Asia/Taipei")


@pytest.mark.parametrize("n_machines", [1, 2])
def test_runs_that_read_one_gpu_differently_were_on_several_machines(server: Server, n_machines: int) -> None:
    """Two runs overlap by 30 min, and a third follows; on one machine each reads the same, 3 s later."""
    server.add("m", T0, T0 + 9000, {})
    for child, (first, last) in enumerate([(0, 240), (60, 300), (310, 400)]):
        own = child % n_machines
        times = [T0 + 10 * k + 3 * child for k in range(first, last)]
        busy = [0.0 if own else 100.0 - 60 * (k % 5 == 0) for k in range(first, last)]
        metrics = {
            "utilization_percentage": [(at, one, k) for k, (at, one) in enumerate(zip(times, busy, strict=True))],
            "memory_usage_megabytes": [(at, 300.0 if own else 20_000.0, k) for k, at in enumerate(times)],
        }
        logged = {f"system/gpu_0_{name}": points for name, points in metrics.items()}
        server.add(f"c{child}", times[0], times[-1], logged, tags={"mlflow.parentRunId": "m"})
    run = gd.load_run("mlflow:m")
    assert run.gpu.groupby("gpu")["util_pct"].count().to_dict() == (
        {"0": 570} if n_machines == 1 else {"0": 330, "1": 240}
    )
    notes = " ".join(run.info.notes)
    assert ("(machine 1 from 0, machine 2 from 1)" in notes and "on several machines" in notes) == (n_machines == 2)
    assert ("it is taken for one machine" in notes) == (n_machines == 1)


def test_nodes_are_in_the_order_of_their_numbers_and_no_gpu_has_an_index_of_five_nines(server: Server) -> None:
    nodes = {f"system/node-{n}/gpu_0_utilization_percentage": [(T0, float(n), 0)] for n in (10, 2)}
    server.add("n", T0, T0 + 9, nodes)
    run = gd.load_run("mlflow:n")
    assert dict(zip(run.gpu["gpu"], run.gpu["util_pct"], strict=True)) == {"0": 2, "1": 10}
    large = {f"system/gpu_{gpu}_utilization_percentage": [(T0, 5.0, 0)] for gpu in ("32766", "32767", "9" * 200)}
    server.histories.clear()
    server.add("n", T0, T0 + 9, large)
    run = gd.load_run("mlflow:n")
    assert run.gpu["gpu"].tolist() == ["32766"]


@pytest.mark.parametrize("shift", [0, 1])
def test_what_is_logged_once_an_epoch_is_no_step(server: Server, shift: int) -> None:
    """Unless the epoch is not what counts: then each is a step of its own number."""
    losses = [(T0 + 60 * k, 1 / (k + 1), k) for k in range(8)]
    server.add("e", T0, T0 + 500, {"loss": losses, "epoch": [(at, float(k // (1 + shift)), k) for at, _, k in losses]})
    assert len(gd.load_run("mlflow:e").steps) == 8 * shift


@pytest.mark.slow
def test_of_the_artifacts_logs_are_read(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.add("f", T0, T0 + 9, {"system/gpu_0_utilization_percentage": [(T0, 5.0, 0)]})
    server.files = {
        "logs/gpu.csv": LOG,
        "gpudiag/report.html": LOG,
        "model/MLmodel": b"x",
        "model/gpu.csv": LOG,
        "../evil.csv": LOG,
        "huge.csv": LOG * 2000,
        "torn.db": b"SQLite format 3\0" + b"\1" * 200,
    }
    monkeypatch.setattr(import_module("gpudiag._load.tracked.mlflow"), "MOST_BYTES_EACH", 100_000)
    run = gd.load_run("mlflow:f")
    paths = {record.path for record in run.info.inputs}
    assert "mlflow:f/artifacts/logs/gpu.csv" in paths and sorted(run.gpu["util_pct"]) == [5, 50, 70]
    assert not [path for path in paths for name in ("model", "evil", "huge", "gpudiag") if name in path], paths
    assert "Artifacts that are large, or of unknown size, were not read: huge.csv." in run.info.notes
    texts = repr(gd.diagnose(run).to_dict())
    assert "/gpudiag-" not in texts  # no path of the folder that was between


def test_what_is_not_there_is_one_sentence(
    gpudiag: Any, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = gpudiag("diagnose", "mlflow:gone")
    assert code == 2 and "mlflow:gone: MLflow does not give the run: http://user:***@host/api: no run gone" in err
    assert gpudiag("inspect", "mlflow:gone")[0] == 2
    for given in ({"trials": "mlflow:gone"}, {"telemetry": "mlflow:gone"}):
        with pytest.raises(InputError, match="is a run of a tracker"):
            gd.load_run(**given)
    for source, said in (("wandb:e/p/r", "give the folder of the run"), (["mlflow:a", "mlflow:b"], "one by one")):
        with pytest.raises(ConfigError, match=said):
            gd.load_run(source)
    monkeypatch.chdir(tmp_path)
    Path("mlflow:gone").write_bytes(LOG)  # a path that exists is meant
    assert len(gd.load_run("mlflow:gone").gpu) == 2


@pytest.mark.parametrize("there", ["sqlite:///typo.db", "file:///typo/mlruns", "./mlruns"])
def test_nothing_is_made_where_mlflow_has_nothing(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str
) -> None:
    monkeypatch.chdir(tmp_path)
    module = import_module("gpudiag._load.tracked.mlflow_client")
    monkeypatch.setattr(module.mlflow, "get_tracking_uri", lambda: there)
    server.add("a", T0, T0 + 9, {"system/gpu_0_utilization_percentage": [(T0, 5.0, 0)]})
    with pytest.raises(ConfigError, match=f"{there}: MLflow has nothing there"):
        gd.load_run("mlflow:a")
    monkeypatch.setattr(module.mlflow, "get_tracking_uri", lambda: "sqlite:///a b.db")
    (tmp_path / "a b.db").touch()
    assert len(gd.load_run("mlflow:a").gpu) == 1


def test_a_server_that_does_not_answer_is_named_and_settings_are_as_before(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    during = {}

    def refuse(run_id: str) -> None:
        during.update(os.environ)
        raise MlflowError(
            "API request to http://user:geheim@host/api failed with exception HTTPConnectionPool(host='host'): "
            "Max retries exceeded with url: /api (Caused by NewConnectionError('Connection refused'))"
        )

    monkeypatch.delenv("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", raising=False)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "5")
    before = dict(os.environ), logging.getLogger("mlflow").level
    monkeypatch.setattr(server, "get_run", refuse)
    with pytest.raises(InputError, match=r"no server of MLflow answers at http://user:\*\*\*@host; check MLFLOW_TRACK"):
        gd.load_run("mlflow:a")
    assert during["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] == "false"
    assert during["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "5"
    assert (dict(os.environ), logging.getLogger("mlflow").level) == before


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of MLflow about its own libraries
def test_mlflow_itself_gives_what_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'm.db'}")
    client = mlflow.MlflowClient()
    experiment = client.create_experiment("e", artifact_location=(tmp_path / "artifacts").as_uri())
    run_id = client.create_run(experiment, start_time=round(T0 * 1000), run_name="one").info.run_id
    points = [(T0 + 10 * k, float(random.Random(k).randrange(100)), k) for k in range(2500)]
    entity = mlflow.entities.Metric
    for name in ("system/gpu_0_utilization_percentage", "loss"):
        made = [entity(name, value, round(at * 1000), step) for at, value, step in points]
        for first in range(0, len(made), 900):
            client.log_batch(run_id, metrics=made[first : first + 900])
    client.log_text(run_id, LOG.decode(), "gpu.csv")
    client.set_terminated(run_id, end_time=round((T0 + 25_000) * 1000))
    rows = client.get_run(run_id).to_dictionary()
    run = gd.load_run(f"mlflow:{run_id}")
    own = run.gpu[run.gpu["gpu"] == "0"].sort_values("time")
    assert own["util_pct"].tolist() == [value for _, value, _ in points]
    assert run.steps["step"].tolist() == list(range(2500)) and "1" in set(run.gpu["gpu"])
    assert client.get_run(run_id).to_dictionary() == rows
