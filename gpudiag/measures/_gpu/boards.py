"""What is known of each GPU of a run: its board, its memory and its power limit, and who says so."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from gpudiag.hardware import Board, find_board
from gpudiag.manifest import GpuOverride
from gpudiag.measures._time.cells import rows_by_gpu, sampled_gpus
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.units import MIB_PER_GIB

AVERAGED_LIMIT = 1.3
INSTANT_LIMIT = 1.6
"""Times the board's limit above which a reading is implausible: a sensor that averages over 1 s (Ampere but GA100, and
newer), and one that reads an instant or is unknown (METHODS 8; an Acme A100 really drew 1.5 times its limit)."""


def gpu_boards(run: Run) -> pd.DataFrame:
    """Index gpu: name, board, laptop, note, averaged_sensor, total_mib, total_source, limit_w, limit_source,
    default_w, max_clock_mhz, boost_mhz.

    Totals and limits come from run.toml where it states them, else from the log, else from the data
    sheet; ``_source`` says which ('run.toml', 'log', 'data sheet', '' if unknown, with NaN). A limit in the log is
    the greatest that was in force. ``default_w``, the board's own limit, is of the log, else of the data sheet, which
    knows that of a laptop's board only as its greatest. ``max_clock_mhz`` is what the driver allows, by the log.
    """
    return _boards(run).copy()  # callers add columns


def most_plausible_w(boards: pd.DataFrame) -> pd.Series:
    """The greatest plausible reading of the power of each of :func:`gpu_boards`; NaN without a limit."""
    averaged = boards["averaged_sensor"] == True  # noqa: E712 - NaN is unknown
    return boards["limit_w"] * np.where(averaged, AVERAGED_LIMIT, INSTANT_LIMIT)


@memoized
def _boards(run: Run) -> pd.DataFrame:
    logged = _greatest_logged(run)
    listed = run.gpus.drop_duplicates("gpu").set_index("gpu")
    rows = {}
    for gpu in sampled_gpus(run):
        stated = run.info.gpu_overrides.get(gpu, GpuOverride())
        name = stated.name or (str(listed.at[gpu, "name"]) if _has(listed, gpu, "name") else "")
        mem_mib = {"run.toml": stated.mem_total_mib, "log": _logged(logged, listed, gpu, "mem_total_mib")}
        limit_w = {"run.toml": stated.power_limit_w, "log": _logged(logged, listed, gpu, "power_limit_w")}
        board = find_board(name, _first(mem_mib)[0])
        if board:
            mem_mib["data sheet"] = board.mem_gib * MIB_PER_GIB
            limit_w["data sheet"] = board.power_w
        total, total_source = _first(mem_mib)
        limit, limit_source = _first(limit_w)
        rows[gpu] = {
            "name": name,
            **_describe(board),
            "total_mib": total,
            "total_source": total_source,
            "limit_w": limit,
            "limit_source": limit_source,
            "default_w": _first(_default_w(board, _logged(logged, listed, gpu, "power_default_w")))[0],
            "max_clock_mhz": _first({"log": _logged(logged, listed, gpu, "sm_clock_max_mhz")})[0],
            "boost_mhz": board.boost_mhz if board else math.nan,
        }
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(_COLUMNS)).rename_axis("gpu")


def _default_w(board: Board | None, logged_w: float | None) -> dict[str, float | None]:
    return {"log": logged_w, "data sheet": board.power_w if board and not board.laptop else None}


LOGGED = ("mem_total_mib", "power_limit_w", "power_default_w", "sm_clock_max_mhz")


def _greatest_logged(run: Run) -> pd.DataFrame:
    """The greatest total, limits and allowed clock that the log has for each GPU."""
    columns = {name: run.gpu[name].to_numpy(float) for name in LOGGED if name in run.gpu}
    rows = rows_by_gpu(run)
    most = {name: [np.fmax.reduce(values[own]) for own in rows.values()] for name, values in columns.items()}
    return pd.DataFrame(most, index=list(rows))


_COLUMNS = (
    "name", "board", "laptop", "note", "averaged_sensor", "total_mib", "total_source", "limit_w", "limit_source",
    "default_w", "max_clock_mhz", "boost_mhz",
)  # fmt: skip


def _describe(board: Board | None) -> dict[str, object]:
    if board is None:
        return {"board": "", "laptop": False, "note": "", "averaged_sensor": math.nan}
    name = f"{board.name} Laptop" if board.laptop else board.name
    return {"board": name, "laptop": board.laptop, "note": board.note, "averaged_sensor": board.averaged_sensor}


def _first(candidates: dict[str, float | None]) -> tuple[float, str]:
    """The first value that is known, and who says it. A log that says less than 1 does not know it."""
    for source, value in candidates.items():
        if value is not None and value >= 1:
            return float(value), source
    return math.nan, ""


def _logged(logged: pd.DataFrame, listed: pd.DataFrame, gpu: str, column: str) -> float | None:
    for table in (logged, listed):
        if _has(table, gpu, column):
            return float(table.at[gpu, column])
    return None


def _has(table: pd.DataFrame, gpu: str, column: str) -> bool:
    return bool(column in table and gpu in table.index and pd.notna(table.at[gpu, column]))
