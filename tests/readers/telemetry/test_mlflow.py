"""MLflow: decimal megabytes, what percentages tell, torn files, databases without system metrics."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pandas as pd
import pytest

from gpudiag.errors import InputError
from gpudiag.load import load_run
from gpudiag.readers.telemetry import read_telemetry


def run_folder(folder: Path, **metrics: str) -> Path:
    for name, text in metrics.items():
        path = folder / "metrics" / "system" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_units(tmp_path: Path) -> None:
    folder = run_folder(
        tmp_path / "mlruns" / "1" / "abc",
        gpu_0_utilization_percentage="1700000000500 97.5 0\n",
        gpu_0_memory_usage_megabytes="1700000000500 8589.934592 0\n",
        gpu_0_memory_usage_percentage="1700000000500 50.0 0\n",
        gpu_0_power_usage_watts="1700000000500 150.0 0\n",
        gpu_0_power_usage_percentage="1700000000500 60.0 0\n",
        system_memory_usage_megabytes="1700000000500 1048.576 0\n",
        disk_usage_percentage="1700000000500 50 0\n",
    )
    out = read_telemetry(folder, timezone="Asia/Taipei")
    (row,) = out.gpu.to_dict("records")
    assert row["time"] == pd.Timestamp("2023-11-14T22:13:20.5Z") and out.clock == "utc"
    assert row["util_pct"] == 97.5
    assert row["mem_used_mib"] == pytest.approx(8192) and row["mem_total_mib"] == pytest.approx(16384)
    assert (row["power_w"], row["power_limit_w"]) == (150, 250)
    assert out.host["ram_used_mib"].tolist() == [pytest.approx(1000)]
    assert any("means" in note for note in out.notes)
    run = load_run(tmp_path / "mlruns", timezone="UTC")
    assert [record.reader for record in run.info.inputs] == ["MLflow metrics"] and len(run.gpu) == 1


def test_torn_lines_are_counted(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "r", gpu_0_utilization_percentage="1700000000500 97.5 0\n17000000\n")
    out = read_telemetry(folder, timezone="UTC")
    assert len(out.gpu) == 1
    assert [(problem.kind, problem.line, problem.lost) for problem in out.problems] == [("torn line", 2, True)]


def test_a_database_without_system_metrics_says_what_to_call(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    connection = sqlite3.connect(path)
    for table in (
        "experiments (id INTEGER)",
        "runs (run_uuid TEXT)",
        "metrics (key TEXT, value, timestamp)",
    ):
        connection.execute(f"CREATE TABLE {table}")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="enable_system_metrics_logging"):
        read_telemetry(path, timezone="UTC")
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["mlflow.db"]


@pytest.mark.parametrize("name", ["loss", "train/accuracy"])
def test_metrics_of_a_training_are_no_table_of_a_gpu(tmp_path: Path, name: str) -> None:
    """Milliseconds, values up to 100 and steps, as a table without a header would have utilization and memory."""
    run = tmp_path / "mlruns" / "0" / "4f0c"
    metric = run / "metrics" / name
    metric.parent.mkdir(parents=True)
    metric.write_text("".join(f"{1772442000000 + 6000 * k} {k} {10 * k}\n" for k in range(100)))
    (run / "meta.yaml").write_text("run_id: 4f0c\n")
    rows = "".join(f"2026/03/02 09:00:{n:02d}.000, 0, 90 %\n" for n in range(60))
    (tmp_path / "gpu.csv").write_text("timestamp, index, utilization.gpu [%]\n" + rows)
    info = load_run(tmp_path, timezone="UTC").info
    telemetry = [record for record in info.inputs if record.kind == "telemetry"]
    assert [record.path for record in telemetry] == ["gpu.csv"] and not telemetry[0].error
    steps = [record.reader for record in info.inputs if record.kind == "artifacts"]
    assert steps == (["mlflow-steps"] if name == "loss" else [])
    assert (str(metric.relative_to(tmp_path)) in info.not_recognized) == (name != "loss")
