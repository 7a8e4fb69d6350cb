"""JSON documents that follow one another in one file: indented, one a line, or an array of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gpudiag.readers.problems import ProblemLog

_DECODER = json.JSONDecoder()


def documents(text: str, log: ProblemLog) -> Iterator[tuple[int, Any]]:
    """Line and value of each object; an array on top yields its elements. What is no JSON is counted.

    A damaged or cut object is counted as lost, and reading goes on at the next line that begins with a bracket.
    """
    text = text.replace("\0", "").lstrip("\ufeff")
    at, line, counted = 0, 1, 0
    while at < len(text):
        line += text.count("\n", counted, at)
        counted = at
        if text[at].isspace():
            at += 1
            continue
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            value, end = None, _next_start(text, at)
            torn = text[at] in "{["
            example = text[at : at + 80]
            log.add("damaged document" if torn else "text between documents", line=line, example=example, lost=torn)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                yield line, item
        at = end


def _next_start(text: str, at: int) -> int:
    """The next line that begins with a bracket in its first column."""
    found = [place for mark in ("\n{", "\n[") if (place := text.find(mark, at + 1)) >= 0]
    return min(found) + 1 if found else len(text)
