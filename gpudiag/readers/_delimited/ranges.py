"""Columns of numbers without header and units, told from the ranges of their numbers where these leave one reading."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpudiag.hardware import is_memory_size, may_be_memory_size
from gpudiag.readers._delimited.grid import is_missing
from gpudiag.readers._shape.prose_rows import MOST_INDEX, TEMPERATURES_C
from gpudiag.readers._shape.timestamp_forms import tell_form

_LEAST_ROWS = 5
_BUSY_PCT = 50
"""What the memory controller of a GPU without work does not reach; utilization does."""
_FULL = 0.9


def names_by_ranges(rows: Sequence[Sequence[str]]) -> list[str]:
    """Field names for rows of ``timestamp[, index], utilization.gpu[, utilization.memory], memory.used, memory.total``.

    The last column must be one total that drivers state (beside GPUs that take turns, one that a board can have), the
    one before it at most that, and those between shares of which each comes below what a temperature can be. Empty
    where other columns would look the same, such as the load and memory of a PC.

    Args:
        rows: the cells of some rows, all equally many.
    """
    if len(rows) < _LEAST_ROWS or not 4 <= len(rows[0]) <= 6:
        return []
    form = tell_form([row[0] for row in rows])
    if form is None or form.kind not in ("text", "epoch") or not all(map(_whole, rows)):
        return []
    numbers = np.array([[int(cell) for cell in row[1:]] for row in rows if not any(map(is_missing, row[1:]))])
    if len(numbers) < _LEAST_ROWS:
        return []
    *shares, used, total = numbers.T
    if len(set(total)) != 1 or not may_be_memory_size(float(total[0])) or (used > total).any():
        return []
    names = _shares(shares)
    if not is_memory_size(float(total[0])) and not ("index" in names and shares[0].any()):
        return []
    full_of_nothing = np.median(used) > _FULL * total[0] and "utilization.gpu" in names
    if not names or (full_of_nothing and shares[names.index("utilization.gpu")].mean() < TEMPERATURES_C[0]):
        return []  # as free memory of an idle GPU would be
    return ["timestamp", *names, "memory.used", "memory.total"]


def _whole(row: Sequence[str]) -> bool:
    return all(cell.isdecimal() or is_missing(cell) for cell in row[1:])


def _shares(columns: Sequence[np.ndarray]) -> list[str]:
    """What one to three columns of whole numbers between time and memory are."""
    if len(columns) == 1:
        return ["utilization.gpu"] if _is_share(columns[0]) else []
    first, second, *rest = columns
    if rest:
        third = rest[0]
        known = _is_index(first) and _is_share(second) and _is_share(third) and second.mean() >= third.mean()
        return ["index", "utilization.gpu", "utilization.memory"] if known else []
    if _is_index(first) and _is_share(second) and (first.any() or second.max() >= _BUSY_PCT):
        return ["index", "utilization.gpu"]
    known = first.any() and _is_share(first) and _is_share(second) and first.mean() >= second.mean()
    return ["utilization.gpu", "utilization.memory"] if known and not _is_index(first) else []


def _is_share(values: np.ndarray) -> bool:
    """True for what can be a percentage and no temperature."""
    return bool(values.max() <= 100 and values.min() < TEMPERATURES_C[0])


def _is_index(values: np.ndarray) -> bool:
    """True for one GPU throughout, or GPUs that take turns."""
    period = len(set(values.tolist()))
    turns = values[:period]
    return bool(
        values.max() <= MOST_INDEX
        and (np.sort(turns) == turns).all()
        and (values == np.resize(turns, len(values))).all()
    )
