"""JSON documents that follow one another in one file: indented, one a line, or an array of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gpudiag.readers._io.json_values import DECODER
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import HEAD_BYTES, Source
from gpudiag.readers._io.surrogates import without_halves
from gpudiag.readers._shape.moments import Moment, read_moment

_NOT_BLANK = re.compile(r"\S")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}\[\],]')


def documents(text: str, log: ProblemLog) -> Iterator[tuple[int, dict[str, Any] | Moment]]:
    """Line and value of each object; an array on top yields its objects, a line that states a time its moment."""
    for line, value in arrays_and_documents(text, log):
        if isinstance(value, list):
            yield from ((line, item) for item in value)
        else:
            yield line, value


def arrays_and_documents(
    text: str, log: ProblemLog
) -> Iterator[tuple[int, list[dict[str, Any]] | dict[str, Any] | Moment]]:
    """Line and value of each object, and the objects of each array on top; of a line that states a time its moment.

    What is neither is counted. A damaged or cut object is counted as lost, and reading goes on at the next line
    that begins with a bracket.
    """
    text = without_halves(text).replace("\0", "").lstrip("\ufeff")
    at, line, counted = 0, 1, 0
    while (match := _NOT_BLANK.search(text, at)) is not None:
        at = match.start()
        line, counted = line + text.count("\n", counted, at), at
        if text[at] not in "{[":
            at = _line_end(text, at)
            if moment := _moment(text[counted:at]):
                yield line, moment
            else:
                log.add("text between documents", line=line, example=text[counted:at])
            continue
        try:
            value, at = DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            log.add("damaged document", line=line, example=text[at : at + 80], lost=True)
            at = _next_start(text, at)
            continue
        yield line, [item for item in value if isinstance(item, dict)] if isinstance(value, list) else value


def first_object(source: Source) -> dict[str, Any]:
    """The first object of a file, as far as its head holds it; empty where there is none."""
    text = source.text
    start = text.find("{")
    if start < 0:
        return {}
    for document in (text, *([text[:start] + _closed(text[start:])] if len(source.head) >= HEAD_BYTES else [])):
        try:
            value, _ = DECODER.raw_decode(document, start)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else {}
    return {}


def _closed(text: str) -> str:
    """A document that is cut off: without the value in which it is, and with what is open closed."""
    opened, end, closers = "", 0, ""
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "{[":
            opened += "}" if mark == "{" else "]"
        elif mark in "}]":
            opened = opened[:-1]
        if mark in "{[}]":
            end, closers = token.end(), opened
        elif mark == ",":
            end, closers = token.start(), opened
    return text[:end] + closers[::-1]


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _moment(line: str) -> Moment | None:
    moment = read_moment(line)
    return moment if moment is not None and moment.day and moment.clock else None


def _next_start(text: str, at: int) -> int:
    """The next line that begins with a bracket in its first column."""
    found = [place for mark in ("\n{", "\n[") if (place := text.find(mark, at + 1)) >= 0]
    return min(found) + 1 if found else len(text)
