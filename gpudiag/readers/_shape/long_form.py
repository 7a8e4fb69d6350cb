"""Rows of one metric each become rows of one GPU and instant."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.readers._fields.dcgm_fields import FB_FREE, XID, without_blanks
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._shape.tidy import CONFLICT, DUPLICATE


def widen(rows: pd.DataFrame, log: ProblemLog, *, near: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Table ``gpu`` and table ``events`` from rows of single readings.

    Args:
        rows: one reading a row: ``time``, ``gpu``, ``column`` (of the schema), ``value``, ``rank`` (of several
            sources of a column of one GPU only the one of lowest rank counts).
        log: where readings of one column, GPU and instant are counted; the last one counts.
        near: readings of one tick carry timestamps that differ a little; those within half a period of a reading of
            the most frequent column are put at its instant.
    """
    rows = rows.assign(value=without_blanks(rows["value"].to_numpy(dtype="float64")))
    best = rows.groupby(["gpu", "column"], sort=False)["rank"].transform("min")
    rows = rows[rows["rank"] == best]
    if near:
        parts = [part.assign(time=_snapped(part)) for _, part in rows.groupby("gpu", sort=False)]
        rows = pd.concat(parts) if parts else rows
    _count_twice(rows, log)
    wide = rows.groupby(["gpu", "time", "column"], sort=True)["value"].last().unstack("column")
    table = wide.reset_index()
    return with_total(table), xid_events(table)


def _count_twice(rows: pd.DataFrame, log: ProblemLog) -> None:
    """Count instants of a GPU with a column that is there twice, and those where its values differ."""
    twice = rows[rows.duplicated(["gpu", "time", "column"], keep=False)]
    if twice.empty:
        return
    log.add(DUPLICATE, len(twice.drop_duplicates(["gpu", "time"])))
    differ = twice.groupby(["gpu", "time", "column"], sort=False)["value"].nunique() > 1
    log.add(CONFLICT, len(differ[differ].reset_index().drop_duplicates(["gpu", "time"])))


def _snapped(part: pd.DataFrame) -> np.ndarray:
    """Timestamps of one GPU's readings, moved to the nearest one of its most frequent column."""
    time = part["time"].to_numpy()
    common = part["column"].value_counts().index[0]
    base = np.unique(time[(part["column"] == common).to_numpy()])
    if len(base) < 2:
        return time
    right = np.clip(np.searchsorted(base, time), 1, len(base) - 1)
    nearest = np.where(time - base[right - 1] <= base[right] - time, base[right - 1], base[right])
    limit = np.median(np.diff(base)) / 2
    return np.where(np.abs(nearest - time) <= limit, nearest, time)


def with_total(table: pd.DataFrame) -> pd.DataFrame:
    """The size of memory from used, free and reserved where it is not stated."""
    if FB_FREE in table and "mem_used_mib" in table:
        reserved = table["mem_reserved_mib"].fillna(0.0) if "mem_reserved_mib" in table else 0.0
        total = table["mem_used_mib"] + table[FB_FREE] + reserved
        table["mem_total_mib"] = table["mem_total_mib"].fillna(total) if "mem_total_mib" in table else total
    return table


def xid_events(table: pd.DataFrame) -> pd.DataFrame:
    """One event each time the last XID error of a GPU becomes another one; 0 is none."""
    if XID not in table:
        return pd.DataFrame({"time": [], "kind": [], "detail": [], "gpu": []})
    rows = table.loc[table[XID].notna(), ["time", "gpu", XID]].sort_values(["gpu", "time"], kind="stable")
    before = rows.groupby("gpu", sort=False)[XID].shift(fill_value=0.0)
    new = rows[(rows[XID] > 0) & (rows[XID] != before)]
    detail = [f"last XID error is {value:.0f}" for value in new[XID]]
    return pd.DataFrame({"time": new["time"], "kind": "xid", "detail": detail, "gpu": new["gpu"]})
