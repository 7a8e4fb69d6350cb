"""Whether samples that two logs hold under one index are of one GPU: what contradicts it, and what proves it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.spans import microseconds
from gpudiag.statement import NOTHING, Statement
from gpudiag.units import SECOND_US

_CONFLICT_SHARE = 0.05
_BEYOND_SHARE = 0.4
"""For logs in whole seconds. Of one H100 recorded twice, half a second apart, 0-28 % of samples lay beyond; of two
recordings of other runs laid over each other, 50-87 % (benchmarks/gpu_search.py, four runs)."""
_LEAST_CONFLICTS = 3
"""A log cut within a row or an instant differs in the sample at the cut, which says nothing."""
_TOLERANCE = {"util_pct": 1.0, "mem_used_mib": 2.0}
"""Differences up to these are rounding."""
_DEGREES, _WATTS = 2.0, 2.0
"""Differences of a sensor up to these are its noise."""
_LEAST_BETWEEN = 40
_AROUND = 3
_BETWEEN_SHARE = 0.5
"""Of samples of one GPU two in seven are the least or the greatest among their six neighbors in another log of it."""
_PARTS = 4
_ONE_SIDE = 0.9
"""Of one sensor, the samples of one log lie now above, now below those of the other."""
_COPIED_SHARE = 0.9
_LEAST_COPIED = 20
_READINGS = ("util_pct", "mem_used_mib", "power_w", "temp_c", "sm_clock_mhz", "mem_util_pct")
DIFFERENT_SAMPLES = "two logs differ in {n_different} of the {n_shared} samples that both took at the same instant"
DIFFERENT_BETWEEN = (
    "{n_different} of the {n_between} samples of one log lie beyond all that the other has shortly before and after"
)


def difference(one: pd.DataFrame, other: pd.DataFrame, *, same_tool: bool) -> Statement:
    """What in the samples of two logs shows that they are of two GPUs; NOTHING if nothing does.

    Two tools may mean different things by utilization, so that those of ``same_tool`` alone are compared where they
    took none at the same instant.
    """
    shared, differ = _conflicts(one, other)
    if differ >= _LEAST_CONFLICTS and differ > _CONFLICT_SHARE * shared:
        return Statement(DIFFERENT_SAMPLES, n_different=differ, n_shared=shared)
    if same_tool:
        between, differ = _beyond_neighbors(one, other)
        if between >= _LEAST_BETWEEN and differ > _BETWEEN_SHARE * between:
            return Statement(DIFFERENT_BETWEEN, n_different=differ, n_between=between)
    return NOTHING


def copied(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether nearly all samples of the shorter log, while the other recorded, stand in that one too.

    Times at one fraction of the second, such as whole seconds, coincide on any two machines: fractions or readings must
    have changed as well.
    """
    if one.empty or other.empty:
        return False
    times = microseconds(one["time"]), microseconds(other["time"])
    low, high = max(time[0] for time in times), min(time[-1] for time in times)
    n = min(int(((time >= low) & (time <= high)).sum()) for time in times)
    _, left, right = np.intersect1d(times[0], times[1], return_indices=True)
    if n < _LEAST_COPIED or len(left) < _COPIED_SHARE * n:
        return False
    names = [name for name in _READINGS if name in one and name in other]
    here, there = (log[names].to_numpy("float64")[at] for log, at in ((one, left), (other, right)))
    equal = ((here == there) | np.isnan(here) | np.isnan(there)).all(axis=1)
    fractions = len(np.unique(times[0][left] % SECOND_US))
    changes = int((np.diff(here[equal], axis=0) != 0).any(axis=1).sum())
    return bool(names) and equal.sum() >= _COPIED_SHARE * n and max(fractions, changes) >= _LEAST_COPIED


