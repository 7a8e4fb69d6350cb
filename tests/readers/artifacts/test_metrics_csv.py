"""CSVs of metrics by step or by epoch, as Ultralytics, W&B, TensorBoard and Keras write them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.errors import InputError, NotMeasurable
from gpudiag.measures.steps import measure_steps
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import lightning_csv, metrics_csv
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.readers.identify import identify
from gpudiag.timezones import parse_zone
from tests.writtenevents import BEGIN_S, Course, scalar, written

OF_ULTRALYTICS = "epoch,time,train/box_loss,metrics/mAP50(B),val/box_loss,lr/pg0"


def csv(path: Path, header: str, rows: Sequence[Sequence[object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in (header, *(",".join(map(str, row)) for row in rows))))
    return path


def read(path: Path) -> Trials:
    return metrics_csv.read(Source.open(path), ReadOptions(parse_zone("Europe/Berlin")))


def epochs(n: int = 20, hangs: int = 12) -> list[tuple[object, ...]]:
    """Epochs of 340 s, one of which takes 900 s more."""
    return [(k, 340.0 * k + 900.0 * (k >= hangs), 0.5, 0.3, 0.4, 0.001) for k in range(1, n + 1)]


def history(*, timestamps: bool) -> tuple[str, list[tuple[object, ...]]]:
    """The training of :class:`Course` as ``run.history()`` of W&B gives it."""
    rows: list[tuple[object, ...]] = []
    for what, step, at_s in Course().moments():
        when = (at_s + 7, at_s + BEGIN_S) if timestamps else (at_s + 7,)
        if what == "evaluation":
            rows.append((len(rows), *when, "", step, 0.5))
        elif what == "step" and step % 10 == 0:
            rows.append((len(rows), *when, 0.5, step, ""))
    names = (
        "_step",
        "_runtime",
        *(("_timestamp",) if timestamps else ()),
        "train/loss",
        "train/global_step",
        "eval/loss",
    )
    return ",".join(names), rows


def test_epochs_by_the_time_since_training_began(tmp_path: Path) -> None:
    path = csv(tmp_path / "results.csv", OF_ULTRALYTICS, epochs())
    assert identify(Source.open(path)) is not None and identify(Source.open(path))[1].name == "metrics-csv"  # type: ignore[index]
    said = measure_steps(gd.load_run(tmp_path))
    assert (said.unit, said.n_steps, said.step_s) == ("epoch", 20, pytest.approx(340))
    assert (said.n_pauses, said.pauses_s, said.unnamed_s) == (1, pytest.approx(900), pytest.approx(900))


def test_epochs_without_a_time_are_named_and_no_error(tmp_path: Path) -> None:
    """Older Ultralytics pad their header; Keras counts from 0. What the loss was is known."""
    old = csv(
        tmp_path / "a" / "results.csv",
        "     epoch,  train/box_loss,   x/lr0",
        [(f"   {k}", 0.5, 0.1) for k in range(8)],
    )
    keras = csv(tmp_path / "b" / "log.csv", "epoch,accuracy,loss,val_loss", [(k, 0.5, "nan", 0.4) for k in range(8)])
    for path in (old, keras):
        got = read(path)
        assert got.steps["step"].tolist() == list(range(1, 9)) and set(got.steps["unit"]) == {"epoch"}
        assert got.notes == (f"{path.name}: its rows have no times; how long steps took is not known from it.",)
        with pytest.raises(NotMeasurable, match="tell no time"):
            measure_steps(gd.load_run(path.parent))
    assert set(read(keras).steps["not_finite"]) == {1}


@pytest.mark.parametrize("timestamps", [True, False])
def test_history_of_wandb(tmp_path: Path, timestamps: bool) -> None:
    csv(tmp_path / "wandb_export.csv", *history(timestamps=timestamps))
    run = gd.load_run(tmp_path)
    assert run.steps["time"].notna().all() == timestamps
    said = measure_steps(run)
    assert (said.n_trainings, said.n_resumed, said.step_s) == (1, 1, pytest.approx(1))
    assert (said.evaluations_s, said.unnamed_s) == (pytest.approx(240, abs=1), pytest.approx(300, abs=1))
    assert said.down_s == pytest.approx(200, abs=1) and said.n_repeated == 240


@pytest.mark.parametrize(
    ("name", "n"),
    [("run-exp_1-tag-Loss_train.csv", 90), ("loss.csv", 90), ("run-validation-tag-epoch_loss.csv", 0),
     ("run-exp-tag-Loss_val.csv", 0), ("run-exp-tag-loss_dev.csv", 0), ("run-holdout-tag-loss.csv", 0),
     ("validation/loss.csv", 0), ("accuracy.csv", 0)],
)  # fmt: skip
def test_a_scalar_that_tensorboard_exports(tmp_path: Path, name: str, n: int) -> None:
    rows = [(BEGIN_S + step, step, 0.5) for step in range(10, 901, 10)]
    got = read(csv(tmp_path / name, "Wall time,Step,Value", rows))
    kind = "no loss and no learning rate" if name == "accuracy.csv" else "are of an evaluation, not of steps"
    assert len(got.steps) == n and (n > 0) != (kind in got.notes[0])
    if n:
        assert got.clock == "utc"
        assert got.steps["time"].iloc[0] == pd.Timestamp(BEGIN_S + 10, unit="s", tz="UTC")


def test_times_of_steps_and_local_timestamps(tmp_path: Path) -> None:
    rows = [(f"2026-03-01 10:{k:02d}:00", 20 * k, 0.5, 3.0 + k % 2 / 10) for k in range(1, 9)]
    got = read(csv(tmp_path / "log.csv", "timestamp;Step;loss;time".replace(";", ","), rows))
    assert got.clock == "local" and got.steps["time"].iloc[0] == pd.Timestamp("2026-03-01 09:01", tz="UTC")
    assert got.steps["step_s"].tolist() == pytest.approx([3.0 + k % 2 / 10 for k in range(1, 9)])


def test_other_readers_keep_theirs(tmp_path: Path) -> None:
    rows = [(0, 49, 0.5), (0, 99, 0.4)]
    known = identify(Source.open(csv(tmp_path / "metrics.csv", "epoch,step,train_loss", rows)))
    assert known is not None and known[1].name == lightning_csv.NAME
    samples = [(f"2026-03-01 10:00:{k:02d}", 0, 90, 900, k, 0.5) for k in range(20)]
    header = "timestamp,gpu,utilization.gpu [%],memory.used [MiB],step,loss"
    known = identify(Source.open(csv(tmp_path / "gpu.csv", header, samples)))
    assert known is not None and known[0] == "telemetry"


MEASURED: dict[str, tuple[str, list[tuple[object, ...]]]] = {
    "one number in all rows": ("batch_size,step,time,loss", [(2**k, 100, 0.5, 2.3) for k in range(8)]),
    "one epoch in all rows": ("epoch,time,train_loss,model", [(10, 12.3 * k, 0.1, f"m{k}") for k in range(8)]),
    "moments": ("timestamp,epoch,loss", [(BEGIN_S + k, int(BEGIN_S) + k, 10) for k in range(50)]),
    "no whole numbers": ("epoch,loss", [(k / 3, 10) for k in range(50)]),
    "a loss of radio": ("step,loss_db", [(k, 10) for k in range(50)]),
    "falling": ("step,loss", [(50 - k, 10) for k in range(50)]),
    "two rows": ("epoch,loss", [(1, 0.5), (2, 0.4)]),
}


@pytest.mark.parametrize("what", MEASURED)
def test_a_table_of_another_kind_is_no_training(tmp_path: Path, what: str) -> None:
    header, rows = MEASURED[what]
    assert not metrics_csv.is_header(Source.open(csv(tmp_path / "x.csv", header, rows)))


def test_folds_and_rows_of_evaluations_are_of_a_training(tmp_path: Path) -> None:
    folds = [(k, 0.5) for _ in range(5) for k in range(1, 6)]
    both = [(k // 2, 0.5) for k in range(4, 12)]
    assert metrics_csv.is_header(Source.open(csv(tmp_path / "folds.csv", "epoch,loss", folds)))
    rows = [(step, "" if k % 4 else 0.5) for k, (step, _) in enumerate(both)]
    assert metrics_csv.is_header(Source.open(csv(tmp_path / "both.csv", "step,loss", rows)))


def test_a_day_is_no_moment_of_an_epoch(tmp_path: Path) -> None:
    rows = [(f"2019-01-{k:02d}", k, 0.5) for k in range(1, 30)]
    assert read(csv(tmp_path / "results.csv", "date,epoch,loss", rows)).steps["time"].isna().all()


def test_damage_costs_its_row(tmp_path: Path) -> None:
    path = csv(tmp_path / "results.csv", OF_ULTRALYTICS, [*epochs(6), ("7", "24")])
    got = read(path)
    assert len(got.steps) == 6 and [problem.kind for problem in got.problems] == ["row of another width"]
    with pytest.raises(InputError, match="holds no row with a step or an epoch"):
        read(csv(tmp_path / "x.csv", "epoch,loss", [("a", "b")]))


def test_results_beside_the_event_file_of_the_training_count_once(tmp_path: Path) -> None:
    """Evaluations of 30 to 50 s: one tells of the end of an epoch before them, the other behind."""
    events = [
        scalar(tag, 0.5, k, BEGIN_S + 340 * k - 30 - 7 * (k % 4))
        for k in range(1, 21)
        for tag in ("train/box_loss", "lr/pg0")
    ]
    written(tmp_path, events)
    csv(tmp_path / "results.csv", OF_ULTRALYTICS, epochs(hangs=99))
    said = measure_steps(gd.load_run(tmp_path))
    assert (said.n_trainings, said.n_twice, said.n_steps) == (1, 1, 19)


@pytest.mark.parametrize(
    ("name", "times", "begins", "elapsed_s", "each_s"),
    [
        ("time", [30 + k / 10 for k in range(40)], 1, None, 30.0),  # epochs that take longer and longer
        ("time", [0.51 + k / 1000 for k in range(40)], 1, None, 0.51),
        ("time", [30.0] * 40, 1, None, 30.0),
        ("time", [30 + (k % 3) for k in range(40)], 1, None, 30.0),
        ("time", [34.0 * (k + 1) for k in range(40)], 1, 34.0, None),
        ("time", [600 + 34.0 * k for k in range(40)], 1, 600.0, None),  # the first compiles
        ("time_ms", [4989.0 * (k + 1) for k in range(40)], 1, 4.989, None),
        ("time_ms", [500.0 + (k % 2) for k in range(40)], 1, None, 0.5),
        ("time", [90_000 + 34.0 * k for k in range(40)], 300, None, None),  # goes on from a beginning that is elsewhere
    ],
)
def test_what_a_column_of_times_holds(
    tmp_path: Path, name: str, times: list[float], begins: int, elapsed_s: float | None, each_s: float | None
) -> None:
    rows = [(begins + k, time, 0.5) for k, time in enumerate(times)]
    steps = read(csv(tmp_path / "log.csv", f"step,{name},loss", rows)).steps
    for column, first in (("elapsed_s", elapsed_s), ("step_s", each_s)):
        known = steps[column].iloc[0] if column in steps else None
        assert pd.isna(known) if first is None else known == pytest.approx(first), column


@pytest.mark.parametrize(
    ("name", "other"), [("split", "val"), ("phase", "Validation"), ("mode", "eval"), ("stage", "test")]
)
def test_rows_of_other_data_are_no_steps(tmp_path: Path, name: str, other: str) -> None:
    """An epoch trains for 60 s and evaluates for 9."""
    rows = [row for k in range(1, 20) for row in ((k, "train", 0.5, 60 + k % 3), (k, other, 0.4, 9 + k % 3))]
    steps = read(csv(tmp_path / "log.csv", f"epoch,{name},loss,epoch_time", rows)).steps
    assert steps["step"].tolist() == list(range(1, 20)) and steps["step_s"].tolist() == [
        60 + k % 3 for k in range(1, 20)
    ]
    assert set(steps["since"].dropna()) == {"evaluation"}
