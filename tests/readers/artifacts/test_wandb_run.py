"""W&B run folders: how runs ended, and that the metrics within are found beside the trial."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from gpudiag._load.folder import walk
from gpudiag.load import load_run
from gpudiag.measures._steps.logs import training_logs
from gpudiag.measures.steps import measure_steps
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import wandb_run
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.timezones import parse_zone
from tests.writtenevents import Course

AT_S = 1_700_000_000
COURSE = Course()


@pytest.fixture(scope="module")
def wandb_bytes() -> ModuleType:
    """The writer of run files, which lies beside the telemetry tests."""
    path = Path(__file__).parent.parent / "telemetry" / "wandb_bytes.py"
    spec = importlib.util.spec_from_file_location("wandb_bytes_of_telemetry", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make(folder: Path, name: str, content: bytes | None, *, gpus: int = 2) -> Path:
    run = folder / f"run-20231114_221320-{name}"
    (run / "files").mkdir(parents=True)
    metadata = {"startedAt": "2023-11-14T22:13:20.500000", "host": "node7", "gpu": "NVIDIA A100", "gpu_count": gpus}
    metadata["git"] = {"remote": "git@example.com:me/secret.git", "commit": "4f2a91c0de"}
    (run / "files" / "wandb-metadata.json").write_text(json.dumps(metadata))
    (run / "files" / "wandb-summary.json").write_text('{"loss": 0.25, "_runtime": 99, "_wandb": {"runtime": 99}}')
    if content is not None:
        (run / f"run-{name}.wandb").write_bytes(content)
    return run


def read(folder: Path) -> Trials:
    return wandb_run.read(Source.open(folder), ReadOptions(parse_zone("Asia/Taipei")))


def content(wandb_bytes: ModuleType, code: int | None, name: str = "lively-sun-7") -> bytes:
    begun = wandb_bytes.run_record("abc", name, AT_S, {"lr": 0.1, "layers": [1, 2], "_wandb": {}}, "node8")
    ticks = [wandb_bytes.stats(AT_S + 15 * n, {"gpu.0.gpu": 50.0 + n}) for n in range(8)]
    ended = [] if code is None else [wandb_bytes.exit_record(code, 120)]
    return wandb_bytes.run_file([begun, *ticks, *ended])


@pytest.mark.parametrize(("code", "state"), [(0, "COMPLETE"), (1, "FAIL"), (-1, "FAIL"), (None, "RUNNING")])
def test_how_a_run_ended(tmp_path: Path, wandb_bytes: ModuleType, code: int | None, state: str) -> None:
    out = read(make(tmp_path, "abc", content(wandb_bytes, code)))
    (row,) = out.trials.to_dict("records")
    assert (row["state"], row["name"], row["host"], row["study"]) == (state, "lively-sun-7", "node8", "proj")
    assert row["user_attrs.git_commit"] == "4f2a91c0de" and "secret" not in str(row)
    assert row["start"] == pd.Timestamp(AT_S, unit="s", tz="UTC")
    assert pd.isna(row["end"]) if code is None else (row["end"] - row["start"]).total_seconds() == 120
    assert row.get("detail") == (f"exit code {code}" if code else None)
    assert (row["params.lr"], row["params.layers"], row["user_attrs.loss"]) == (0.1, "[1, 2]", 0.25)
    assert not any("_wandb" in name for name in out.trials)
    assert out.studies["clock"].tolist() == ["utc"]


@pytest.mark.parametrize("data", [None, b"", b"PK\x03\x04"])
def test_without_a_run_file_the_metadata_is_left(tmp_path: Path, data: bytes | None) -> None:
    out = read(make(tmp_path, "abc", data, gpus=1))
    (row,) = out.trials.to_dict("records")
    assert (row["state"], row["host"], row["gpu"]) == ("RUNNING", "node7", "0")
    assert row["start"] == pd.Timestamp("2023-11-14T22:13:20.5Z")
    assert len(out.problems) == 1


def test_a_folder_of_runs_is_one_study_and_its_metrics_are_telemetry(tmp_path: Path, wandb_bytes: ModuleType) -> None:
    folder = tmp_path / "project" / "wandb"
    first = make(folder, "abc", content(wandb_bytes, 0))
    make(folder, "xyz", content(wandb_bytes, 1, "calm-sea-8"))
    (folder / "latest-run").symlink_to(first, target_is_directory=True)
    (first / "files" / "output.log").write_text("Trial 3 using GPU 3\nRuntimeError: CUDA out of memory\n")
    run = load_run(tmp_path / "project", timezone="UTC")
    assert [record.reader for record in run.info.inputs] == [
        "wandb-run", "W&B run file", "W&B run file", "training-log",
    ]  # fmt: skip
    assert run.trials["name"].tolist() == ["lively-sun-7", "calm-sea-8"]
    assert run.trials["trial"].tolist() == [0, 1] and run.studies["study"].tolist() == ["proj"]
    assert len(run.gpu) == 8 and run.gpus["gpu"].tolist() == ["0"], "both runs saw the same GPU"
    assert run.events["kind"].tolist() == ["gpu_assigned", "oom"]


@pytest.mark.parametrize(
    ("sweeps", "study"), [(("q1w2", "q1w2"), "proj/q1w2"), (("q1w2", "zz"), "proj"), (("q1w2", ""), "proj")]
)
def test_the_runs_of_one_sweep_are_its_study(
    tmp_path: Path, wandb_bytes: ModuleType, sweeps: tuple[str, str], study: str
) -> None:
    for at, sweep in enumerate(sweeps):
        begun = wandb_bytes.run_record(f"r{at}", f"run {at}", AT_S + at, {"lr": at / 10}, "node8", sweep)
        make(tmp_path, f"r{at}", wandb_bytes.run_file([begun, wandb_bytes.exit_record(0, 60)]))
    out = read(tmp_path)
    assert out.studies["study"].tolist() == [study] and set(out.trials["study"]) == {study}
    assert [cell or "" for cell in out.trials["user_attrs.sweep"].fillna("")] == list(sweeps)
    assert out.trials["params.lr"].tolist() == [0.0, 0.1]


def test_a_run_folder_itself(tmp_path: Path, wandb_bytes: ModuleType) -> None:
    run = make(tmp_path, "abc", content(wandb_bytes, 0))
    found = [(source.path.name, recognised) for source, recognised in walk(run)]
    assert found == [
        (run.name, True), ("run-abc.wandb", True), ("wandb-metadata.json", False), ("wandb-summary.json", False),
    ]  # fmt: skip
    assert len(load_run(run, timezone="UTC").gpu) == 8


def logged(wandb_bytes: ModuleType, begun_s: float = AT_S) -> bytes:
    """The training of :class:`Course` as Hugging Face's Trainer logs it with W&B."""
    records = [wandb_bytes.run_record("abc", "lively-sun-7", begun_s, {"lr": 0.1}, "node8")]
    for what, step, at_s in COURSE.moments():
        row = {"_step": len(records) - 1, "_timestamp": begun_s + at_s, "_runtime": at_s, "train/global_step": step}
        if what == "evaluation":
            records.append(wandb_bytes.history(row | {"eval/loss": 0.5, "eval/runtime": 60.0, "plot": {"a": "b" * 99}}))
        elif what == "step" and step % 10 == 0:
            records.append(wandb_bytes.history(row | {"train/loss": 0.5, "note": "a text"}))
    return bytes(wandb_bytes.run_file([*records, wandb_bytes.exit_record(0, 3000)]))


