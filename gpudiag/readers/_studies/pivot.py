"""Long tables (one row per trial and name) become wide columns, without a Python loop over cells."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.surrogates import without_halves
from gpudiag.readers._studies.distributions import Distribution, parse_distribution
from gpudiag.schema import text_dtype

EXACT = 2**53
"""Up to here a float holds each integer. A larger one, such as a seed of 64 bits, stays what it is."""


def pivot_params(params: pd.DataFrame, rows: int, problems: ProblemLog) -> dict[str, pd.Series]:
    """Columns ``params.<name>`` of ``rows`` trials.

    ``params`` has ``row`` (position of the trial), ``name``, ``value`` (the stored number) and
    ``distribution`` (JSON text). Columns of integers with a gap are float64, as pandas has it.
    """
    codes, texts = coded(params["distribution"])
    known = [*(parse_distribution(str(text)) for text in texts), None]  # the last one for -1
    unknown = np.array([item is None for item in known], dtype=bool)
    bad = unknown[codes] if len(codes) else np.empty(0, dtype=bool)
    if bad.any():
        first = params["name"].to_numpy()[int(bad.argmax())]
        problems.add("parameter of unknown distribution", int(bad.sum()), example=first, lost=True)
    kinds = np.array(["" if item is None else item.kind for item in known], dtype=object)
    value = floats(params["value"])
    row = params["row"].to_numpy()
    out: dict[str, pd.Series] = {}
    for name, at in _groups(params["name"]):
        at = at[~bad[at]]
        if len(at):
            out[f"params.{name}"] = _param_column(value[at], codes[at], kinds, known, row[at], rows)
    return out


def _param_column(
    value: np.ndarray,
    code: np.ndarray,
    kinds: np.ndarray,
    known: Sequence[Distribution | None],
    row: np.ndarray,
    rows: int,
) -> pd.Series:
    """One parameter: numbers stay numbers, choices are looked up one distribution at a time."""
    present = kinds[np.bincount(code, minlength=len(kinds)) > 0]
    if not (present == "choice").any():
        integers = bool((present == "int").all()) and _whole(value)
        return _scatter(value.astype("int64") if integers else value, row, rows)
    cells = np.empty(len(value), dtype=object)
    for index in np.unique(code):
        here = code == index
        distribution = known[index]
        if distribution is None or distribution.kind != "choice":
            cells[here] = value[here].astype("int64") if kinds[index] == "int" and _whole(value[here]) else value[here]
            continue
        choices = np.empty(len(distribution.choices) + 1, dtype=object)
        choices[:-1] = [plain(choice) for choice in distribution.choices]
        position = value[here]
        valid = (position >= 0) & (position < len(distribution.choices))
        cells[here] = choices[np.where(valid, position, -1).astype(int)]
    return column(cells, row, rows)


def _whole(value: np.ndarray) -> bool:
    """Whether all of them are numbers that a column of integers can hold."""
    return bool((np.abs(value) < 2.0**63).all())


def floats(numbers: pd.Series) -> np.ndarray:
    """Numbers as float64; NaN for NULL, for an integer that no float holds, and for a text that SQLite lets into a
    column of numbers.
    """
    if numbers.dtype.kind not in "fiu":
        numbers = pd.to_numeric(numbers.mask(numbers.map(_too_large)), errors="coerce")
    return numbers.to_numpy(dtype=float, na_value=np.nan)


def _too_large(value: object) -> bool:
    return isinstance(value, int) and abs(value) > sys.float_info.max


def pivot_attributes(attributes: pd.DataFrame, rows: int, prefix: str, problems: ProblemLog) -> dict[str, pd.Series]:
    """Columns ``<prefix><key>`` from ``row``, ``key`` and ``value_json``.

    JSON scalars are decoded; lists and objects stay JSON text.
    """
    row = attributes["row"].to_numpy()
    texts = attributes["value_json"].to_numpy(dtype=object)
    out: dict[str, pd.Series] = {}
    for key, at in _groups(attributes["key"]):
        cells = np.empty(len(at), dtype=object)
        cells[:] = decode_all(texts[at].tolist(), problems)
        out[f"{prefix}{key}"] = column(cells, row[at], rows)
    return out


def decode_all(texts: list[Any], problems: ProblemLog) -> list[Any]:
    """JSON texts as scalars, in one pass of the C decoder where none is damaged."""
    try:
        values = json.loads(without_halves("[" + ",".join(texts) + "]"))
        if len(values) == len(texts):
            return [plain(value) for value in values] if {list, dict} & set(map(type, values)) else values
    except (ValueError, TypeError, RecursionError):
        pass
    return [_decode(text, problems) for text in texts]


def _decode(text: Any, problems: ProblemLog) -> Any:
    try:
        return plain(json.loads(without_halves(text)))
    except (ValueError, TypeError, RecursionError):
        # The text itself may be a secret, so it is counted and not shown.
        problems.add("attribute that is not JSON, kept as text", int(text is not None))
        return text


def plain(value: Any) -> Any:
    """A scalar as it is, a list or an object as JSON text."""
    return json.dumps(value) if isinstance(value, list | dict | tuple) else value


def column(cells: np.ndarray, row: np.ndarray, rows: int) -> pd.Series:
    """Cells (objects) scattered over ``rows``: numeric where all are numbers, else text, else object."""
    kinds = set(map(type, cells.tolist()))
    if type(None) in kinds:
        present = np.array([cell is not None for cell in cells], dtype=bool)
        cells, row, kinds = cells[present], row[present], kinds - {type(None)}
    if not kinds:
        return pd.Series(np.full(rows, np.nan))
    largest = max((abs(cell) for cell in cells if type(cell) is int), default=0) if int in kinds else 0
    if kinds == {int} and len(row) == rows and largest < 2**63:
        return _scatter(cells.astype("int64"), row, rows)
    if kinds <= {int, float} and largest <= EXACT:
        return _scatter(cells.astype(float), row, rows)
    out = np.full(rows, None, dtype=object)
    out[row] = cells
    if kinds == {bool}:
        return pd.Series(out, dtype="boolean" if len(row) < rows else "bool")
    return pd.Series(out, dtype=text_dtype() if kinds == {str} else object)


def _scatter(values: np.ndarray, row: np.ndarray, rows: int) -> pd.Series:
    """Numbers at their rows. Integers stay int64 only if no row is left without one."""
    filled = np.zeros(rows, dtype=bool)
    filled[row] = True
    if values.dtype.kind == "i" and filled.all():
        whole = np.zeros(rows, dtype="int64")
        whole[row] = values
        return pd.Series(whole)
    out = np.full(rows, np.nan)
    out[row] = values
    return pd.Series(out)


def _groups(names: pd.Series) -> Iterator[tuple[str, np.ndarray]]:
    """Each name in alphabetical order with the positions that carry it."""
    codes, found = coded(names)
    if len(found) < 2**15:
        codes = codes.astype("int16", copy=False)  # which numpy sorts by radix, four times as fast
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(found) + 1))
    for index in sorted(range(len(found)), key=lambda i: str(found[i])):
        at = order[bounds[index] : bounds[index + 1]]
        if len(at):
            yield str(found[index]), at


def coded(cells: pd.Series) -> tuple[np.ndarray, pd.Index]:
    """Cells as numbers, -1 where empty, and what each number stands for, which may be some that no cell has."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return cells.array.codes, cells.array.categories
    return pd.factorize(cells)
