"""README says what is true today: its commands run, its keys and links exist; outputs: tests/docs."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import click.testing
import nbformat
import pytest
from papermill.cli import papermill
from sampleruns import report_of
from typer.testing import CliRunner

from gpudiag.cli import app
from gpudiag.manifest import check_manifest
from gpudiag.report.sections import SECTIONS


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def elsewhere(root: Path, tmp_path: Path) -> Path:
    """A folder laid out as the repository is for a reader, in which commands may write."""
    for name in ("data", "notebooks"):
        (tmp_path / name).symlink_to(root / name)
    (tmp_path / "reports").mkdir()
    return tmp_path


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_python_lines_run(readme: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks(readme, "python")
    monkeypatch.chdir(elsewhere)
    exec(code.replace("hpo-aggressive-pruning", "healthy"), {})  # a smaller one
    assert (elsewhere / "reports" / "mine.html").stat().st_size > 10_000


@pytest.mark.slow
def test_the_notebook_runs_with_plain_papermill(readme: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It shows in every section what the diagnosis shows without a kernel."""
    (command,) = [c for block in blocks(readme, "sh") for c in block.splitlines() if c.startswith("papermill ")]
    monkeypatch.chdir(elsewhere)
    result = click.testing.CliRunner().invoke(papermill, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output[-2000:]
    expected = report_of(Path(shlex.split(command)[-1]).name) / "report.ipynb"
    shown = [
        [output.data for cell in nbformat.read(path, as_version=4).cells for output in cell.get("outputs", [])]
        for path in ("out.ipynb", expected)
    ]
    assert len(shown[0]) >= len(SECTIONS) - 1, "the sample has no training log"
    assert [number for number, (one, other) in enumerate(zip(*shown, strict=True)) if one != other] == []


def test_run_toml_keys_are_legal(readme: str) -> None:
    for block in blocks(readme, "toml"):
        check_manifest(tomllib.loads(block), "README.md")


@pytest.mark.slow
def test_commands_named_exist(readme: str) -> None:
    named = set(re.findall(r"(?:^|`|\$ )gpudiag ([a-z]+(?:-[a-z]+)*)", readme, flags=re.MULTILINE)) - {"reads"}
    for name in sorted(named):
        result = CliRunner().invoke(app, [name, "--help"])
        assert result.exit_code == 0 and "Usage:" in result.stdout, f"gpudiag {name}: {result.output}"


def test_links_lead_somewhere(readme: str, root: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", readme):
        if "://" not in target:
            assert (root / target).exists(), target


@pytest.mark.slow
def test_make_targets_exist(root: Path) -> None:
    if shutil.which("make") is None:
        pytest.skip("no make")
    command = ["make", "-n", "report", "test", "check", "lab", "samples", "docs"]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
