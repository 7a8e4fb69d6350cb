"""Another process on the GPU of a training: which it was, and how much longer a step took while it was there."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag._run.allocated_gpus import of_a_search
from gpudiag.measures._steps.courses import courses
from gpudiag.measures._steps.ranks import in_lock_step, one_of_each
from gpudiag.measures._time.expected import logged_window
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.run import Run
from gpudiag.spans import union

OWN_PART = 0.9
"""A command that is seen in this part of the samples or more is the training's own, or one that is always there; as
much of the training must have been sampled to say that there was no other.
"""
FEWEST, MOST, PARTS = 5, 20, 20
"""Lines on either side of a beginning or an end of the other process: with fewer nothing is told, more than so many, or
than a twentieth, are other times, in which steps that grow have grown."""
UNNAMED = r"^(?:-|\[.*)?$"
"""Names that the driver does not know, as of a process in another container."""


class Beside(NamedTuple):
    """``ratio``: time of a step beside the process over that without it, the least of where it came and went; 1 where
    there was none, NaN where nobody knows. ``seconds`` of the training that it was there, on ``gpus``; the training was
    on ``n_gpus``. ``throughout``: commands that were on one GPU all the time, of which nobody knows which are its own.
    """

    ratio: float = math.nan
    name: str = ""
    gpus: tuple[str, ...] = ()
    seconds: float = 0.0
    mib: float = math.nan
    p: float = math.nan
    n_gpus: int = 0
    throughout: tuple[str, ...] = ()

    @property
    def lost_gpu_h(self) -> float:
        """GPU time by which the steps took longer."""
        return self.n_gpus * self.seconds * (1 - 1 / self.ratio) / 3600


def process_beside(run: Run) -> Beside:
    """Processes of another command than those that are there throughout, which came or went while steps were logged.

    Ranks, loaders and evaluators of one training are of its command, as another's may be: of such, and of processes
    without a name, nobody knows whose they are. Where several others took turns, they count together.
    """
    told = courses(run) if len(run.processes) and of_a_search(run.trials).empty and "name" in run.processes else []
    if not told or not in_lock_step(told) or logged_window(run) is None:
        return Beside()
    steps = pd.concat(one_of_each(told), ignore_index=True)
    steps = steps[steps["usual"].astype(bool) & steps["start"].notna() & steps["end"].notna()]
    if len(steps) < 2 * FEWEST:
        return Beside()
    starts, ends = microseconds(steps["start"]), microseconds(steps["end"])
    everybody, part = _seen(run.processes, int(starts.min()), int(ends.max()))
    seen = everybody[everybody["name"].ne("")]
    shares = seen.groupby(["gpu", "name"])["at_us"].nunique() / seen.groupby("gpu")["at_us"].nunique()
    own = shares[shares >= OWN_PART].reset_index()
    if own.empty:
        return Beside()
    throughout = tuple(own.loc[own.duplicated("gpu", keep=False), "name"].unique())
    others = seen[~seen["name"].isin(own["name"]) & seen["gpu"].isin(own["gpu"])]
    if others.empty:
        each = everybody.groupby(["gpu", "pid"])["at_us"].nunique() / everybody.groupby("gpu")["at_us"].nunique()
        alone = part >= OWN_PART and each.min() >= OWN_PART and not throughout
        return Beside(1.0 if alone else math.nan, throughout=throughout)
    there = others.groupby(["gpu", "pid"])["at_us"].agg(["min", "max"])
    spans = union(there.astype(np.int64).itertuples(index=False, name=None))
    ratio, p = _slower(starts, ends, steps["each_s"].to_numpy(float), spans)
    seconds = sum(last - first for first, last in spans) / SECOND_US
    most_mib = float(others["mem_used_mib"].max()) if "mem_used_mib" in others else math.nan
    name, gpus, n_gpus = str(others["name"].mode().iloc[0]), tuple(others["gpu"].unique()), own["gpu"].nunique()
    return Beside(ratio, name, gpus, seconds, most_mib, p, n_gpus, throughout)


def _seen(processes: pd.DataFrame, begin_us: int, end_us: int) -> tuple[pd.DataFrame, float]:
    """The processes that were sampled within a stretch, and the part of it that was sampled."""
    names = processes["name"].astype(object).where(processes["name"].notna(), "").astype(str)
    rows = processes.assign(at_us=microseconds(processes["time"]), name=names.where(~names.str.match(UNNAMED), ""))
    rows = rows[rows["at_us"].between(begin_us, end_us)]
    span_us = float(rows["at_us"].max() - rows["at_us"].min()) if len(rows) else 0.0
    return rows.assign(gpu=rows["gpu"].astype(str)), span_us / (end_us - begin_us)


def _slower(
    starts: np.ndarray, ends: np.ndarray, each_s: np.ndarray, spans: list[tuple[int, int]]
) -> tuple[float, float]:
    """How much longer a step took beside the process, the least over all its beginnings and ends that have lines enough
    on either side, and the chance that lines in any order differ as much; NaN without.
    """
    inside, without = np.zeros(len(starts), bool), np.ones(len(starts), bool)
    for first, last in spans:
        inside |= (starts >= first) & (ends <= last)
        without &= (ends <= first) | (starts >= last)
    ratios, within, beyond, most = [], [], [], max(FEWEST, min(MOST, len(starts) // PARTS))
    for edge, sign in ((edge, sign) for first, last in spans for edge, sign in ((first, 1), (last, -1))):
        after, before = np.flatnonzero(starts >= edge)[:most], np.flatnonzero(ends <= edge)[-most:]
        there, away = (after, before) if sign > 0 else (before, after)
        there, away = there[inside[there]], away[without[away]]
        if min(len(there), len(away)) >= FEWEST:
            ratios.append(float(np.median(each_s[there]) / np.median(each_s[away])))
            within.append(each_s[there])
            beyond.append(each_s[away])
    if not ratios:
        return math.nan, math.nan
    from scipy.stats import mannwhitneyu  # only where another process was there

    p = mannwhitneyu(np.concatenate(within), np.concatenate(beyond), alternative="greater").pvalue
    return min(ratios), float(p)
