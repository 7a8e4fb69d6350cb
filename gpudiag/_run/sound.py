"""A run that somebody put together or edited by hand, as readers would have given it.

Readers bound every number, and give each trial and each report once. Tables of other origin may hold anything; what no
table can hold is made unknown here, so that no measure has to expect it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from gpudiag._run.tables import R
from gpudiag.errors import InputError
from gpudiag.schema import STATES, TABLES, TableSpec, dtype

ONCE: dict[str, Literal["first", "last"]] = {"gpus": "first", "trials": "first", "reports": "last", "studies": "first"}
"""Tables of which a key stands for one row, and which of several rows readers keep."""


def sound(run: R) -> R:
    """The run itself where its tables hold what they can hold, else one whose tables do.

    A number outside the bounds of its column becomes unknown, a row whose key is out of bounds, or that is about a GPU
    and names none, is left out, an optional column without a value is dropped, times of which none is known are in
    UTC, and of several rows of one GPU, study, trial or step one is kept.
    Raises InputError for a state that trials do not have, and for known times that do not say in which zone they are.
    """
    _check_states(run.trials)
    changed = {}
    for name, table in TABLES.items():
        held = getattr(run, name)
        made = _once(_dated(_known(_named(_bounded(held, table), table), table), table), table)
        if made is not held:
            changed[name] = made
    return replace(run, **changed) if changed else run


def _check_states(trials: pd.DataFrame) -> None:
    unknown = sorted(map(str, set(trials["state"].unique()) - set(STATES)))
    if unknown:
        raise InputError(f"table trials: there is no state {unknown[0]!r}; expected {', '.join(STATES)}.")


def _bounded(rows: pd.DataFrame, table: TableSpec) -> pd.DataFrame:
    for column in table.columns:
        if column.name not in rows or (column.low is None and column.high is None) or rows.empty:
            continue
        values = rows[column.name].to_numpy("float64", na_value=np.nan)
        low = -np.inf if column.low is None else column.low
        high = np.finfo("float64").max if column.high is None else column.high
        if (np.fmin.reduce(values) >= low and np.fmax.reduce(values) <= high) or np.isnan(values).all():
            continue
        bad = (values < low) | (values > high)
        if column.kind == "key":
            rows = rows[~bad].reset_index(drop=True)
        else:
            rows = rows.assign(**{column.name: rows[column.name].mask(bad)})
    return rows


def _named(rows: pd.DataFrame, table: TableSpec) -> pd.DataFrame:
    if table.name not in ("gpu", "gpus", "processes") or not rows["gpu"].isna().any():
        return rows
    return rows[rows["gpu"].notna()].reset_index(drop=True)


def _known(rows: pd.DataFrame, table: TableSpec) -> pd.DataFrame:
    """An optional column of the table that holds nothing is as one that is absent."""
    optional = [name for name in rows if name in table.names and name not in table.required]
    blank = [name for name in optional if len(rows) and pd.isna(rows[name].iloc[0]) and rows[name].isna().all()]
    return rows.drop(columns=blank) if blank else rows


def _dated(rows: pd.DataFrame, table: TableSpec) -> pd.DataFrame:
    """Times of which none is known may have come without a zone, which no other time could be compared with."""
    naive = [
        column.name
        for column in table.columns
        if column.kind == "time" and column.name in rows and not isinstance(rows[column.name].dtype, pd.DatetimeTZDtype)
    ]
    if dated := [name for name in naive if rows[name].notna().any()]:
        raise InputError(
            f"table {table.name}, column {dated[0]}: expected times in UTC, found {rows[dated[0]].dtype}. "
            'Say in which zone they are, as with dt.tz_localize("Europe/Berlin").dt.tz_convert("UTC").'
        )
    unknown = pd.Series(pd.NaT, index=rows.index, dtype=dtype("time"))
    return rows.assign(**dict.fromkeys(naive, unknown)) if naive else rows


def _once(rows: pd.DataFrame, table: TableSpec) -> pd.DataFrame:
    if table.name not in ONCE or not rows.duplicated(list(table.key)).any():
        return rows
    return rows.drop_duplicates(list(table.key), keep=ONCE[table.name], ignore_index=True)
