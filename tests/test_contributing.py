"""CONTRIBUTING.md is true: a newcomer adds one piece of each kind in a copy of the tree, file by file as it says.

With every file that it names the tests pass; with one of them forgotten a test fails and says what to add.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpudiag import measures, plots, rules
from gpudiag.readers import artifacts, telemetry, trials

ROOT = Path(__file__).resolve().parent.parent
NEW = Path(__file__).parent / "newcomer"
Change = Callable[[str], str]
"""From the text of a file, empty where there is none, to its new text."""


def whole(name: str) -> Change:
    return lambda _: (NEW / f"{name}.txt").read_text(encoding="utf-8")


def added(name: str) -> Change:
    return lambda text: text + (NEW / f"{name}.txt").read_text(encoding="utf-8")


def after(line: str, new: str) -> Change:
    """A new line behind one that stands there already."""

    def change(text: str) -> str:
        assert text.count(line) >= 1, line
        return text.replace(line, line + new)

    return change


Tests = tuple[str, ...]


@dataclass(frozen=True)
class Piece:
    """A new piece: the files it touches, the commands that CONTRIBUTING names, the tests that look at it.

    ``forgotten``: by file or command, the test that misses what was left out, and what it says.
    """

    kind: str
    files: Mapping[str, Change]
    commands: Mapping[str, tuple[str, ...]]
    tests: Tests
    forgotten: Mapping[str, tuple[str, Tests]]


FOLDER_TEST = ("tests/test_contributing.py",)
DOCS = {"make docs": ("make", "-o", ".venv/ready", "docs")}
PIECES = (
    Piece(
        "telemetry format",
        {
            "gpudiag/readers/telemetry/mthreads_gmi.py": whole("reader"),
            "gpudiag/readers/telemetry/__init__.py": lambda text: text.replace(
                "    mlflow,\n", "    mlflow,\n    mthreads_gmi,\n"
            ).replace(
                "            npu_smi.READER,\n", "            npu_smi.READER,\n            mthreads_gmi.READER,\n"
            ),
            "tests/readers/telemetry/dialects/mthreads_gmi.py": whole("reader_sample"),
        },
        {},
        ("tests/readers/telemetry/test_contract.py", "-k", "mthreads or has_a_sample", "tests/test_contributing.py"),
        {
            "tests/readers/telemetry/dialects/mthreads_gmi.py": (
                "add tests/readers/telemetry/dialects/<dialect>.py",
                ("tests/readers/telemetry/test_contract.py", "-k", "has_a_sample"),
            ),
            "gpudiag/readers/telemetry/__init__.py": ("gpudiag/readers/telemetry/__init__.py", FOLDER_TEST),
        },
    ),
    Piece(
        "measure",
        {
            "gpudiag/measures/warmth.py": whole("measure"),
            "gpudiag/measures/__init__.py": after('    "throttle",\n', '    "warmth",\n'),
        },
        DOCS,
        (
            *("tests/measures/test_measure_properties.py", "tests/test_facts.py", "tests/test_schemas.py"),
            *("-k", "warmth or registry or schema"),
        ),
        {
            "gpudiag/measures/__init__.py": ("gpudiag/measures/__init__.py", FOLDER_TEST),
            "make docs": ("make docs", ("tests/test_schemas.py",)),
        },
    ),
    Piece(
        "rule",
        {
            "gpudiag/rules/memory.py": added("rule"),
            "benchmarks/planted/memory.py": added("rule_planted"),
        },
        DOCS,
        ("tests/rules", "tests/report/test_rules_pages.py", "-k", "peaky or planted_fault or catalogue or pages"),
        {
            "benchmarks/planted/memory.py": (
                "plant in benchmarks/planted/<topic>.py",
                ("tests/rules/test_rules_planted.py", "-k", "has_a_planted_fault"),
            ),
            "make docs": ("make docs", ("tests/report/test_rules_pages.py",)),
        },
    ),
    Piece(
        "plot",
        {
            "gpudiag/plots/headroom.py": whole("plot"),
            "gpudiag/plots/__init__.py": lambda text: text.replace(
                "    learning_curves,\n", "    headroom,\n    learning_curves,\n"
            ),
        },
        {"make gallery": ("make", "-o", ".venv/ready", "gallery")},
        (
            "tests/plots/test_gallery.py",
            "tests/plots/test_pictures.py",
            *("tests/report/test_sections.py", "tests/test_contributing.py"),
            *("-k", "not 64 and not dense and not (two and GPUs)"),  # one size of run proves the path
        ),
        {
            "gpudiag/plots/__init__.py": ("gpudiag/plots/__init__.py", FOLDER_TEST),
            "make gallery": ("make gallery", ("tests/plots/test_gallery.py",)),
        },
    ),
    Piece(
        "notebook",
        {"notebooks/my_report.ipynb": lambda _: (ROOT / "notebooks/gpu_report.ipynb").read_text(encoding="utf-8")},
        {},
        ("tests/test_notebooks.py",),
        {},
    ),
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what git knows of the working tree, new files included, and of what Python compiled of it."""
    known = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(known, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name)
    for folder in {(ROOT / name).parent / "__pycache__" for name in names.split("\0") if name.endswith(".py")}:
        if folder.is_dir():
            shutil.copytree(folder, tmp_path / folder.relative_to(ROOT))
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    return tmp_path


