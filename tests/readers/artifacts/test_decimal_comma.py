"""Tables whose numbers have a decimal comma, as spreadsheets of much of Europe write them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag.readers._io.csv_records import OPEN_COMMA, has_decimal_comma
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import metrics_csv, task_csv
from gpudiag.readers.base import ReadOptions
from gpudiag.readers.trials import trials_csv
from gpudiag.timezones import parse_zone

UTC = ReadOptions(parse_zone("UTC"))


def comma(number: float, digits: int = 2) -> str:
    return f"{number:.{digits}f}".replace(".", ",")


def table(path: Path, header: str, rows: Sequence[Sequence[object]], delimiter: str = ";") -> Source:
    lines = (header.split(";"), *rows)
    path.write_text("".join(delimiter.join(map(str, row)) + "\n" for row in lines))
    return Source.open(path)


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_metrics_of_a_training(tmp_path: Path, delimiter: str) -> None:
    rows = [(k, comma(2 / k), comma(1.5 * k)) for k in range(1, 30)]
    said = metrics_csv.read(table(tmp_path / "log.csv", "step;loss;time", rows, delimiter), UTC)
    assert said.steps["elapsed_s"].tolist() == pytest.approx([1.5 * k for k in range(1, 30)])
    assert said.notes == ("log.csv: 29 lines on steps of training (CSV).",) and not said.problems


def test_metrics_whose_commas_are_quoted(tmp_path: Path) -> None:
    rows = [(k, f'"{comma(2 / k)}"', f'"{comma(1.5 * k)}"') for k in range(1, 30)]
    said = metrics_csv.read(table(tmp_path / "log.csv", "step;loss;time", rows, ","), UTC)
    assert said.steps["elapsed_s"].iloc[-1] == pytest.approx(43.5)


def test_a_scalar_that_tensorboard_exports(tmp_path: Path) -> None:
    rows = [(comma(1_767_607_200.5 + k), 10 * k, comma(2 / k)) for k in range(1, 30)]
    said = metrics_csv.read(table(tmp_path / "loss.csv", "Wall time;Step;Value", rows), UTC)
    assert said.steps["time"].iloc[0].timestamp() == 1_767_607_201.5


def test_trials_and_tasks(tmp_path: Path) -> None:
    rows = [(k, "COMPLETE", comma(0.5 + k / 100), comma(0.01 * k)) for k in range(20)]
    got = trials_csv.READER.read(table(tmp_path / "trials.csv", "number;state;value;params_lr", rows), UTC)
    assert got.trials["value"].iloc[-1] == pytest.approx(0.69) and got.trials["params.lr"].iloc[-1] == pytest.approx(
        0.19
    )
    tasks = [(f"t{k}", "completed", comma(50 + k / 10)) for k in range(20)]
    done = task_csv.READER.read(table(tmp_path / "tasks.csv", "name;status;duration", tasks), UTC)
    assert done.trials["duration_s"].tolist() == pytest.approx([50 + k / 10 for k in range(20)])


def test_a_comma_that_may_set_thousands_apart_is_said_and_not_read(tmp_path: Path) -> None:
    rows = [(k, 1, f"{1 + k},500") for k in range(1, 30)]
    said = metrics_csv.read(table(tmp_path / "log.csv", "step;loss;time", rows), UTC)
    assert "elapsed_s" not in said.steps
    assert [(one.kind, one.count, one.line, one.example) for one in said.problems] == [(OPEN_COMMA, 29, 2, "2,500")]


def test_text_in_cells_that_commas_part_stays_text(tmp_path: Path) -> None:
    """Two widths of layers are no number."""
    rows = [(k, "COMPLETE", 1, '"64,32"') for k in range(20)]
    got = trials_csv.READER.read(table(tmp_path / "trials.csv", "number;state;value;params_layers", rows, ","), UTC)
    assert set(got.trials["params.layers"]) == {"64,32"}


@pytest.mark.parametrize(
    ("cells", "is_so"),
    [(["0,53"], True), (["1,5", "2"], True), (["-0,001", "1,234"], True), (["1,5e-3"], True), (["0,53", "0.53"], False),
     (["1,234", "12,345"], False), ([], False), (["1,2,3"], False), (["a,b"], False)],
)  # fmt: skip
def test_what_a_comma_means(cells: list[str], is_so: bool) -> None:
    assert has_decimal_comma(cells) == is_so


def test_a_run_of_such_a_table(tmp_path: Path) -> None:
    table(tmp_path / "log.csv", "epoch;loss;epoch_time", [(k, comma(1 / (k + 1)), comma(63.2)) for k in range(20)])
    assert gd.load_run(tmp_path).steps["step_s"].median() == pytest.approx(63.2)
