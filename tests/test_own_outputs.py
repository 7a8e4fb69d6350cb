"""Reports and plans that lie in a run's folder are no files of the run, and none that somebody must be told of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import gpudiag as gd
from gpudiag._load.folder import walk
from gpudiag._load.inspection import inspect
from gpudiag._load.own_outputs import is_own_output
from gpudiag.errors import UnknownInput
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
