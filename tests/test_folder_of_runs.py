"""A folder without a run.toml is one run or several, as its folders tell; every command says the same."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from commandline import called

import gpudiag as gd
from gpudiag._load.folder_of_runs import SeveralRuns
from gpudiag.fleets.found import runs_below
from gpudiag.report.batch import plan_jobs

DAY = datetime(2026, 3, 2, 10)
HOUR = 1 / 24


def log(path: Path, day: float, *, gpu: int = 0, minutes: int = 20, util: int = 80) -> None:
    """Samples of one GPU, every 10 s from so many days on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    times = [DAY + timedelta(days=day, seconds=10 * i) for i in range(6 * minutes)]
    rows = [f"{time:%Y/%m/%d %H:%M:%S}.000, {gpu}, {util + i % 3} %, 900 MiB" for i, time in enumerate(times)]
    path.write_text("\n".join(["timestamp, index, utilization.gpu [%], memory.used [MiB]", *rows]), encoding="utf-8")


def table(path: Path, day: float, *, first: int = 0, n: int = 4) -> None:
    """Trials of 4 minutes, one after the other, from so many days on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for i in range(n):
        start = DAY + timedelta(days=day, minutes=5 * i)
        rows.append(f"{first + i},0.{i + 1},{start},{start + timedelta(minutes=4)},0.1,COMPLETE")
    head = "number,value,datetime_start,datetime_complete,params_lr,state"
    path.write_text("\n".join([head, *rows]), encoding="utf-8")


def told(folder: Path) -> list[str]:
    """The runs that a report would be made of, after load_run has said the same."""
    runs = [job.run.relative_to(folder).as_posix() for job in plan_jobs([folder])]
    if runs == ["."]:
        gd.load_run(folder)
    else:
        with pytest.raises(SeveralRuns, match=rf"holds {len(runs)} runs.*gpudiag report "):
            gd.load_run(folder)
    return runs


def assumed(folder: Path) -> bool:
    return any("assumed to be of one run" in note for note in gd.load_run(folder).info.notes)


def test_recordings_of_several_days_are_runs_as_a_fleet_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for day in range(6):
        log(tmp_path / f"r{day}" / "gpu.csv", day, util=80 if day < 5 else 40)
    runs = [f"r{day}" for day in range(6)]
    assert told(tmp_path) == runs == [run.name for run in runs_below([tmp_path]).runs]
    assert called(monkeypatch, "diagnose", tmp_path) == 2
    assert f"gpudiag report {tmp_path}" in capsys.readouterr().err


@pytest.mark.slow
def test_each_run_may_have_folders_of_its_own(tmp_path: Path) -> None:
    for day, name in enumerate(("p/a", "p/b", "q")):
        log(tmp_path / name / "telemetry" / "gpu.csv", day)
        table(tmp_path / name / "logs" / "trials.csv", day)
    assert told(tmp_path) == ["p/a", "p/b", "q"] and told(tmp_path / "p" / "a") == ["."]
    assert not assumed(tmp_path / "q")


def test_searches_with_samples_of_their_own_are_runs_however_near(tmp_path: Path) -> None:
    for place, name in enumerate(("first", "second")):
        log(tmp_path / name / "gpu.csv", place * HOUR)
        table(tmp_path / name / "trials.csv", place * HOUR)
    assert told(tmp_path) == ["first", "second"]
    (tmp_path / "run.toml").touch()
    assert told(tmp_path) == ["."], "an empty run.toml says that they are one"


@pytest.mark.slow
def test_a_search_that_goes_on_in_another_folder_is_one_run(tmp_path: Path) -> None:
    for place in range(2):
        log(tmp_path / f"part{place}" / "gpu.csv", place * HOUR)
        table(tmp_path / f"part{place}" / "trials.csv", place * HOUR, first=4 * place)
    assert told(tmp_path) == ["."] and assumed(tmp_path)
    assert gd.load_run(tmp_path).trials["trial"].tolist() == list(range(8))


@pytest.mark.parametrize(("days", "gpus"), [((0, 0), (0, 1)), ((0, HOUR / 3), (0, 0))], ids=["nodes", "rotated"])
@pytest.mark.slow
def test_nodes_and_rotated_logs_are_one_run_and_a_note_says_so(
    tmp_path: Path,
    days: tuple[float, float],
    gpus: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for place, (day, gpu) in enumerate(zip(days, gpus, strict=True)):
        log(tmp_path / f"node{place}" / "gpu.csv", day, gpu=gpu)
    assert told(tmp_path) == ["."] and assumed(tmp_path)
    capsys.readouterr()
    assert called(monkeypatch, "diagnose", tmp_path) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Assumed: The GPU logs in 2 folders (node0, node1) are assumed to be of one run." in said


def test_a_study_over_all_of_the_time_holds_its_sessions_together(tmp_path: Path) -> None:
    for day in range(2):
        log(tmp_path / f"day{day}" / "gpu.csv", day)
    table(tmp_path / "study" / "trials.csv", 0, n=290)
    assert told(tmp_path) == ["."]


def test_copies_are_no_other_runs(tmp_path: Path) -> None:
    for name in ("a", "backup"):
        log(tmp_path / name / "gpu.csv", 0)
        table(tmp_path / name / "trials.csv", 0)
    assert told(tmp_path) == ["."] and not assumed(tmp_path)


@pytest.mark.parametrize(("second", "runs"), [(1, ["a", "b"]), (HOUR / 10, ["."])])
def test_searches_without_samples_are_runs_where_one_follows_the_other(
    tmp_path: Path, second: float, runs: list[str]
) -> None:
    table(tmp_path / "a" / "trials.csv", 0)
    table(tmp_path / "b" / "trials.csv", second)
    assert told(tmp_path) == runs


def test_data_beside_the_folders_make_one_run(tmp_path: Path) -> None:
    for day in range(2):
        log(tmp_path / f"day{day}" / "gpu.csv", day)
    table(tmp_path / "trials.csv", 0)
    assert told(tmp_path) == ["."]


def training(folder: Path, day: float, *, gpu: int = 0, step_s: float = 5, first: int = 0, minutes: int = 20) -> None:
    """Samples of one GPU and a log of a training's steps, a line every 10 steps."""
    log(folder / "gpu.csv", day, gpu=gpu, minutes=minutes, util=60 + gpu)
    lines = []
    for step in range(10, int(60 * minutes / step_s), 10):
        time = DAY + timedelta(days=day, seconds=step * step_s)
        lines.append(f"{time:%Y-%m-%d %H:%M:%S},000 INFO step {first + step} loss 2.5 step_time {step_s} s")
    (folder / "train.log").write_text("\n".join([folder.name, *lines, ""]), encoding="utf-8")


