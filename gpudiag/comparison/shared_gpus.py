"""Whether two runs were at work on one GPU at the same time: then neither had it alone, and its time is of both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.comparison.check import FAIL, UNKNOWN, GateFinding
from gpudiag.comparison.side import Side
from gpudiag.fleets.recordings import recordings_of
from gpudiag.measures._time.concurrency import busy_stretches
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.report.fleet.document import Recording
from gpudiag.schema import IDLE_PCT
from gpudiag.statement import Statement

MOST_SHARED = 0.05
"""Part of the work of a run beside which the other may run: if it ran twice as long there, all of it would take 5 %
longer at most, which no comparison calls different (a default without a published source)."""
AT_ONE_TIME = "both ran on one GPU at the same time"
TOGETHER = (
    "Both ran on {gpus} at the same time, for {shared_s}: {a_pct:exact} of the time of {a} and {b_pct:exact} of that "
    "of {b}. Neither had it alone."
)
PERHAPS = "Both recorded {gpus} and ran at the same time, for {shared_s}. Nothing says surely whether both ran on it."
SHARED = Statement("Both runs recorded this GPU time: how much of it each used is unknown.")


@dataclass(frozen=True)
class SharedGpus:
    """GPUs that both runs recorded, by their names in the baseline, while both were at work for ``shared_s``.

    ``shares``: parts of the work of baseline and experiment; ``is_sure``: both are known to have run on one of them.
    """

    gpus: tuple[str, ...]
    shared_s: float
    shares: tuple[float, float]
    is_sure: bool

    def finding(self, baseline: Side, experiment: Side) -> GateFinding:
        """That a comparison of the two is none, or may be none."""
        names = ", ".join(self.gpus)
        if not self.is_sure:
            return UNKNOWN, Statement(PERHAPS, gpus=names, shared_s=self.shared_s)
        a_pct, b_pct = (100 * share for share in self.shares)
        shares = {"a_pct": a_pct, "b_pct": b_pct}
        why = Statement(TOGETHER, gpus=names, shared_s=self.shared_s, a=baseline.name, b=experiment.name, **shares)
        return FAIL, why


def shared_gpus(baseline: Side, experiment: Side) -> SharedGpus | None:
    """What both had at the same time; None where they had no GPU together, or for a small part of the shorter."""
    return baseline.memo.once(("GPUs shared with", experiment), lambda: _shared(baseline, experiment))


def _shared(baseline: Side, experiment: Side) -> SharedGpus | None:
    sides = (baseline, experiment)
    if any(side.run.gpu.empty for side in sides):
        return None
    spans = [_at_work_us(side) for side in sides]
    length = [_length(span) for span in spans]
    both = sum(length) - _length(np.concatenate(spans))
    if not both > MOST_SHARED * min(length):
        return None
    used = {
        name: (_used(baseline, name), _used(experiment, other))
        for name, recording in _recorded(baseline).items()
        for other, another in _recorded(experiment).items()
        if _same(recording, another)
    }
    sure = tuple(name for name, by in used.items() if all(by))
    maybe = tuple(name for name, by in used.items() if False not in by)
    if not maybe:
        return None
    return SharedGpus(sure or maybe, both / SECOND_US, (both / length[0], both / length[1]), is_sure=bool(sure))


def _recorded(side: Side) -> dict[str, Recording]:
    names = side.run.gpu["gpu"].drop_duplicates().sort_values().astype(str)
    return dict(zip(names, side.memo.once("recordings", lambda: recordings_of(side.run)), strict=True))


def _same(one: Recording, other: Recording) -> bool:
    """Whether two recordings are of one GPU: by its uuid, else by samples that both hold."""
    return one.gpu == other.gpu if one.gpu and other.gpu else bool(set(one.parts) & set(other.parts))


def _used(side: Side, gpu: str) -> bool | None:
    """Whether the run was at work on a GPU, None if that is not known."""
    use = side.get("utilization")
    if use is not None and use.per_gpu["max_pct"].get(gpu, np.nan) < IDLE_PCT:
        return False
    where = side.get("attribution")
    if where is None:
        return True if len(_recorded(side)) == 1 else None
    links = where.links.merge(where.trials[["study", "trial", "confidence"]], on=["study", "trial"])
    if (links.loc[links["gpu"] == gpu, "confidence"] == "strong").any():
        return True
    return False if where.n_attributed == where.n_trials and (links["confidence"] == "strong").all() else None


def _at_work_us(side: Side) -> np.ndarray:
    """From when to when the run was at work, in microseconds: its trials, else its steps, else its telemetry."""
    run = side.run
    if len(run.trials):
        lived = intervals_of(run)
        lived = lived[lived["known"]]
        edges = lived["start"], lived["end"]
    elif len(run.steps) and run.steps["time"].notna().any():
        by = run.steps.dropna(subset=["time"]).groupby("path")["time"]
        edges = by.min(), by.max()
    else:
        by = run.gpu.groupby("gpu", observed=True)["time"]
        edges = by.min(), by.max()
    return np.stack([microseconds(pd.Series(edge)) for edge in edges], axis=1).reshape(-1, 2)


def _length(spans: np.ndarray) -> int:
    """Of the union of some spans."""
    left, right = busy_stretches(*spans.T)
    return int((right - left).sum())
