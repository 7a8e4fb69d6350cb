"""CONTRIBUTING.md is true: a newcomer adds one piece of each kind in a copy of the tree, file by file as it says.

With every file that it names the tests pass; with one of them forgotten a test fails and says what to add. The pieces
touch files of their own, so that one tree holds them all: what is dear is a process that imports everything.
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
from xml.etree import ElementTree

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


@dataclass(frozen=True)
class Forgotten:
    """A file or a command that is left out: the test that misses it, and what it says."""

    what: str
    says: str
    test: str


@dataclass(frozen=True)
class Piece:
    """A new piece: the files it touches, the commands that CONTRIBUTING names, the tests that look at it.

    ``tests`` are files of tests, ``chosen`` those of them that the piece can fail, as pytest's ``-k`` has it.
    """

    kind: str
    files: Mapping[str, Change]
    commands: tuple[str, ...]
    tests: tuple[str, ...]
    chosen: str
    forgotten: tuple[Forgotten, ...] = ()


COMMANDS = {f"make {what}": ("make", "-o", ".venv/ready", what) for what in ("docs-texts", "gallery")}
CONTRACT = "tests/readers/telemetry/test_contract.py"
UNNAMED = "gpudiag/readers/telemetry/unnamed.py"
"""A file that is there and not named, in place of forgetting to name the reader, which the same tree spoils."""
VALUES = f"{CONTRACT}::test_values_are_what_the_content_says"
SCHEMAS = "tests/test_schemas.py"
RULES_TESTS = ("catalogue", "metamorphic", "planted", "sentences")
FOLDERS_TEST = "tests/test_contributing.py::test_every_file_of_a_folder_of_plug_ins_is_one"
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
        (),
        (CONTRACT,),
        "mthreads or has_a_sample",
        (
            Forgotten(
                "tests/readers/telemetry/dialects/mthreads_gmi.py",
                "add tests/readers/telemetry/dialects/<dialect>.py",
                f"{CONTRACT}::test_every_reader_has_a_sample",
            ),
            Forgotten(UNNAMED, "gpudiag/readers/telemetry/__init__.py", FOLDERS_TEST),
        ),
    ),
    Piece(
        "measure",
        {
            "gpudiag/measures/warmth.py": whole("measure"),
            "gpudiag/measures/__init__.py": after('    "throttle",\n', '    "warmth",\n'),
        },
        ("make docs-texts",),
        ("tests/measures/test_measure_properties.py", "tests/test_facts.py", SCHEMAS),
        "warmth or registry or test_schemas",
        (
            Forgotten("gpudiag/measures/__init__.py", "gpudiag/measures/__init__.py", FOLDERS_TEST),
            Forgotten(
                "make docs-texts", "make docs-texts", f"{SCHEMAS}::test_the_shipped_schema_is_that_of_the_classes"
            ),
        ),
    ),
    Piece(
        "rule",
        {
            "gpudiag/rules/memory.py": added("rule"),
            "benchmarks/planted/memory.py": added("rule_planted"),
        },
        ("make docs-texts",),
        (*(f"tests/rules/test_rules_{what}.py" for what in RULES_TESTS), "tests/report/test_rules_pages.py"),
        # Of the catalogue what looks at all rules together; the words of every other rule are not the newcomer's.
        "peaky or planted_fault or ids_are_unique or no_two_checks or pages",
        (
            Forgotten(
                "benchmarks/planted/memory.py",
                "plant in benchmarks/planted/<topic>.py",
                "tests/rules/test_rules_planted.py::test_every_rule_and_every_threshold_has_a_planted_fault",
            ),
            Forgotten(
                "make docs-texts",
                "make docs-texts",
                "tests/report/test_rules_pages.py::test_the_catalogue_in_docs_is_what_the_code_says",
            ),
        ),
    ),
    Piece(
        "plot",
        {
            "gpudiag/plots/headroom.py": whole("plot"),
            "gpudiag/plots/__init__.py": lambda text: text.replace(
                '    "learning_curves",\n', '    "headroom",\n    "learning_curves",\n'
            ),
        },
        ("make gallery",),
        ("tests/plots/test_gallery.py", "tests/plots/test_pictures.py", "tests/report/test_sections.py", FOLDERS_TEST),
        # One size of run proves the path.
        "gallery or (pictures and faulty) or every_section or every_picture or plug_ins",
        (
            Forgotten("gpudiag/plots/__init__.py", "gpudiag/plots/__init__.py", FOLDERS_TEST),
            Forgotten(
                "make gallery",
                "make gallery",
                "tests/plots/test_gallery.py::test_every_figure_is_in_the_gallery_with_its_caption",
            ),
        ),
    ),
    Piece(
        "notebook",
        {"notebooks/my_report.ipynb": lambda _: (ROOT / "notebooks/gpu_report.ipynb").read_text(encoding="utf-8")},
        (),
        ("tests/test_notebooks.py",),
        "my_report",
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


NEW_FIGURE_ALONE = """PLOTS = {"headroom": PLOTS["headroom"]}
PARTS = PARTS[:1]