def add(piece: Piece, tree: Path, but: str = "") -> None:
    for name, change in piece.files.items():
        if name != but:
            path = tree / name
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            changed = change(text)
            assert changed != text, f"{name}: nothing was added"
            path.write_text(changed, encoding="utf-8")


def run(tree: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)


def looked_at(tests: Tests, tree: Path) -> subprocess.CompletedProcess[str]:
    return run(tree, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *tests)


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: piece.kind)
def test_a_newcomer_s_piece_passes_with_the_files_that_are_named(piece: Piece, tree: Path) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| {piece.kind} \|.*$", text, re.MULTILINE)
    for name in piece.files:
        folder = str(Path(name).parent) if Path(name).name != "__init__.py" else name
        assert folder in row, f"CONTRIBUTING.md does not name {name} for a new {piece.kind}"
    for command in piece.commands:
        assert f"`{command}`" in row
    add(piece, tree)
    for command in piece.commands.values():
        done = run(tree, *command)
        assert done.returncode == 0, done.stdout + done.stderr
    done = looked_at(piece.tests, tree)
    assert done.returncode == 0, done.stdout[-4000:]
    checked = run(tree, sys.executable, "-m", "ruff", "check", *piece.files)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("piece", "forgotten"),
    [(piece, name) for piece in PIECES for name in piece.forgotten],
    ids=[f"{piece.kind}-{name}" for piece in PIECES for name in piece.forgotten],
)
def test_what_was_forgotten_is_told(piece: Piece, forgotten: str, tree: Path) -> None:
    """No command is run here: what misses a file looks at files, and what misses a command is told without it."""
    says, tests = piece.forgotten[forgotten]
    add(piece, tree, but=forgotten)
    done = looked_at(tests, tree)
    assert done.returncode == 1, done.stdout[-2000:]
    assert says in done.stdout, done.stdout[-4000:]


@pytest.mark.slow
def test_a_reader_that_halves_utilization_fails(tree: Path) -> None:
    piece = PIECES[0]
    add(piece, tree)
    path = tree / "gpudiag/readers/telemetry/mthreads_gmi.py"
    path.write_text(path.read_text().replace('"util_pct": util,', '"util_pct": float(util) / 2,'))
    done = looked_at(piece.tests, tree)
    assert done.returncode == 1 and "test_values_are_what_the_content_says" in done.stdout


FOLDERS = {
    "readers/telemetry": {reader.read.__module__ for reader in telemetry.READERS},
    "readers/trials": {reader.read.__module__ for reader in trials.READERS},
    "readers/artifacts": {reader.read.__module__ for reader in artifacts.READERS},
    "measures": {f"gpudiag.measures.{topic}" for topic in measures.TOPICS},
    "rules": {topic.__name__ for topic in rules.TOPICS},
    "plots": {topic.__name__ for topic in plots.TOPICS},
}
BESIDE = {
    "readers/trials": {"journal_redis", "optuna_server", "study_object"},
    "measures": {"base"},
    "plots": {"comparison", "forecast", "memory_capacity", "replay"},
}
"""Files that are asked for by name: storages behind a URL, a study in memory, pictures of other results."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_of_a_folder_of_plug_ins_is_one(folder: str) -> None:
    files = {path.stem for path in (ROOT / "gpudiag" / folder).glob("*.py")} - {"__init__"}
    named = {name.rpartition(".")[2] for name in FOLDERS[folder]}
    unnamed = sorted(files - named - BESIDE.get(folder, set()))
    assert not unnamed, f"name in gpudiag/{folder}/__init__.py, or move what is no plug-in: {unnamed}"
