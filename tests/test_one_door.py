"""One door: whatever a run lies in, load_run and every command take it, and it is the same run."""

from __future__ import annotations

import inspect
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.cli import main
from gpudiag.errors import ConfigError, InputError, InputNotFound
from gpudiag.schema import TABLES

SAMPLE = "healthy"


@pytest.fixture
def files(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder "search" with the two files of a run and without a run.toml, as the working folder."""
    folder = tmp_path / "search"
    folder.mkdir()
    for name in ("gpu.csv", "optuna.db"):
        shutil.copy(samples / SAMPLE / name, folder)
    monkeypatch.chdir(folder)
    return folder


def same(a: gd.Run, b: gd.Run, tables: tuple[str, ...] = tuple(TABLES)) -> None:
    for name in tables:
        one, other = (getattr(run, name).drop(columns=["source"], errors="ignore") for run in (a, b))
        pd.testing.assert_frame_equal(one, other, obj=name)


@pytest.mark.slow
def test_a_folder_its_files_and_keywords_are_one_run(files: Path) -> None:
    folder = gd.load_run(files, timezone="UTC")
    for run in (
        gd.load_run(["gpu.csv", "optuna.db"], timezone="UTC"),
        gd.load_run(["sqlite:///optuna.db", Path("gpu.csv")], timezone="UTC"),
        gd.load_run("gpu.csv,optuna.db", timezone="UTC"),
        gd.load_run(telemetry="gpu.csv", trials="optuna.db", timezone="UTC"),
        gd.Run.from_files(["gpu.csv"], "optuna.db", timezone="UTC"),
    ):
        same(run, folder)
        assert run.info.clock == folder.info.clock and len(run.gpu) and len(run.trials) == 24


@pytest.mark.slow
def test_what_each_is_called(files: Path) -> None:
    assert gd.load_run(files).info.name == "search"
    assert gd.load_run("gpu.csv").info.name == "gpu"
    assert gd.load_run("sqlite:///optuna.db").info.name == "optuna"
    assert gd.load_run(["gpu.csv", "optuna.db"]).info.name == "search"
    assert gd.load_run("gpu.csv", name="mine").info.name == gd.load_run(files, name="mine").info.name == "mine"


@pytest.mark.slow
def test_objects(files: Path) -> None:
    import optuna

    study = optuna.load_study(study_name=SAMPLE, storage=f"sqlite:///{files / 'optuna.db'}")
    whole = gd.load_run(["gpu.csv", "optuna.db"], timezone="UTC")
    assert gd.load_run(study).info.name == SAMPLE and len(gd.load_run(study).trials) == 24
    both = gd.load_run(["gpu.csv", study], timezone="UTC")
    assert both.info.name == "gpu" and len(both.trials) == 24 and len(both.gpu) == len(whole.gpu)
    frozen = gd.load_run(study.get_trials())
    assert len(frozen.trials) == 24

    samples = gd.load_run(whole.gpu.sample(frac=1, random_state=0))
    same(samples, whole, ("gpu",))
    assert samples.info.inputs[0].path == "<DataFrame>" and list(samples.gpus["gpu"]) == ["0"]
    naive = whole.gpu.assign(time=whole.gpu["time"].dt.tz_convert("Asia/Taipei").dt.tz_localize(None))
    same(gd.load_run(naive, timezone="Asia/Taipei"), whole, ("gpu",))
    trials = gd.load_run(whole.trials)
    pd.testing.assert_frame_equal(trials.trials, whole.trials)
    exported = gd.load_run(study.trials_dataframe(), timezone="UTC")
    assert (exported.trials["state"] == whole.trials["state"]).all() and set(exported.trials["study"]) == {"study"}


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame({"a": [1], "b": [2]}), r"DataFrame: expected samples .*; its columns are: a, b\."),
        (pd.DataFrame({"time": ["noon"], "gpu": [0]}), "column 'time' holds 'noon', no known form of time"),
        (pd.DataFrame({"trial": [0], "state": ["DONE"]}), "there is no state 'DONE'; expected COMPLETE"),
        (pd.DataFrame(), "its columns are: none"),
    ],
)
def test_a_frame_that_is_neither(frame: pd.DataFrame, said: str) -> None:
    with pytest.raises(InputError, match=said):
        gd.load_run(frame)


def test_what_could_mean_two_things_is_refused(files: Path, samples: Path) -> None:
    with pytest.raises(ConfigError, match="got 2 runs"):
        gd.load_run([files, samples / "healthy"])
    with pytest.raises(ConfigError, match=r"got the run .* and the single input gpu\.csv; give folders"):
        gd.load_run([files, "gpu.csv"])
    with pytest.raises(ConfigError, match="and single inputs as well"):
        gd.load_run("gpu.csv", trials="optuna.db")
    with pytest.raises(InputNotFound, match=r"gone\.csv: no such file"):
        gd.load_run("gone.csv")
    with pytest.raises(InputError, match="at least one input"):
        gd.load_run([])
    with pytest.raises(ConfigError, match="expected a path, a storage URL, a list of them"):
        gd.load_run({"gpu": 1})


def test_from_files_has_the_options_of_the_door() -> None:
    door = inspect.signature(gd.load_run).parameters
    thin = inspect.signature(gd.Run.from_files).parameters
    assert set(thin) == set(door) - {"source"}
    assert [name for name in thin if name not in ("telemetry", "trials")] == list(door)[3:]


def run_cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    monkeypatch.setattr("sys.argv", ["gpudiag", *arguments])
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    out = capsys.readouterr()
    return code, out.out + out.err


@pytest.mark.slow
@pytest.mark.parametrize("given", [["gpu.csv", "sqlite:///optuna.db"], ["."]], ids=" ".join)
def test_commands_take_files_and_urls_as_one_run(
    files: Path, given: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run_cli(monkeypatch, capsys, "diagnose", *given, "--format", "json", "--timezone", "UTC")
    made = json.loads(out)
    assert code == 0 and made["run"]["name"] == "search" and made["run"]["n_trials"] == 24
    assert sorted(Path(one["path"]).name for one in made["inputs"]) == ["gpu.csv", "optuna.db"]
    code, out = run_cli(monkeypatch, capsys, "export", *given, "--to", "csv", "-o", "out")
    assert code == 0 and (files / "out" / "trials.csv").is_file()


def test_commands_refuse_what_could_mean_two_things(
    files: Path, samples: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    healthy = str(samples / "healthy")
    for arguments, said in (
        (("report", healthy, "gpu.csv"), "and the single input gpu.csv; give folders (a run each), or files and URLs"),
        (("diagnose", healthy, "."), "got 2 runs"),
        (("diagnose", "gpu.csv", "gone.db"), "gone.db: no such file or folder"),
        (("diagnose", "gpu.csv", "--trials", "optuna.db"), "got the run gpu.csv and single inputs as well"),
        (("report", ".", "--notebook", "gpu_report", "--telemetry", "gpu.csv"), "got a run and single inputs as well"),
    ):
        code, out = run_cli(monkeypatch, capsys, *arguments)
        assert code == 2 and said in out and "Traceback" not in out


@pytest.mark.slow
def test_compare_takes_files_and_urls(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run_cli(monkeypatch, capsys, "compare", "optuna.db", "sqlite:///optuna.db", "--format", "json")
    made = json.loads(out)
    assert code == 0 and made["baseline"]["name"] == "optuna" and made["experiment"]["name"] == "optuna (experiment)"


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "folder"),
    [
        (("gpu.csv", "optuna.db"), "search"),
        (("--notebook", "gpu_report", "--telemetry", "gpu.csv"), "gpu"),
        (("--notebook", "hpo_report", "--trials", "optuna.db"), "optuna"),
        (("--notebook", "gpu_report", "-p", "telemetry=gpu.csv"), "gpu"),
        (("--notebook", "gpu_report", "."), "gpu"),
        (("--notebook", "hpo_report", "gpu.csv", "sqlite:///optuna.db"), "optuna"),
    ],
    ids=str,
)
def test_reports_of_files(
    files: Path,
    arguments: tuple[str, ...],
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out = run_cli(monkeypatch, capsys, "report", *arguments, "-p", "minimal=true")
    assert code == 0, out
    assert (files / "reports" / folder / "report.html").is_file()


@pytest.mark.parametrize("command", ["whatif", "export"])
def test_commands_read_samples_without_header_and_timestamps(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As diagnose does: names and period are given."""
    log = tmp_path / "plain.csv"
    log.write_text("".join(f"{util},{1000 + util}\n" for util in range(60)))
    options = ["--telemetry", log, "--columns", "utilization.gpu,memory.used", "--period", "2"]
    options += ["--to", "csv", "-o", tmp_path / "tables"] if command == "export" else []
    code, err = run_cli(monkeypatch, capsys, command, *map(str, options))
    if command == "whatif":
        assert code == 2 and "trials" in err and "header" not in err, "it was read, and holds no trials"
    else:
        assert code == 0, err
        timestamps = pd.read_csv(next((tmp_path / "tables").rglob("gpu.csv")), parse_dates=["time"])["time"]
        assert len(timestamps) == 60 and timestamps.diff().dropna().dt.total_seconds().eq(2).all()
