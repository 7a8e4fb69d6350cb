"""Reports and plans that lie in a run's folder are no files of the run, and none that somebody must be told of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from commandline import called

import gpudiag as gd
from gpudiag._load.folder import walk
from gpudiag._load.inspection import inspect
from gpudiag._load.own_outputs import is_own_output
from gpudiag.errors import UnknownInput
from gpudiag.fleets.found import runs_below
from gpudiag.readers._io.source import Source

EXAMPLE = Path(__file__).parent.parent / "reports" / "examples" / "hpo-aggressive-pruning"


@pytest.fixture
def reported(samples: Path, tmp_path: Path) -> Path:
    """A folder without run.toml that holds a log and what reports of it leave."""
    shutil.copy(samples / "tiny-batch-laptop" / "gpu.csv", tmp_path)
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    for name in ("report.ipynb", "report.failed.ipynb", "gpudiag.toml"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "plan.json").write_text('{"schema": "gpudiag.plan/1", "run": "x"}')
    return tmp_path


@pytest.mark.slow
def test_they_are_passed_over(reported: Path) -> None:
    assert [source.path.name for source, _ in walk(reported)] == ["gpu.csv"]
    assert [Path(record.path).name for record in inspect([reported])] == ["gpu.csv"]
    assert not [note for note in gd.load_run(reported).info.notes if "other file" in note]


def test_a_report_under_another_name(reported: Path) -> None:
    for name in ("report.html", "report.md", "report_files"):
        (reported / name).rename(reported / name.replace("report", "mine"))
    (reported / "report.ipynb").unlink()
    assert [source.path.name for source, _ in walk(reported)] == ["gpu.csv"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes.md", "# what I did"),
        ("report.md", "# mine, without a page beside it"),
        ("page.html", "<html><meta name='generator' content='quarto'></html>"),
        ("other.json", '{"schema": "somebody.else/1"}'),
        ("deep.json", '{"inner": {"schema": "gpudiag.diagnosis/4"}}'),
    ],
)
def test_what_others_wrote_is_told(tmp_path: Path, samples: Path, name: str, text: str) -> None:
    shutil.copy(samples / "tiny-batch-laptop" / "gpu.csv", tmp_path)
    (tmp_path / name).write_text(text)
    assert not is_own_output(Source.open(tmp_path / name))
    assert any(name in note for note in gd.load_run(tmp_path).info.notes)


@pytest.mark.slow
def test_every_document_is_known_by_its_first_key(samples: Path, tmp_path: Path) -> None:
    run = gd.load_run(samples / "tiny-batch-laptop")
    d = gd.diagnose(run)
    made = {"diagnosis": d.to_json(), "comparison": gd.compare(run, run).to_json()}
    for name, text in made.items():
        (tmp_path / name).write_text(text)
    d.save_plan(tmp_path / "plan")
    for name in (*made, "plan"):
        assert json.loads((tmp_path / name).read_text())["schema"].startswith("gpudiag.")
        assert is_own_output(Source.open(tmp_path / name))


def test_a_folder_of_reports_alone_is_not_called_empty(reported: Path) -> None:
    (reported / "gpu.csv").unlink()
    with pytest.raises(UnknownInput, match="passed over: what gpudiag left there"):
        gd.load_run(reported)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_export_is_no_run_and_said_to_be_one(
    form: str, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the tables as CSV, that of samples was read by itself, and the others were inputs that could not be read."""
    assert called(monkeypatch, "export", samples / "healthy", "--to", form, "-o", tmp_path / "out") == 0
    assert (tmp_path / "out" / f"trials.{form}").is_file() and (tmp_path / "out" / f"gpu.{form}").is_file()
    with pytest.raises(
        UnknownInput, match=r"passed over: what gpudiag left there \(gpu\..*Give what the run was read from"
    ):
        gd.load_run(tmp_path / "out")
    assert runs_below([tmp_path]).runs == ()
    capsys.readouterr()
    assert called(monkeypatch, "inspect", tmp_path / "out") == 2
    assert "no file to read" in capsys.readouterr().err


@pytest.mark.slow
def test_an_export_beside_its_run_changes_nothing(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gpu.csv", "optuna.db"):
        shutil.copy(samples / "healthy" / name, tmp_path)
    alone = gd.load_run(tmp_path)
    assert called(monkeypatch, "export", tmp_path, "--to", "csv", "-o", tmp_path / "tables") == 0
    both = gd.load_run(tmp_path)
    assert (
        len(both.gpu) == len(alone.gpu)
        and both.info.inputs == alone.info.inputs
        and both.info.notes == alone.info.notes
    )


def test_tables_without_the_ledger_of_an_export_are_told(samples: Path, tmp_path: Path) -> None:
    """A table of trials that lies among somebody's files is no export that was left there."""
    shutil.copy(samples / "healthy" / "gpu.csv", tmp_path)
    (tmp_path / "trials.csv").write_text("study,trial,state,start,end\ns,0,COMPLETE,2026-03-01,2026-03-02\n")
    (record,) = [one for one in gd.load_run(tmp_path).info.inputs if one.path == "trials.csv"]
    assert record.error is not None and "is table trials of gpudiag export" in record.error
