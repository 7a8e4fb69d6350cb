"""Whether samples that two logs hold under one index are of one GPU: what contradicts it, and what proves it."""

from __future__ import annotations

from functools import cached_property

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
_NEAR = range(-3, 3)
"""The last and next rows of a moment, by the row behind it."""
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


class OneGpu:
    """What one log holds of one GPU, in order of time. Hundreds of logs are compared each with each other: what the
    comparisons need of a log is made once.

    ``time_us``: microseconds since 1970; ``readings``: each that the log has, by its column.
    """

    def __init__(self, rows: pd.DataFrame) -> None:
        self.time_us = microseconds(rows["time"])
        self.readings = {name: rows[name].to_numpy("float64") for name in _READINGS if name in rows}
        self._around: dict[tuple[str, range], tuple[np.ndarray, np.ndarray]] = {}

    def __len__(self) -> int:
        return len(self.time_us)

    @cached_property
    def in_whole_seconds(self) -> bool:
        """Whether no time has a fraction of a second."""
        return not (self.time_us % SECOND_US).any()

    @cached_property
    def instants(self) -> tuple[np.ndarray, np.ndarray]:
        """The different times, and the first row of each."""
        return np.unique(self.time_us, return_index=True)

    def shared(self, other: OneGpu) -> tuple[np.ndarray, np.ndarray]:
        """The rows of both logs, of which neither is empty, at the instants that both hold."""
        (own, rows), (others, other_rows) = self.instants, other.instants
        at = np.minimum(np.searchsorted(others, own), len(others) - 1)
        both = others[at] == own
        return rows[both], other_rows[at[both]]

    def around(self, name: str, near: range) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest known value of the rows ``near`` each row, and near the place behind the last one."""
        if (name, near) not in self._around:
            values = self.readings[name]
            rows = np.clip(np.arange(len(values) + 1)[:, None] + np.array(near), 0, len(values) - 1)
            self._around[name, near] = np.fmin.reduce(values[rows], axis=1), np.fmax.reduce(values[rows], axis=1)
        return self._around[name, near]


def difference(one: OneGpu, other: OneGpu, *, same_tool: bool) -> Statement:
    """What in the samples of two logs shows that they are of two GPUs; NOTHING if nothing does.

    Two tools may mean different things by utilization, so that those of ``same_tool`` alone are compared where they
    took none at the same instant.
    """
    if not len(one) or not len(other):
        return NOTHING
    shared, differ = _conflicts(one, other)
    if differ >= _LEAST_CONFLICTS and differ > _CONFLICT_SHARE * shared:
        return Statement(DIFFERENT_SAMPLES, n_different=differ, n_shared=shared)
    if same_tool:
        between, differ = _beyond_neighbors(one, other)
        if between >= _LEAST_BETWEEN and differ > _BETWEEN_SHARE * between:
            return Statement(DIFFERENT_BETWEEN, n_different=differ, n_between=between)
    return NOTHING


def copied(one: OneGpu, other: OneGpu) -> bool:
    """Whether nearly all samples of the shorter log, while the other recorded, stand in that one too.

    Times at one fraction of the second, such as whole seconds, coincide on any two machines: fractions or readings must
    have changed as well.
    """
    if not len(one) or not len(other):
        return False
    times = one.time_us, other.time_us
    low, high = max(time[0] for time in times), min(time[-1] for time in times)
    n = min(int(((time >= low) & (time <= high)).sum()) for time in times)
    left, right = one.shared(other)
    names = [name for name in one.readings if name in other.readings]
    if n < _LEAST_COPIED or len(left) < _COPIED_SHARE * n or not names:
        return False
    equal = np.ones(len(left), bool)
    for name in names:
        here, there = one.readings[name][left], other.readings[name][right]
        equal &= (here == there) | np.isnan(here) | np.isnan(there)
        if equal.sum() < _COPIED_SHARE * n:
            return False
    held = np.column_stack([one.readings[name][left][equal] for name in names])
    changes = int((np.diff(held, axis=0) != 0).any(axis=1).sum())
    fractions = len(np.unique(one.time_us[left] % SECOND_US))
    return max(fractions, changes) >= _LEAST_COPIED


def _conflicts(one: OneGpu, other: OneGpu) -> tuple[int, int]:
    """How many instants two logs share, and in how many of them utilization or used memory differs.

    Whole seconds are no instants: two logs that write them may sample a GPU at both ends of a second. There a
    sample differs where it lies beyond all that the other log has from its row before to its row after.
    """
    if one.in_whole_seconds != other.in_whole_seconds:
        return 0, 0
    left, right = one.shared(other)
    reach = 1 if one.in_whole_seconds else 0
    differ = {name: np.zeros(len(left), dtype=bool) for name in _TOLERANCE}
    for name, tolerance in _TOLERANCE.items():
        if name in one.readings and name in other.readings:
            value = one.readings[name][left]
            low, high = (edge[right] for edge in other.around(name, range(-reach, reach + 1)))
            differ[name] = (value < low - tolerance) | (value > high + tolerance)
    if not reach:
        return len(left), int(np.logical_or(*differ.values()).sum())
    most = max(int(found.sum()) for found in differ.values())
    return len(left), most if most > _BEYOND_SHARE * len(left) else 0


def _beyond_neighbors(one: OneGpu, other: OneGpu) -> tuple[int, int]:
    """How many samples the sparser of two logs took while the other recorded, and how many of them differ in one
    reading from all of the other's last and next ones.

    Recorders that poll about once a step, or once in a number of steps, meet it at another place each: one may always
    see it work and the other always see it wait. So where both know the temperature, which follows minutes of work, it
    speaks in place of utilization, and power counts only where neither saw the GPU work.
    """
    sparse, dense = sorted((one, other), key=len)
    inside = (sparse.time_us > dense.time_us[0]) & (sparse.time_us < dense.time_us[-1])
    after = np.searchsorted(dense.time_us, sparse.time_us[inside])
    beyond = {
        name: _beyond(sparse.readings[name][inside], dense, name, after, tolerance)
        for name, tolerance in {**_TOLERANCE, "temp_c": _DEGREES, "power_w": _WATTS}.items()
        if name in sparse.readings and name in dense.readings
    }
    found = {name: below | above for name, (below, above) in beyond.items() if name in _TOLERANCE}
    if "temp_c" in beyond:
        found.pop("util_pct", None)
        found |= {"temp_c": _to_one_side(*beyond["temp_c"])}
    if "power_w" in beyond and "util_pct" in beyond:
        idle = (sparse.readings["util_pct"][inside] == 0) & (dense.around("util_pct", _NEAR)[1][after] == 0)
        found |= {"power_w": _to_one_side(*(side & idle for side in beyond["power_w"]))}
    return int(inside.sum()), max((int(each.sum()) for each in found.values()), default=0)


def _beyond(
    value: np.ndarray, dense: OneGpu, name: str, after: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Where a value is below, and where above, all that the denser log has around it."""
    low, high = (edge[after] for edge in dense.around(name, _NEAR))
    return value < low - tolerance, value > high + tolerance


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
