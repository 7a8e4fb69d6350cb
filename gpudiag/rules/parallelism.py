"""Did as many trials run at once as were asked for?"""

from __future__ import annotations

import math

from gpudiag.errors import NotMeasurable
from gpudiag.measures.parallelism import (
    RECORD_TIMESTAMPS,
    SERIAL_BELOW,
    STARTS_INFERRED,
    ParallelismProfile,
    measure_parallelism,
)
from gpudiag.rules._engine.evidence import Evidence, NotApplicable, Outcome, Passed
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given

MIN_GAPS = 5
HEARTBEAT = "Set heartbeat_interval on the storage, or record the processes on the GPU, so that dead trials are known."


@rule(
    measure=measure_parallelism,
    severity="warning",
    title="Fewer trials ran at once than configured",
    checks="Average concurrency",
    says="{effective} trials ran at once on average, {high_pct} of the {configured} configured.",
    remedy="Look for workers that died or wait for a lock, the storage or the sampler. n_jobs of Optuna starts "
    "threads that share the GIL: start processes instead.",
    refuted_by="Not a problem if the study ran out of trials, workers were stopped on purpose, or run.toml states more "
    "than were asked for.",
    explained_by=("trials-abandoned",),
    needs_all=("workers",),
)
def parallelism_below_configured(p: ParallelismProfile, *, min_share_pct: float = 75.0) -> Outcome:
    """Workers that do not work were planned for in memory and CPU, and bring nothing.

    Effective parallelism (trial-seconds over the time with at least one trial) below 75 % of the configured number,
    RUNNING trials counted as alive for as long as they can have been (a default without a published source). Not where
    it is no lower until the last trial begins: a study that has handed out its trials has none for a free worker.
    """
    _need_several(p)
    low, high = 100 * p.effective_low / p.configured, 100 * p.effective_high / p.configured
    if high < min_share_pct:
        if 100 * p.effective_begun / p.configured >= min_share_pct:
            return None
        return Evidence(
            values={name: getattr(p, name) for name in ("effective", "effective_low", "configured", "peak")},
            margin=min_share_pct - high,
            extra={"high_pct": high, "busy_s": p.busy_s},
        )
    if low < min_share_pct:
        raise _undecided(p)
    return Passed(
        "{effective} of {configured} on average, {share_pct} (limit {min_share_pct}).",
        effective=p.effective,
        configured=p.configured,
        share_pct=100 * p.effective / p.configured,
    )


@rule(
    measure=measure_parallelism,
    severity="warning",
    title="More trials ran at once than configured",
    checks="Trials running at once",
    says=(
        "Up to {peak:trial} ran at once with {configured:worker} configured, for {above_configured_s}: ",
        Given("certain", "another worker took part", "a trial marked RUNNING is dead, or another worker took part"),
        ".",
    ),
    remedy="Count the workers that write to this study, and mark dead RUNNING trials FAIL. Plan memory for the number "
    "that really ran.",
    refuted_by="Not a problem if the number in run.toml is not the one of this run.",
    needs_all=("workers",),
)
def parallelism_above_configured(p: ParallelismProfile, *, max_above_s: float = 5.0) -> Outcome:
    """Either another worker takes part, or RUNNING trials are dead and only look alive.

    More trials at once than configured (METHODS 4) for more than 5 s in all, a default without a published source:
    handovers between clocks that differ take less.
    """
    if math.isnan(p.configured):
        raise NotApplicable("No parallelism is stated for this run.")
    if not p.above_configured_s > max_above_s:
        return Passed(
            (
                "Up to {peak} at once, of {configured} configured",
                Given("above_s", ": more for {above_s} (limit {max_above_s})"),
                ".",
            ),
            peak=p.peak,
            configured=p.configured,
            above_s=p.above_configured_s,
        )
    return Evidence(
        values={
            "peak": p.peak,
            "peak_closed": p.peak_closed,
            "configured": p.configured,
            "above_configured_s": p.above_configured_s,
            "effective_low": p.effective_low,
            "effective_high": p.effective_high,
        },
        margin=p.above_configured_s - max_above_s,
        extra={"certain": p.peak_closed > p.configured},
    )


