"""What a run waits for its loader, by what its log and its recording state, and what it would bring without."""

from __future__ import annotations

import math

from gpudiag.advice._engine.gains import IDLE, without_causes, without_open
from gpudiag.advice._engine.situation import Situation
from gpudiag.measures.causes import CausesProfile
from gpudiag.measures.loader import LoaderProfile
from gpudiag.measures.stalls import StallsProfile
from gpudiag.measures.steps import StepsProfile

ENOUGH = 5
"""Reports that show whether waits are alike."""
UNNAMED = ("pause", "first_steps")
"""Waits by a log that names no cause of them: the loader may be it."""
NAMED = ("evaluation", "checkpoint", "evaluation_checkpoint")
OUTSIDE = ("startup", "tail", "restart", *NAMED)
"""Waits outside of steps, of which no step's wait for the loader is a part."""


def no_wait(now: Situation, *, within: bool = False) -> float:
    """What the run would bring without any wait for the loader, ``within``: without those at the start of epochs. A
    pause that no log names may be a wait for it. Infinite unknown.
    """
    most = min(_steps_without(now, waits_pct(now, within=within)), without_open(now.profiles, "loader", *UNNAMED))
    return min(most, _of_trace(now))


def waits_pct(now: Situation, *, within: bool) -> float:
    """Share of a step that waits for the loader; ``within``: but for the start of epochs."""
    waits, starts = now.fact(LoaderProfile.of_step_pct), now.fact(LoaderProfile.starts_pct)
    return max(waits - starts, 0.0) if within and starts > 0 and waits >= 0 else waits


def _steps_without(now: Situation, pct: float) -> float:
    """What a training brings whose steps take so much less, and which has none of the pauses that its log leaves
    unnamed; other time outside of steps stays.
    """
    paused_s, logged_s = now.fact(StepsProfile.unnamed_s), now.fact(StepsProfile.logged_s)
    paused, other, causes = paused_s / logged_s if logged_s > 0 else 0.0, 0.0, now.profile(CausesProfile)
    if causes is not None and causes.observed_gpu_s > 0:
        other = float(causes.by_cause["low_gpu_s"].reindex(list(OUTSIDE)).sum()) / causes.observed_gpu_s
    left = 1 - paused - pct / 100 * max(1 - paused - other, 0.0)
    return 1 / left if 0 <= pct < 100 and left > 0 else math.inf


def _of_trace(now: Situation) -> float:
    """The same by profiled steps that stand for the run's; infinite without them."""
    causes = now.profile(CausesProfile)
    stands = causes is not None and causes.trace_fit == ""
    return without_causes(now.profiles, "loader", *UNNAMED) if stands else math.inf


def source(now: Situation) -> str:
    """What a faster loader takes away: the wait for it where one is known, else some idle time."""
    known = 0 <= now.fact(LoaderProfile.of_step_pct) < 100 or without_causes(now.profiles, "loader") < math.inf
    return "loader" if known else IDLE


def no_starts(now: Situation) -> float:
    """What the run would bring without any wait at the start of epochs; infinite unknown."""
    most = without_open(now.profiles, "loader", *UNNAMED)
    if epochs_told(now):
        logged_s, starts_s = now.fact(StepsProfile.logged_s), now.fact(StepsProfile.between_epochs_s)
        most = min(most, logged_s / (logged_s - starts_s) if starts_s < logged_s else math.inf)
    alone = now.parallel == 1 and now.bounds.idle_pct < 100
    return min(most, 100 / (100 - now.bounds.idle_pct)) if alone else most


def epochs_told(now: Situation) -> bool:
    """Whether a log tells how much time there is for the start of epochs."""
    return now.fact(StepsProfile.between_epochs_s) >= 0


def pauses_between_epochs(now: Situation) -> bool:
    """Whether a training pauses mostly where epochs change, and its log does not say for what."""
    unnamed_s = now.fact(StepsProfile.unnamed_between_epochs_s)
    return now.has("steps-paused") and unnamed_s >= now.fact(StepsProfile.pauses_s) / 2


def likely_copies(now: Situation) -> float:
    """What the run would bring without the idle time that likely no other cause explains; infinite unknown."""
    causes = now.profile(CausesProfile)
    if causes is None or not (causes.by_cause["source"] == "log").any():
        return math.inf
    left_s = float(causes.by_cause["gpu_s"].reindex(["copy", "unknown"]).sum())
    return causes.observed_gpu_s / (causes.observed_gpu_s - left_s) if left_s < causes.observed_gpu_s else math.inf


def long_waits(now: Situation) -> bool:
    """Whether the GPU waits at regular intervals that are surely not its steps, nor mostly evaluations and checkpoints
    that a log names.
    """
    stalls, causes = now.profile(StallsProfile), now.profile(CausesProfile)
    if not now.has("stalls-periodic") or stalls is None:
        return now.has("stalls-periodic")
    rows = stalls.per_gpu[stalls.per_gpu["reading"] == "waits"]
    lost_s = float((rows["lost_pct"] / 100 * rows["work_s"]).sum())
    named_s = 0.0 if causes is None else float(causes.by_cause["gpu_s"].reindex(list(NAMED)).sum())
    return len(rows) > 0 and not named_s > lost_s / 2


def alike(now: Situation) -> bool:
    """Whether steps wait in nearly every report, and about as long."""
    least, mean = now.fact(LoaderProfile.least_ms), now.fact(LoaderProfile.avg_ms)
    return now.fact(LoaderProfile.n_lines) >= ENOUGH and least >= mean / 2 > 0
