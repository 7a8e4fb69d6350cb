"""run_notebook: parameters checked first, failures named, nothing half-written, no trace left elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import sys
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import nbformat
import psutil
import pytest

from gpudiag.errors import ConfigError, InputNotFound, ReportError
from gpudiag.report._notebook import kernel as kernels
from gpudiag.report._notebook import runner
from gpudiag.report._notebook.kernel import keeping_kernel
from gpudiag.report._notebook.locate import find_notebook
from gpudiag.report._notebook.parameters import check_parameters
from gpudiag.report._notebook.runner import run_notebook

PARAMETERS = (
    'path = "a"  # a path\ncount = 3  # a number\nshare = 0.5  # a share\nflag = False  # a flag\nitems = []  # a list'
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A PNG."""

Make = Callable[..., Path]


@pytest.fixture
def notebook(tmp_path: Path) -> Make:
    """Write a notebook with a parameters cell, then a heading and a cell for each source."""

    def make(*sources: str, folder: str = "nb") -> Path:
        cells = [nbformat.v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]})]
        for number, source in enumerate(sources, 1):
            cells.append(nbformat.v4.new_markdown_cell(f"## Part {number}"))
            cells.append(nbformat.v4.new_code_cell(source))
        path = tmp_path / folder / "small.ipynb"
        path.parent.mkdir(exist_ok=True)
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        return path

    return make


def test_unknown_parameters_are_refused_with_the_nearest_name(notebook: Make, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="notebook small has no parameter 'cuont'; did you mean 'count'"):
        run_notebook(notebook("1/0"), tmp_path / "out", {"cuont": 3})
    assert not (tmp_path / "out").exists()


def test_text_is_read_as_the_type_of_the_default(notebook: Make) -> None:
    path = notebook()
    given = {"path": Path("x/y"), "count": "7", "share": "1", "flag": "True", "items": "a.csv, b.csv"}
    assert check_parameters(path, given) == {
        "path": "x/y", "count": 7, "share": 1, "flag": True, "items": ["a.csv", "b.csv"],
    }  # fmt: skip
    assert check_parameters(path, {"items": '["a,b.csv"]', "path": "2024"}) == {"items": ["a,b.csv"], "path": "2024"}
    assert check_parameters(path, {"items": (Path("a"), 1)}) == {"items": ["a", 1]}
    assert check_parameters(path, {"path": 2024, "count": 4}) == {"path": "2024", "count": 4}
    for wrong in ("many", "true", "1.5"):
        with pytest.raises(ConfigError, match=f"parameter 'count' must be like 3, but got '{wrong}'"):
            check_parameters(path, {"count": wrong})
    with pytest.raises(ConfigError, match="parameter 'path' must be text, a number, a list or a mapping"):
        check_parameters(path, {"path": object()})


def test_notebooks_are_found_by_name_and_by_path(notebook: Make) -> None:
    assert find_notebook("run_report").name == find_notebook("run_report.ipynb").name == "run_report.ipynb"
    path = notebook()
    assert find_notebook(path) == path
    with pytest.raises(ConfigError, match="there is no notebook 'run_reprot'; did you mean 'run_report'"):
        find_notebook("run_reprot")


def test_what_is_no_notebook_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.ipynb").write_text("hello")
    with pytest.raises(ConfigError, match=r"x\.ipynb: is not a notebook"):
        check_parameters(tmp_path / "x.ipynb", {"a": 1})


@pytest.mark.slow
def test_braces_and_spaces_in_paths_are_only_characters_and_passwords_of_urls_are_not_kept(
    notebook: Make, tmp_path: Path
) -> None:
    path = notebook("print(path, items)", folder="a {b} c")
    given = {"path": "postgresql://me:s3cret@db.example/study", "items": [tmp_path / "{y}"]}
    files = run_notebook(path, tmp_path / "out {x}", given)
    assert files.html.parent == tmp_path / "out {x}"
    assert f"{tmp_path}/{{y}}" in files.md.read_text()
    for file in files:
        assert "s3cret" not in file.read_text() and "me:***@db.example" in file.read_text()


@pytest.mark.slow
def test_the_cell_that_fails_is_named_and_the_copy_kept(notebook: Make, tmp_path: Path) -> None:
    path = notebook("1", "raise KeyError('lost')")
    out = tmp_path / "out"
    with pytest.raises(ReportError) as failure:
        run_notebook(path, out, {})
    copy = out / "report.failed.ipynb"
    assert str(failure.value) == (f"notebook small, cell 3 (Part 2): KeyError: 'lost'; executed copy kept at {copy}")
    assert [p.name for p in out.iterdir()] == ["report.failed.ipynb"]
    assert "lost" in copy.read_text()


