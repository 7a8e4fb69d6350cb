"""The clock with which that of busy time is compared, and who says so."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._gpu.gpu_rows import slices
from gpudiag.measures._gpu.peers import of_peers
from gpudiag.measures._time.cells import cells
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import BUSY_PCT

POWER_CAP = 0x4
POWER_BRAKE = 0x80
HARDWARE_BITS = 0x8 | POWER_BRAKE
"""Slow-down by the hardware, to half the clock or less (NVML), and by the power brake of the machine."""
THERMAL_BITS = 0x20 | 0x40
SLOWED_BITS = POWER_CAP | HARDWARE_BITS | THERMAL_BITS
MIN_PEER_S = 60.0
SAME_CLOCK = 0.97
"""Of the highest clock that a GPU shows: what it must reach without a reason to be slow, or that is a lower bound."""
SOURCES = ("seen", "peers", "stated", "board")


@memoized
def reference_clocks(run: Run) -> pd.DataFrame:
    """Index gpu: seen_mhz, peers_mhz, stated_mhz, board_mhz, achieved_mhz, reference_mhz, reference_source.

    The reference is the highest of four clocks: that which the GPU itself showed, the median of its peers (GPUs of the
    same name, each by the median of its busy time), the highest that the driver allows, and the board's boost clock.
    It is unknown where only the first is there and no sample without a reason to be slow came near it: a GPU that is
    held down all the time never shows what it can. ``achieved_mhz`` is the highest of the first two.
    """
    boards = gpu_boards(run)
    rows = {gpu: _seen(*columns) for gpu, columns in _clocks(run)}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["seen_mhz", "is_free", "busy_mhz"])
    table = table.reindex(boards.index).rename_axis("gpu")
    names = boards["name"].where(boards["name"] != "")
    table["peers_mhz"] = of_peers(table.pop("busy_mhz"), names)
    table["stated_mhz"], table["board_mhz"] = boards["max_clock_mhz"], boards["boost_mhz"]
    table = table.astype({f"{source}_mhz": float for source in SOURCES})
    table["achieved_mhz"] = table[["seen_mhz", "peers_mhz"]].max(axis=1)
    each = table[[f"{source}_mhz" for source in SOURCES]].to_numpy(float)
    known = np.where(np.isnan(each), -math.inf, each)
    best, unseen = known.argmax(axis=1), np.isnan(each[:, 1:]).all(axis=1)
    is_known = table["seen_mhz"].notna().to_numpy() & ((table.pop("is_free") == True).to_numpy() | ~unseen)  # noqa: E712
    table["reference_mhz"] = np.where(is_known, known.max(axis=1), math.nan)
    table["reference_source"] = np.where(is_known, np.array(SOURCES)[best], "")
    return table


def _clocks(run: Run) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Clock, reasons (NaN unknown), utilization and weight of the samples of each GPU whose clock is known."""
    if "sm_clock_mhz" not in run.gpu:
        return
    optional = [name for name in ("throttle_reasons", "util_pct") if name in run.gpu]
    samples = cells(run, "sm_clock_mhz", *optional)
    names = ("sm_clock_mhz", "throttle_reasons", "util_pct", "weight_s")
    unknown = np.full(len(samples), math.nan)
    columns = [samples[name].to_numpy(float, na_value=math.nan) if name in samples else unknown for name in names]
    for gpu, own in slices(samples):
        yield gpu, tuple(column[own] for column in columns)


def _seen(clock: np.ndarray, reasons: np.ndarray, util: np.ndarray, weight: np.ndarray) -> tuple[float, bool, float]:
    """Highest clock; whether a sample without a reason to be slow came near it; median of a minute or more of work."""
    top = float(clock.max())
    free = (np.nan_to_num(reasons, nan=0.0).astype(np.int64) & SLOWED_BITS) == 0
    busy = util >= BUSY_PCT
    usual = float(np.median(clock[busy])) if weight[busy].sum() >= MIN_PEER_S else math.nan
    return top, bool(clock[free].max(initial=0.0) >= SAME_CLOCK * top), usual
