"""Rules of one's own from the command line, run.toml and a report, through the real commands."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpudiag.cli import main

MODULE = '''
from gpudiag.measures import measure_memory
from gpudiag.rules import Evidence, rule


@rule(measure=measure_memory, severity="note", title="Room for the nightly job", remedy="Run one trial less at once.")
def nightly_room(memory, *, min_left_mib: float = 1e9):
    """The nightly job needs room. Source: its own log."""
    left = memory.per_gpu["headroom_mib"].min()
    return Evidence("Too little is left.", {"headroom_mib": left}) if left < min_left_mib else None
'''


@pytest.fixture
def place(samples: Path, tmp_path: Path) -> Path:
    """A working folder with a run in it, and beside it a folder of modules that may be imported."""
    shutil.copytree(samples / "healthy", tmp_path / "work" / "run")
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "nightly_rules.py").write_text(MODULE)
    return tmp_path / "work"


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def gpudiag(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(place)

    def call(*arguments: object, importable: bool = True) -> tuple[int, str, str]:
        code = 0
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["gpudiag", *map(str, arguments)])
            patch.delitem(sys.modules, "nightly_rules", raising=False)
            if importable:
                patch.syspath_prepend(place.parent / "modules")
            try:
                main()
            except SystemExit as stop:
                code = int(stop.code or 0)
        sys.modules.pop("nightly_rules", None)
        out = capsys.readouterr()
        return code, out.out, out.err

    return call


def judged(text: str) -> dict[str, str]:
    return {verdict["rule"]: verdict["status"] for verdict in json.loads(text)["verdicts"]}


@pytest.mark.slow
@pytest.mark.parametrize("named", ["nightly_rules", "../modules/nightly_rules.py"])
def test_a_diagnosis_judges_by_it(gpudiag: Call, named: str) -> None:
    code, out, err = gpudiag("diagnose", "run", "--rules", named, "--format", "json")
    assert code == 0, err
    assert judged(out)["nightly-room"] == "found" and len(judged(out)) > 20


@pytest.mark.slow
def test_run_toml_names_it_and_its_limit(gpudiag: Call, place: Path) -> None:
    toml = place / "run" / "run.toml"
    limit = "\n[rules.nightly-room]\nmin_left_mib = 0.5\n"
    toml.write_text('rule_modules = ["nightly_rules"]\n' + toml.read_text() + limit)
    code, out, err = gpudiag("diagnose", "run", "--format", "json")
    assert code == 0, err
    assert judged(out)["nightly-room"] == "ok"
    assert "there is no module 'nightly_rules'" in gpudiag("diagnose", "run", importable=False)[2]
    toml.write_text(toml.read_text().replace('"nightly_rules"', '"./nightly_rules.py"'))
    code, _, err = gpudiag("diagnose", "run")
    assert code == 2 and "expected an import path" in err


@pytest.mark.slow
def test_the_folder_of_the_run_brings_no_code(gpudiag: Call, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.move(place.parent / "modules" / "nightly_rules.py", place / "run")
    toml = place / "run" / "run.toml"
    toml.write_text('rule_modules = ["nightly_rules"]\n' + toml.read_text())
    with monkeypatch.context() as patch:
        patch.chdir(place / "run")
        assert "there is no module" in gpudiag("diagnose", ".")[2]
    (place.parent / "modules").rmdir()
    (place.parent / "modules").symlink_to(place / "run")
    code, _, err = gpudiag("diagnose", "run")
    assert code == 2 and "lies in the folder of the run" in err


def test_rules_are_listed_and_explained_with_it(gpudiag: Call) -> None:
    _, listed, _ = gpudiag("rules", "list", "--rules", "nightly_rules")
    assert "nightly-room" in listed and "gpu-unused" in listed
    _, explained, _ = gpudiag("rules", "explain", "nightly-room", "--rules", "../modules/nightly_rules.py")
    assert "The nightly job needs room." in explained


@pytest.mark.slow
def test_a_report_judges_by_it(gpudiag: Call, place: Path) -> None:
    given = ("--rules", "../modules/nightly_rules.py", "-o", "out", "-p", "minimal=true")
    code, _, err = gpudiag("report", "run", *given, importable=False)
    assert code == 0, err
    assert judged((place / "out" / "diagnosis.json").read_text())["nightly-room"] == "found"
    assert "Room for the nightly job" in (place / "out" / "report.html").read_text()
