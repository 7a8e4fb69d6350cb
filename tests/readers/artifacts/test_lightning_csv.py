"""CSVLogger: alternating rows, the metric that is monitored, parameters beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import lightning_csv
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.readers.identify import identify
from gpudiag.timezones import parse_zone


def read(folder: Path, text: str) -> Trials:
    path = folder / "version_3" / "metrics.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    found = identify(Source.open(path))
    assert found is not None and found[1].name == "lightning-csv"
    return lightning_csv.read(Source.open(path), ReadOptions(parse_zone("UTC")))


def test_validation_loss_is_the_value(tmp_path: Path) -> None:
    text = "train_loss,epoch,step,val_loss\n0.9,0,9,\n,0,9,0.8\n0.7,1,19,\n,1,19,0.6\n"
    (tmp_path / "version_3").mkdir()
    (tmp_path / "version_3" / "hparams.yaml").write_text("lr: 0.01\nnet: {depth: 3}\n")
    out = read(tmp_path, text)
    (row,) = out.trials.to_dict("records")
    assert (row["study"], row["state"], row["value"]) == ("version_3", "COMPLETE", 0.6)
    assert (row["user_attrs.train_loss"], row["user_attrs.epochs"]) == (0.7, 2)
    assert (row["params.lr"], row["params.net"]) == (0.01, '{"depth": 3}')
    assert out.reports[["step", "value"]].to_numpy().tolist() == [[9, 0.8], [19, 0.6]]
    assert any("no times" in note for note in out.notes)


def test_a_header_written_anew_and_a_torn_row(tmp_path: Path) -> None:
    out = read(tmp_path, "epoch,step,loss\n0,0,5\nepoch,step,loss,val_acc\n1,1,4,0.5\n1,2,3\n")
    assert out.trials["value"].tolist() == [0.5]
    assert [(problem.kind, problem.line) for problem in out.problems] == [("row of another width", 5)]


@pytest.mark.parametrize(
    ("names", "metric"),
    [
        (["train_loss", "val_acc", "val_loss"], "val_loss"),
        (["train_loss", "val_acc"], "val_acc"),
        (["lr", "train_loss"], "train_loss"),
        (["lr", "acc"], "lr"),
    ],
)
def test_the_metric_chosen(names: list[str], metric: str) -> None:
    assert lightning_csv.monitored(names) == metric


def test_python_objects_in_hparams_are_not_made(tmp_path: Path) -> None:
    (tmp_path / "version_3").mkdir()
    (tmp_path / "version_3" / "hparams.yaml").write_text("!!python/object/apply:os.getcwd []\n")
    out = read(tmp_path, "epoch,step,loss\n0,0,5\n")
    assert [problem.kind for problem in out.problems] == ["hparams.yaml that is no plain YAML"]


@pytest.mark.parametrize("header", ["epoch,loss", "epoch,step", "timestamp,epoch,step,gpu_util", "step,loss"])
def test_other_tables_are_left_alone(tmp_path: Path, header: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(header + "\n0,1,2,3\n")
    assert not lightning_csv.recognises(Source.open(path))


def test_a_file_without_a_metric_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no metric"):
        read(tmp_path, "epoch,step,loss\n")


@pytest.mark.corpus
def test_a_real_file(corpus: Path) -> None:
    (path,) = (corpus / "artifacts" / "lightning_csv").glob("JIANG*.csv")
    out = lightning_csv.read(Source.open(path), ReadOptions(parse_zone("UTC")))
    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    values = [(int(row[3]), float(row[4])) for row in rows if row[4]]
    assert list(zip(out.reports["step"], out.reports["value"], strict=True)) == values
