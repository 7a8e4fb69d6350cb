"""Logs of trainings in JSON Lines: steps and their times, whoever wrote them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag._load.intake import STEPS_LEFT
from gpudiag.errors import InputError
from gpudiag.measures.steps import measure_steps
from gpudiag.readers._io.source import Source
from gpudiag.readers._steps.step_object import is_of_evaluation, is_of_training, stamp_of_object, step_of_object
from gpudiag.readers.artifacts import step_jsonl
from gpudiag.readers.base import ReadOptions
from gpudiag.timezones import parse_zone

Said = Mapping[str, Any]


def written(folder: Path, objects: Iterable[Said | str], name: str = "log.jsonl") -> Path:
    path = folder / name
    path.write_text("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in objects))
    return path


def read(path: Path) -> pd.DataFrame:
    return step_jsonl.read(Source.open(path), ReadOptions(parse_zone("UTC"))).steps


def structured(n: int, **more: Any) -> list[Said]:
    """A step of two seconds an object."""
    begins = pd.Timestamp("2026-01-05 10:00")
    moments = [begins + pd.Timedelta(seconds=2 * k) for k in range(1, n + 1)]
    return [{"timestamp": f"{t.isoformat()}Z", "step": k, "loss": 2.5, **more} for k, t in enumerate(moments, 1)]


def test_of_structured_logging(tmp_path: Path) -> None:
    """100 steps, an evaluation of 30 s, and 100 more."""
    later = [one | {"step": one["step"] + 100} for one in structured(100)]
    for one in later:
        one["timestamp"] = (pd.Timestamp(one["timestamp"]) + pd.Timedelta(seconds=230)).isoformat()
    written(tmp_path, [*structured(100), {"val_loss": 2.0, "step": 100}, *later])
    said = measure_steps(gd.load_run(tmp_path))
    assert said.step_s == pytest.approx(2) and said.n_steps == 199
    assert (said.n_pauses, said.evaluations_s) == (1, pytest.approx(30))


def test_of_mmengine(tmp_path: Path) -> None:
    """Means of the 50 steps since the object before: 0.5 s, of which 0.1 s is a wait; then a validation."""
    objects: list[Said] = [
        {"lr": 0.02, "data_time": 0.1, "loss": 2.5, "time": 0.5, "epoch": 1, "iter": k, "memory": 900, "step": k}
        for k in range(50, 1001, 50)
    ]
    path = written(
        tmp_path, [*objects, {"coco/bbox_mAP": 0.1, "data_time": 0.01, "time": 0.05, "step": 1}], "scalars.json"
    )
    steps = read(path)
    assert steps["step"].tolist() == list(range(50, 1001, 50)) and set(steps["meant"]) == {"window"}
    said = measure_steps(gd.load_run(tmp_path))
    assert (said.step_s, said.logged_s) == (pytest.approx(0.5), pytest.approx(500))
    assert said.loader_pct == pytest.approx(20)


def test_detectron2_counts_from_0(tmp_path: Path) -> None:
    objects = [{"data_time": 0.1, "iteration": k, "lr": 0.1, "time": 0.5, "total_loss": 1} for k in range(19, 400, 20)]
    steps = read(written(tmp_path, objects, "metrics.json"))
    assert steps["step"].tolist() == list(range(20, 401, 20)) and set(steps["meant"]) == {"running"}


def test_of_llama_factory(tmp_path: Path) -> None:
    """Half a second a step, and 30 s of evaluation behind step 600, in whole seconds as it writes them."""
    objects: list[Said] = []
    for step in range(10, 1201, 10):
        seconds = int(step / 2) + 30 * (step > 600) + 86_400
        clock = f"1 day, {seconds // 3600 - 24}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        said = {"current_steps": step, "total_steps": 1200, "epoch": step / 1200, "elapsed_time": clock}
        objects.append({**said, "loss": 1.5, "lr": 1e-4, "throughput": 16384.0})
        objects += [{**said, "eval_loss": 1.4}] if step == 600 else []
    steps = read(written(tmp_path, objects, "trainer_log.jsonl"))
    assert len(steps) == 120 and steps["elapsed_s"].iloc[0] == 86_405 and steps["total"].eq(1200).all()
    assert steps.loc[steps["since"].eq("evaluation"), "step"].tolist() == [610]
    found = measure_steps(gd.load_run(tmp_path))
    assert found.step_s == pytest.approx(0.5) and found.evaluations_s == pytest.approx(30, abs=1)


@pytest.mark.parametrize(
    ("said", "stamp"),
    [
        ({"timestamp": "2026-01-05 10:00:02,125"}, "2026-01-05 10:00:02.125"),
        ({"_timestamp": 1767607202.5}, "2026-01-05T10:00:02.500000+00:00"),
        ({"ts": 1767607202500}, "2026-01-05T10:00:02.500000+00:00"),
        ({"time": 1767607202}, "2026-01-05T10:00:02+00:00"),
        ({"time": 0.5, "date": "2026-01-05 10:00"}, "2026-01-05 10:00"),
        ({"time": 0.5, "date": "2026-01-05"}, ""),
        ({"time": 0.5, "timestamp": True}, ""),
        ({"timestamp": "soon"}, ""),
    ],
)
def test_timestamps(said: Said, stamp: str) -> None:
    assert stamp_of_object(said) == stamp


@pytest.mark.parametrize(
    "said",
    [
        {"step": 3, "val_loss": 1.0},
        {"step": 3},
        {"step": 3.5, "loss": 1.0},
        {"step": -1, "loss": 1.0},
        {"step": True, "loss": 1.0},
        {"step": "3", "loss": 1.0},
        {"loss": 1.0},
        {"step": 10**400, "loss": 1.0},
        {"step": float("nan"), "loss": 1.0},
    ],
)
def test_what_is_no_step_of_a_training(said: Said) -> None:
    assert step_of_object(said) is None


def test_what_is_stated(tmp_path: Path) -> None:
    said = step_of_object(
        {"step": 7, "max_steps": 10, "loss": 1.0, "step_time_ms": 250, "tokens_per_sec": 4e4, "rank": 2, "epoch": 1}
    )
    assert said is not None
    assert (said.step, said.total, said.step_s, said.tokens_s, said.rank, said.epoch) == (7, 10, 0.25, 4e4, 2, 1)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", ["epoch_time", "elapsed", "ts"])
def test_an_object_an_epoch(tmp_path: Path, name: str, first: int) -> None:
    """Epochs of a minute, each with the losses of both data; what else a log says stands before them."""
    times = {
        "epoch_time": [60.0 + k % 2 for k in range(10)],
        "elapsed": [60.0 * (k + 1) for k in range(10)],
        "ts": [1_767_607_200 + 60.0 * k for k in range(10)],
    }
    said = [{"epoch": k + first, "train_loss": 0.5, "val_loss": 0.6, name: times[name][k]} for k in range(10)]
    path = written(tmp_path, [{"event": "config", "batch_size": 32}, *said])
    got = read(path)
    assert got["step"].tolist() == list(range(1, 11)) and set(got["unit"]) == {"epoch"}
    steps = measure_steps(gd.load_run(tmp_path))
    assert (steps.unit, steps.step_s) == ("epoch", pytest.approx(60, abs=1))


def test_torn_lines_are_counted_and_others_kept(tmp_path: Path) -> None:
    objects = [*structured(5), '{"timestamp": "2026-01-05T10:0', *structured(2)]
    out = step_jsonl.read(Source.open(written(tmp_path, objects)), ReadOptions(parse_zone("UTC")))
    assert len(out.steps) == 7 and [(p.kind, p.count) for p in out.problems] == [("torn line", 1)]


@pytest.mark.parametrize(
    "objects",
    [
        [{"step": k, "loss": 1.0} for k in range(9)],  # no time at all
        [{"epoch": k, "loss": 1.0} for k in range(9)],
        [{"epoch": k, "step": None, "loss": 1.0, "epoch_time": 60.0 + k % 2} for k in range(9)],
        [{"op_code": 4, "step": k, "loss": 1.0, "timestamp": "2026-01-05"} for k in range(9)],
        [{"training_iteration": k, "step": k, "loss": 1.0, "timestamp": 1767607202} for k in range(9)],
        ["plain text"] * 9,
    ],
)
def test_what_is_no_such_log(tmp_path: Path, objects: list[Said | str]) -> None:
    assert not step_jsonl.recognises(Source.open(written(tmp_path, objects)))


def test_a_log_without_steps_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no step of a training"):
        read(written(tmp_path, [{"event": "start"}]))


def of_wandb(**kept: bool) -> list[Said]:
    """W&B's history of 1,000 steps of 0.6 s, an object each 10 steps; training began 45 s after W&B."""
    objects = []
    for n in range(1, 101):
        since_s = 45 + 6 * n
        said = {"train/loss": 2.0, "train/global_step": 10 * n, "_step": n, "_runtime": since_s}
        objects.append(said | {"_timestamp": 1772442000 + since_s})
    return [{name: value for name, value in said.items() if kept.get(name, True)} for said in objects]


