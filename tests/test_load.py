"""From folders and files to one run: discovery by content, run.toml, several inputs, one clock."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.errors import ConfigError, InputError, InputNotFound

HEADER = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"


def log(path: Path, minutes: range, gpu: int = 0) -> Path:
    rows = [
        f"2026/03/01 10:{m:02d}:00.000, {gpu}, NVIDIA GeForce RTX 4090, 95 %, 9000 MiB, 24564 MiB\n" for m in minutes
    ]
    path.write_text(HEADER + "".join(rows))
    return path


def tasks(path: Path) -> Path:
    rows = [
        {"task": "a", "status": "ok", "start": "2026-03-01T10:00:00+00:00", "end": "2026-03-01T10:05:00+00:00"},
        {"task": "b", "status": "failed", "start": "2026-03-01T10:05:00+00:00", "end": "2026-03-01T10:09:00+00:00"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_folder_is_searched_by_content_not_by_name(tmp_path: Path) -> None:
    log(tmp_path / "something.dat", range(10))
    (tmp_path / "deep").mkdir()
    tasks(tmp_path / "deep" / "history.txt")
    (tmp_path / "notes.csv").write_text("just some words, really\n")
    (tmp_path / ".hidden").mkdir()
    log(tmp_path / ".hidden" / "gpu.csv", range(10, 20))
    run = gd.load_run(tmp_path, timezone="UTC")
    assert len(run.gpu) == 10 and list(run.trials["state"]) == ["COMPLETE", "FAIL"]
    assert {record.path for record in run.info.inputs} == {"something.dat", "deep/history.txt"}
    assert run.info.name == tmp_path.name
    assert all(len(record.sha256) == 64 for record in run.info.inputs)


@pytest.mark.parametrize("name", ["run.toml", "night.toml"])
def test_the_file_that_says_what_the_run_is_is_no_file_that_nobody_knows(name: str, tmp_path: Path) -> None:
    log(tmp_path / "gpu.csv", range(10))
    (tmp_path / name).write_text("[settings]\nparallel = 3\n")
    run = gd.load_run(tmp_path / name)
    assert run.info.settings.parallel == 3 and run.info.not_recognized == () and run.info.notes == ()


def test_run_toml_rules_over_discovery(tmp_path: Path) -> None:
    log(tmp_path / "gpu.csv", range(10))
    log(tmp_path / "other.csv", range(10), gpu=1)
    (tmp_path / "run.toml").write_text(
        'name = "night"\ntimezone = "Asia/Taipei"\ntelemetry = "gpu.csv"\n[settings]\nparallel = 3\n'
        "[gpus.0]\npower_limit_w = 300.0\n[rules.gpu-unused]\nmax_util_pct = 2\n"
    )
    for where in (tmp_path, tmp_path / "run.toml"):
        run = gd.load_run(where)
        assert (run.info.name, run.info.timezone, run.info.settings.parallel) == ("night", "Asia/Taipei", 3)
        assert set(run.gpu["gpu"]) == {"0"}
        assert run.gpu["time"].min() == pd.Timestamp("2026-03-01 02:00", tz="UTC")
        assert run.gpus["power_limit_w"].tolist() == [300.0]
        assert run.info.thresholds == {"gpu-unused": {"max_util_pct": 2}}
    assert gd.load_run(tmp_path, timezone="UTC").gpu["time"].min() == pd.Timestamp("2026-03-01 10:00", tz="UTC")
    assert not gd.load_run(tmp_path).info.timezone_assumed
    assert gd.load_run(tmp_path / "gpu.csv").info.timezone_assumed


@pytest.mark.slow
def test_what_run_toml_says_nothing_of_is_found_beside_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    log(run / "gpu.csv", range(10))
    tasks(tmp_path / "all.jsonl")
    (run / "other").mkdir()
    (run / "other" / "run.toml").write_text('name = "another run"\n')
    log(run / "other" / "gpu.csv", range(10), gpu=1)
    for named, paths, n_samples, n_trials in (
        ('artifacts = "../all.jsonl"', ["../all.jsonl", "gpu.csv"], 10, 2),
        ('artifacts = "../all.jsonl"\ntelemetry = []', ["../all.jsonl"], 0, 2),
        ('artifacts = ["../all.jsonl", "gpu.csv"]', ["../all.jsonl", "gpu.csv"], 10, 2),
    ):
        (run / "run.toml").write_text(f'timezone = "UTC"\n{named}\n')
        loaded = gd.load_run(run)
        assert [record.path for record in loaded.info.inputs] == paths
        assert (len(loaded.gpu), len(loaded.trials)) == (n_samples, n_trials)
    tasks(run / "tasks.jsonl")
    for named, paths in (
        ('telemetry = "gpu.csv"', ["gpu.csv", "tasks.jsonl"]),
        ('telemetry = "gpu.csv"\nartifacts = []', ["gpu.csv"]),
        ('telemetry = "gpu.csv"\nartifacts = "../all.jsonl"', ["gpu.csv", "../all.jsonl"]),
    ):
        (run / "run.toml").write_text(f'timezone = "UTC"\n{named}\n')
        assert [record.path for record in gd.load_run(run).info.inputs] == paths


def test_a_run_split_over_two_logs_is_the_same_run(tmp_path: Path) -> None:
    whole = gd.Run.from_files(log(tmp_path / "w.csv", range(30)), timezone="UTC")
    parts = [log(tmp_path / "a.csv", range(18)), log(tmp_path / "b.csv", range(12, 30))]
    both = gd.Run.from_files(parts, timezone="UTC")
    pd.testing.assert_frame_equal(whole.gpu, both.gpu)


def test_the_same_trials_twice_are_counted_once(samples: Path, tmp_path: Path) -> None:
    import optuna

    shutil.copy(samples / "healthy" / "optuna.db", tmp_path / "optuna.db")
    url = f"sqlite:///{tmp_path / 'optuna.db'}"
    (name,) = optuna.get_all_study_names(url)
    frame = optuna.load_study(study_name=name, storage=url).trials_dataframe()
    # Optuna 5 shows timestamps in the reader's zone; an export made by the writer has the stored ones.
    stored = gd.read_trials(tmp_path / "optuna.db", timezone="UTC").trials
    frame["datetime_start"] = stored["start"].dt.tz_localize(None)
    frame["datetime_complete"] = stored["end"].dt.tz_localize(None)
    frame.to_csv(tmp_path / "trials.csv")
    run = gd.load_run(tmp_path, timezone="UTC")
    assert len(run.trials) == len(frame)
    assert any("same" in note and "set aside" in note for note in run.info.notes)


def test_wrong_role_missing_path_and_nothing(tmp_path: Path) -> None:
    path = log(tmp_path / "gpu.csv", range(3))
    with pytest.raises(InputError, match=r"gpu\.csv: was given as trials, but it holds telemetry"):
        gd.Run.from_files(trials=path)
    with pytest.raises(InputNotFound, match="no such file or folder"):
        gd.load_run(tmp_path / "nowhere")
    with pytest.raises(InputError, match="at least one input"):
        gd.Run.from_files()
    with pytest.raises(ConfigError, match="'Mars/Olympus' is not in the zone database"):
        gd.load_run(tmp_path, timezone="Mars/Olympus")


def test_a_file_that_fails_beside_good_ones_is_named(tmp_path: Path, samples: Path) -> None:
    log(tmp_path / "gpu.csv", range(3))
    (tmp_path / "torn.db").write_bytes((samples / "healthy" / "optuna.db").read_bytes()[:5000])
    run = gd.load_run(tmp_path, timezone="UTC")
    assert len(run.gpu) == 3
    told = [*(record.path for record in run.info.inputs if record.error or record.problems), *run.info.notes]
    assert any("torn.db" in text for text in told)


def test_a_folder_of_runs_is_not_a_run(samples: Path) -> None:
    with pytest.raises(InputError, match=r"holds 2 runs, each .* \(baseline, experiment\); name one"):
        gd.load_run(samples / "idle-second-gpu")


def test_links_to_nowhere_and_pipes_are_passed_over(tmp_path: Path) -> None:
    import os

    log(tmp_path / "gpu.csv", range(3))
    (tmp_path / "latest-run").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "pipe")
    assert len(gd.load_run(tmp_path, timezone="UTC").gpu) == 3
    with pytest.raises(InputError, match="is a pipe or a device"):
        gd.read_telemetry(tmp_path / "pipe")
