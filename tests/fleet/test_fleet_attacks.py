"""Files of others, two fleets at once, inputs elsewhere, odd names, one clock that is off."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
from commandline import called

from gpudiag.errors import ConfigError
from gpudiag.fleets.fleet import fleet, read_fleet
from gpudiag.fleets.kept import FleetFolder
from gpudiag.fleets.table import FleetTable
from gpudiag.report.fleet.document import CELLS, RunRow

pytestmark = pytest.mark.usefixtures("warm")


def log(start: str = "2026-03-01 10:00", n: int = 300, util: int = 90) -> str:
    times = pd.date_range(start, periods=n, freq="s")
    rows = [f"{one:%Y/%m/%d %H:%M:%S}.000, 0, {util} %, 1000 MiB, 24000 MiB" for one in times]
    return "\n".join(["timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]", *rows, ""])


def run(folder: Path, text: str = "") -> Path:
    folder.mkdir(parents=True)
    (folder / "gpu.csv").write_text(text or log(), encoding="utf-8")
    return folder


def told(path: Path, out: Path, **options: object) -> list[str]:
    """Names of the runs that were diagnosed in this call."""
    said: list[str] = []
    fleet(path, out, progress=lambda done, of, row: said.append(row.run), **options)  # type: ignore[arg-type]
    return said


@pytest.mark.slow
def test_files_of_others_stay(tmp_path: Path) -> None:
    run(tmp_path / "runs" / "a")
    for name in ("table/mydata.csv", "runs/mine/diagnosis.json"):
        (tmp_path / "out" / name).parent.mkdir(parents=True)
        (tmp_path / "out" / name).write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match="is not empty and holds no fleet"):
        fleet(tmp_path / "runs", tmp_path / "out")
    fleet(tmp_path / "runs", tmp_path / "new")
    for name in ("runs/.DS_Store", "runs/mine/diagnosis.json"):
        (tmp_path / "new" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "new" / name).write_text("{}", encoding="utf-8")
    fleet(tmp_path / "runs", tmp_path / "new")
    assert (tmp_path / "new/runs/.DS_Store").is_file() and (tmp_path / "new/runs/mine/diagnosis.json").is_file()
    (tmp_path / "new" / "table" / "mine.csv").write_text("x", encoding="utf-8")
    with pytest.raises(ConfigError, match="was not written by gpudiag"):
        fleet(tmp_path / "runs", tmp_path / "new")


@pytest.mark.slow
def test_one_fleet_at_a_time(tmp_path: Path) -> None:
    run(tmp_path / "runs" / "a")
    with FleetFolder(tmp_path / "out").alone(), pytest.raises(ConfigError, match="another fleet"):
        fleet(tmp_path / "runs", tmp_path / "out")
    assert told(tmp_path / "runs", tmp_path / "out") == ["a"]


@pytest.mark.slow
def test_an_input_elsewhere_changes_the_run(tmp_path: Path) -> None:
    run(tmp_path / "shared")
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "run.toml").write_text('telemetry = ["../../shared/gpu.csv"]', encoding="utf-8")
    run(tmp_path / "far" / "b")
    (tmp_path / "runs" / "linked").mkdir()
    (tmp_path / "runs" / "linked" / "deep").symlink_to(tmp_path / "far" / "b")
    (tmp_path / "runs" / "linked" / "run.toml").write_text('telemetry = ["deep/gpu.csv"]', encoding="utf-8")
    assert sorted(told(tmp_path / "runs", tmp_path / "out")) == ["a", "linked"]
    assert told(tmp_path / "runs", tmp_path / "out") == []
    (tmp_path / "shared" / "gpu.csv").write_text(log(n=200), encoding="utf-8")
    assert told(tmp_path / "runs", tmp_path / "out") == ["a"]
    (tmp_path / "far" / "b" / "gpu.csv").write_text(log(n=200), encoding="utf-8")
    assert told(tmp_path / "runs", tmp_path / "out") == ["linked"]
    (tmp_path / "runs" / "a" / "run.toml").write_text('trials = "postgresql://u:p@localhost:1/x"', encoding="utf-8")
    assert [told(tmp_path / "runs", tmp_path / "out") for _ in range(2)] == [["a"], ["a"]]


def test_what_sqlite_writes_beside_a_file_changes_it(tmp_path: Path) -> None:
    from gpudiag.fleets.found import runs_below

    (tmp_path / "a.db").write_bytes(b"x")
    before = runs_below([tmp_path / "a.db"]).runs[0].fingerprint
    (tmp_path / "a.db-wal").write_bytes(b"y")
    assert runs_below([tmp_path / "a.db"]).runs[0].fingerprint != before


@pytest.mark.slow
def test_a_limit_that_ended_a_run_is_not_for_ever(tmp_path: Path) -> None:
    run(tmp_path / "runs" / "a")
    assert fleet(tmp_path / "runs", tmp_path / "out", time_limit_s=0.01).total.n_runs == 0
    assert fleet(tmp_path / "runs", tmp_path / "out").total.n_runs == 1


@pytest.mark.slow
def test_the_same_telemetry_counts_once(tmp_path: Path) -> None:
    run(tmp_path / "runs" / "a")
    run(tmp_path / "runs" / "b")
    (tmp_path / "runs" / "b" / "train.log").write_text(
        "2026-03-01 10:00:00 Epoch 1/2 train loss 0.5 time: 30.0 s\n" * 3, encoding="utf-8"
    )
    table = fleet(tmp_path / "runs", tmp_path / "out", timezone="UTC")
    assert table.total.gpu_s == pytest.approx(300, abs=3)
    reasons = [row.reason for row in table.rows if row.reason]
    assert len(reasons) == 1 and "runs" not in reasons[0] and reasons[0].split(" of ")[1].startswith("a")
    again = read_fleet(tmp_path / "out")
    assert [(row.run, row.status, row.gpu_s) for row in again.rows] == [
        (row.run, row.status, row.gpu_s) for row in table.rows
    ]


@pytest.mark.slow
def test_a_name_that_is_no_text_is_a_name(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path / "runs") + b"/\xffbad"
    Path(os.fsdecode(folder)).mkdir(parents=True)
    shutil.copy(run(tmp_path / "one") / "gpu.csv", os.fsdecode(folder))
    table = fleet(tmp_path / "runs", tmp_path / "out")
    assert [row.run for row in table.rows] == ["\\udcffbad"] and table.rows[0].status == "diagnosed"
    table.save(tmp_path / "x.html")


def bare(name: str, start: str, host: str = "") -> RunRow:
    held = dict.fromkeys((f"{cell}_gpu_s" for cell in CELLS), 0.0) | {"busy_gpu_s": 60.0}
    return RunRow(
        name, name, "diagnosed", host=host, start=f"{start}T00:00:00+00:00", end=f"{start}T01:00:00+00:00",
        gpu_s=60.0, util_pct=50.0, inputs=name, **held,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.slow
def test_a_year_of_many_hosts_is_written(tmp_path: Path) -> None:
    rows = [bare(f"{host}-{month}", f"2025-{month:02d}-01", f"h{host}") for host in range(90) for month in range(1, 13)]
    folder = FleetFolder(tmp_path / "out")
    with folder.alone():
        folder.finish(FleetTable.of(rows))
    assert pd.read_parquet(tmp_path / "out" / "table", columns=["run"])["run"].nunique() == 1080


def test_one_wrong_clock_leaves_the_report_quick(tmp_path: Path) -> None:
    table = FleetTable.of([bare("a", "2025-01-01"), bare("b", "2500-01-01")])
    assert table._draw("hosts") is None
    weeks = table._draw("weeks")
    assert weeks is not None and len(weeks.figure.axes[0].patches) < 50


@pytest.mark.slow
def test_nothing_diagnosed_is_no_health(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs" / "secret").mkdir(parents=True)
    (tmp_path / "runs" / "secret" / "run.toml").write_text("name = ", encoding="utf-8")
    assert called(monkeypatch, "fleet", tmp_path / "runs", "-o", tmp_path / "out", "--anonymize") == 2
    said = capsys.readouterr()
    assert "The run could not be diagnosed." in said.out and "No check found" not in said.out
    assert "secret" not in said.out.replace(str(tmp_path), "") + said.err
    assert called(monkeypatch, "fleet", tmp_path / "runs", "-o", tmp_path / "new", "--timezone", "Nowhere/City") == 2
    assert not (tmp_path / "new").exists()


def test_an_alert_does_not_take_the_place_of_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "runs" / "a")
    arguments = ("fleet", tmp_path / "runs", "-o", tmp_path / "out", "--alert", tmp_path / "out" / "fleet.json")
    assert called(monkeypatch, *arguments) == 2 and "lies in the output" in capsys.readouterr().err