@pytest.mark.parametrize("kept", [{}, {"_timestamp": False}, {"_runtime": False}])
def test_a_history_of_wandb_counts_the_steps_of_the_training(tmp_path: Path, kept: Mapping[str, bool]) -> None:
    run = gd.load_run(written(tmp_path, of_wandb(**kept)))
    said = measure_steps(run)
    assert said.step_s == pytest.approx(0.6) and run.steps["step"].max() == 1000
    assert said.logged_s == pytest.approx(99 * 6), "W&B's start-up is no time of steps"
    assert not any("_step" in note for note in run.info.inputs[0].notes)


def test_a_count_of_calls_is_said_to_be_one(tmp_path: Path) -> None:
    alone = {"train/global_step": False, "_runtime": False}
    assert any("_step" in note for note in gd.load_run(written(tmp_path, of_wandb(**alone))).info.inputs[0].notes)
    stated = [said | {"_step": 10 * said["_step"]} for said in of_wandb(**alone)]
    run = gd.load_run(written(tmp_path, stated))
    assert measure_steps(run).step_s == pytest.approx(0.6) and len(run.info.inputs[0].notes) == 1


@pytest.mark.parametrize(
    "name", ["val_loss", "loss/val", "valLoss", "eval/loss", "validation/acc", "Test/F1", "test_acc"]
)
def test_names_of_an_evaluation(name: str) -> None:
    assert is_of_evaluation(name) and not is_of_training(name)


