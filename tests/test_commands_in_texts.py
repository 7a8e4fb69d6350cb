"""Commands of gpudiag that its own texts name exist with their options, and record what the text says of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from typer.core import TyperGroup
from typer.main import get_command

import gpudiag
from gpudiag.cli import app

PACKAGE = Path(gpudiag.__file__).parent
GROUP = get_command(app)
NAMES = "|".join(GROUP.commands)  # type: ignore[attr-defined]
RECORDED_BY = {
    "--processes": re.compile(r"\bprocess(es)?\b"),
    "--host": re.compile(r"\bCPU\b|\bdisks?\b|\bprocessors?\b|I/O|\bhost\b"),
}
"""Options of ``gpudiag record``, and what is said of a recording only with them."""


def _docstrings(tree: ast.AST) -> set[int]:
    """Strings that stand for themselves: docstrings, which nobody runs as advice."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def _strings(tree: ast.AST) -> Iterator[str]:
    """Each string that is shown to somebody, f-strings without what they fill in."""
    left_out = _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            left_out |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value


NAMED = re.compile(rf'gpudiag ["\sf]*(?:{NAMES})\b')
"""In a source, where a text may go on in the next line."""


@cache
def texts() -> list[tuple[str, str]]:
    """Place and text of what names a command."""
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    return [
        (path.relative_to(PACKAGE).as_posix(), text)
        for path, source in sources.items() if NAMED.search(source)
        for text in _strings(ast.parse(source)) if "gpudiag " in text
    ]  # fmt: skip


def commands(text: str) -> list[tuple[str, list[str]]]:
    """The commands named in a text, and their options."""
    ends = r"(?= -- |[;|>`)\n]|[.,:]( |$)| #|$)"
    found = re.findall(rf"gpudiag ((?:{NAMES})\b.*?){ends}", text)
    return [(line, re.findall(r"(?<!\S)--?[a-z][\w-]*", line)) for line, _ in found]


def test_commands_in_texts_exist_with_their_options() -> None:
    wrong, seen = [], 0
    for place, text in texts():
        for line, options in commands(text):
            command, words = GROUP, line.split()
            while words and isinstance(command, TyperGroup):
                command = command.commands.get(words.pop(0))
            known = {name for one in command.params for name in one.opts} if command else set()
            seen += 1
            if not set(options) <= known | {"--help"}:
                wrong.append(f"{place}: gpudiag {line}")
    assert wrong == []
    assert seen > 25


def test_a_recording_has_what_the_sentence_with_its_command_says() -> None:
    wrong, seen = [], 0
    for place, text in texts():
        for sentence in re.split(r"(?<=[.:!?]) (?=[A-Z])", text):
            for line, options in commands(sentence):
                if line.split()[0] != "record":
                    continue
                seen += 1
                said = sentence.replace(f"gpudiag {line}", "")
                lacking = {name for name, of in RECORDED_BY.items() if of.search(said)} - set(options)
                wrong += [f"{place}: gpudiag {line} has no {name}" for name in sorted(lacking)]
    assert wrong == []
    assert seen > 5
