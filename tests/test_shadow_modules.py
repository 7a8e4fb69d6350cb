"""A .py file among the data is data: no command that is started in its folder imports it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from gpudiag.interpreter import module_command

MARKER = "imported.txt"
NAMES = (
    *("contextlib", "importlib", "warnings", "ipykernel_launcher", "collections", "functools", "pathlib", "json"),
    *("gpudiag", "matplotlib", "pandas", "polars", "pydantic", "scipy", "tzlocal", "optuna", "IPython", "traitlets"),
    *("usercustomize", "sitecustomize", "charset_normalizer", "fontTools", "tzdata", "annotated_types"),
)


@pytest.fixture
def hostile(samples: Path, tmp_path: Path) -> Path:
    """Two runs in one folder; it and each run hold files that leave a mark when they are imported."""
    for name in ("one", "two"):
        shutil.copytree(samples / "healthy", tmp_path / name)
    for folder in (tmp_path, tmp_path / "one", tmp_path / "two"):
        for name in NAMES:
            mark = f"open({str(tmp_path / MARKER)!r}, 'a').write(__file__ + chr(10))\nraise ImportError(__file__)\n"
            (folder / f"{name}.py").write_text(mark, encoding="utf-8")
    return tmp_path


def run_in(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=dict(os.environ))


def imported(folder: Path) -> str:
    mark = folder / MARKER
    return mark.read_text(encoding="utf-8") if mark.exists() else ""


def test_the_files_do_leave_a_mark_where_the_folder_is_on_the_path(hostile: Path) -> None:
    done = run_in(hostile / "one", [sys.executable, "-c", "import pandas"])
    assert done.returncode == 1 and imported(hostile).startswith(str(hostile / "one"))


@pytest.mark.slow
def test_commands_import_nothing_from_the_folder_of_the_run(hostile: Path) -> None:
    """One process for all: what an earlier command imported from elsewhere, no later one can import from here. The
    report comes first, since it imports most. Its kernel is a process of its own; what makes those of a batch is one.
    """
    commands = (
        ("report", ".", "-o", "report", "-p", "minimal=true"),
        ("notebooks", "list"),
        ("inspect", "."),
        ("export", ".", "--to", "csv", "-o", "out"),
        ("whatif", ".", "--parallel", "2"),
        ("diagnose", "."),
        ("compare", ".", "../two"),
        ("report", ".", "../two", "-o", "batch", "--jobs", "1", "--no-notebook", "-p", "minimal=true"),
    )
    # As the installed script runs it: with the script's own folder on the path, not the working one.
    program = (
        "import sys; from gpudiag.cli import main\n"
        f"for command in {commands!r}:\n"
        "    sys.argv[:] = ['gpudiag', *command]\n"
        "    try:\n        main()\n"
        "    except SystemExit as stop:\n        assert not stop.code, command\n"
    )
    done = run_in(hostile / "one", [sys.executable, "-P", "-c", program])
    assert done.returncode == 0, done.stderr
    assert imported(hostile) == "" and "run_report" in done.stdout and (hostile / "one" / "out").exists()
    assert (hostile / "one" / "report" / "report.html").is_file()
    assert (hostile / "one" / "batch" / "two" / "report.html").is_file()


def test_the_kernel_of_our_notebooks_alone_leaves_the_working_folder_out(hostile: Path) -> None:
    from gpudiag.report._notebook.kernel import keeping_kernel, kernel_for
    from gpudiag.report._notebook.locate import find_notebook, is_shipped

    assert is_shipped(find_notebook("run_report"))
    assert not is_shipped(hostile / "run_report.ipynb")
    with kernel_for(hostile, own_modules=False) as ours_given, kernel_for(hostile, own_modules=True) as given:
        ours, theirs = (one["kernel_manager_class"]().kernel_spec.argv for one in (ours_given, given))
    with suppress(LookupError), keeping_kernel(), kernel_for(hostile, own_modules=False) as given:
        assert given["km"].kernel_spec.argv == ours, "the kernel that the reports of a batch share"
        raise LookupError("none was started")
    assert "--InteractiveShellApp.ignore_cwd=True" in ours
    assert [part for part in ours if part not in theirs] == ["--InteractiveShellApp.ignore_cwd=True"]


def test_the_process_of_the_recorder_imports_nothing_from_the_working_folder(hostile: Path) -> None:
    done = run_in(hostile / "one", module_command("gpudiag.record.process", ["not JSON"]))
    assert "JSONDecodeError" in done.stderr  # it came as far as its argument
    assert imported(hostile) == ""


def test_processes_of_this_python_are_started_in_one_place() -> None:
    package = Path(__file__).resolve().parent.parent / "gpudiag"
    texts = {path.name: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    users = {name for name, text in texts.items() if "sys.executable" in text}
    assert users == {"interpreter.py", "lab.py", "devices.py"}  # lab replaces this process, devices.py is advice
    assert '[sys.executable, "-m"' not in "".join(texts.values())
