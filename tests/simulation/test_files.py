"""The files of a simulated run: as the real programs write them, and the same bytes each time."""

from __future__ import annotations

import csv
import json
import sqlite3
import subprocess
import sys
import tomllib
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.manifest import read_manifest
from gpudiag.simulation import Gpu, Simulated

TAIPEI = timezone(timedelta(hours=8))
OPTIONS: dict[str, Any] = {
    "seed": 7, "n_trials": 25, "waiting": 2, "fail_rate": 0.1, "abandoned_rate": 0.1, "pruner": "median()",
    "gpus": (Gpu(), Gpu(name="NVIDIA GeForce RTX 3090", mem_total_mib=24576)),
}  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Simulated, Path]:
    done = gd.simulate(**OPTIONS)
    return done, done.write(tmp_path_factory.mktemp("written") / "run")


def rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


def test_the_log_is_what_nvidia_smi_prints(written: tuple[Simulated, Path]) -> None:
    done, folder = written
    with (folder / "gpu.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file, skipinitialspace=True))
    assert len(table) == len(done.run.gpu)
    gpu = done.run.gpu.sort_values(["time", "gpu"]).reset_index(drop=True)
    for got, want in zip(table[::17], gpu.iloc[::17].itertuples(), strict=True):
        local = datetime.strptime(got["timestamp"], "%Y/%m/%d %H:%M:%S.%f").replace(tzinfo=TAIPEI)
        assert local == want.time
        assert got["index"] == want.gpu
        assert got["name"] == ("NVIDIA GeForce RTX 4090" if want.gpu == "0" else "NVIDIA GeForce RTX 3090")
        assert got["utilization.gpu [%]"] == f"{want.util_pct:.0f} %"
        assert got["memory.used [MiB]"] == f"{want.mem_used_mib:.0f} MiB"
        assert got["power.draw [W]"] == f"{want.power_w:.2f} W"
        assert int(got["clocks_event_reasons.active"], 16) == want.throttle_reasons


def test_the_study_holds_the_trials_in_local_time(written: tuple[Simulated, Path]) -> None:
    done, folder = written
    stored = rows(
        folder / "optuna.db", "SELECT number, state, datetime_start, datetime_complete FROM trials ORDER BY number"
    )
    trials = done.run.trials
    assert [row[0] for row in stored] == trials["trial"].to_list()
    assert [row[1] for row in stored] == trials["state"].to_list()
    for column, index in (("start", 2), ("end", 3)):
        for row, want in zip(stored, trials[column], strict=True):
            if row[index] is None:
                assert pd.isna(want)
            else:
                assert datetime.fromisoformat(row[index]).replace(tzinfo=TAIPEI) == want
    assert rows(folder / "optuna.db", "SELECT library_version FROM version_info") == [("4.5.0",)]


def test_optuna_loads_the_study(written: tuple[Simulated, Path]) -> None:
    done, folder = written
    storage = optuna.storages.RDBStorage(f"sqlite:///{folder / 'optuna.db'}")
    trials = optuna.load_study(study_name="simulated", storage=storage).get_trials()
    storage.remove_session()
    storage.engine.dispose()
    assert [trial.state.name for trial in trials] == done.run.trials["state"].to_list()
    by_number = {life.number: life for life in done.history.lives}
    for trial in trials:
        life = by_number[trial.number]
        assert trial.params == life.params
        assert trial.intermediate_values == {step: value for step, value, _ in life.reports}
        assert trial.system_attrs == life.system_attrs
        if trial.state.name in ("COMPLETE", "PRUNED"):
            assert trial.value == life.value
    failed = next(trial for trial in trials if trial.state.name == "FAIL")
    assert failed.user_attrs["error"] == by_number[failed.number].detail


@pytest.mark.slow
def test_optuna_5_stores_utc(tmp_path: Path) -> None:
    old, new = (gd.simulate(seed=1, n_trials=4, clock=clock) for clock in ("optuna4", "optuna5"))
    query = "SELECT datetime_start FROM trials WHERE number = 2"
    local = datetime.fromisoformat(rows(old.write(tmp_path / "old") / "optuna.db", query)[0][0])
    utc = datetime.fromisoformat(rows(new.write(tmp_path / "new") / "optuna.db", query)[0][0])
    assert local - utc == timedelta(hours=8)
    assert rows(tmp_path / "new" / "optuna.db", "SELECT library_version FROM version_info") == [("5.0.0",)]


def test_tasks_name_who_ran_them_and_how_they_ended(tmp_path: Path) -> None:
    done = gd.simulate(seed=7, n_trials=10, record="tasks", fail_rate=0.3, declares=("gpu",))
    folder = done.write(tmp_path / "run")
    tasks = [json.loads(line) for line in (folder / "tasks.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(tasks) == 10
    for task, want in zip(tasks, done.run.trials.itertuples(), strict=True):
        assert task["state"] == want.state
        assert abs(datetime.fromisoformat(task["start"]) - want.start) < timedelta(milliseconds=1)
        assert datetime.fromisoformat(task["end"]).utcoffset() == timedelta(hours=8)
        assert task["gpu"] == "0"
        assert "worker" not in task
        assert ("detail" in task) == (want.state == "FAIL")
    assert not (folder / "optuna.db").exists()
    assert read_manifest(folder / "run.toml").artifacts == ("tasks.jsonl",)


def test_the_manifest_is_legal_and_complete(written: tuple[Simulated, Path]) -> None:
    _, folder = written
    manifest = read_manifest(folder / "run.toml")
    assert manifest.timezone == "Asia/Taipei"
    assert (manifest.trials, manifest.study, manifest.telemetry) == ("optuna.db", "simulated", ("gpu.csv",))
    assert manifest.settings.parallel == 4
    assert manifest.settings.pruner == "median()"


@pytest.mark.slow
def test_odd_texts_survive_in_the_manifest(tmp_path: Path) -> None:
    notes = ('quotes " and \\ backslash', "Grüße, 台北\nsecond line")
    folder = gd.simulate(n_trials=2, notes=notes, stated={"COMPLETE": 3}).write(tmp_path / "run")
    content = tomllib.loads((folder / "run.toml").read_text(encoding="utf-8"))
    assert tuple(content["notes"]) == notes
    assert content["stated"] == {"COMPLETE": 3}


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_in_another_process(written: tuple[Simulated, Path], tmp_path: Path) -> None:
    _, folder = written
    again = tmp_path / "again"
    code = (
        "import gpudiag as gd; from gpudiag.simulation import Gpu; "
        "gd.simulate(seed=7, n_trials=25, waiting=2, fail_rate=0.1, abandoned_rate=0.1, pruner='median()', "
        "gpus=(Gpu(), Gpu(name='NVIDIA GeForce RTX 3090', mem_total_mib=24576))).write(" + repr(str(again)) + ")"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"TZ": "America/New_York", "PYTHONHASHSEED": "5"})
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["gpu.csv", "optuna.db", "run.toml", "truth.json"]
    for name in names:
        assert (folder / name).read_bytes() == (again / name).read_bytes(), name


def test_another_seed_gives_another_run() -> None:
    assert not gd.simulate(seed=1, n_trials=3).run.gpu.equals(gd.simulate(seed=2, n_trials=3).run.gpu)


def test_nothing_in_the_study_comes_from_the_wall_clock(written: tuple[Simulated, Path]) -> None:
    _, folder = written
    timestamps = rows(
        folder / "optuna.db", "SELECT datetime_start FROM trials UNION SELECT datetime_complete FROM trials"
    )
    assert {timestamp[:10] for (timestamp,) in timestamps if timestamp} == {"2025-10-24"}
    header = (folder / "optuna.db").read_bytes()[:100]
    assert header[24:28] == header[92:96] == b"\0\0\0\1"


def test_a_simulated_run_is_the_run_that_its_files_give(written: tuple[Simulated, Path]) -> None:
    done, folder = written
    loaded = gd.load_run(folder)
    for name in ("gpu", "trials", "reports"):
        ours, theirs = getattr(done.run, name), getattr(loaded, name)
        shared = [column for column in ours if column in theirs]
        assert set(ours.columns) - set(shared) <= {"worker", "gpu", "detail"}
        ours, theirs = (table[shared].where(table[shared].notna(), None) for table in (ours, theirs))
        pd.testing.assert_frame_equal(ours, theirs, check_dtype=False)
    assert loaded.info.settings == done.run.info.settings


def test_the_package_is_cheap_to_import() -> None:
    code = "import sys, gpudiag.simulation; print(sorted({'pandas', 'numpy', 'optuna'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