@pytest.mark.slow
def test_what_a_run_logged_is_a_log_of_its_steps(tmp_path: Path, wandb_bytes: ModuleType) -> None:
    """Beside it lies what the bar printed, which is no second training."""
    run = make(tmp_path, "abc", logged(wandb_bytes))
    said = measure_steps(load_run(run, timezone="UTC"))
    assert (said.n_trainings, said.n_resumed, said.n_repeated) == (1, 1, 240)
    assert (said.step_s, said.evaluations_s) == (pytest.approx(1), pytest.approx(240))
    assert (said.unnamed_s, said.down_s) == (pytest.approx(300, abs=1), pytest.approx(200, abs=1))
    COURSE.bars(run / "files" / "output.log")
    both = load_run(run, timezone="UTC")
    told = measure_steps(both)
    assert (told.n_trainings, told.n_twice, told.down_s) == (1, 1, pytest.approx(200, abs=3))
    assert training_logs(both).lines["time"].notna().all()


def test_the_lines_of_several_runs_name_their_trial(tmp_path: Path, wandb_bytes: ModuleType) -> None:
    for name, begun_s in (("abc", AT_S), ("xyz", AT_S + 9e4)):
        make(tmp_path, name, logged(wandb_bytes, begun_s))
    out = read(tmp_path)
    assert out.steps.groupby("trial")["path"].nunique().tolist() == [1, 1] and len(out.trials) == 2


