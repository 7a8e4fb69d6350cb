"""README and the pages of docs/ show what commands and lines of Python really print."""

from __future__ import annotations

import doctest
import re
import shlex
from itertools import groupby
from pathlib import Path

import pytest
from commandline import called

import gpudiag as gd

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *(path for path in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in path.parts)]
Session = tuple[str, str]
"""A command line, and what is shown of its output."""


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def _sessions(page: Path) -> list[Session]:
    parts = (re.split(r"^\$ ", block, flags=re.MULTILINE)[1:] for block in _blocks(page.read_text("utf-8"), "console"))
    return [tuple(part.split("\n", 1)) for block in parts for part in block]


SHOWN: dict[str, list[tuple[str, str]]] = {}
"""By command the pages that show it, each with what it shows: a command that several pages show runs once."""
for _page in PAGES:
    for _command, _shown in _sessions(_page):
        SHOWN.setdefault(_command, []).append((_page.name, _shown))


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder laid out as the repository is for a reader, in which commands may write."""
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def _not_printed(shown: str, printed: str) -> list[str]:
    """The stretches between lines of three dots that do not stand in the output, whole and in this order."""
    lines, wrong, at = [line.rstrip() for line in printed.splitlines()], [], 0
    for dots, group in groupby(shown.strip("\n").splitlines(), key=lambda line: line.strip() == "..."):
        stretch = [line.rstrip() for line in group]
        if dots:
            continue
        places = range(at, len(lines) - len(stretch) + 1)
        found = next((place for place in places if lines[place : place + len(stretch)] == stretch), None)
        if found is None:
            wrong.append("\n".join(stretch))
        else:
            at = found + len(stretch)
    return wrong


def test_a_line_that_is_not_printed_is_noticed() -> None:
    printed = "a\nb\nc\nd\n"
    assert _not_printed("a\n...\nc\nd\n", printed) == []
    assert _not_printed("a\nc\n", printed) == ["a\nc"]
    assert _not_printed("...\nc\n...\nb\n...\n", printed) == ["b"]


CASES = [
    pytest.param(command, marks=[] if "README.md" in dict(shown) else pytest.mark.many)
    for command, shown in SHOWN.items()
]


@pytest.mark.slow
@pytest.mark.parametrize("command", CASES)
def test_a_session_is_real(
    command: str, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *arguments = shlex.split(command)
    assert name == "gpudiag", command
    code, out = called(monkeypatch, *arguments), capsys.readouterr()
    assert code == 0, out.err
    for page, shown in SHOWN[command]:
        wrong = _not_printed(shown, out.out)
        assert not wrong, f"{page}: $ {command} no longer prints:\n{wrong[0]}\nIt prints:\n{out.out}"


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if _blocks(page.read_text("utf-8"), "pycon")], ids=str)
def test_lines_of_python_print_what_is_shown(page: Path, elsewhere: Path) -> None:
    text = "\n".join(_blocks(page.read_text("utf-8"), "pycon"))
    example = doctest.DocTestParser().get_doctest(text, {"gd": gd}, page.name, str(page), 0)
    said: list[str] = []
    held = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=said.append)
    assert held.attempted and not held.failed, "".join(said)
