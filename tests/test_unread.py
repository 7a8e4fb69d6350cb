"""An input that was found and could not be read is said where everybody looks, and counts for --fail-on."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import gpudiag as gd
from gpudiag.errors import StudyNotFound

HEALTHY = Path(__file__).resolve().parent.parent / "data" / "samples" / "healthy"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log and a study, without a run.toml: both are found by content."""
    run = tmp_path / "run"
    run.mkdir()
    for name in ("gpu.csv", "optuna.db"):
        shutil.copy(HEALTHY / name, run)
    return run


def study_of(database: Path) -> str:
    with sqlite3.connect(database) as held:
        return str(held.execute("SELECT study_name FROM studies").fetchone()[0])


@pytest.fixture
def damaged(folder: Path) -> Path:
    """The page that lists the studies is noise."""
    with sqlite3.connect(folder / "optuna.db") as held:
        (page,) = held.execute("SELECT rootpage FROM sqlite_master WHERE name = 'studies'").fetchone()
        (size,) = held.execute("PRAGMA page_size").fetchone()
    whole = (folder / "optuna.db").read_bytes()
    (folder / "optuna.db").write_bytes(whole[: (page - 1) * size] + b"\xa5" * size + whole[page * size :])
    return folder


@pytest.mark.slow
def test_every_output_says_that_a_study_was_not_read(gpudiag: Any, damaged: Path, tmp_path: Path) -> None:
    code, out, _ = gpudiag("diagnose", damaged, "--timezone", "UTC", "--format", "json")
    document = json.loads(out)
    (verdict,) = [v for v in document["verdicts"] if v["rule"] == "input-unread"]
    assert code == 0 and (verdict["status"], verdict["severity"]) == ("found", "warning")
    assert "optuna.db" in verdict["summary"] and verdict["evidence"] == {"n_unread": 1, "n_inputs": 2}
    assert document["headline"]["level"] in ("warning", "critical") and document["run"]["n_samples"] > 1000
    said = "1 input could not be read"
    assert said in document["headline"]["verdict"]
    for form in ("text", "md", "github", "junit"):
        code, out, _ = gpudiag("diagnose", damaged, "--timezone", "UTC", "--format", form, "--fail-on", "warning")
        assert code == 1 and said in out.replace("\n  ", " ") and "optuna.db" in out, form
    failures = [case for case in ElementTree.fromstring(out).iter("testcase") if case.find("failure") is not None]
    assert any(case.attrib["name"].startswith("input-unread") for case in failures)
    report = gd.diagnose(gd.load_run(damaged, timezone="UTC")).show.verdict._repr_html_()
    assert said in report.replace("&nbsp;", " ")


@pytest.mark.slow
def test_a_study_that_a_writer_locks_is_said_and_the_log_is_diagnosed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpudiag.readers.trials import optuna_sqlite

    def locked(*given: object, **named: object) -> None:
        raise gd.InputError("optuna.db: the database is locked by a writer.")

    monkeypatch.setattr(optuna_sqlite, "_stored", locked)
    found = gd.diagnose(gd.load_run(folder, timezone="UTC"))
    assert found.fails("warning") and "utilization" in found.profiles
    assert [v.status.value for v in found.verdicts if v.rule == "input-unread"] == ["found"]


@pytest.mark.parametrize("command", ["diagnose", "whatif", "export"])
def test_a_study_that_is_named_and_not_there_is_an_error_that_names_those_there_are(
    gpudiag: Any, folder: Path, command: str
) -> None:
    code, out, err = gpudiag(command, folder, "--study", "typo")
    assert (code, out) == (2, "") and "has no study 'typo'" in err and f"'{study_of(folder / 'optuna.db')}'" in err
    (folder / "run.toml").write_text('study = "typo"\n', encoding="utf-8")
    code, out, err = gpudiag(command, folder)
    assert (code, out) == (2, "") and "has no study 'typo'" in err


def test_a_study_of_telemetry_alone_is_not_there_either(folder: Path) -> None:
    (folder / "optuna.db").unlink()
    with pytest.raises(StudyNotFound, match="has no study 'typo'; it holds no study at all"):
        gd.load_run(folder, study="typo")


@pytest.mark.slow
def test_it_is_no_fault_of_another_storage_that_it_does_not_hold_the_study(folder: Path) -> None:
    shutil.copytree(
        HEALTHY.parent / "hpo-aggressive-pruning", folder / "other", ignore=shutil.ignore_patterns("run.toml")
    )
    name = study_of(folder / "optuna.db")
    run = gd.load_run(folder, study=name, timezone="UTC")
    assert set(run.trials["study"]) == {name} and not any(record.error for record in run.info.inputs)
    (left,) = [r for r in run.info.inputs if any(note.startswith("Left out: ") for note in r.notes)]
    assert f"has no study '{name}'" in left.notes[0]
    assert [v.status.value for v in gd.diagnose(run).verdicts if v.rule == "input-unread"] == ["not_applicable"]


@pytest.mark.slow
@pytest.mark.parametrize("kept", [100, 4096, 20_000])
def test_a_study_cut_before_its_tables_is_no_file_of_another_kind(gpudiag: Any, folder: Path, kept: int) -> None:
    whole = (folder / "optuna.db").read_bytes()
    (folder / "optuna.db").write_bytes(whole[:kept])
    code, out, _ = gpudiag("diagnose", folder, "--timezone", "UTC", "--fail-on", "warning")
    assert code == 1 and "well used" in out and "1 input could not be read" in out


@pytest.mark.slow
def test_a_study_of_which_half_is_left_is_said_to_be_cut(gpudiag: Any, folder: Path) -> None:
    whole = (HEALTHY.parent / "hpo-aggressive-pruning" / "optuna.db").read_bytes()
    (folder / "optuna.db").write_bytes(whole[: len(whole) // 2])
    run = gd.load_run(folder, timezone="UTC")
    assert 0 < len(run.trials) < 200
    (found,) = [v for v in gd.diagnose(run).findings if v.rule == "input-unread"]
    assert "part of a table cannot be read" in found.summary and found.where["path"] == "optuna.db"
    assert gpudiag("diagnose", folder, "--timezone", "UTC", "--fail-on", "warning")[0] == 1


@pytest.mark.parametrize("period", [-1, float("nan"), float("inf"), "x", True])
def test_a_period_that_is_none_is_refused(folder: Path, period: Any) -> None:
    with pytest.raises(gd.ConfigError, match="period_s"):
        gd.load_run(folder / "gpu.csv", period_s=period)
