"""Columns of a frame that somebody holds: numbers in the unit of their column, or a refusal; names of GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd

from gpudiag.errors import InputError
from gpudiag.readers._delimited.grid import is_missing
from gpudiag.readers._shape.corrections import goes_from_0_to_1
from gpudiag.schema import ColumnSpec, TableSpec

_UNKNOWN = -1
"""What some tools write for a value that they lack."""


def read_numbers(frame: pd.DataFrame, table: TableSpec) -> dict[str, pd.Series]:
    """The frame's columns of numbers by name; text that says that a value is unknown is NaN.

    Raises InputError that names the column and shows the value that it cannot have.
    """
    specs = [column for column in table.columns if column.kind in ("float", "int", "key") and column.name in frame]
    return {column.name: _numbers(frame[column.name], column) for column in specs}


def _numbers(values: pd.Series, column: ColumnSpec) -> pd.Series:
    if values.dtype.kind not in "iuf":
        numbers = pd.to_numeric(values.astype(object).where(values.notna(), None), errors="coerce")
        for value in values[numbers.isna() & values.notna()]:
            if not (isinstance(value, str) and is_missing(value.strip())):
                raise _refused(column, value)
        values = numbers
    if column.kind != "float":
        broken = values[values.notna() & (values % 1 != 0)]
        if len(broken):
            raise _refused(column, broken.iloc[0])
    if column.kind == "key" and values.isna().any():
        raise InputError(
            f"DataFrame: column {column.name!r} has rows without a value; expected a whole number in each."
        )
    return values


def refuse_other_units(arrays: Mapping[str, np.ndarray], table: TableSpec) -> None:
    """Raise InputError for a column most of whose values lie outside its bounds, and for utilization from 0 to 1.

    Made unknown, they would leave those behind that any unit has: a column of zeros, of a GPU that is not used. And
    what goes from 0 to 1 is a share, or the mean percent of a GPU that idles: unlike a log's, a frame's may be means.
    """
    util = arrays.get("util_pct", np.empty(0))
    if goes_from_0_to_1(util):
        raise InputError(
            f"DataFrame: column 'util_pct' goes from 0 to {np.fmax.reduce(util):g}, which are shares, or percent of "
            "a GPU that idles; expected percent: multiply it by 100, or round it."
        )
    for name, values in arrays.items():
        column = table[name]
        low, high = (-np.inf if column.low is None else column.low), (np.inf if column.high is None else column.high)
        told = values[~np.isnan(values) & (values != 0) & (values != _UNKNOWN)]
        outside = told[(told < low) | (told > high)]
        if 2 * len(outside) > len(told):
            most = f"{len(outside)} of its {len(told)} values other than 0 lie outside {_bound(low)} to {_bound(high)}"
            raise _refused(column, float(outside[0]), f", and {most}", ": convert it, or leave it out")


def _refused(column: ColumnSpec, value: object, why: str = "", remedy: str = "") -> InputError:
    kind = "numbers" if column.kind == "float" else "whole numbers"
    unit = f" in {column.unit}" + ("" if remedy else ", without the unit") if column.unit else ""
    return InputError(f"DataFrame: column {column.name!r} holds {shown(value)}{why}; expected {kind}{unit}{remedy}.")


def _bound(value: float) -> str:
    return f"{int(value):,}" if np.isfinite(value) else str(value)


def shown(value: object) -> str:
    """A value for a message: text in quotes, all else as it prints."""
    return (repr(value) if isinstance(value, str) else str(value))[:40]


def names_of(values: pd.Series) -> pd.Series:
    """Names as text, None where there is none: a whole number that a gap in its column made a float is whole again."""
    names = {value: re.sub(r"^(\d+)\.0$", r"\1", str(value)) for value in values.dropna().unique()}
    return values.astype(object).map(names).astype(object).where(values.notna(), None)