@pytest.mark.parametrize(
    ("names", "paces", "runs"),
    [
        (("node1", "node2"), (5, 5), 1),
        (("rank_0", "rank_1"), (5, 5), 1),
        (("dgx01", "dgx02"), (5, 5), 1),
        (("alice", "bob"), (5, 5), 1),
        (("adam", "sgd"), (5, 4), 2),
        (("dgx01", "dgx02"), (5, 4), 2),
        (("node1", "node2"), (5, 4), 2),
        (("seed_0", "seed_1"), (5, 5), 2),
    ],
)
def test_trainings_at_once_are_runs_unless_they_do_the_same_steps(
    tmp_path: Path, names: tuple[str, str], paces: tuple[float, float], runs: int
) -> None:
    for gpu, (name, pace) in enumerate(zip(names, paces, strict=True)):
        training(tmp_path / name, 0, gpu=gpu, step_s=pace)
    assert told(tmp_path) == (["."] if runs == 1 else sorted(names))


@pytest.mark.parametrize(
    ("names", "first", "runs"),
    [
        (("adam", "sgd"), 0, 2),
        (("lr1", "lr2"), 0, 2),
        (("adam", "sgd"), 230, 1),
        (("attempt_0", "attempt_1"), 0, 1),
    ],
    ids=["begins anew", "numbered", "goes on", "restarted"],
)
def test_a_training_that_begins_anew_in_another_folder_is_a_run_of_its_own(
    tmp_path: Path, names: tuple[str, str], first: int, runs: int
) -> None:
    training(tmp_path / names[0], 0)
    training(tmp_path / names[1], HOUR / 2, first=first)
    assert told(tmp_path) == (["."] if runs == 1 else sorted(names))


@pytest.mark.parametrize(("names", "runs"), [(("search", "training-b"), 2), (("gpu0", "gpu1"), 1)])
def test_a_search_and_a_training_with_samples_of_their_own(tmp_path: Path, names: tuple[str, str], runs: int) -> None:
    log(tmp_path / names[0] / "gpu.csv", 0)
    table(tmp_path / names[0] / "trials.csv", 0)
    training(tmp_path / names[1], 0, gpu=1)
    assert told(tmp_path) == (["."] if runs == 1 else sorted(names))


def test_logs_without_samples_of_their_own_are_of_the_run(tmp_path: Path) -> None:
    training(tmp_path / "train", 0)
    training(tmp_path / "eval", 0, step_s=1)
    (tmp_path / "eval" / "gpu.csv").unlink()
    assert told(tmp_path) == ["."]
