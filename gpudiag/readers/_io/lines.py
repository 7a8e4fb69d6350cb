"""The lines of a text log with their numbers, free of NUL bytes and colours."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpudiag.errors import InputError
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78])")
_ADDRESSED = re.compile(r"\x1b\[(?:\d+;(?:[2-9]|\d\d+)[Hf]|\d+d|\d+G|\?1049h)")
"""Moves of the cursor to a place within the screen, and the switch to the alternate screen."""

_SCREEN_START = 4096
"""Characters within which a recorded screen moves its cursor; a colour code or two further down is no screen."""


def plain(line: str) -> str:
    """The line without terminal escape sequences."""
    return _ESCAPE.sub("", line) if "\x1b" in line else line


def numbered_lines(source: Source, log: ProblemLog) -> Iterator[tuple[int, str]]:
    """Each line with its 1-based number. NUL bytes are dropped and counted, escape sequences dropped."""
    for block in source.blocks():
        log.add("run of NUL bytes", int(block.nul_bytes > 0), line=block.first_line)
        text = block.data.decode("utf-8", "replace")
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        if "\x1b" in text:
            lines = [plain(line) for line in lines]
        yield from enumerate(lines, block.first_line)


def is_screen(source: Source) -> bool:
    """True for a recording of a terminal screen (``watch``): it begins with cursor moves instead of lines."""
    start = source.text[:_SCREEN_START]
    return "\x1b[" in start and _ADDRESSED.search(start) is not None


def screen_refused(source: Source, tool: str, instead: str) -> InputError:
    """The error for a recorded screen: only changed cells are redrawn, so lines cannot be told."""
    return InputError(
        f"{source.path}: is a recorded terminal screen (watch {tool}), whose cells are redrawn in place, not a log; "
        f"record lines with '{instead}' instead."
    )


def delimiter_of(line: str) -> str:
    """Comma, semicolon or tab: whichever the line has most of."""
    return max((",", ";", "\t"), key=line.count)
