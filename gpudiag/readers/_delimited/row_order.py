"""GPU and time of rows that do not say them: told by the order of rows and the lines between them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo

import numpy as np
import pandas as pd

from gpudiag.readers._delimited.bursts import FEW_TICKS, MOST_GPUS, REGULAR
from gpudiag.readers._shape.moments import Moment
from gpudiag.readers._shape.ticks import DEFAULT_PERIOD_S, moment_column
from gpudiag.units import SECOND_US


def blocks(lines: np.ndarray, breaks: np.ndarray) -> np.ndarray:
    """The number of the run of rows, unbroken by other lines, in which each row stands."""
    return np.unique(np.searchsorted(breaks, lines), return_inverse=True)[1].astype(np.int64)


def place_in(block: np.ndarray) -> np.ndarray:
    """The position of each row in its block; blocks are runs of equal numbers."""
    starts = np.flatnonzero(np.append(True, block[1:] != block[:-1]))
    return np.arange(len(block)) - np.repeat(starts, np.diff(np.append(starts, len(block))))


def gpus_in_blocks(block: np.ndarray, *, dated: bool) -> int:
    """How many GPUs take turns in blocks of rows without an index; ``dated``: date lines head the blocks."""
    sizes = np.bincount(block)
    if len(sizes) == 1:
        return int(sizes[0]) if dated and sizes[0] <= MOST_GPUS else 1
    # The first block may lack its head and the last its tail.
    inner = sizes[1:-1] if len(sizes) > 2 else sizes
    common = int(np.bincount(inner).argmax())
    return common if common <= MOST_GPUS and (inner == common).mean() >= REGULAR else 1


def usual_size(block: np.ndarray, headings: int) -> tuple[int, bool]:
    """The size of the block of half of the rows, where headers or dates set blocks apart, and if most rows have it.

    (0, False) where blocks are few or set apart by other lines, hold a row each, or so many that they are of one GPU.
    """
    of_block = np.bincount(block)
    of_row = np.sort(of_block[block])
    size = int(of_row[len(of_row) // 2])  # what most rows have is their median
    if len(of_block) < FEW_TICKS or 2 * headings < len(of_block) or not 1 < size <= MOST_GPUS:
        return 0, False
    return size, bool(2 * np.count_nonzero(of_row == size) > len(of_row))


def clock_of(moments: Sequence[tuple[int, Moment]]) -> list[tuple[int, Moment]]:
    """Moments with a day and a clock each: the Windows prompt writes them on two lines."""
    out: list[tuple[int, Moment]] = []
    day: datetime | None = None
    for line, moment in moments:
        if not moment.clock:
            day = moment.timestamp
        elif moment.day:
            out.append((line, moment))
        else:
            at = (day or datetime(1970, 1, 1)).replace(hour=moment.timestamp.hour, minute=moment.timestamp.minute)
            at = at.replace(second=moment.timestamp.second, microsecond=moment.timestamp.microsecond)
            out.append((line, Moment(at)))
    return out


def timestamps_from_lines(
    lines: np.ndarray, code: np.ndarray, moments: Sequence[tuple[int, Moment]], period_s: float | None, zone: tzinfo
) -> tuple[pd.Series, np.ndarray]:
    """The time of each row, that of the last line above it that states one, NaT above the first; and its turn there.

    Rows of one GPU (they stand together) that share such a line follow each other at the sampling period.
    """
    at = np.array([line for line, _ in moments])
    above = np.searchsorted(at, lines) - 1
    stated = pd.Series(moment_column([moment for _, moment in moments], zone))
    turn = place_in(above + code.astype(np.int64) * (len(at) + 1))
    later = pd.to_timedelta(turn * round((period_s or DEFAULT_PERIOD_S) * SECOND_US), unit="us")
    timestamps = stated.iloc[np.maximum(above, 0)].reset_index(drop=True) + later
    return timestamps.mask(above < 0), turn
