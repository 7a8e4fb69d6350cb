"""A fleet from folders to a table: what is broken costs itself alone, what is unchanged costs nothing."""

from __future__ import annotations

import json
import math
import shlex
import shutil
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest
from sampleruns import diagnosed as sample_diagnosis

import gpudiag as gd
from gpudiag.errors import ConfigError, InputError
from gpudiag.fleets.fleet import fleet, read_fleet
from gpudiag.fleets.row import from_plain, to_plain
from gpudiag.fleets.worker import diagnosed
from gpudiag.report.fleet.document import CELLS, RunRow
from gpudiag.report.fleet.headline import report_command

pytestmark = pytest.mark.usefixtures("warm")

NAMES = ("tiny-batch-laptop", "idle-second-gpu/baseline", "starved-input-pipeline/before")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three samples, a copy of one, a study file with two studies, and three folders that are no good."""
    samples = Path(__file__).resolve().parents[2] / "data" / "samples"
    top = tmp_path_factory.mktemp("fleet") / "runs"
    for name in (*NAMES, "tiny-batch-laptop"):
        folder = top / "p" / name.replace("/", "-")
        shutil.copytree(samples / name, folder if not folder.exists() else top / "q" / "copy")
    (top / "q" / "broken").mkdir(parents=True)
    (top / "q" / "broken" / "run.toml").write_text("name = ", encoding="utf-8")
    (top / "q" / "hollow").mkdir()
    (top / "q" / "hollow" / "run.toml").write_text('telemetry = "none.csv"\n', encoding="utf-8")
    studies = top / "q" / "studies"
    studies.mkdir()
    for file, name in (("optuna", "a"), ("optuna", "b"), ("other", "a")):
        study = optuna.create_study(storage=f"sqlite:///{studies}/{file}.db", study_name=name)
        study.add_trials([optuna.trial.create_trial(value=float(k)) for k in range(4 if file == "other" else 3)])
    return top


@pytest.fixture(scope="module")
def made(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "fleet"
    fleet(tree, out, jobs=2)
    return out


def by_name(out: Path) -> dict[str, RunRow]:
    return {row.run: row for row in read_fleet(out).rows}


@pytest.mark.slow
def test_a_run_without_trials_costs_its_gpu_time_at_the_stated_price(tmp_path: Path) -> None:
    """60 samples, one every 20 s, of one GPU: 1,200 s at 2 USD an hour."""
    folder = tmp_path / "runs" / "a"
    folder.mkdir(parents=True)
    times = [f"2026-03-02 10:{at * 20 // 60:02d}:{at * 20 % 60:02d}" for at in range(60)]
    lines = "".join(f"{time}, 0, 80 %\n" for time in times)
    (folder / "gpu.csv").write_text(f"timestamp, index, utilization.gpu [%]\n{lines}", encoding="utf-8")
    (folder / "run.toml").write_text("[settings]\nprice_per_gpu_h = 2.0\n", encoding="utf-8")
    table = fleet(tmp_path / "runs", tmp_path / "out", jobs=1, timezone="UTC")
    assert table.total.cost == {"USD": pytest.approx(2.0 * 1200 / 3600)} and table.total.n_priced == 1


@pytest.mark.slow
def test_totals_are_the_sum_of_single_diagnoses_to_the_last_second(made: Path) -> None:
    ledgers = [sample_diagnosis(name).document.ledger for name in NAMES]
    total = read_fleet(made).total
    for cell in CELLS:
        wanted = math.fsum(ledger.seconds().get(cell, 0.0) for ledger in ledgers if ledger)
        assert total.cells[cell] == pytest.approx(wanted, abs=1e-6), cell
    assert total.gpu_s == pytest.approx(math.fsum(ledger.total_gpu_s for ledger in ledgers if ledger), abs=1e-6)
    assert total.gpu_s == math.fsum(total.cells.values())


@pytest.mark.slow
def test_a_copy_is_found_and_not_counted(made: Path) -> None:
    states = {name: (row.status, row.reason) for name, row in by_name(made).items()}
    assert states["q/copy"] == ("counted already", "its inputs are those of p/tiny-batch-laptop")


@pytest.mark.slow
def test_broken_runs_are_rows_with_their_reason(made: Path) -> None:
    rows = by_name(made)
    assert rows["q/broken"].status == rows["q/hollow"].status == "not diagnosed"
    assert "not valid TOML" in rows["q/broken"].reason and "none.csv" in rows["q/hollow"].reason


@pytest.mark.slow
def test_each_study_of_a_storage_is_a_run(made: Path) -> None:
    rows = by_name(made)
    assert {name.partition("::")[2]: row.n_trials for name, row in rows.items() if "::" in name} == {
        "a": 3,
        "b": 3,
        "a (2)": 4,
    }
    assert "q/studies" not in rows
    assert {row.status for name, row in rows.items() if "::" in name} == {"diagnosed"}


def log(start: str, n: int, util: int) -> str:
    """A log of nvidia-smi: a sample a second."""
    times = pd.date_range(start, periods=n, freq="s")
    rows = [f"{one:%Y/%m/%d %H:%M:%S}.000, 0, {util} %, 1000 MiB, 24000 MiB" for one in times]
    head = "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]"
    return "\n".join([head, *rows]) + "\n"


@pytest.mark.slow
def test_the_zone_of_a_run_is_its_own_and_that_of_the_fleet_for_the_others(tmp_path: Path) -> None:
    """Noon in Taipei is 04:00 UTC; of the run that names no zone, noon is that of the fleet's."""
    for name, stated in (("a", 'timezone = "Asia/Taipei"'), ("b", 'user = "ann"')):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "gpu.csv").write_text(log("2026-03-02 12:00", 90, 80), encoding="utf-8")
        (tmp_path / "runs" / name / "run.toml").write_text(f"{stated}\n", encoding="utf-8")
    rows = {one.run: one for one in fleet(tmp_path / "runs", tmp_path / "out", jobs=1, timezone="Europe/Berlin").rows}
    assert {name: (one.start or "")[11:16] for name, one in rows.items()} == {"a": "04:00", "b": "11:00"}