@pytest.mark.parametrize(
    "name", ["loss", "losses/value_loss", "latest_loss", "optim/lr", "lr-Adam/pg1", "batch_learning_rate"]
)
def test_names_of_a_training(name: str) -> None:
    assert is_of_training(name) and not is_of_evaluation(name)


def test_objects_of_mmcv_that_validate_are_no_steps(tmp_path: Path) -> None:
    """They hold a learning rate too, and say in ``mode`` what they are of."""
    trained = [
        {"mode": "train", "epoch": 1, "iter": k, "lr": 0.1, "data_time": 0.1, "loss": 1, "time": 0.5} for k in (50, 100)
    ]
    steps = read(
        written(tmp_path, [*trained, {"mode": "val", "epoch": 1, "iter": 20, "lr": 0.1, "bbox_mAP": 0.3}, *trained])
    )
    assert steps["step"].tolist() == [50, 100, 50, 100] and steps["since"].dropna().tolist() == ["evaluation"]


@pytest.mark.parametrize(
    "spread",
    [
        lambda one: {"timestamp": one["timestamp"], "step": one["step"], "metrics": {"loss": one["loss"], "lr": 0.1}},
        lambda one: {"timestamp": one["timestamp"], "msg": "train", "data": {"step": one["step"], "loss": one["loss"]}},
        lambda one: {**one, "loss": None, "train": {"loss": one["loss"]}, "val": {"loss": 3.0, "step_time": 9.0}},
        lambda one: {"loss": 2.5, "perf": {"step_time": 2.0}, "global_step/max_steps": f"{one['step']}/50"},
        lambda one: {"loss": 2.5, "global_step/max_steps": f"{one['step']}/50", "elapsed_time": f"{2 * one['step']}s"},
    ],
)
def test_objects_within_objects_and_counts_of_all_steps(tmp_path: Path, spread: Callable[[Said], Said]) -> None:
    """The last is of ms-swift."""
    path = written(tmp_path, map(spread, structured(50)))
    assert step_jsonl.recognises(Source.open(path)) and read(path)["step"].tolist() == list(range(1, 51))
    assert measure_steps(gd.load_run(tmp_path)).step_s == pytest.approx(2)


