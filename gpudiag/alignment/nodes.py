"""Clocks of the nodes of one training: work that begins, pauses and ends on one by the same time later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from gpudiag.alignment.apply import later
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT
from gpudiag.spans import microseconds
from gpudiag.statement import Statement
from gpudiag.timezones import are_zones_apart, quarters_s

LEAST_S, LEAST_PERIODS = 10.0, 5
"""Less than these is no clock worth a word, or the start of a process (defaults without a published source)."""
TOLERANCE_PERIODS, TOLERANCE_S = 2.0, 1.0
"""An edge lies within a period of each recorder; utilization is of up to a second."""
ALIKE = 0.8
"""Share of the pauses of either node that the other must have."""
RECORDING = 0.25
"""Recorders start with the job, within so much of the shift, or LEAST_S: else one node may have begun later."""
AROUND = 5
"""Samples whose median counts: a single one is no pause."""
SURE = 10
"""Samples of a pause that every recorder sees; of one of few samples another may have too few."""
MOST_NODES = 64
MOVED = (
    "GPUs of {node} begin and end their work about {apart_s} {side} those of {other}, and so do their recordings. "
    "The clocks were assumed to differ by that, and the samples of {node} were moved. Synchronize the nodes by NTP. If "
    "they did not train together, diagnose the log of each by itself."
)
ZONES = (
    "GPUs of {node} begin and end their work about {apart_s} {side} those of {other}, and so do their recordings. "
    "That is a whole number of quarter-hours, as between time zones, and the samples of {node} were moved by it. "
    "Let the recorders of all nodes write UTC, or set all nodes to one time zone. If they did not train together, "
    "diagnose the log of each by itself."
)


@dataclass(frozen=True)
class Work:
    """When the GPUs of a node worked: ``at_s`` of rises (``up``) and falls, and the span of their recording; s.

    ``sure``: edges of the whole work, or of a pause so long that every recorder has seen it.
    """

    at_s: np.ndarray
    up: np.ndarray
    sure: np.ndarray
    first_s: float
    last_s: float
    period_s: float


def nodes_on_one_clock(run: Run) -> Run:
    """The run with the samples of nodes whose clock is off moved onto that of the others, and a note on each.

    Moved are nodes of a training, not of a search, whose work begins, pauses and ends by one and the same time after
    another's, and whose recordings begin and end so too. Whether such a clock is off or the same work was done as
    much later, no sample can tell: GPU time is that of the recordings either way. With logs of several files nobody
    knows which node's clock each has, so nothing is moved.
    """
    node_of = {str(gpu): str(gpu).rpartition("/")[0] for gpu in run.gpus["gpu"]}
    names = list(dict.fromkeys(node_of.values()))
    logs = run.steps.loc[run.steps["time"].notna(), "path"].nunique() if len(run.steps) else 0
    if "" in names or not 1 < len(names) <= MOST_NODES or len(run.trials) or logs > 1 or "util_pct" not in run.gpu:
        return run
    node = run.gpu["gpu"].map(node_of)
    works = {name: made for name in names if (made := work_of(run.gpu[(node == name).to_numpy()])) is not None}
    if len(works) < 2:
        return run
    other = _reference(run, works)
    shifts = {name: shift for name, work in works.items() if (shift := shift_s(works[other], work))}
    return _moved(run, node_of, shifts, other) if shifts else run


def work_of(samples: pd.DataFrame) -> Work | None:
    """When the GPUs of one node worked; None where they never did, or already at the first sample or at the last."""
    time_s = microseconds(samples["time"]) / 1e6
    steps = np.diff(time_s)
    period_s = max(1.0, float(np.median(steps[steps > 0]))) if (steps > 0).any() else 0.0
    known = samples["util_pct"].notna().to_numpy()
    if not period_s or not known.any():
        return None
    first_s, last_s = float(time_s.min()), float(time_s.max())
    seen, place = np.unique((time_s[known] - first_s) // period_s, return_inverse=True)
    used = np.full(len(seen), np.nan)
    np.fmax.at(used, place, samples["util_pct"].to_numpy("float64")[known])
    level = pd.Series(used).rolling(AROUND, center=True, min_periods=1).median().to_numpy()
    most = float(np.quantile(level, 0.9))
    busy = level > most / 2
    if most < 2 * IDLE_PCT or busy[0] or busy[-1]:
        return None
    middle_s = first_s + (seen + 0.5) * period_s
    edge = np.flatnonzero(np.diff(busy.astype(int)))
    at_s, up = (middle_s[edge] + middle_s[edge + 1]) / 2, busy[edge + 1]
    long = np.diff(at_s)[1::2] >= SURE * period_s
    return Work(at_s, up, np.concatenate(([True], np.repeat(long, 2), [True])), first_s, last_s, period_s)


def shift_s(one: Work, other: Work) -> float:
    """By how much the other's clock seems ahead of the one's, s; 0 where nothing or too little shows that."""
    period_s = max(one.period_s, other.period_s)
    tolerance_s = TOLERANCE_PERIODS * period_s + TOLERANCE_S
    begun_s, ended_s = float(other.at_s[0] - one.at_s[0]), float(other.at_s[-1] - one.at_s[-1])
    shift = (begun_s + ended_s) / 2
    if abs(begun_s - ended_s) > tolerance_s or abs(shift) < max(LEAST_S, LEAST_PERIODS * period_s):
        return 0.0
    if min(_met(one, other, shift, tolerance_s), _met(other, one, -shift, tolerance_s)) < ALIKE:
        return 0.0
    recorded = np.array([other.first_s - one.first_s, other.last_s - one.last_s])
    alike = bool((np.abs(recorded - shift) <= max(LEAST_S, RECORDING * abs(shift))).all())
    return shift if alike else 0.0


def _met(one: Work, other: Work, shift: float, tolerance_s: float) -> float:
    """The share of sure edges of one that the other has so much later."""
    edges = zip(one.at_s[one.sure], one.up[one.sure], strict=True)
    found = [((np.abs(other.at_s - at - shift) <= tolerance_s) & (other.up == up)).any() for at, up in edges]
    return float(np.mean(found))


def _reference(run: Run, works: Mapping[str, Work]) -> str:
    """The node whose clock the log has, by the end of its work beside whole quarters of an hour, which are zones;
    without a log one with which most others agree.
    """
    logged = run.steps["time"].dropna() if len(run.steps) else run.steps.get("time", pd.Series(dtype=float))
    if len(logged):
        end_s = logged.max().value / 1e9
        away = {name: float(work.at_s[-1]) - end_s for name, work in works.items()}
        return min(away, key=lambda name: abs(away[name] - quarters_s(away[name])))
    agree = {name: sum(not shift_s(work, other) for other in works.values()) for name, work in works.items()}
    return max(agree, key=lambda name: agree[name])


def _moved(run: Run, node_of: Mapping[str, str], shifts: Mapping[str, float], other: str) -> Run:
    def back(table: pd.DataFrame) -> pd.DataFrame:
        if table.empty or not {"gpu", "time"} <= set(table.columns):
            return table
        by_s = table["gpu"].map(node_of).map(shifts).fillna(0.0).to_numpy("float64")
        return later(table, ("time",), -np.round(by_s))

    notes = [
        str(Statement(why, node=name, other=other, apart_s=abs(round(shift)), side="after" if shift > 0 else "before"))
        for name, shift in shifts.items()
        for why in (ZONES if are_zones_apart(shift, LEAST_S) else MOVED,)
    ]
    return replace(
        run,
        gpu=back(run.gpu),
        processes=back(run.processes),
        events=back(run.events),
        info=replace(run.info, notes=(*run.info.notes, *notes)),
    )