def test_where_only_calls_of_log_are_counted_the_page_says_so(tmp_path: Path, wandb_bytes: ModuleType) -> None:
    rows = [{"_step": k, "_timestamp": AT_S + k, "loss": 0.5} for k in range(20)]
    begun = wandb_bytes.run_record("abc", "a", AT_S, {}, "node8")
    run = make(tmp_path, "abc", wandb_bytes.run_file([begun, *map(wandb_bytes.history, rows)]))
    out = read(run)
    assert len(out.steps) == 20 and any("its only count is W&B's _step" in note for note in out.notes)


def test_without_system_metrics_what_it_logged_is_read(tmp_path: Path, wandb_bytes: ModuleType) -> None:
    run = load_run(make(tmp_path, "abc", logged(wandb_bytes)), timezone="UTC")
    assert [record.error for record in run.info.inputs] == [None, None] and len(run.steps) == 224
    assert any("holds no system metrics" in note for record in run.info.inputs for note in record.notes)


def test_run_files_outside_of_their_folders(tmp_path: Path, wandb_bytes: ModuleType) -> None:
    """As somebody copies them; what another program calls so is none."""
    (tmp_path / "run-abc.wandb").write_bytes(logged(wandb_bytes))
    (tmp_path / "copied.wandb").write_bytes(logged(wandb_bytes, AT_S + 9e4))
    (tmp_path / "other.wandb").write_bytes(b"text")
    (tmp_path / "gpu.csv").write_text(
        "timestamp, index, utilization.gpu [%]\n"
        + "".join(f"2023/11/14 22:13:{n:02d}.000, 0, 90 %\n" for n in range(20, 60))
    )
    out = read(tmp_path)
    assert out.trials["state"].tolist() == ["COMPLETE"] * 2
    assert [Path(path).name for path in out.steps["path"].unique()] == ["copied.wandb", "run-abc.wandb"]
    run = load_run(tmp_path, timezone="UTC")
    assert len(run.steps) == 2 * 224 and len(run.gpu) == 40


def test_a_run_file_given_by_itself_tells_what_the_training_logged(tmp_path: Path, wandb_bytes: ModuleType) -> None:
    """A run that was killed: its file alone has no trial of it, but its system metrics and its steps."""
    rows = [{"_timestamp": AT_S + 3.0 * k, "train/global_step": 10 * (k + 1), "loss": 0.5} for k in range(30)]
    measured = [wandb_bytes.stats(AT_S + 15.0 * k, {"gpu.0.gpu": 90.0}) for k in range(8)]
    begun = wandb_bytes.run_record("abc", "a", AT_S, {}, "node8")
    content = wandb_bytes.run_file([begun, *measured, *map(wandb_bytes.history, rows)])
    (tmp_path / "run-abc.wandb").write_bytes(content)
    run = load_run(tmp_path / "run-abc.wandb", timezone="UTC")
    assert len(run.gpu) == 8 and not len(run.trials)
    assert run.steps["step"].tolist() == [10 * (k + 1) for k in range(30)]
    assert (run.steps["time"].diff().dropna() == pd.Timedelta(seconds=3)).all()