@pytest.mark.parametrize(
    ("more", "taken"),
    [
        ({"train_metrics": {"time": 2.0}, "optimizer": {"time": 3.0}}, {"step_s": 2.0}),
        ({"time": {"step": 2.0, "data": 0.5}}, {"step_s": 2.0}),
        ({"fields": {"lr": 0.1, "step_time": 2.0}}, {"step_s": 2.0}),
        ({"run": {"created_at": "2026-03-01T09:00:00", "max_steps": 7}}, {}),
        ({"forward": {"time": 0.4}, "checkpoint": {"time": 50.0}}, {}),
        ({"data": {"time": 3.0}}, {}),
        ({"metrics": {"step_time": 2.0, "epoch": 1}, "perf": {"step_time": 9.0}}, {"epoch": 1}),
    ],
)
def test_an_object_within_an_object_is_of_what_its_name_says(tmp_path: Path, more: Said, taken: Said) -> None:
    """Only what its name, or a loss in it, says to be of the training's steps is taken of them, and nothing twice."""
    steps = read(written(tmp_path, [{"step": k, "loss": 2.5, **more} for k in range(1, 10)]))
    assert steps["step"].tolist() == list(range(1, 10))
    timed = steps.reindex(columns=["time", "elapsed_s", "step_s", "wait_s", "epoch", "total"]).dropna(axis=1, how="all")
    assert timed.to_dict("records") == [taken] * 9


def test_a_count_of_all_is_of_what_its_name_says(tmp_path: Path) -> None:
    """A name with a slash is of two counts only where it names both."""
    objects = [
        {"time": one["timestamp"], "loss": 2.5, "train/step": f"{one['step']}/100", "train/epoch": "1/10"}
        for one in structured(50)
    ]
    steps = read(written(tmp_path, objects))
    assert steps["step"].tolist() == list(range(1, 51)) and "epoch" not in steps


def test_an_evaluation_within_an_object_is_none_of_the_training(tmp_path: Path) -> None:
    objects = [{"timestamp": one["timestamp"], "step": one["step"], "eval": {"loss": 2.0}} for one in structured(9)]
    assert not step_jsonl.recognises(Source.open(written(tmp_path, objects)))


@pytest.mark.parametrize("as_csv", [False, True])
def test_rows_that_hold_gpu_metrics_too_are_samples_and_say_so(tmp_path: Path, as_csv: bool) -> None:
    rows = structured(20, gpu_mem_gb=50.0)
    path = written(tmp_path, rows)
    if as_csv:
        path.write_text(pd.DataFrame(rows).to_csv(index=False))
    run = gd.load_run(path)
    assert len(run.gpu) == 20 and run.info.inputs[0].notes[-1] == STEPS_LEFT


def test_rows_that_tell_how_a_task_ended_are_tasks(tmp_path: Path) -> None:
    run = gd.load_run(written(tmp_path, structured(20, status="ok", duration_s=1.5)))
    assert len(run.trials) == 20 and not len(run.steps)