@pytest.mark.slow
def test_a_kernel_that_dies_is_named(notebook: Make, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"notebook small, cell 2 \(Part 1\): the kernel died"):
        run_notebook(notebook("import os; os._exit(9)"), tmp_path / "out", {})


@pytest.mark.slow
def test_a_kernel_that_cannot_start_is_named(notebook: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(ReportError, match="notebook small: the kernel did not start"):
        run_notebook(notebook("1"), tmp_path / "out", {})
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_bad_input_surfaces_as_itself_and_nothing_is_written(notebook: Make, tmp_path: Path) -> None:
    path = notebook("import gpudiag.errors as e", "raise e.InputNotFound('x.csv: no such file; check the path.')")
    with pytest.raises(InputNotFound) as failure:
        run_notebook(path, tmp_path / "out", {})
    assert str(failure.value) == "x.csv: no such file; check the path."
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_no_kernel_need_be_installed_and_home_stays_clean(
    notebook: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture
) -> None:
    from jupyter_client.kernelspec import KernelSpecManager

    def refuse(self: KernelSpecManager, name: str) -> None:
        raise AssertionError(f"looked for the installed kernel {name}")

    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", refuse)
    monkeypatch.setenv("HOME", str(home))
    for name in [name for name in os.environ if name.startswith(("JUPYTER", "IPYTHON", "XDG"))]:
        monkeypatch.delenv(name)
    files = run_notebook(notebook("import sys; print(sys.executable)"), tmp_path / "out", {})
    assert sys.executable in files.md.read_text()
    assert list(home.rglob("*")) == []
    assert capfd.readouterr() == ("", "")


SEEN = 'import os\nknown = "left" in dir(); left = 1\nassert not known\nprint(os.getpid())'


@pytest.mark.slow
def test_a_kernel_that_is_kept_knows_nothing_of_the_notebook_before(
    notebook: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = notebook(SEEN)
    fails = notebook("raise ValueError", folder="fails")
    monkeypatch.setattr(runner, "is_shipped", lambda path: path in (ours, fails))

    def pid() -> int:
        made = nbformat.read(run_notebook(ours, tmp_path / "out", {}).ipynb, as_version=4)
        code = [cell for cell in made.cells if cell.cell_type == "code"]
        assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
        return int(code[-1].outputs[0].text)

    with keeping_kernel():
        first = pid()
        assert pid() == first and psutil.pid_exists(first)
        monkeypatch.setattr(kernels, "MOST_MIB", 0)
        assert pid() == first
        monkeypatch.undo()
        monkeypatch.setattr(runner, "is_shipped", lambda path: path in (ours, fails))
        second = pid()
        assert second != first and not psutil.pid_exists(first), "it had become large"
        with pytest.raises(ReportError):
            run_notebook(fails, tmp_path / "out", {})
        assert not psutil.pid_exists(second), "something failed in it"
        third = pid()
        psutil.Process(third).kill()
        fourth = pid()
        assert fourth != third, "one that has died meanwhile is no fault of the next report"
    assert not psutil.pid_exists(fourth)


@pytest.mark.slow
def test_a_report_replaces_the_one_before(notebook: Make, tmp_path: Path) -> None:
    out, png = tmp_path / "out", notebook("1").parent / "x.png"
    png.write_bytes(b64decode(PIXEL))
    first = run_notebook(notebook(f"from IPython.display import Image; Image({str(png)!r})"), out, {})
    assert "![" in first.md.read_text() and len(list((out / "report_files").iterdir())) == 1
    (out / "report_files" / "mine.txt").write_text("keep")
    (out / "diagnosis.json").write_text('{"schema": "gpudiag.diagnosis/4"}')
    second = run_notebook(notebook("print('no picture')"), out, {})
    assert "no picture" in second.md.read_text()
    assert [p.name for p in (out / "report_files").iterdir()] == ["mine.txt"]
    assert not (out / "diagnosis.json").exists(), "it is of the report before"
    metadata = json.loads(second.ipynb.read_text())["metadata"]["papermill"]
    assert (metadata["input_path"], metadata["output_path"]) == ("small.ipynb", "report.ipynb")
