"""Worker and GPU hours that another pruner saves, with an interval for what is not known of the time of trials."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.pruning.cost_bounds import Plays, longest
from gpudiag.forecast.pruning.recorded import Array
from gpudiag.forecast.pruning.trial_time import TimeTotal, time_total
from gpudiag.measures.costs import measure_costs
from gpudiag.memo import memoized
from gpudiag.run import Run

HOUR_S = 3600.0
NO_GPU = "Which GPU the trials used, and how long, is not known, so that only worker time can be given."
NO_TIME = "No trial has both a duration and a known GPU."
NO_STARTUP = (
    "How much of a trial is start-up is not known: no GPU shows it, and all trials have the same number of reports."
)


@memoized
def gpu_shares(run: Run) -> pd.Series:
    """GPU time for each second of a trial, by (study, trial); empty where the run does not tell."""
    if run.gpu.empty and "gpu" not in run.trials:
        return pd.Series(dtype=float)
    try:
        trials = measure_costs(run).trials
    except NotMeasurable:
        return pd.Series(dtype=float)
    return (trials["gpu_s"] / trials["duration_s"]).set_axis(pd.MultiIndex.from_frame(trials[["study", "trial"]]))


def saved_hours(plays: Sequence[Plays], shares: pd.Series, slack: float, reason: str) -> tuple[Estimate, Estimate]:
    """(worker, GPU) hours saved; negative where added. Trials without a known duration are left out.

    ``slack``: share by which the cost is widened as the steps are; ``reason``: why there are only bounds, or ''.
    """
    by_play = [shares.reindex(pd.MultiIndex.from_product([[p.record.study], p.record.number])) for p in plays]
    share = [part.to_numpy(float) for part in by_play]
    at_once = [_at_once(p, s) for p, s in zip(plays, share, strict=True)]
    worker = _saved(plays, [np.ones(len(p.record)) for p in plays], at_once, slack, reason, "worker-h")
    gpu = _saved(plays, share, at_once, slack, reason, "GPU-h")
    return worker, gpu


def _at_once(play: Plays, share: Array) -> float:
    """How many trials share a GPU while one runs; where no GPU is known, as many as ran at once."""
    duration_s = play.record.duration_s
    known = np.isfinite(share) & np.isfinite(duration_s)
    gpu_s = float((share * duration_s)[known].sum())
    return float(duration_s[known].sum()) / gpu_s if gpu_s > 0 else float(play.record.workers)


def _saved(
    plays: Sequence[Plays], weight: Sequence[Array], at_once: Sequence[float], slack: float, reason: str, unit: str
) -> Estimate:
    logged_s = sum(float(np.nansum(_decided_s(p) * w)) for p, w in zip(plays, weight, strict=True))
    if not logged_s:
        return Estimate.unknown(unit, NO_GPU if unit == "GPU-h" else NO_TIME)

    def totals(p: Plays, w: Array, n: float, which: str) -> list[TimeTotal]:
        return [time_total(p.record, getattr(f, which), w, n) for f in p.fates]

    cost = low = high = most = 0.0
    for p, w, n in zip(plays, weight, at_once, strict=True):
        cost += time_total(p.record, p.fates[p.point].point, w, n).value_s
        least, greatest = totals(p, w, n, "low"), totals(p, w, n, "high")
        low += min((t.least_s if reason else t.value_s * (1 - slack) - t.down_s) for t in least)
        high += max((t.most_s if reason else t.value_s * (1 + slack) + t.up_s) for t in greatest)
        most += time_total(p.record, longest(p.record).high, w, n).most_s
    low, high = (low * (1 - slack), high * (1 + slack)) if reason else (low, high)
    low, high = max(0.0, low), min(high, max(most, logged_s))
    why = reason or ("" if _known(plays) else NO_STARTUP)
    value, least_h, most_h = ((logged_s - s) / HOUR_S for s in (min(max(cost, low), high), high, low))
    return Estimate.bounds(least_h, most_h, unit, why) if why else Estimate(value, least_h, most_h, unit)


def _decided_s(play: Plays) -> Array:
    return np.where(play.record.done > 0, play.record.duration_s, np.nan)


def _known(plays: Sequence[Plays]) -> bool:
    """Whether the time of what changes is known: start-ups are, or reports have times, or nothing changes."""
    return all(
        p.record.startup.known or p.record.timed or bool((p.fates[p.point].point == p.record.done).all()) for p in plays
    )
