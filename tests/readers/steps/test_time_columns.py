"""Columns of times under the names that people give them, in CSVs and JSON Lines of metrics."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import gpudiag as gd
from gpudiag.measures.steps import measure_steps
from gpudiag.readers._io.source import Source
from gpudiag.readers._steps.time_columns import TimeColumns
from gpudiag.readers._steps.time_names import time_name
from gpudiag.readers._steps.written_numbers import duration_s
from gpudiag.readers.artifacts import metrics_csv, step_jsonl
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.readers.identify import identify
from gpudiag.timezones import parse_zone

N = 40
BEGIN_S = 1_767_607_200.0
STEP_S = [0.5 + 0.01 * (k % 3) for k in range(N)]
SO_FAR_S = [0.53 * (k + 1) for k in range(N)]
EPOCH_S = [63.0 + k % 4 for k in range(N)]


def clock(seconds: float) -> str:
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02}:{int(seconds) % 60:02}"


def words(seconds: float) -> str:
    return f"{int(seconds) // 60}m {int(seconds) % 60:02}s"


def table(path: Path, columns: dict[str, list[Any]]) -> Trials:
    """The CSV of these columns, as read; that it is a table of metrics is known by its head."""
    rows = zip(*columns.values(), strict=True)
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in (tuple(columns), *rows)))
    source = Source.open(path)
    found = identify(source)
    assert found is not None and found[1].name == metrics_csv.NAME
    return metrics_csv.read(source, ReadOptions(parse_zone("UTC")))


def counted(what: str, ahead: int = 1) -> dict[str, list[Any]]:
    return {what: [ahead * (k + 1) for k in range(N)], "loss": [0.5] * N}


def column(said: Trials, name: str) -> list[float]:
    return [] if name not in said.steps or said.steps[name].isna().all() else said.steps[name].tolist()


@pytest.mark.parametrize(
    ("name", "values"),
    [
        *((name, STEP_S) for name in ("dt", "step_time", "iter_time", "time_per_step", "time_s", "time/step")),
        *((name, [1000 * s for s in STEP_S]) for name in ("step_time_ms", "dt_ms", "stepTimeMs", "time (ms)")),
        ("ms/step", [1000 * s for s in STEP_S]),
        ("Duration", STEP_S),
        ("train/step_time", STEP_S),
        ("iter_time_us", [1e6 * s for s in STEP_S]),
        *((name, [1 / s for s in STEP_S]) for name in ("it_per_sec", "perf/it/s", "global_step/sec", "StepsPerSecond")),
    ],
)  # fmt: skip
def test_the_time_of_a_step(tmp_path: Path, name: str, values: list[float]) -> None:
    said = table(tmp_path / "log.csv", {**counted("step"), name: values})
    assert column(said, "step_s") == pytest.approx(STEP_S) and not column(said, "elapsed_s")
    assert measure_steps(gd.load_run(tmp_path)).step_s == pytest.approx(0.51, abs=0.011)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        *((name, SO_FAR_S) for name in ("elapsed", "wall_time", "time_s", "Time", "total_time", "elapsed_sec", "dt")),
        ("elapsed_ms", [1000 * s for s in SO_FAR_S]),
        ("wall_time_ms", [1000 * s for s in SO_FAR_S]),
        ("elapsed_min", [s / 60 for s in SO_FAR_S]),
        ("Elapsed (h)", [s / 3600 for s in SO_FAR_S]),
    ],
)
def test_the_time_since_the_start(tmp_path: Path, name: str, values: list[float]) -> None:
    said = table(tmp_path / "log.csv", {**counted("step", 20), name: values})
    assert column(said, "elapsed_s") == pytest.approx(SO_FAR_S) and not column(said, "step_s")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        *((name, EPOCH_S) for name in ("epoch_time", "time/epoch", "time_per_epoch", "time", "dt", "epoch_duration_s")),
        ("epoch_time", [clock(s) for s in EPOCH_S]),
        ("time", [words(s) for s in EPOCH_S]),
        ("duration", [f"{s:.0f}s" for s in EPOCH_S]),
        ("epoch_time_ms", [1000 * s for s in EPOCH_S]),
        ("epoch_time_minutes", [s / 60 for s in EPOCH_S]),
        ("elapsed", EPOCH_S),  # which does not grow: it is that of the epoch
    ],
)
def test_the_time_of_an_epoch(tmp_path: Path, name: str, values: list[Any]) -> None:
    said = table(tmp_path / "log.csv", {**counted("epoch"), name: values})
    assert column(said, "step_s") == pytest.approx(EPOCH_S) and set(said.steps["unit"]) == {"epoch"}


def test_a_name_that_says_of_what_a_time_is_comes_before_one_that_does_not(tmp_path: Path) -> None:
    columns = {**counted("epoch"), "train_time": [s - 11 for s in EPOCH_S], "epoch_time": EPOCH_S}
    assert column(table(tmp_path / "log.csv", columns), "step_s") == pytest.approx(EPOCH_S)


@pytest.mark.parametrize(
    ("training", "evaluation", "apart_s", "expected_s"),
    [
        ("train_time", "val_time", None, 75.0),
        ("trainTime", "testTime", None, 75.0),
        ("train/time_ms", "eval/time_ms", None, 0.075),
        ("train_time", "val_time", 76.0, 75.0),
        ("train_time", "val_time", 64.0, 63.0),  # it runs beside the training
        ("train_time", "val_loss", None, 63.0),
        ("epoch_time", "val_time", None, 63.0),  # it may be in it
    ],
)
def test_an_epoch_holds_its_evaluation(
    tmp_path: Path, training: str, evaluation: str, apart_s: float | None, expected_s: float
) -> None:
    columns = {"": list(range(5, N + 5)), **counted("epoch")}  # an index without a name
    columns |= {training: [63.0 + k % 2 / 10 for k in range(N)], evaluation: [12.0] * N}
    if apart_s:
        columns["timestamp"] = [BEGIN_S + apart_s * k for k in range(N)]
    assert column(table(tmp_path / "log.csv", columns), "step_s")[0] == pytest.approx(expected_s, rel=1e-6)


def test_an_elapsed_that_stays_the_same_is_that_of_the_epoch(tmp_path: Path) -> None:
    said = table(tmp_path / "log.csv", {**counted("epoch"), "elapsed": [clock(63.0)] * N})
    assert column(said, "step_s") == pytest.approx([63.0] * N) and not column(said, "elapsed_s")


@pytest.mark.parametrize("name", ["elapsed", "time"])
def test_a_time_since_the_start_begins_again_with_each_fold(tmp_path: Path, name: str) -> None:
    so_far_s = [63.0 * (k % 5 + 1) for k in range(N)]
    columns = {"epoch": [k % 5 + 1 for k in range(N)], "loss": [0.5] * N, name: so_far_s}
    said = table(tmp_path / "log.csv", columns)
    assert column(said, "elapsed_s") == pytest.approx(so_far_s) and not column(said, "step_s")


STEPS_OF_EPOCHS = {"epoch": [k // 10 for k in range(N)], "step": [k % 10 + 1 for k in range(N)], "loss": [0.5] * N}
"""Of 10 steps each."""


@pytest.mark.parametrize("as_json", [False, True])
def test_a_time_since_the_start_goes_on_where_steps_are_counted_anew(tmp_path: Path, as_json: bool) -> None:
    """Steps of 2 s, and 60 s for what comes between epochs: 3 epochs begin behind another."""
    columns = {**STEPS_OF_EPOCHS, "elapsed": [2.0 * (k + 1) + 60 * (k // 10) for k in range(N)]}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if as_json:
        (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        table(tmp_path / "log.csv", columns)
    said = measure_steps(gd.load_run(tmp_path))
    assert (said.step_s, said.pauses_s, said.n_pauses) == (pytest.approx(2), pytest.approx(3 * 60), 3)
    assert said.logged_s == pytest.approx(2 * (N - 1) + 3 * 60) and said.n_resumed == 0


@pytest.mark.slow
def test_a_time_since_the_start_goes_on_in_a_long_log(tmp_path: Path) -> None:
    """Its head lies within the first epoch."""
    rows = [{"epoch": k // 5000, "step": k % 5000 + 1, "loss": 0.5, "elapsed": 2.0 * (k + 1)} for k in range(10_000)]
    (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    said = measure_steps(gd.load_run(tmp_path))
    assert (said.step_s, said.pauses_s, said.logged_s) == (pytest.approx(2), 0, pytest.approx(2 * (len(rows) - 1)))


def test_a_time_since_each_epoch_began_is_that_of_the_epoch(tmp_path: Path) -> None:
    table(tmp_path / "log.csv", {**STEPS_OF_EPOCHS, "elapsed": [2.0 * (k % 10 + 1) for k in range(N)]})
    said = measure_steps(gd.load_run(tmp_path))
    assert (said.step_s, said.n_steps, said.logged_s) == (pytest.approx(2), N, pytest.approx(2 * N))


@pytest.mark.parametrize(("n_epochs", "n_resumed"), [(4, 0), (2, 1)])
def test_a_time_since_each_epoch_began_beside_steps_that_go_on(tmp_path: Path, n_epochs: int, n_resumed: int) -> None:
    """Where it begins anew with each epoch it is no resumption; what began anew once may be one."""
    each = N // n_epochs
    so_far_s = [2.0 * (k % each + 1) for k in range(N)]
    columns = {"epoch": [k // each for k in range(N)], **counted("step"), "elapsed": so_far_s}
    table(tmp_path / "log.csv", columns)
    said = measure_steps(gd.load_run(tmp_path))
    assert (said.step_s, said.n_resumed) == (pytest.approx(2), n_resumed)


def test_a_time_that_goes_on_at_some_epochs_alone_is_left(tmp_path: Path) -> None:
    """As where a training was resumed."""
    columns = {**STEPS_OF_EPOCHS, "elapsed": [2.0 * (k % 20 + 1) for k in range(N)]}
    said = table(tmp_path / "log.csv", columns)
    assert not column(said, "elapsed_s") and "'elapsed' begins anew at some of the places" in said.notes[1]


@pytest.mark.parametrize("text", [clock, words])
def test_lengths_of_time_since_the_start_as_text(tmp_path: Path, text: Any) -> None:
    said = table(tmp_path / "log.csv", {**counted("epoch"), "elapsed": [text(63.0 * (k + 1)) for k in range(N)]})
    assert column(said, "elapsed_s") == pytest.approx([63.0 * (k + 1) for k in range(N)])


@pytest.mark.parametrize("unit", [1, 1000])
def test_moments_by_other_names(tmp_path: Path, unit: int) -> None:
    said = table(tmp_path / "log.csv", {**counted("step"), "wall_time": [unit * (BEGIN_S + 2 * k) for k in range(N)]})
    assert said.clock == "utc" and said.steps["time"].iloc[0].timestamp() == BEGIN_S
    assert measure_steps(gd.load_run(tmp_path)).step_s == pytest.approx(2)


@pytest.mark.parametrize(
    ("of_row", "times"), [(5.0, "elapsed"), (0.5, "elapsed"), (5.0, "timestamp"), (0.5, "timestamp")]
)
def test_the_times_between_rows_say_what_a_length_of_time_is_of(tmp_path: Path, of_row: float, times: str) -> None:
    """Rows of 10 steps that take 5 s: 5 s are of all of them, 0.5 s of one."""
    begin_s = BEGIN_S if times == "timestamp" else 0
    clock_s = [begin_s + 5.0 * (k + 1) for k in range(N)]
    said = table(
        tmp_path / "log.csv", {**counted("step", 10), "dt": [of_row + k % 2 / 100 for k in range(N)], times: clock_s}
    )
    known = column(said, "step_s")[1:]
    assert known == pytest.approx([0.5] * (N - 1), rel=0.03)
    assert set(said.steps["meant"]) == {"window" if of_row == 5 else "running"}


UNCLEAR: dict[str, tuple[dict[str, list[Any]], str]] = {
    "of one step or of ten": ({**counted("step", 10), "dt": STEP_S}, "'dt' may be of one step or of all since"),
    "a name that says little": ({**counted("step"), "batch_time": STEP_S}, "'batch_time' may be times"),
    "of a step, by epochs": ({**counted("epoch"), "step_time": STEP_S}, "'step_time' is not of what the rows count"),
    "of an epoch, by steps": ({**counted("step"), "epoch_time": EPOCH_S}, "'epoch_time' is not of what the rows count"),
    "a length that grows": ({**counted("step"), "step_time": SO_FAR_S}, "'step_time' grows as a time since"),
    "a constant": ({**counted("step"), "dt": [0.01] * N}, "'dt' never changes"),
    "a time of day": (
        {**counted("epoch"), "time": [clock(50_000 + 660 * k) for k in range(N)]}, "'time' rises, but begins far"),
    "a time of day, of a short training": (
        {**counted("epoch"), "time": [clock(50_000 + 44 * k) for k in range(N)]}, "'time' rises, but begins far"),
    "a time of day, over midnight": (
        {**counted("epoch"), "time": [clock((86_200 + 44 * k) % 86_400) for k in range(N)]}, "but begins far"),
}  # fmt: skip


@pytest.mark.parametrize("what", UNCLEAR)
def test_what_is_unclear_is_no_time_and_said(tmp_path: Path, what: str) -> None:
    columns, reason = UNCLEAR[what]
    said = table(tmp_path / "log.csv", columns)
    assert not any(column(said, name) for name in ("step_s", "elapsed_s", "time"))
    first, second = said.notes
    assert "how long steps took is not known" in first and reason in second


def test_a_time_that_is_longer_than_the_rows_are_apart_is_not_used(tmp_path: Path) -> None:
    """Milliseconds under a name that says seconds."""
    columns = {
        **counted("step"),
        "timestamp": [BEGIN_S + k for k in range(N)],
        "step_time": [990.0 + k % 3 for k in range(N)],
    }
    said = table(tmp_path / "log.csv", columns)
    assert not column(said, "step_s") and "'step_time' is longer than the time between the rows" in said.notes[-1]


def test_the_time_of_an_epoch_where_each_row_is_one(tmp_path: Path) -> None:
    columns = {"epoch": list(range(N)), **counted("step", 250), "epoch_time": EPOCH_S}
    said = table(tmp_path / "log.csv", columns)
    assert column(said, "step_s")[1:] == pytest.approx([s / 250 for s in EPOCH_S[1:]]) and math.isnan(
        column(said, "step_s")[0]
    )


def test_rows_of_an_evaluation_at_the_same_step_do_not_hide_that_a_time_grows(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {
        "step": [k // 2 + 1 for k in range(N)],
        "loss": ["" if k % 2 else 0.5 for k in range(N)],
        "val_loss": [0.4 if k % 2 else "" for k in range(N)],
        "time": [3.0 * (k // 2 + 1) for k in range(N)],
    }
    said = table(tmp_path / "log.csv", columns)
    assert column(said, "elapsed_s") == pytest.approx([3.0 * (k + 1) for k in range(N // 2)])


@pytest.mark.parametrize(
    ("name", "values", "known", "expected"),
    [
        ("dt", STEP_S, "step_s", STEP_S),
        ("wall_time", SO_FAR_S, "elapsed_s", SO_FAR_S),
        ("dt_ms", [1000 * s for s in STEP_S], "step_s", STEP_S),
        ("elapsed", [clock(60 * k) for k in range(1, N + 1)], "elapsed_s", [60.0 * k for k in range(1, N + 1)]),
    ],
)
def test_of_json_lines(tmp_path: Path, name: str, values: list[Any], known: str, expected: list[float]) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(
        "".join(json.dumps({"step": k + 1, "loss": 0.5, name: value}) + "\n" for k, value in enumerate(values))
    )
    source = Source.open(path)
    assert step_jsonl.recognises(source)
    assert column(step_jsonl.read(source, ReadOptions(parse_zone("UTC"))), known) == pytest.approx(expected)


def test_of_json_lines_what_is_unclear_is_said(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(
        "".join(json.dumps({"step": 10 * (k + 1), "loss": 0.5, "dt": s}) + "\n" for k, s in enumerate(STEP_S))
    )
    said = step_jsonl.read(Source.open(path), ReadOptions(parse_zone("UTC")))
    assert not column(said, "step_s") and "'dt' may be of one step or of all" in said.notes[-1]


@pytest.mark.parametrize(
    "name",
    ["time_step", "timestep", "val_time", "eval/time", "s", "h", "epoch", "step", "per_epoch", "iter_s", "_runtime",
     "step_time_min", "batch_time", "loss_s", "data_time", "eval/steps_per_second", "train_steps_per_second",
     "batches_per_sec"],
)  # fmt: skip
def test_names_that_say_nothing_of_the_time_of_a_training(name: str) -> None:
    assert time_name(name) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0:01:00", 60), ("01:05", 65), ("1 day, 0:00:01", 86_401), ("2 days 00:00:01.5", 172_801.5), ("1m 03s", 63),
     ("1h2m3s", 3723), ("500ms", 0.5), ("12.5 s", 12.5), ("2 min 5 sec", 125), ("soon", math.nan), ("", math.nan),
     ("1:75", math.nan), ("-0:01:00", math.nan)],
)  # fmt: skip
def test_lengths_of_time_as_text(text: str, seconds: float) -> None:
    assert duration_s(text) == pytest.approx(seconds, nan_ok=True)


def test_a_resumed_elapsed_is_still_one() -> None:
    rows = [{"step": k, "loss": 0.5, "elapsed": 2.0 * (k % 20 + 1)} for k in range(40)]
    columns = TimeColumns(rows)
    assert [columns.told(row)["elapsed"] for row in rows] == [row["elapsed"] for row in rows]


def test_an_infinite_time_is_none() -> None:
    rows = [{"step": k, "loss": 0.5, "dt": math.inf if k % 2 else STEP_S[k]} for k in range(1, N)]
    columns = TimeColumns(rows)
    known = [columns.told(row).get("step_time", math.nan) for row in rows]
    assert known == pytest.approx([math.nan if k % 2 else STEP_S[k] for k in range(1, N)], nan_ok=True)