if __name__"""
"""In the gallery of the tree: what is drawn anew of all other figures takes longest, and they stand there already."""


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


def failures(tree: Path, *arguments: str) -> dict[str, str]:
    """What tests that are not slow say where they fail, by file and name."""
    out = tree / "tests.xml"
    chosen = ("-m", "not slow", f"--junitxml={out}", "-o", "junit_logging=no")
    done = run(tree, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen, *arguments)
    assert done.returncode in (0, 1), done.stdout[-4000:] + done.stderr[-2000:]
    said: dict[str, str] = {}
    cases = list(ElementTree.parse(out).iter("testcase"))
    assert cases, done.stdout
    for case in cases:
        name = f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name', '').partition('[')[0]}"
        for fault in (*case.iter("failure"), *case.iter("error")):
            said[name] = said.get(name, "") + (fault.text or "")
    return said


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: piece.kind)
def test_every_file_and_command_of_a_piece_stands_in_its_row(piece: Piece) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| {piece.kind} \|.*$", text, re.MULTILINE)
    for name in piece.files:
        folder = str(Path(name).parent) if Path(name).name != "__init__.py" else name
        assert folder in row, f"CONTRIBUTING.md does not name {name} for a new {piece.kind}"
    for command in piece.commands:
        assert f"`{command}`" in row


@pytest.mark.slow
def test_pieces_pass_with_the_files_and_commands_that_are_named(tree: Path) -> None:
    for piece in PIECES:
        add(piece, tree)
    gallery = tree / "docs/gallery.py"
    gallery.write_text(gallery.read_text(encoding="utf-8").replace("if __name__", NEW_FIGURE_ALONE), encoding="utf-8")
    for command in dict.fromkeys(command for piece in PIECES for command in piece.commands):
        done = run(tree, *COMMANDS[command])
        assert done.returncode == 0, done.stdout + done.stderr
    shutil.copytree(ROOT / "docs/gallery", tree / "docs/gallery", dirs_exist_ok=True)
    with (tree / "docs/gallery.md").open("a", encoding="utf-8") as page:
        page.write((ROOT / "docs/gallery.md").read_text(encoding="utf-8"))
    tests = (name for piece in PIECES for name in piece.tests)
    assert failures(tree, *tests, "-k", " or ".join(f"({piece.chosen})" for piece in PIECES)) == {}
    checked = run(tree, sys.executable, "-m", "ruff", "check", *(name for piece in PIECES for name in piece.files))
    assert checked.returncode == 0, checked.stdout


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1])
def test_what_was_forgotten_is_told_and_a_reader_that_halves_utilization_fails(which: int, tree: Path) -> None:
    """One thing of each piece. No command is run: what misses a file looks at files, and of commands all are missed."""
    left_out = {piece.kind: piece.forgotten[which] for piece in PIECES if piece.forgotten}
    for piece in PIECES:
        add(piece, tree, but=left_out[piece.kind].what if piece.kind in left_out else "")
    halved = left_out["telemetry format"].what == UNNAMED
    if halved:
        (tree / UNNAMED).write_text("", encoding="utf-8")
        reader = tree / "gpudiag/readers/telemetry/mthreads_gmi.py"
        reader.write_text(reader.read_text().replace('"util_pct": util,', '"util_pct": float(util) / 2,'))
    tests = dict.fromkeys([*(one.test for one in left_out.values()), *([VALUES] if halved else [])])
    chosen = {"mthreads", *(one.test.rpartition("::")[2] for one in left_out.values())}
    said = failures(tree, *tests, "-k", " or ".join(sorted(chosen)))
    for kind, one in left_out.items():
        assert one.says in said.get(one.test, ""), (kind, said)
    assert halved == (VALUES in said)


FOLDERS = {
    "readers/telemetry": {reader.read.__module__ for reader in telemetry.READERS},
    "readers/trials": {reader.read.__module__ for reader in trials.READERS},
    "readers/artifacts": {reader.read.__module__ for reader in artifacts.READERS},
    "measures": {f"gpudiag.measures.{topic}" for topic in measures.TOPICS},
    "rules": {topic.__name__ for topic in rules.TOPICS},
    "plots": set(plots.TOPICS),
}
BESIDE = {
    "readers/trials": {"journal_redis", "optuna_server", "study_object"},
    "measures": {"base"},
    "plots": {"comparison", "fleet", "fleet_heat", "fleet_owners", "forecast", "history", "memory_capacity", "replay"},
}
"""Files that are asked for by name: storages behind a URL, a study in memory, pictures of other results."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_of_a_folder_of_plug_ins_is_one(folder: str) -> None:
    files = {path.stem for path in (ROOT / "gpudiag" / folder).glob("*.py")} - {"__init__"}
    named = {name.rpartition(".")[2] for name in FOLDERS[folder]}
    unnamed = sorted(files - named - BESIDE.get(folder, set()))
    assert not unnamed, f"name in gpudiag/{folder}/__init__.py, or move what is no plug-in: {unnamed}"