@pytest.mark.slow
def test_sessions_are_runs_of_their_own(tmp_path: Path) -> None:
    """Two days in one log, and another log months later: never one run of thousands of GPU-hours."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.csv").write_text(
        log("2026-03-01 10:00", 600, 90) + log("2026-03-02 10:00", 600, 20).partition("\n")[2], encoding="utf-8"
    )
    (tmp_path / "logs" / "b.csv").write_text(log("2026-08-01 10:00", 300, 50), encoding="utf-8")
    table = fleet(tmp_path / "logs", tmp_path / "out", timezone="UTC")
    assert [row.run for row in table.rows] == [
        "logs::2026-03-01 10:00",
        "logs::2026-03-02 10:00",
        "logs::2026-08-01",
    ]
    assert [row.util_pct for row in table.rows] == pytest.approx([90.0, 20.0, 50.0])
    assert table.total.gpu_s == pytest.approx(1500, abs=5) and len(table.counted) == 3
    again: list[str] = []
    fleet(tmp_path / "logs", tmp_path / "out", timezone="UTC", progress=lambda d, n, row: again.append(row.run))
    assert again == []


@pytest.mark.slow
def test_a_session_is_reported_alone(tmp_path: Path) -> None:
    text = log("2026-03-01 10:00", 600, 90) + log("2026-03-02 10:00", 600, 20).partition("\n")[2]
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "gpu.csv").write_text(text, encoding="utf-8")
    table = fleet(tmp_path / "log", tmp_path / "out", timezone="Asia/Tokyo")
    for row, util_pct in zip(table.rows, (90.0, 20.0), strict=True):
        command, report, source, zoned, zone, option, span = shlex.split(report_command(row))
        assert (command, report, zoned, option) == ("gpudiag", "report", "--timezone", "--between")
        alone = gd.load_run(source, between=span, timezone=zone)
        assert (len(alone.gpu), alone.gpu["util_pct"].mean()) == (600, util_pct)


def test_the_table_is_a_data_set_that_others_read(made: Path) -> None:
    frame = pd.read_parquet(made / "table")
    assert set(frame["run"]) == set(by_name(made)) and {"month", "host"} <= set(frame.columns)
    counted = frame[frame["status"] == "diagnosed"]
    assert counted["gpu_s"].sum() == pytest.approx(read_fleet(made).total.gpu_s)
    assert str(frame["start"].dtype).startswith("datetime64")
    documents = sorted(made.glob("runs/*/diagnosis.json"))
    assert len(documents) == (frame["status"] != "not diagnosed").sum()
    assert json.loads(documents[0].read_text(encoding="utf-8"))["schema"].startswith("gpudiag.diagnosis/")


@pytest.mark.slow
def test_what_has_not_changed_is_not_diagnosed_again(tree: Path, tmp_path: Path, made: Path) -> None:
    out = shutil.copytree(made, tmp_path / "fleet")
    here = shutil.copytree(tree, tmp_path / "runs", copy_function=shutil.copy2)
    again: list[str] = []
    fleet(tree, out, progress=lambda done, of, row: again.append(row.run))
    assert again == []
    fleet(here, out, progress=lambda done, of, row: again.append(row.run))
    assert len(again) == len(by_name(made)), "another folder is other runs"
    again.clear()
    (here / "p" / "tiny-batch-laptop" / "more.txt").write_text("x", encoding="utf-8")
    shutil.rmtree(here / "q" / "copy")
    table = fleet(here, out, progress=lambda done, of, row: again.append(row.run))
    assert again == ["p/tiny-batch-laptop"] and "q/copy" not in {row.run for row in table.rows}
    assert len(list(out.glob("runs/*"))) == sum(row.status != "not diagnosed" for row in table.rows)


@pytest.mark.slow
def test_an_interrupted_fleet_goes_on_where_it_was(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "fleet"

    def stop(done: int, of: int, row: RunRow) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fleet(tree / "p", out, jobs=1, progress=stop)
    with (out / "fleet.jsonl").open("a", encoding="utf-8") as journal:
        journal.write('{"name": "torn", "ke')
    assert len(read_fleet(out).rows) == 3
    again: list[str] = []
    fleet(tree / "p", out, progress=lambda done, of, row: again.append(row.run))
    assert again == []


class Losing(Executor):
    """Loses the worker of the first ``n`` runs that it is given."""

    def __init__(self, n: int) -> None:
        self.n = n

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self.n > 0:
            self.n -= 1
            future.set_exception(RuntimeError("worker lost"))
        else:
            future.set_result(fn(*args, **kwargs))
        return future


@pytest.mark.slow
@pytest.mark.parametrize(("lost", "status"), [(2, "diagnosed"), (3, "not diagnosed")])
def test_a_lost_worker_is_tried_again(tree: Path, tmp_path: Path, lost: int, status: str) -> None:
    table = fleet(tree / "p" / "tiny-batch-laptop", tmp_path / "fleet", executor=Losing(lost))
    assert [row.status for row in table.rows] == [status]
    assert diagnosed is not None


def test_a_row_survives_json(made: Path) -> None:
    for row in by_name(made).values():
        assert from_plain(json.loads(json.dumps(to_plain(row)))) == row


def test_a_folder_of_somebody_else_is_left_alone(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "fleet.jsonl").write_text('{"mine": 1}\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="was not written by gpudiag"):
        fleet(tree, tmp_path)
    with pytest.raises(InputError, match="holds no fleet"):
        read_fleet(tmp_path / "none")
    with pytest.raises(InputError, match="make one with"):
        read_fleet(tree)


@pytest.mark.slow
def test_folders_without_a_run_are_in_the_report_also_later(tree: Path, tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "x.bin").write_bytes(b"\x00\x01")
    shutil.copytree(tree / "p" / "tiny-batch-laptop", tmp_path / "runs" / "tiny")
    table = fleet(tmp_path / "runs", tmp_path / "out")
    assert table.unread == read_fleet(tmp_path / "out").unread == ("a", "b", "c", "d")
    text = read_fleet(tmp_path / "out").to_markdown()
    assert "4 places hold files that belong to no run: a, b, c ..." in text
    assert "fleet.html" in text and "report.html" not in text
    assert table.anonymous().unread[0] == "folder 1"


@pytest.mark.parametrize(
    "wrong", [{"jobs": -1}, {"jobs": 2, "executor": Losing(0)}, {"time_limit_s": 0}, {"memory_limit_mib": -1}]
)
def test_wrong_limits_are_said(tree: Path, tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        fleet(tree, tmp_path / "out", **wrong)


@pytest.mark.slow
def test_the_host_is_the_one_that_the_telemetry_names(tmp_path: Path) -> None:
    """A recording of ours and gpustat's JSON say where they were made; of two hosts in one run none is its host."""
    runs = tmp_path / "runs"
    for name, hour in (("ours", 10), ("both", 12)):
        (runs / name).mkdir(parents=True)
        rows = "".join(
            f"2026-03-02T{hour}:{k // 60:02d}:{k % 60:02d}.000000Z,{k},0,{50 + k % 7},,,,,gpu\n" for k in range(90)
        )
        (runs / name / "gpu.csv").write_text(
            '# gpudiag-record 1 {"host": "node7", "zone": "UTC"}\n# gpu {"gpu": "0", "uuid": "GPU-1"}\n'
            f"time,mono_s,gpu,util_pct,pid,name,kind,detail,record\n{rows}",
            encoding="utf-8",
        )
    for name, hour in (("theirs", 10), ("both", 11)):
        (runs / name).mkdir(exist_ok=True)
        said = [
            {"hostname": "node8", "query_time": f"2026-03-02T{hour}:{k // 60:02d}:{k % 60:02d}",
             "gpus": [{"index": 0, "uuid": f"GPU-{name}", "name": "A100", "utilization.gpu": 40 + k % 5}]}
            for k in range(90)
        ]  # fmt: skip
        (runs / name / "gpustat.json").write_text("\n".join(map(json.dumps, said)), encoding="utf-8")
    rows = fleet(runs, tmp_path / "out", jobs=1, timezone="UTC").rows
    assert {one.run: (one.status, one.host) for one in rows} == {
        "ours": ("diagnosed", "node7"), "theirs": ("diagnosed", "node8"), "both": ("diagnosed", ""),
    }  # fmt: skip
