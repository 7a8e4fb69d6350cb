"""How long each trial took, where a table says it beside or in place of when it began and ended."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from gpudiag.readers._batches.task_words import DURATIONS
from gpudiag.readers._steps import written_numbers
from gpudiag.readers._studies.timestamps import EPOCH_S, duration_s, is_nothing
from gpudiag.readers._studies.trial_columns import plain_name

_UNIT_S = {
    key: unit_s
    for keys, unit_s in DURATIONS.items()
    for key in keys
    if re.search(r"(_s|_ms|_h|_sec|secs|seconds|_mins?|minutes|hours)$", key)
}
"""Seconds of the unit that a name says; other names say none."""
WITH_SECONDS = re.compile(r"(?i)\d ?m?s(?:ec(?:ond)?s?)?$|:\d\d:\d\d(?:\.\d+)?$|:\d\d\.\d+$")
"""Text of a length to the second."""
_BARE = ("duration", *(key for keys in DURATIONS for key in keys if key not in _UNIT_S))
_MINUTES = re.compile(r"\d{1,5}:\d\d")
"""Minutes and seconds, or hours and minutes."""


@dataclass(frozen=True)
class Lengths:
    """``seconds``: NaN where unknown. ``exact``: to the second, so that a start tells the end. ``unread``: there is a
    cell of which nothing tells the unit, or that is no length; ``example`` is the first, with the name of its column.
    ``column``: the one that was read, empty where none was.
    """

    seconds: np.ndarray
    exact: np.ndarray
    unread: np.ndarray
    column: str = ""
    example: str = ""


def lengths_of(columns: Mapping[str, Sequence[object]], rows: int) -> Lengths:
    """Of the column ``duration``, else of the first whose name says a unit, else of the first that holds lengths."""
    known = {plain_name(name): name for name in reversed(list(columns))}
    key = next((key for key in ("duration", *_UNIT_S, *_BARE) if key in known), "")
    if not key or not rows:
        return Lengths(np.full(rows, np.nan), np.zeros(rows, bool), np.zeros(rows, bool))
    unit_s, cells = _UNIT_S.get(key, np.nan), columns[known[key]]
    told = [_length(cell, unit_s) for cell in cells]
    seconds = np.array([length for length, _ in told])
    exact = np.array([exactly for _, exactly in told])
    none = np.array([is_nothing(cell) or str(cell).strip().startswith("-") for cell in cells], dtype=bool)
    unread = np.isnan(seconds) & ~none
    example = f"{known[key]} {cells[int(unread.argmax())]}" if unread.any() else ""
    return Lengths(seconds, exact, unread, known[key] if np.isfinite(seconds).any() else "", example)


def _length(cell: object, unit_s: float) -> tuple[float, bool]:
    """Seconds, and whether they are exact; NaN for what is no time that a trial can take, of three years and more."""
    seconds, exact = duration_s(cell), True
    if np.isnan(seconds) and (number := _number(cell)) is not None:
        seconds, exact = number * unit_s, unit_s <= 1
    elif np.isnan(seconds) and not _MINUTES.fullmatch(text := str(cell).strip()):
        seconds, exact = written_numbers.duration_s(text), bool(WITH_SECONDS.search(text))
    known = 0 <= seconds < EPOCH_S
    return (seconds if known else np.nan), known and exact


def _number(cell: object) -> float | None:
    try:
        return None if isinstance(cell, bool | timedelta) else float(str(cell))
    except ValueError:
        return None