@rule(
    measure=measure_parallelism,
    severity="warning",
    title="Workers wait between trials",
    checks="Gaps between trials",
    says="A worker waits {median_gap_s} for its next trial (median of {n_gaps:gap}); gaps take {share_pct} of the "
    "workers' time.",
    remedy="See what a worker does between trials: the sampler (its time grows with the number of trials), the "
    "storage, or the start of a new process.",
    refuted_by="Not a problem if a worker was stopped on purpose: then it is gone, not waiting.",
    explained_by=("trial-gap-growth",),
    needs_all=("workers",),
)
def trial_gaps(
    p: ParallelismProfile, *, max_gap_s: float = 5.0, max_handover_pct: float = 50.0, min_share_pct: float = 5.0
) -> Outcome:
    """Between two trials a worker does nothing: scheduling, process start and the sampler take that time.

    Median gap above 5 s (METHODS 4), gaps from workers assigned first in, first out. Where most trials start within 2 s
    of another's end, trials follow one another at once and an idle worker is a missing one instead. Gaps that take less
    than 5 % of the time in trials and gaps (a default without a published source) are no fault.
    """
    if p.gaps.empty:
        raise NotApplicable("No worker ran two trials one after the other.")
    if len(p.gaps) < MIN_GAPS:
        raise NotMeasurable(
            "The trials have only {n_gaps:gap} between them; {n_needed} are needed.",
            "Judge a longer search.",
            n_gaps=len(p.gaps),
            n_needed=MIN_GAPS,
        )
    if not p.gaps["gap_s"].any():
        raise NotMeasurable(STARTS_INFERRED, RECORD_TIMESTAMPS)
    if not p.median_gap_s > max_gap_s:
        return Passed("{median_gap_s} at the median (limit {max_gap_s}).", median_gap_s=p.median_gap_s)
    if not p.handover_pct < max_handover_pct:
        return None
    gaps_s, trials_s = 3600 * p.gap_worker_h, p.effective * p.busy_s if p.busy_s else 0.0
    share = 100 * gaps_s / (gaps_s + trials_s)
    if share < min_share_pct:
        return Passed(
            "{median_gap_s} at the median, {share_pct} of the workers' time (limit {min_share_pct}).",
            median_gap_s=p.median_gap_s,
            share_pct=share,
        )
    return Evidence(
        values={name: getattr(p, name) for name in ("median_gap_s", "mean_gap_s", "gap_worker_h", "handover_pct")},
        lost_time_pct=share,
        margin=p.median_gap_s - max_gap_s,
        extra={"n_gaps": len(p.gaps), "share_pct": share},
    )


@rule(
    measure=measure_parallelism,
    severity="warning",
    title="Trials ran one after another despite several workers",
    checks="Trials that wait for each other",
    says="{effective} trials ran at once on average with {configured:worker}; {handover_pct} of the starts follow "
    "another trial's end within 2 s.",
    remedy="Start worker processes instead of n_jobs threads. Look for a lock or a single GPU that all wait for.",
    refuted_by="Not a problem if workers were started one at a time.",
    explained_by=("trials-abandoned",),
    needs_all=("workers",),
)
def trials_serialised(p: ParallelismProfile, *, max_effective: float = SERIAL_BELOW) -> Outcome:
    """Several workers did one worker's work.

    Effective parallelism of at most 1.2 with two or more workers configured (METHODS 4).
    """
    _need_several(p)
    if p.effective_high <= max_effective:
        return Evidence(
            values={name: getattr(p, name) for name in ("effective", "configured", "handover_pct", "peak")},
            margin=max_effective - p.effective_high,
        )
    if p.effective_low <= max_effective:
        raise _undecided(p)
    return Passed("{effective} ran at once on average (limit {max_effective}).", effective=p.effective)


def _need_several(p: ParallelismProfile) -> None:
    """The question arises only for several workers with enough trials for all."""
    if math.isnan(p.configured):
        raise NotApplicable("No parallelism is stated for this run.")
    if p.configured < 2:
        raise NotApplicable("One worker was configured.")
    if p.n_timed + p.n_open < p.configured:
        raise NotApplicable(
            "There are fewer trials ({n_trials}) than workers ({configured}).",
            n_trials=p.n_timed + p.n_open,
            configured=p.configured,
        )


def _undecided(p: ParallelismProfile) -> NotMeasurable:
    return NotMeasurable(
        "Between {effective_low} and {effective_high} trials ran at once on average, depending on when "
        "{n_open:RUNNING trial} died.",
        HEARTBEAT,
        effective_low=p.effective_low,
        effective_high=p.effective_high,
        n_open=p.n_open,
    )
