"""Rows with a time and no index that come in bursts: of GPUs that take turns, or of one GPU read several times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

MOST_GPUS = 16
REGULAR = 0.9
"""Share of blocks (or ticks) with the same number of rows from which that number is the number of GPUs."""
_TICK_US = 10_000
"""nvidia-smi asks all GPUs of a tick within a few milliseconds: no recorder reads one GPU as often, and then rests."""
_APART = 10
"""Ticks are so many times further apart than rows of one tick."""
_TRIED = 4_000
FEW_TICKS = 20
"""In fewer, one of many places may lie off by chance."""
SLOW = ("mem_used_mib", "mem_free_mib", "mem_total_mib", "temp_c", "mem_temp_c", "energy_j")
"""What one GPU keeps within a tick. Utilization, clocks and power may be low whenever it is asked after a rest."""


@dataclass(frozen=True)
class Turns:
    """``gpus`` take turns in the rows; ``tick`` numbers the rounds. ``burst``: rows of one GPU in each, where more."""

    gpus: int
    tick: np.ndarray
    burst: int = 1


def turns(timestamps: np.ndarray, columns: Mapping[str, np.ndarray]) -> Turns:
    """How many GPUs take turns in a stamped log without an index.

    Rows belong to one tick if they are much closer to each other than ticks are, and all ticks have as many. Within
    milliseconds they are those of several GPUs. Further apart they may be of one GPU, read several times and then not
    for a while: that they are of several shows in memory or temperature, where one of them differs and keeps on.
    """
    one = Turns(1, np.arange(len(timestamps)))
    step = np.diff(timestamps.astype("datetime64[us]").astype(np.int64))
    if not len(step):
        return one
    close, limit = _ticks(step, _TICK_US), _limit(step)
    found = _ticks(step, limit) if limit > _TICK_US else None
    if close is not None:  # a row that came late is still of its tick
        return Turns(*(found if found is not None and found[0] == close[0] else close))
    if found is None:
        slow = _slow_ticks(step)
        return one if slow is None else Turns(*slow)
    size, tick = found
    if _differ(columns, tick, size):
        return Turns(size, tick)
    return Turns(1, one.tick, size)


def _ticks(step: np.ndarray, limit_us: int) -> tuple[int, np.ndarray] | None:
    """Rows in a tick, and the tick of each row, if steps up to a limit join ticks of equal size, far apart."""
    near = (step >= 0) & (step <= limit_us)
    tick = np.append(0, np.cumsum(~near))
    sizes = np.bincount(tick)
    inner = sizes[:-1] if len(sizes) > 1 else sizes  # the last one may be torn
    common = int(np.bincount(inner).argmax())
    if not 2 <= common <= MOST_GPUS or (inner == common).mean() < REGULAR or near.all():
        return None
    if np.median(np.abs(step[~near])) < _APART * max(int(step[near].max()), 1):
        return None
    return common, tick


def _slow_ticks(step: np.ndarray) -> tuple[int, np.ndarray] | None:
    """As :func:`_ticks`, of a tool that now and then takes long to ask the GPUs of a tick, but rests longer.

    The longest steps then stand after every n-th row, which happens by chance in no log of some ticks.
    """
    for size in range(2, MOST_GPUS + 1):
        if _after_every(size, step[:_TRIED]) is not None and (tick := _after_every(size, step)) is not None:
            return size, tick
    return None


def _after_every(size: int, step: np.ndarray) -> np.ndarray | None:
    """The tick of each row, if the longest steps stand after every ``size`` rows and most others are milliseconds."""
    rests = len(step) // size
    if rests < FEW_TICKS:
        return None
    far = (step >= np.partition(step, -rests)[-rests]) | (step < 0)
    tick = np.append(0, np.cumsum(far))
    within = float(np.median(step[~far])) if not far.all() else np.inf
    if within > _TICK_US or np.median(step[far]) < _APART * max(within, 1):
        return None
    return tick if (np.bincount(tick)[:-1] == size).mean() >= REGULAR else None


def _limit(step: np.ndarray) -> int:
    """The step that divides short ones from long ones best, where most are short; 0 if none does."""
    low, high = int(0.4 * len(step)), int(0.97 * len(step))  # from 2 rows a tick to MOST_GPUS, a few out of turn
    ends = np.partition(step, (low, high))[[low, high]]
    if ends[1] < _APART * max(int(ends[0]), 1):
        return 0
    between = np.maximum(np.sort(step)[low : high + 1], 1)
    best = int(np.argmax(between[1:] / between[:-1]))
    return int(between[best])


def _differ(columns: Mapping[str, np.ndarray], tick: np.ndarray, size: int) -> bool:
    """True if by some slow column a place in the ticks is of a GPU of its own."""
    whole = (np.bincount(tick) == size)[tick]
    rounds = (columns[name][whole].reshape(-1, size) for name in SLOW if name in columns)
    return any(_of_its_own(values[~np.isnan(values).any(axis=1)]) for values in rounds)


def _of_its_own(rounds: np.ndarray) -> bool:
    """Whether a place lies off the median of its tick by more than this offset varies.

    So do readings of one GPU that rises or falls all the time: from tick to tick it goes further than within one.
    """
    if len(rounds) < FEW_TICKS:
        return False
    offset = rounds - np.median(rounds, axis=1, keepdims=True)
    course = np.abs(np.median(np.diff(rounds, axis=0), axis=0))
    return bool((np.abs(offset.mean(axis=0)) > np.maximum(offset.std(axis=0), course)).any())