def _conflicts(one: pd.DataFrame, other: pd.DataFrame) -> tuple[int, int]:
    """How many instants two logs share, and in how many of them utilization or used memory differs.

    Whole seconds are no instants: two logs that write them may sample a GPU at both ends of a second. There a
    sample differs where it lies beyond all that the other log has from its row before to its row after.
    """
    times = [microseconds(log["time"]) for log in (one, other)]
    seconds = [not (log % SECOND_US).any() for log in times]
    if seconds[0] != seconds[1]:
        return 0, 0
    _, left, right = np.intersect1d(times[0], times[1], return_indices=True)
    reach = 1 if all(seconds) else 0
    differ = {name: np.zeros(len(left), dtype=bool) for name in _TOLERANCE}
    for name, tolerance in _TOLERANCE.items():
        if name in one and name in other:
            value = one[name].to_numpy("float64")[left]
            low, high = _range(other[name].to_numpy("float64"), right, range(-reach, reach + 1))
            differ[name] = (value < low - tolerance) | (value > high + tolerance)
    if not reach:
        return len(left), int(np.logical_or(*differ.values()).sum())
    most = max(int(found.sum()) for found in differ.values())
    return len(left), most if most > _BEYOND_SHARE * len(left) else 0


def _beyond_neighbors(one: pd.DataFrame, other: pd.DataFrame) -> tuple[int, int]:
    """How many samples the sparser of two logs took while the other recorded, and how many of them differ in one
    reading from all of the other's last and next ones.

    Recorders that poll about once a step, or once in a number of steps, meet it at another place each: one may always
    see it work and the other always see it wait. So where both know the temperature, which follows minutes of work, it
    speaks in place of utilization, and power counts only where neither saw the GPU work.
    """
    sparse, dense = sorted((one, other), key=len)
    when, all_times = (microseconds(log["time"]) for log in (sparse, dense))
    if not len(when):
        return 0, 0
    inside = (when > all_times[0]) & (when < all_times[-1])
    after = np.searchsorted(all_times, when[inside])
    beyond = {
        name: _beyond(sparse[name].to_numpy("float64")[inside], dense[name].to_numpy("float64"), after, tolerance)
        for name, tolerance in {**_TOLERANCE, "temp_c": _DEGREES, "power_w": _WATTS}.items()
        if name in sparse and name in dense
    }
    found = {name: below | above for name, (below, above) in beyond.items() if name in _TOLERANCE}
    if "temp_c" in beyond:
        found.pop("util_pct", None)
        found |= {"temp_c": _to_one_side(*beyond["temp_c"])}
    if "power_w" in beyond and "util_pct" in beyond:
        idle = _idle(sparse["util_pct"].to_numpy("float64")[inside], dense["util_pct"].to_numpy("float64"), after)
        found |= {"power_w": _to_one_side(*(side & idle for side in beyond["power_w"]))}
    return int(inside.sum()), max((int(each.sum()) for each in found.values()), default=0)


def _beyond(
    value: np.ndarray, others: np.ndarray, after: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Where a value is below, and where above, all of the others around it."""
    low, high = _range(others, after, range(-_AROUND, _AROUND))
    return value < low - tolerance, value > high + tolerance


def _idle(util: np.ndarray, others: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Where neither log saw any utilization."""
    return np.asarray((util == 0) & (_range(others, after, range(-_AROUND, _AROUND))[1] == 0))


def _to_one_side(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """The samples beyond, if all along hardly any lies on the other side, and most do in all parts but one, as before
    the work; else none.
    """
    for there, back in ((below, above), (above, below)):
        parts = zip(np.array_split(there, _PARTS), np.array_split(back, _PARTS), strict=True)
        sums = [(int(one.sum()), int(other.sum()), len(one)) for one, other in parts]
        many = sum(n > _BETWEEN_SHARE * size for n, _, size in sums)
        if many >= _PARTS - 1 and all(n >= _ONE_SIDE * (n + m) for n, m, _ in sums):
            return there
    return np.zeros(len(below), bool)


def _range(values: np.ndarray, at: np.ndarray, around: range) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest known value of the rows ``around`` each of the rows ``at``."""
    rows = np.clip(at[:, None] + np.array(around), 0, len(values) - 1)
    return np.fmin.reduce(values[rows], axis=1), np.fmax.reduce(values[rows], axis=1)
