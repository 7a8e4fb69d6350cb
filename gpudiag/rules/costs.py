"""What start-up costs, in workers and in GPU time."""

from __future__ import annotations

import math

from gpudiag.errors import NotMeasurable
from gpudiag.measures.base import OPEN_CLOCK, STATE_OFFSET
from gpudiag.measures.costs import CostsProfile, began_once, measure_costs
from gpudiag.rules._engine.evidence import Evidence, NotApplicable, Outcome, Passed
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity

MIN_SEEN = 3
WAITS = (
    "start-ups alone held it for {startup_only_pct} ",
    Given("open", "to {startup_only_high_pct} ", ""),
    "of the time with trials.",
)
STATE_WHEN = (
    "Log when training begins (gd.TrialTimestamps). Where one trial has a GPU to itself, utilization.gpu every 5 s or "
    "faster shows it as well."
)
UNLIKE_PCT = 1.0
"""Points between the least and the most that start-ups may have held a GPU from which on both are said."""


@rule(
    measure=measure_costs,
    severity="warning",
    title="Start-up takes much of the trials' time",
    checks="Start-up time",
    says=(
        Given(
            "startup_share_pct",
            "Trials spent {startup_share_pct} of their time in start-up (median {startup_median_s}). With {parallel} "
            "at once on a GPU, ",
            "On the GPU, ",
        ),
        *WAITS,
    ),
    remedy="Keep workers alive between trials, cache the data set, import once and compile once. On a GPU that other "
    "trials keep busy this frees workers, not GPU time.",
    refuted_by="Not a problem if the first minute of a trial is spent on work that each trial needs.",
    needs_all=("sharing",),
)
def startup_dominated(
    costs: CostsProfile, *, max_worker_share_pct: float = 25.0, max_gpu_share_pct: float = 10.0
) -> Outcome:
    """Start-up has two prices, and only one of them is GPU time.

    As a share F of the trials' own time it costs workers. A GPU waits only while all k trials on it start up at once,
    F^k of the time where starts are independent: measured, F = 34 % leaves 34 % at k = 1, 12 % at 2, 1.3 % at 4
    (METHODS 0). 25 % of worker time, or 10 % of GPU time, are defaults without a published source. Both must be
    known to be less for this to be no fault.
    """
    if began_once(costs):
        raise NotApplicable("No worker ran a second trial, so that no start-up came again.")
    of_workers, gpu, most = costs.startup_share_pct, costs.startup_only_pct, costs.startup_only_high_pct
    if gpu > max_gpu_share_pct or of_workers > max_worker_share_pct:
        return Evidence(
            values={
                "startup_share_pct": of_workers,
                "startup_only_pct": gpu,
                "startup_only_high_pct": most,
                "startup_law_pct": costs.startup_law_pct,
                "parallel": costs.parallel,
                "startup_median_s": costs.startup_median_s,
                "n_startups": costs.n_startups,
            },
            lost_gpu_h=costs.startup_only_gpu_h if gpu > 0 else None,
            held_gpu_h=costs.startup_only_gpu_h if gpu >= 0 else None,
            margin=max(gpu - max_gpu_share_pct, of_workers - max_worker_share_pct)
            if of_workers == of_workers
            else gpu - max_gpu_share_pct,
            severity=None if gpu > max_gpu_share_pct else Severity.NOTE,
            extra={"n_trials": len(costs.trials), "open": most - gpu >= UNLIKE_PCT},
        )
    if costs.n_startups < MIN_SEEN and costs.clock_open:
        raise NotMeasurable(OPEN_CLOCK, STATE_OFFSET)
    if costs.n_startups < MIN_SEEN:
        raise NotMeasurable(
            "Start-ups were seen in {n_startups} of {n_trials:trial}, too few to tell a typical one.",
            STATE_WHEN,
            n_startups=costs.n_startups,
            n_trials=len(costs.trials),
        )
    if math.isnan(of_workers):
        raise NotMeasurable(
            "Start-ups were seen in {n_startups} of {n_trials:trial}, too few to tell a typical one. Alone they held "
            "the GPU for {gpu_pct} to {most_pct} of the time with trials.",
            STATE_WHEN,
            n_startups=costs.n_startups,
            n_trials=len(costs.trials),
            gpu_pct=gpu,
            most_pct=most,
        )
    if gpu <= max_gpu_share_pct < most:
        raise NotMeasurable(
            "Start-ups alone held the GPU for {gpu_pct} to {most_pct} of the time with trials: what it waited for is "
            "not known of the rest.",
            STATE_WHEN,
            gpu_pct=gpu,
            most_pct=most,
        )
    return Passed(
        "{startup_pct} of the trials' time (limit {max_worker_share_pct}); alone on the GPU at most {most_pct} "
        "(limit {max_gpu_share_pct}).",
        startup_pct=of_workers,
        most_pct=most,
    )
