"""What profiled steps say that a GPU waited for in all its steps, where these are alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from gpudiag.measures._steps.courses import courses
from gpudiag.measures._waits.bounds import Waits
from gpudiag.measures._waits.logged import LoggedTraining, edges
from gpudiag.measures._waits.pieces import UnusedTime
from gpudiag.run import Run
from gpudiag.schema import TABLES

CAUSES = {
    "loader": ("data_pct",),
    "copy": ("copy_pct", "pageable_pct"),
    "launch": ("operator_pct", "optimizer_pct"),
    "sync": ("sync_pct",),
    "memory": ("memory_pct",),
    "setup": ("setup_pct",),
    "host": ("other_pct",),
}
"""By cause: the states of profiled time that it is. A copy is idle time as well: drivers count kernels alone. Gaps
between queued kernels have none of these, and stay unknown."""
MIN_STEPS = 3
MAX_STEP_RATIO = 1.25
"""Mean steps of window and run that differ by more are not the same steps (a default without a published source)."""
MAX_WORK_RATIO = 1.2
"""The same for the seconds of kernels in a step, which a profiler does not change."""
Fit = Literal["", "none", "few_steps", "no_step_times", "other_time", "other_steps", "other_work"]
"""Why profiled steps are not taken for those of the run; '' where they are."""


@dataclass(frozen=True)
class ProfiledStep:
    """Seconds of one step: ``idle_s`` without a kernel, its part ``queued_s`` between queued ones, and by cause with
    the least and most over the GPUs profiled.
    ``logged_s`` is how long one takes by the log, which counts the steps of the run.
    """

    step_s: float
    logged_s: float
    idle_s: float
    queued_s: float
    by_cause: dict[str, tuple[float, float, float]]


def profiled_step(run: Run) -> tuple[ProfiledStep | None, Fit]:
    """The profiled step of the run's traces, where its length is that of the steps that the log times."""
    rows = run.profiled.reindex(columns=list(TABLES["profiled"].names)).drop_duplicates()
    rows = rows.dropna(subset=[state for states in CAUSES.values() for state in states])
    if rows.empty:
        return None, "none"
    rows = rows[rows["n_steps"] >= MIN_STEPS]
    if rows.empty:
        return None, "few_steps"
    if not _within(rows["time"], run):
        return None, "other_time"
    step_s = _logged_step_s(run)
    if math.isnan(step_s):
        return None, "no_step_times"
    lengths = (rows["window_s"] / rows["n_steps"]).to_numpy(float)
    if not (np.abs(np.log(lengths / step_s)) <= math.log(MAX_STEP_RATIO)).all():
        return None, "other_steps"
    seconds = {
        cause: rows[list(states)].sum(axis=1).to_numpy(float) / 100 * lengths for cause, states in CAUSES.items()
    }
    by_cause = {cause: (float(held.mean()), float(held.min()), float(held.max())) for cause, held in seconds.items()}
    queued_s = float((rows["queued_pct"].fillna(0.0).to_numpy(float) / 100 * lengths).mean())
    idle_s = float(np.sum([held.mean() for held in seconds.values()])) + queued_s
    return ProfiledStep(float(lengths.mean()), step_s, idle_s, queued_s, by_cause), ""


def _within(begin: pd.Series, run: Run) -> bool:
    """Whether every dated trace began while the telemetry was written."""
    known = begin.dropna()
    dated = run.gpu["time"].dropna()
    return bool(known.between(dated.min(), dated.max()).all()) if len(known) and len(dated) else True


def _logged_step_s(run: Run) -> float:
    """Mean time of a step by the run's logs, pauses left out; NaN where these count epochs or are none."""
    told = [course[~course["first"]] for course in courses(run) if course["unit"].iloc[0] == "step"]
    known = [course[course["each_s"].notna() & (course["n"] > 0)] for course in told]
    n = sum(float(course["n"].sum()) for course in known)
    return sum(float((course["each_s"] * course["n"]).sum()) for course in known) / n if n else math.nan


def traced_waits(
    step: ProfiledStep, logs: Sequence[LoggedTraining], part: UnusedTime, logged: Waits
) -> tuple[Waits, Fit]:
    """What the steps of the logs waited for, as the profiled ones did.

    A profiler slows the host down and not the kernels: of the idle time of a step that the run does not have, any cause
    may be rid. What the run has more is unknown. How long steps wait for data is the log's where it states that.
    """
    waits = Waits("trace")
    intervals = [one for training in logs for one in training.intervals if one.cause != "restart"]
    idle, seen = part.between(*edges(intervals))
    paused_s = sum(seconds for cause, seconds in logged.s.items() if cause not in ("loader", "restart"))
    idle_s, steps_s = float(idle.sum()) - paused_s, float(seen.sum()) - paused_s
    if not (steps_s > 0 and idle_s >= 0):
        return waits, "no_step_times"
    n = steps_s / step.logged_s
    work_ratio = (steps_s - idle_s) / n / max(step.step_s - step.idle_s, 1e-9)
    if not 1 / MAX_WORK_RATIO <= work_ratio <= MAX_WORK_RATIO:
        return waits, "other_work"
    stated = "loader" in logged.s
    if stated:
        slower_s = max(n * step.idle_s - idle_s, 0.0)
        logged.at_least("loader", n * step.by_cause["loader"][1] - slower_s)
    causes = {cause: held for cause, held in step.by_cause.items() if not (cause == "loader" and stated)}
    left_s = max(idle_s - logged.s.get("loader", 0.0), 0.0)
    most_s = max(idle_s - logged.low_s.get("loader", 0.0), 0.0)
    found_s = n * (step.queued_s + sum(likely for likely, _, _ in causes.values()))
    excess_s = max(found_s - left_s, 0.0)
    scale = min(left_s / found_s, 1.0) if found_s else 0.0
    missing_s = max(left_s - found_s, 0.0)
    for cause, (likely, least, most) in causes.items():
        if most:
            waits.add(cause, n * likely * scale, n * least - excess_s, min(n * most + missing_s, most_s))
    return waits, ""
