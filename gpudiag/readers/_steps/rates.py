"""Rates in a plain line, such as ``0.667 it/s`` and ``it/s 0.667``: which of two numbers a unit belongs to."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from operator import itemgetter

from gpudiag.patterns import late
from gpudiag.readers._steps.dialects import NUMBER
from gpudiag.readers._steps.written_numbers import each_s, number

_PER = r"\s?(?:/|per)\s?"
_SECOND = r"s(?:ec(?:ond)?)?\b"
_A_SECOND = _PER + _SECOND
_SPEED = late(
    rf"(?i)(?<![a-z_/])(?:(?P<s>ms|s|sec|secs|seconds?){_PER}(?:it|iter|iteration|step|batch)\b"
    rf"|(?:it|its|iters?|steps?|batch|batches){_A_SECOND})"
)
_ONE = r"(?:step|iter(?:ation)?|batch)"
_NAMED = late(
    rf"(?i)(?<![a-z_/])(?:(?P<mean>avg|average|mean)[ _.-]?{_ONE}(?:[ _-]?(?:time|duration))?"
    rf"|{_ONE}[ _-]?(?:time|duration)|time\s?(?:/|\bper\b)\s?{_ONE})"
    rf"\s{{0,4}}[:=|]?\s{{0,4}}(?P<number>{NUMBER[1:-1]})\s?"
    r"(?P<unit>ms|s|secs?|seconds)\b(?!\s?(?:/|per\b))"
)
"""``step_time: 320 ms``, ``avg step 0.32s`` and ``time per batch: 0.32s``."""
SAMPLES, TOKENS = (
    late(rf"(?i)(?<![a-z_]){what}(?:{_PER}|_per_){_SECOND}")
    for what in ("(?:samples?|images?|imgs?|examples?|seqs?|sequences?)", "(?:tokens?|toks?)")
)
_NUMBER = rf"(?:(?<![\d.])\d{{1,3}}(?:,\d{{3}})+(?:\.\d{{0,12}})?|{NUMBER[1:-1]})"
"""A number, or one whose thousands are set apart."""
_POWERS = {"k": 1e3, "K": 1e3, "M": 1e6}
_BEFORE = late(rf"(?<![\d.:/])({_NUMBER}[kKM]?)(\s{{0,8}})\Z")
_DECIMAL_COMMA = late(r"(?<![\d.,])\d{1,9},\Z")
"""What stands before the decimals of ``0,32``, or before another number."""
_AFTER = late(
    rf"(?i)(?:(?P<sign>\s{{0,8}}[:=]\s{{0,8}})|\s{{1,8}})(?P<number>{_NUMBER}(?-i:[kKM])?|nan|inf|n/a)(?![\w%/:]|[.,]\d)"
)
_NAMES_UNIT = late(r"(?i)(?:\b(?:speed|throughput|at|took)\s{0,8}[:=]?|@)\s{0,8}\Z")
"""What stands before a number and its unit, and is no quantity with another unit."""
_OF_PART = late(
    r"(?i)(?<![a-z])(?:data|(?:data)?load(?:er|ing)?|fetch|io|fwd|bwd|forward|backward|comm|sync|val"
    r"|valid(?:ation)?|eval(?:uation)?|test)(?:[ _-]?(?:time|wait|speed|load(?:er|ing)?|pass))?\s{0,8}[:=]?\s{0,8}\Z"
)
"""What stands before a time that is of a part of a step, or of other work."""
_AVERAGE = late(r"(?i)(?<![a-z])(?:avg|average|mean|overall)\.?(?:[ _-]?(?:time|speed|rate))?\s{0,8}[:=]?\s{0,8}\Z")
"""What stands before a speed that is the mean of what came so far."""
_CLOCK = r"\d{1,5}(?::\d\d){1,2}"
_PART = late(
    rf"(?P<number>(?<![\w.:/-])(?:{_CLOCK}|[-+]?{_NUMBER}(?:/\d+)?)(?:%|[a-zA-Z][\w/]*)?(?![\w:-]|[.,/]\d))"
    r"|(?P<word>[a-zA-Z_][\w/.-]*(?:\s?[:=])?)|\s+|(?P<other>.)"
)
_STAMP = late(r"\d{2}(?:\d\d)?[-/]\d\d(?:[-/]\d\d)?[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?")
_LOOKED_BACK, _LOOKED_AHEAD = 300, 200
"""Characters around a unit in which the habit of its line shows."""


def rate_of(unit: re.Pattern[str], line: str) -> float:
    """The number of the first such unit that has one; NaN without one."""
    values = (_value(found, line) for found in unit.finditer(line))
    return next((value for value in values if value is not None), math.nan)


def speed_of(line: str) -> float | None:
    """Seconds of one step, by the speed that a line states, of several the first that is no average; None without a
    speed, NaN for one that tells no time.
    """
    told = []
    for found in _SPEED.finditer(line):
        value = _value(found, line)
        if value is not None and not _follows(_OF_PART, found, line):
            each = value * (0.001 if found["s"].lower() == "ms" else 1.0) if found["s"] else each_s(value)
            told.append((_follows(_AVERAGE, found, line), each))
    return _least_averaged(told)


def named_time_of(line: str) -> float | None:
    """Seconds of one step, by a time that a line calls that of a step, as in :func:`speed_of`; None without one."""
    return _least_averaged(
        (bool(found["mean"]), number(found["number"]) * (0.001 if found["unit"].lower() == "ms" else 1.0))
        for found in _NAMED.finditer(line)
        if not _OF_PART.search(line, 0, found.start())
    )


def _least_averaged(told: Iterable[tuple[bool, float]]) -> float | None:
    """The first of the times that is no average, else the first; None without one."""
    return min(told, key=itemgetter(0), default=(False, None))[1]


def _follows(words: re.Pattern[str], unit: re.Match[str], line: str) -> bool:
    """Whether such words stand before the number that is before a unit."""
    head = line[max(unit.start() - _LOOKED_BACK, 0) : unit.start()]
    before = _BEFORE.search(head)
    return before is not None and words.search(head, 0, before.start()) is not None


def _value(unit: re.Match[str], line: str) -> float | None:
    """The number before a unit or after it; None where there is neither, or the line leaves open which it is."""
    head = _STAMP.sub("|", line[max(unit.start() - _LOOKED_BACK, 0) : unit.start()])
    before, after = _BEFORE.search(head), _AFTER.match(line, unit.end())
    if before and before[1].isdecimal() and _DECIMAL_COMMA.search(head, 0, before.start()):
        return None
    if not before or not after:
        found = before[1] if before else after["number"] if after else None
        return _read(found) if found else None
    if after["sign"] or "_" in unit[0]:  # samples_per_sec is the name of what follows
        return _read(after["number"])
    if not before[2] or _NAMES_UNIT.search(head, 0, before.start()):
        return _read(before[1])
    begins = _ends_with_number(_kinds(head)[::-1])
    ends = _ends_with_number(_kinds(line[unit.end() : unit.end() + _LOOKED_AHEAD]))
    return None if begins == ends else _read(before[1] if begins else after["number"])


def _kinds(text: str) -> list[str]:
    """The numbers, words and others of a text. Words in a row are one label, but none goes on behind a unit."""
    out, unit = [], False
    for part in _PART.finditer(text):
        kind = part.lastgroup or ""
        out += ["other", kind] if kind == "word" and unit else [kind] if kind else []
        unit = kind == "word" and "/" in part[0] if kind else unit
    return out


def _ends_with_number(kinds: list[str]) -> bool:
    """Whether numbers and words in turn, from a number on, come to their end with a number. Anything else is the end,
    and so are two numbers in a row.
    """
    last = ""
    for kind in kinds:
        if kind == "other" or (kind == "number" == last):
            break
        last = kind
    return last == "number"


def _read(text: str) -> float:
    power = _POWERS.get(text[-1], 1.0)
    value = number(text.rstrip("kKM").replace(",", "")) * power
    return value if math.isfinite(value) else math.nan
