"""Did as many trials run at once as were asked for?"""

from __future__ import annotations

import math

from gpudiag.errors import NotMeasurable
from gpudiag.measures.parallelism import SERIAL_BELOW, ParallelismProfile, measure_parallelism
from gpudiag.rules.engine import Evidence, NotApplicable, rule
from gpudiag.rules.wording import count, span

MIN_GAPS = 5
HEARTBEAT = "Set heartbeat_interval on the storage, or record the processes on the GPU, so that dead trials are known."


@rule(
    measure=measure_parallelism,
    severity="warning",
    title="Fewer trials ran at once than were configured",
    remedy="Look for workers that died or wait: for locks on a GPU or storage, for the sampler, or for the GIL "
    "(n_jobs are threads; start processes instead).",
    refuted_by="A study that ran out of trials, or workers that were stopped on purpose.",
)
def parallelism_below_configured(p: ParallelismProfile, *, min_share_pct: float = 75.0) -> Evidence | None:
    """Workers that do not work were planned for in memory and CPU, and bring nothing.

    Effective parallelism (trial-seconds over the time with at least one trial) below 75 % of the configured number,
    RUNNING trials counted as alive for as long as they can have been (a default without a published source).
    """
    _need_several(p)
    low, high = 100 * p.effective_low / p.configured, 100 * p.effective_high / p.configured
    if high < min_share_pct:
        return Evidence(
            f"{p.effective:.2f} trials ran at once on average where {p.configured:.0f} were configured "
            f"({high:.0f} %), over {span(p.busy_s)}.",
            {"effective": p.effective, "effective_low": p.effective_low, "configured": p.configured, "peak": p.peak},
            margin=min_share_pct - high,
        )
    if low < min_share_pct:
        raise NotMeasurable(_undecided(p), HEARTBEAT)
    return None


@rule(
    measure=measure_parallelism,
    severity="warning",
    title="More trials ran at once than were configured",
    remedy="Count the workers that write to this study and mark dead RUNNING trials FAIL; plan memory for the "
    "number that really ran.",
    refuted_by="A number in run.toml that is not the one of this run.",
)
def parallelism_above_configured(p: ParallelismProfile, *, max_above_s: float = 5.0) -> Evidence | None:
    """Either another worker takes part, or RUNNING trials are dead and only look alive.

    More trials at once than configured (METHODS 4) for more than 5 s in all, a default without a published source:
    hand-overs between clocks that differ take less.
    """
    if math.isnan(p.configured):
        raise NotApplicable("No parallelism is stated for this run.")
    if not p.above_configured_s > max_above_s:
        return None
    certain = p.peak_closed > p.configured
    cause = "another worker took part" if certain else "a RUNNING trial is dead, or another worker took part"
    return Evidence(
        f"Up to {p.peak} trials ran at once where {p.configured:.0f} were configured, "
        f"for {span(p.above_configured_s)}: {cause}.",
        {
            "peak": p.peak,
            "peak_closed": p.peak_closed,
            "configured": p.configured,
            "above_configured_s": p.above_configured_s,
            "effective_low": p.effective_low,
            "effective_high": p.effective_high,
        },
        margin=p.above_configured_s - max_above_s,
    )


@rule(
    measure=measure_parallelism,
    severity="warning",
    title="Worker slots stay empty between trials",
    remedy="See what a worker does between trials: the sampler (its time grows with the number of trials), the "
    "storage, or the start of a new process.",
    refuted_by="Fewer workers than before: then a slot is gone, not waiting.",
)
def trial_gaps(p: ParallelismProfile, *, max_gap_s: float = 5.0, max_handover_pct: float = 50.0) -> Evidence | None:
    """Between two trials a slot does nothing; it mixes scheduling, process start and sampler time.

    Median gap above 5 s (METHODS 4), gaps from slots coloured first in, first out. Where most trials start within 2 s
    of another's end, slots are handed over at once and an empty slot is a missing worker instead.
    """
    if p.gaps.empty:
        raise NotApplicable("No slot ran two trials one after the other.")
    if len(p.gaps) < MIN_GAPS:
        raise NotMeasurable(f"There is only {count(len(p.gaps), 'gap')} between trials.", "Judge a longer search.")
    if not (p.median_gap_s > max_gap_s and p.handover_pct < max_handover_pct):
        return None
    share = 100 * p.gap_slot_h * 3600 / (p.n_slots * p.window_s)
    return Evidence(
        f"A worker slot waits {p.median_gap_s:.0f} s (median of {count(len(p.gaps), 'gap')}) for its next trial: "
        f"{p.gap_slot_h:.2f} slot-hours, {share:.0f} % of all.",
        {
            "median_gap_s": p.median_gap_s,
            "mean_gap_s": p.mean_gap_s,
            "gap_slot_h": p.gap_slot_h,
            "handover_pct": p.handover_pct,
        },
        margin=p.median_gap_s - max_gap_s,
    )


@rule(
    measure=measure_parallelism,
    severity="warning",
    title="Trials ran one after another although several workers were configured",
    remedy="Start worker processes instead of n_jobs threads, and look for a lock or a single GPU slot that all "
    "wait for.",
    refuted_by="Workers started one at a time.",
)
def trials_serialised(p: ParallelismProfile, *, max_effective: float = SERIAL_BELOW) -> Evidence | None:
    """Several workers did one worker's work.

    Effective parallelism of at most 1.2 with two or more workers configured (METHODS 4).
    """
    _need_several(p)
    if p.effective_high <= max_effective:
        return Evidence(
            f"{p.effective:.2f} trials ran at once on average though {p.configured:.0f} workers were configured; "
            f"{p.handover_pct:.0f} % of the starts follow another trial's end within 2 s.",
            {"effective": p.effective, "configured": p.configured, "handover_pct": p.handover_pct, "peak": p.peak},
            margin=max_effective - p.effective_high,
        )
    if p.effective_low <= max_effective:
        raise NotMeasurable(_undecided(p), HEARTBEAT)
    return None


def _need_several(p: ParallelismProfile) -> None:
    """The question arises only for several workers with enough trials for all."""
    if math.isnan(p.configured):
        raise NotApplicable("No parallelism is stated for this run.")
    if p.configured < 2:
        raise NotApplicable("One worker was configured.")
    if p.n_timed + p.n_open < p.configured:
        raise NotApplicable(f"There are fewer trials ({p.n_timed + p.n_open}) than workers ({p.configured:.0f}).")


def _undecided(p: ParallelismProfile) -> str:
    return (
        f"Between {p.effective_low:.2f} and {p.effective_high:.2f} trials ran at once on average, depending on when "
        f"{count(p.n_open, 'RUNNING trial')} died."
    )
