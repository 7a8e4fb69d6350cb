"""What is installed by the action for GitHub, far from the checkout, does what the checkout does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from actionrunner import ROOT, Runner

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")]


@pytest.fixture
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of the fresh environment into which the action installs a wheel; the libraries it needs are
    borrowed from this one.
    """
    folder = tmp_path_factory.mktemp("wheel")
    # A folder named in a .pth file is searched, but .pth files within it are not read: no editable gpudiag comes along.
    libraries = sysconfig.get_paths()["purelib"]
    borrow = f'for site in "$3"/lib/python*/site-packages; do echo "{libraries}" > "$site/borrowed.pth"; done'
    python = folder / "python"
    python.write_text(f'#!/bin/sh\n"{sys.executable}" "$@" || exit\ntest "$2" != venv || {borrow}\n')
    python.chmod(0o755)
    runner = Runner(folder, folder)
    runner.values["steps.python.outputs.python-path || 'python3'"] = str(python)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PIP_CONSTRAINT", "PYTHONPATH"):
            patch.delenv(name, raising=False)
        done = runner.run("Install gpudiag")
    assert done.returncode == 0, done.stderr
    name, _, command = runner.output.read_text().strip().partition("=")
    assert name == "gpudiag" and Path(command).is_relative_to(runner.temp)
    bin_folder = Path(command).parent
    (bin_folder.parent / "share").symlink_to(Path(sys.prefix) / "share")  # nbconvert's templates
    return bin_folder


def run(bin_folder: Path, folder: Path, *arguments: str, name: str = "gpudiag") -> str:
    command = [str(bin_folder / name), *arguments]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_file_came_along_and_no_other_and_a_report_is_made_in_an_empty_folder(
    installed: Path, tmp_path: Path
) -> None:
    """One test, since to install takes longest. Notebooks, schemas, templates, scripts of the page with their license,
    those for Slurm, py.typed.
    """
    own = {path: path.relative_to(ROOT) for path in _files(ROOT / "gpudiag")}
    own |= {path: Path("gpudiag") / path.relative_to(ROOT) for path in _files(ROOT / "notebooks")}
    (site,) = installed.parent.glob("lib/python*/site-packages")
    there = {path.relative_to(site): path.read_bytes() for path in _files(site / "gpudiag")}
    assert there == {name: path.read_bytes() for path, name in own.items()}

    where = run(installed, tmp_path, "-c", "import gpudiag; print(gpudiag.__file__)", name="python")
    assert where.startswith(str(installed.parent))
    shutil.copytree(ROOT / "data" / "samples" / "tiny-batch-laptop", tmp_path / "mine")
    run(installed, tmp_path, "report", "mine", "-o", "out", "--strict", "-p", "minimal=true")
    assert (tmp_path / "out" / "report.html").stat().st_size > 50_000
    assert (tmp_path / "out" / "diagnosis.json").is_file()


def _files(folder: Path) -> list[Path]:
    hidden = ("__pycache__", ".ipynb_checkpoints")
    return [path for path in folder.rglob("*") if path.is_file() and not set(hidden) & set(path.parts)]
