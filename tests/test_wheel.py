"""What is installed from a wheel, far from the checkout, does what the checkout does."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh environment with our wheel; the libraries it needs are borrowed from this one."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(build, check=True, cwd=folder, env={**os.environ, "PIP_CONSTRAINT": ""})
    (wheel,) = folder.glob("gpudiag-*.whl")
    venv.create(folder / "env", with_pip=False, symlinks=True)
    bin_folder = folder / "env" / "bin"
    install = [sys.executable, "-m", "pip", "--python", str(bin_folder / "python"), "install", "--quiet", "--no-deps"]
    install += ["--no-compile", str(wheel)]
    subprocess.run(install, check=True, cwd=folder, env={**os.environ, "PIP_CONSTRAINT": ""})
    (site,) = (folder / "env" / "lib").glob("python*/site-packages")
    # A folder named in a .pth file is searched, but .pth files within it are not read: no editable gpudiag comes along.
    (site / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
    (folder / "env" / "share").symlink_to(Path(sys.prefix) / "share")  # nbconvert's templates
    return bin_folder


def run(bin_folder: Path, folder: Path, *arguments: str, name: str = "gpudiag") -> str:
    command = [str(bin_folder / name), *arguments]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_report_is_made_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    where = run(installed, tmp_path, "-c", "import gpudiag; print(gpudiag.__file__)", name="python")
    assert where.startswith(str(installed.parent))
    run(installed, tmp_path, "demo", "--case", "healthy", "-o", "mine")
    run(installed, tmp_path, "report", "mine", "-o", "out", "--strict", "-p", "minimal=true")
    assert (tmp_path / "out" / "report.html").stat().st_size > 50_000
    assert (tmp_path / "out" / "diagnosis.json").is_file()


def test_every_file_came_along_and_no_other(installed: Path) -> None:
    """Notebooks, schemas, templates, scripts of the page with their license, those for Slurm, py.typed."""
    own = {path: path.relative_to(ROOT) for path in _files(ROOT / "gpudiag")}
    own |= {path: Path("gpudiag") / path.relative_to(ROOT) for path in _files(ROOT / "notebooks")}
    (site,) = installed.parent.glob("lib/python*/site-packages")
    there = {path.relative_to(site): path.read_bytes() for path in _files(site / "gpudiag")}
    assert there == {name: path.read_bytes() for path, name in own.items()}


def _files(folder: Path) -> list[Path]:
    hidden = ("__pycache__", ".ipynb_checkpoints")
    return [path for path in folder.rglob("*") if path.is_file() and not set(hidden) & set(path.parts)]


def test_a_notebook_of_its_own_is_found(installed: Path, tmp_path: Path) -> None:
    run(installed, tmp_path, "notebooks", "copy", "tour")
    assert (tmp_path / "tour.ipynb").is_file()
