"""What a journal tells again and again of its trials, as long columns: parameters, intermediate values, attributes."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from math import isfinite
from typing import Any

import numpy as np

from gpudiag.readers._studies.journal_piece import ArrayColumns, JournalPiece


class Codes(dict[Hashable, int]):
    """Each distinct value with the number of its first appearance."""

    def __missing__(self, value: Hashable) -> int:
        self[value] = len(self)
        return self[value]

    def translated(self, codes: np.ndarray, values: Sequence[Hashable]) -> np.ndarray:
        """Codes of another numbering, that of ``values``, in this one."""
        return np.array([self[value] for value in values], dtype="int32")[codes]


class GrowingTable:
    """A table that grows by columns and by single rows; columns ``line``, ``trial_id`` and those named."""

    def __init__(self, **kinds: str) -> None:
        self._kinds = {"line": "int64", "trial_id": "int64", **kinds}
        self._parts: list[tuple[ArrayColumns | None, list[tuple]]] = [(None, [])]

    def add(self, part: ArrayColumns) -> None:
        """Rows behind all that were added before."""
        self._parts.append((part, []))

    def append(self, *cells: Any) -> None:
        """A row somewhere among those of the last part, or behind them."""
        self._parts[-1][1].append(cells)

    def while_open(self, begun: np.ndarray, finished: np.ndarray) -> ArrayColumns:
        """The rows, in the order of their lines, whose trial had begun and had not finished.

        Args:
            begun: by trial the line it may be changed from.
            finished: by trial the line it may be changed to.
        """
        parts = [_while_open(self._in_order(*part), begun, finished) for part in self._parts]
        return {name: np.concatenate([part[name] for part in parts]) for name in self._kinds if name != "line"}

    def _in_order(self, part: ArrayColumns | None, rows: list[tuple]) -> ArrayColumns:
        """A part and the single rows among it, in the order of their lines."""
        if part is not None and not rows:
            return part
        cells = list(zip(*rows, strict=True)) or [()] * len(self._kinds)
        single = {
            name: np.array(column, dtype=kind) for (name, kind), column in zip(self._kinds.items(), cells, strict=True)
        }
        if part is None:
            return single
        joined = {name: np.concatenate([part[name], single[name]]) for name in self._kinds}
        return picked(joined, np.argsort(joined["line"], kind="stable"))


def _while_open(rows: ArrayColumns, begun: np.ndarray, finished: np.ndarray) -> ArrayColumns:
    trial, line = rows["trial_id"], rows["line"]
    known = (trial >= 0) & (trial < len(begun))
    if not known.all():
        return _while_open(picked(rows, known), begun, finished)
    return picked(rows, (begun[trial] <= line) & (line <= finished[trial]))


def picked(rows: ArrayColumns, which: np.ndarray) -> ArrayColumns:
    """Rows by place, or where True."""
    if which.dtype == bool and which.all():
        return rows
    return {name: cells[which] for name, cells in rows.items()}


class JournalSteps:
    """Rows as they were written: nobody has asked yet whether their trial was open.

    ``name``, ``distribution`` and ``key`` are codes of ``names``, ``distributions`` and ``keys``. ``added`` is 1
    where the parameter came with a whole trial.
    """

    def __init__(self) -> None:
        self.names, self.distributions, self.keys = Codes(), Codes(), Codes()
        self.reports = GrowingTable(step="int64", value="float64")
        self.params = GrowingTable(name="int32", value="float64", distribution="int32", added="int8")
        self.user_attrs = GrowingTable(key="int32", value_json="object")
        self.system_attrs = GrowingTable(key="int32", value_json="object")

    def report(self, line: int, trial_id: int, step: Any, value: Any) -> None:
        """Note one intermediate value. Raises TypeError or ValueError for a step that is no int64."""
        if not -(2**63) <= step < 2**63:
            raise ValueError
        self.reports.append(line, trial_id, int(step), _number(value))

    def param(self, line: int, trial_id: int, name: Any, value: Any, distribution: Any, *, added: bool = False) -> None:
        """Note one parameter. Raises TypeError for a distribution that is no text."""
        codes = self.names[str(name)], self.distributions[distribution]
        self.params.append(line, trial_id, codes[0], _number(value), codes[1], int(added))

    def attributes(self, rows: GrowingTable, line: int, trial_id: int, given: dict[str, Any]) -> None:
        """Note attributes in ``user_attrs`` or ``system_attrs``. Raises AttributeError where there is no dict."""
        for key, value in given.items():
            rows.append(line, trial_id, self.keys[key], _json(value))

    def add(self, piece: JournalPiece, first_line: int) -> None:
        """Take in what a piece of the journal holds of steps; its lines are counted from ``first_line``."""
        if piece.reports is not None:
            self.reports.add(_moved(piece.reports, first_line))
        if piece.params is not None:
            rows, names, distributions = piece.params
            rows["name"] = self.names.translated(rows["name"], names)
            rows["distribution"] = self.distributions.translated(rows["distribution"], distributions)
            self.params.add(_moved(rows, first_line) | {"added": np.zeros(len(rows["line"]), dtype="int8")})
        for found, table in ((piece.user_attrs, self.user_attrs), (piece.system_attrs, self.system_attrs)):
            if found is not None:
                rows, keys = found
                table.add(_moved(rows, first_line) | {"key": self.keys.translated(rows["key"], keys)})


def _moved(rows: ArrayColumns, first_line: int) -> ArrayColumns:
    return rows | {"line": rows["line"] + first_line}


def _number(value: Any) -> float:
    """NaN where a damaged entry holds no number, as for NULL in a database."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _json(value: Any) -> str:
    """JSON text; numbers without the encoder, which takes four times as long."""
    return repr(value) if type(value) is int or (type(value) is float and isfinite(value)) else json.dumps(value)
