"""Columns that were named by their units in the usual order: whether their numbers can be what that order says."""

from __future__ import annotations

from collections.abc import MutableMapping

import numpy as np

_BUSY_PCT = 10.0
_EMPTY_MIB = 20.0
_EMPTY = 0.001
"""Of a GPU without work no more memory is in use than this; and a process that runs kernels takes more."""
_FEW = 3
_SOME = 0.05
_MOST = 0.95
_CLEARLY = 10
_CONTRAST_MIB = 1024.0
_USED, _FREE = "mem_used_mib", "mem_free_mib"
_UTIL, _MEM_UTIL = "util_pct", "mem_util_pct"

Columns = MutableMapping[str, np.ndarray]


def checked(columns: Columns, code: np.ndarray) -> list[str]:
    """Put columns right, or leave them out, in place; returns a sentence for each change."""
    notes = _free_taken_for_total(columns, code)
    return [*notes, *_used_and_free(columns, code), *_utilizations(columns)]


def _free_taken_for_total(columns: Columns, code: np.ndarray) -> list[str]:
    total = columns.get("mem_total_mib")
    if total is None or _FREE in columns or not ((np.diff(total) != 0) & (np.diff(code) == 0)).any():
        return []
    columns[_FREE] = columns.pop("mem_total_mib")
    return ["The second memory column varies, so it was taken as free memory, not as the total."]


def _used_and_free(columns: Columns, code: np.ndarray) -> list[str]:
    if _USED not in columns or _FREE not in columns:
        return []
    found = _votes(columns, code)
    if found == {True}:
        return []
    used, free = columns.pop(_USED), columns.pop(_FREE)
    if found == {False}:
        columns[_USED], columns[_FREE] = free, used
        return ["By their numbers, what was taken as memory.free is memory.used, and the other way round."]
    columns.setdefault("mem_total_mib", used + free)
    return [
        "Which of its memory columns is used and which is free cannot be told: both were left out. Name all columns in "
        "order with --columns, or as columns in run.toml."
    ]


def _votes(columns: Columns, code: np.ndarray) -> set[bool]:
    """Whether memory.used is what its name says, by all that tells: its level with and without work."""
    shares = [columns[name] for name in (_UTIL, _MEM_UTIL) if name in columns]
    if not shares:
        return set()
    load = np.fmax.reduce(shares)
    idle, busy = load == 0, load >= _BUSY_PCT
    used, free = columns[_USED], columns[_FREE]
    votes, at_rest = set(), []
    for values, is_used in ((used, True), (free, False)):
        empty = values <= np.maximum(_EMPTY_MIB, _EMPTY * (used + free))
        at_work = int((empty & busy).sum())
        if at_work >= max(_FEW, _SOME * busy.sum()):
            votes.add(not is_used)
        at_rest.append(int((empty & idle).sum()) if at_work <= _SOME * empty.sum() else 0)
    if max(at_rest) >= _FEW and max(at_rest) >= _CLEARLY * min(at_rest):  # a process may keep all memory and rest
        votes.add(at_rest[0] > at_rest[1])
    for gpu in np.unique(code):
        own = code == gpu
        if min((own & idle).sum(), (own & busy).sum()) >= _FEW:
            step = np.nanmedian(used[own & busy]) - np.nanmedian(used[own & idle])
            if abs(step) >= max(_CONTRAST_MIB, (np.nanmax(used[own]) - np.nanmin(used[own])) / 2):
                votes.add(bool(step > 0))
    return votes


def _utilizations(columns: Columns) -> list[str]:
    """Memory is busy only while a kernel runs: no utilization of it is mostly above that of the GPU."""
    if _UTIL not in columns or _MEM_UTIL not in columns:
        return []
    first, second = columns[_UTIL], columns[_MEM_UTIL]
    below, above = int((first < second).sum()), int((first > second).sum())
    if below < _FEW or below <= above:
        return []
    del columns[_UTIL], columns[_MEM_UTIL]
    range_pct = np.nanmin(second), np.nanmax(second)
    if below >= _MOST * (below + above) and range_pct[0] <= 5 and range_pct[1] >= 50 and not (first[second == 0]).any():
        columns[_UTIL], columns[_MEM_UTIL] = second, first
        return ["By their numbers, what was taken as utilization.memory is utilization.gpu, and the other way round."]
    return [
        "Which of its percentages is utilization.gpu cannot be told: they were left out. Name all columns in order "
        "with --columns, or as columns in run.toml."
    ]
