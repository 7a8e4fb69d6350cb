"""``gpudiag report --to mlflow:RUN_ID``: with a stand-in for the client everywhere, with MLflow itself where it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mlflowserver import MlflowError, mlflow_in_place


class Client:
    """Keeps what it is told; of the run 'gone' it says that there is none."""

    told: dict[str, Any]

    def log_batch(self, run: str, metrics: list[Any], tags: list[Any]) -> None:
        if run == "gone":
            raise MlflowError("http://user:geheim@host/api: no run gone\nand more")
        Client.told = {"run": run, "files": [], **{one.key: one.value for one in (*metrics, *tags)}}

    def log_artifact(self, run: str, path: str, folder: str) -> None:
        Client.told["files"].append(f"{folder}/{Path(path).name}")

    def log_artifacts(self, run: str, path: str, folder: str) -> None:
        Client.told["files"] += [f"{folder}/{one.name}" for one in sorted(Path(path).iterdir())]


@pytest.fixture
def mlflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    with mlflow_in_place(monkeypatch, Client()) as made:
        yield made


def options(samples: Path, run: str) -> list[object]:
    return ["report", samples / "tiny-batch-laptop", "-o", "out", "--no-notebook", "--to", run]


@pytest.mark.slow
def test_numbers_verdict_and_files_reach_the_run(
    gpudiag: Any, samples: Path, tmp_path: Path, mlflow: ModuleType
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("not part of a report")
    code, out, err = gpudiag(*options(samples, "mlflow:abc"))
    assert code == 0 and "mlflow:abc" in out + err
    told = Client.told
    document = json.loads((tmp_path / "out" / "diagnosis.json").read_text())
    assert told["run"] == "abc" and told["gpudiag.verdict"] == document["headline"]["level"]
    assert told["gpudiag.gpu_h"] == pytest.approx(document["ledger"]["total_gpu_s"] / 3600)
    made = {f"gpudiag/{name}" for name in ("report.html", "report.md", "diagnosis.json")}
    pictures = {f"gpudiag/report_files/{one.name}" for one in (tmp_path / "out" / "report_files").iterdir()}
    assert set(told["files"]) == made | pictures and pictures


@pytest.mark.slow
def test_a_run_that_is_not_there_is_one_sentence_and_the_report_stays(
    gpudiag: Any, samples: Path, tmp_path: Path, mlflow: ModuleType
) -> None:
    code, _, err = gpudiag(*options(samples, "mlflow:gone"), "-p", "minimal=true")
    assert code == 2 and "MLflow did not take the report for run 'gone': http://user:***@host/api: no run gone" in err
    assert "geheim" not in err and (tmp_path / "out" / "report.html").is_file()


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("mlflow", "--to takes TRACKER:RUN, such as mlflow:RUN_ID, but got 'mlflow'."),
        ("mlflow:", "--to takes TRACKER:RUN"),
        ("mlfow:abc", "there is no tracker 'mlfow'; did you mean 'mlflow'?"),
    ],
)
def test_a_wrong_address_is_refused_before_the_work(
    gpudiag: Any, samples: Path, tmp_path: Path, to: str, said: str
) -> None:
    code, _, err = gpudiag(*options(samples, to))
    assert code == 2 and said in " ".join(err.split()) and not (tmp_path / "out").exists()


def test_several_runs_have_no_one_place(gpudiag: Any, samples: Path, mlflow: ModuleType) -> None:
    code, _, err = gpudiag("report", samples / "idle-second-gpu", "--to", "mlflow:abc")
    assert code == 2 and "--to takes the report of one run, but got 2." in " ".join(err.split())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of MLflow about its own libraries
def test_mlflow_itself_shows_it(gpudiag: Any, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'm.db'}")
    experiment = mlflow.create_experiment("e", artifact_location=(tmp_path / "artifacts").as_uri())
    with mlflow.start_run(experiment_id=experiment) as run:
        mlflow.log_metric("loss", 1.0)
    code, _, err = gpudiag(*options(samples, f"mlflow:{run.info.run_id}"))
    assert code == 0, err
    kept = mlflow.MlflowClient().get_run(run.info.run_id)
    document = json.loads((tmp_path / "out" / "diagnosis.json").read_text())
    assert kept.data.metrics["loss"] == 1.0 and kept.info.status == "FINISHED"
    assert kept.data.metrics["gpudiag.gpu_h"] == pytest.approx(document["ledger"]["total_gpu_s"] / 3600)
    assert kept.data.tags["gpudiag.headline"] == document["headline"]["sentences"][0]
    listed = {one.path for one in mlflow.MlflowClient().list_artifacts(run.info.run_id, "gpudiag")}
    assert {"gpudiag/report.html", "gpudiag/diagnosis.json", "gpudiag/report_files"} <= listed


@pytest.mark.skipif(find_spec("mlflow") is not None, reason="MLflow is installed")
def test_a_missing_package_is_said_before_the_work(gpudiag: Any, samples: Path, tmp_path: Path) -> None:
    code, _, err = gpudiag(*options(samples, "mlflow:abc"))
    assert code == 2 and "pip install 'gpudiag[mlflow]'" in err and not (tmp_path / "out").exists()
