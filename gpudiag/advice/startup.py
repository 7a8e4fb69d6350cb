"""Remedies for what a trial does before its first work on the GPU."""

from __future__ import annotations

import math

from gpudiag.advice._engine.gains import BETWEEN_TRIALS
from gpudiag.advice._engine.proposal import Change, Gain, Proposal, SuccessCheck
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.measures.costs import CostsProfile, began_once
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.measures.search import SearchProfile
from gpudiag.report.format import number, share
from gpudiag.rules.costs import UNLIKE_PCT

START_UP_SHARE_PCT = 10.0
GAPS, GROWING = "trial-gaps", "trial-gap-growth"
LOOP = {
    True: "study.optimize(lambda trial: objective(trial, data), n_trials=...)  # as many as now",
    False: "for task in tasks:\n    train(task, data)",
}
"""What a worker does with its data, by whether the trials are Optuna's."""
CACHED = (
    "@functools.cache               # the first trial of a worker prepares it, the others find it\n"
    "def load_data():\n"
    "    ...                        # what no parameter of a trial changes"
)


@remedy(
    title="Import and load the data once per worker",
    answers=("startup-dominated", GAPS),
    tier=1,
    effort="hours",
    apply="next study",
    pros=("a worker spends its time on training", "worth most where trials are short"),
    cons=(
        "memory of one trial can leak into the next: free it between them",
        "a device-side assert poisons the worker",
    ),
    refute="Time the first 60 s of a trial by line: what is not imports or loading can't be kept.",
    rollback="Start a process a trial again.",
    fills_idle=True,
)
def warm_worker(now: Situation) -> Proposal | None:
    """Start-up has two prices: worker time, and GPU time that nothing else fills, F^k (METHODS 3).

    Removing all of it at the same parallelism brings at most min(1/(1-F), 1/u). The start of a process may also lie
    between trials: where gaps are long, G of the workers' time, at most 1/((1-F)(1-G)), and 1/u counts the time without
    a trial. Gaps that grow hold the start of a process only as far as they were as long at first. Where one process is
    seen to run trial after trial, that is done already, and what remains is something else.
    """
    workers, k = now.bounds.startup_pct, now.bounds.parallel
    costs = now.profile(CostsProfile)
    if costs is not None and began_once(costs):
        return None
    if not (workers >= START_UP_SHARE_PCT and now.bounds.startup > 0) or now.keeps_processes:
        return None
    in_gaps, grow = _share_of_gaps(now), now.has(GROWING)
    gain = _without_startups(now, in_gaps)
    checks, predictions = now.fills(gain.high, longest=1 / (1 - in_gaps) if in_gaps < 1 else math.inf)
    if now.has(GAPS) and not grow:
        wait = ParallelismProfile.mean_gap_s
        checks = (SuccessCheck.of(wait, "<", round(now.fact(wait) / 2, 1)), *checks)
    code = "data = load_data()                        # once, outside the objective\n" + LOOP[now.optuna]
    return Proposal(
        (Change("start of a trial", "imports and data", "neither", code),),
        gain,
        f"Start-ups take {share(workers)} of the workers, but with {number(k)} trials at once they leave the GPU with "
        f"nothing else for {_alone(now, costs)} of its time. The upper end assumes that "
        f"the GPU takes all the work{_and_gaps(now, in_gaps)}.",
        (SuccessCheck.of(CostsProfile.startup_share_pct, "<", round(workers / 2, 1)), *checks),
        predictions,
        leaves=(GAPS,) if grow else (),
    )


def _alone(now: Situation, costs: CostsProfile | None) -> str:
    """How much of the GPU's time start-ups alone take, as far as the log tells."""
    least, most = now.bounds.startup_only_pct, costs.startup_only_high_pct if costs is not None else math.nan
    return share(least, exact=True) + (f" to {share(most, exact=True)}" if most - least >= UNLIKE_PCT else "")


def _without_startups(now: Situation, in_gaps: float) -> Gain:
    """Between nothing and the time of all start-ups, and of the gaps beside them where these are long."""
    if not now.has(GAPS):
        return Gain(1.0, max(1.0, now.bounds.startup))
    left = (1 - now.bounds.startup_pct / 100) * (1 - in_gaps)
    return Gain(1.0, max(1.0, min(1 / left if left > 0 else math.inf, now.bounds.fill_all)), source=BETWEEN_TRIALS)


def _share_of_gaps(now: Situation) -> float:
    """Share (0..1) of the workers' time in long gaps between trials that starts of processes may take; 1 unknown.

    Starts do not get longer in the course of a search: of gaps that do, no more than what they took at first.
    """
    if not now.has(GAPS):
        return 0.0
    seen, search = now.profile(ParallelismProfile), now.profile(SearchProfile)
    if seen is None or not seen.effective * seen.busy_s > 0:
        return 1.0
    first_s = search.gap_first_s if search is not None and now.has(GROWING) else math.inf
    gaps_s = float(seen.gaps["gap_s"].clip(upper=first_s).sum())
    return gaps_s / (gaps_s + seen.effective * seen.busy_s)


def _and_gaps(now: Situation, in_gaps: float) -> str:
    if not now.has(GAPS):
        return ""
    if now.has(GROWING):
        return ", and that gaps shrink by what they took at first: what they grew by is no start of a process"
    return f", and that the {share(100 * in_gaps)} of the workers' time in gaps goes too"


@remedy(
    title="Prepare the data once per worker, not in each trial",
    answers=("startup-dominated",),
    tier=1,
    effort="an hour",
    apply="next study",
    pros=("trials begin with their own work", "neither GPU memory nor the number at once changes"),
    cons=("each worker keeps the data in host memory", "what a trial's parameters change cannot be kept"),
    refute="Time the first seconds of a trial by line: what depends on its parameters can't be kept.",
    rollback="Remove the cache.",
)
def prepare_once(now: Situation) -> Proposal | None:
    """Workers that live through many trials import once, and may still load and prepare in each trial what the one
    before had.

    Proposed where processes are seen to outlive their trials; elsewhere warm-worker does both. The gain is bounded as
    there, and unknown where start-ups could not be seen.
    """
    only = now.fact(CostsProfile.startup_only_pct)
    if not now.keeps_processes or not now.has("startup-dominated"):
        return None
    workers = now.bounds.startup_pct
    known = workers >= START_UP_SHARE_PCT and now.bounds.startup > 0
    gain = Gain(1.0, max(1.0, now.bounds.startup)) if known else None
    checks, predictions = now.fills(gain.high) if gain else (now.no_new_failures(), ())
    share_of = CostsProfile.startup_share_pct if known else CostsProfile.startup_only_pct
    seen = f"Start-ups take {share(workers)} of the workers" if known else "How long each start-up takes is not known"
    return Proposal(
        (Change("start of a trial", "prepares its data", "finds them", CACHED),),
        gain,
        f"{seen}; start-ups alone held the GPU for {share(only)} of the time. One process runs trial after trial, so "
        "imports are not repeated. How much of the rest can be kept is unknown.",
        (SuccessCheck.of(share_of, "<", round((workers if known else only) / 2, 1)), *checks),
        predictions,
    )
