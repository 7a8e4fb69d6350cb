"""trackio: a report as artifact of a run, with a stand-in and with trackio itself; a run of its store read back."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from sampleruns import diagnosed

import gpudiag as gd
from gpudiag.errors import ConfigError, InputError
from gpudiag.trackers import publisher
from gpudiag.trackers.summary import labels, summary

FILES = ["diagnosis.json", "report.html", "report.md", "report_files/a.png"]


def expected() -> dict[str, float | str]:
    document = diagnosed("healthy").document
    return {**summary(document), **labels(document)}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The calls of trackio, in their order."""
    told: list[Any] = []

    class Artifact:
        def __init__(self, name: str, type: str, metadata: dict[str, Any]) -> None:
            self.name, self.files = name, list[str]()
            told.append((name, type, metadata))

        def add_file(self, local_path: Path, name: str | None = None) -> None:
            self.files.append(local_path.name)

        def add_dir(self, local_dir: Path, name: str | None = None) -> None:
            self.files += [f"{name}/{one.name}" for one in local_dir.iterdir()]

    def init(project: str, name: str, **more: Any) -> Any:
        if name == "gone":
            raise ValueError("Run 'gone' does not exist")
        told.append(("init", project, name, more))
        print("* trackio says what it does")
        return SimpleNamespace(id="0a 1b")

    made = ModuleType("trackio")
    made.Artifact, made.init = Artifact, init  # type: ignore[attr-defined]
    made.log_artifact = lambda artifact, overwrite: told.append((sorted(artifact.files), overwrite))  # type: ignore[attr-defined]
    made.finish = lambda: told.append("finish")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "trackio", made)
    monkeypatch.delitem(sys.modules, "gpudiag.trackers.trackio", raising=False)
    yield told
    sys.modules.pop("gpudiag.trackers.trackio", None)


def test_the_report_is_an_artifact_of_the_run(
    told: list[Any], report_files: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    where = publisher("trackio:p/my run/2")(report_files, diagnosed("healthy").document)
    assert where == "trackio:p/my run/2, artifact gpudiag-0a-1b" and capsys.readouterr().out == ""
    quiet = {"resume": "must", "auto_log_gpu": False, "auto_log_cpu": False, "embed": False}
    made = ("gpudiag-0a-1b", "gpudiag-report", expected())
    assert told == [("init", "p", "my run/2", quiet), made, (FILES, True), "finish"]
    with pytest.raises(
        ConfigError, match="trackio did not take the report for run 'p/gone': Run 'gone' does not exist"
    ):
        publisher("trackio:p/gone")(report_files, diagnosed("healthy").document)


@pytest.mark.slow
def test_trackio_itself_keeps_the_report_and_gives_the_run(
    report_files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "store"))
    pytest.importorskip("trackio")
    from trackio.sqlite_storage import SQLiteStorage

    begun = datetime(2026, 1, 1, tzinfo=UTC)
    steps = [(begun + timedelta(seconds=3 * k, milliseconds=250)).isoformat() for k in range(50)]
    samples = [(begun + timedelta(seconds=10 * k)).isoformat() for k in range(15)]
    metrics = [{"loss": 1 / (k + 1), "note": "text", "epoch": 0} for k in range(50)]
    SQLiteStorage.bulk_log("p", "a run", metrics, steps=list(range(50)), timestamps=steps, config={"lr": 0.1})
    gpus = [{"gpu/1/utilization": 7 * k % 100, "gpu/1/allocated_memory": 3.5, "gpu/1/power": None} for k in range(15)]
    SQLiteStorage.bulk_log_system("p", "a run", gpus, timestamps=samples)
    held = SQLiteStorage.get_project_db_path("p")
    before = held.read_bytes()

    run = gd.load_run("trackio:p/a run")
    assert run.gpu["util_pct"].tolist() == [7 * k % 100 for k in range(15)] and set(run.gpu["gpu"]) == {"1"}
    assert set(run.gpu["mem_used_mib"]) == {3584.0} and "power_w" not in run.gpu
    assert [time.isoformat() for time in run.gpu["time"]] == samples
    assert run.steps["step"].tolist() == list(range(50)) and [t.isoformat() for t in run.steps["time"]] == steps
    assert (run.info.name, run.info.project, len(run.trials)) == ("a run", "p", 0)
    assert held.read_bytes() == before
    for address in ("trackio:p/none", "trackio:none/a"):
        with pytest.raises(InputError, match=rf"^{address}: "):
            gd.load_run(address)

    rows = _rows(held)
    for _ in range(2):
        publisher("trackio:p/a run")(report_files, diagnosed("healthy").document)
    after = _rows(held)
    assert all(rows[name] == after[name] for name in rows if "artifact" not in name and name != "sqlite_sequence")
    (version,) = after["artifact_versions"]
    assert set(FILES) <= set(str(version).split('"')) and str(expected()["gpudiag.headline"]) in str(version)


def _rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    connection = sqlite3.connect(path)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names}
    connection.close()
    return found
