"""What the GPU-time ledger says about who used the GPUs."""

from __future__ import annotations

import math

from gpudiag.errors import NotMeasurable
from gpudiag.measures._time.timeline import CELLS, STARTUP
from gpudiag.measures.base import OPEN_CLOCK, STATE_OFFSET
from gpudiag.measures.ledger import LedgerProfile, measure_ledger
from gpudiag.rules._engine.evidence import Evidence, NotApplicable, Outcome, Passed
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity

OWN_TIME = CELLS[STARTUP:]
"""Cells of a GPU on which trials ran."""
MOST_OF_PAUSES = 0.5
"""Share of the time without a trial of which samples must say whether the GPU worked."""
LIST_PROCESSES = "nvidia-smi --query-compute-apps=pid,process_name,used_gpu_memory --format=csv -l 5."
TRIALS_OR_PROCESSES = (
    "No trial is known for the time observed, so other load looks like theirs; and no processes were recorded beside "
    "the steps of a training whose commands tell them apart."
)
BESIDE = ("beside_ratio", "beside_s", "beside_mib")
MOSTLY = 0.5
NONE_LEFT = (
    "If the search had no trial left: begin its longest trials first, limit their time, or let another search use "
    "the free GPUs. If it had, a worker was missing: start it again."
)
WHOSE = (
    "Ask whose process it is, and move it or the training to another GPU. If it is part of the job, as an evaluator, "
    "give it a GPU of its own or run it afterwards."
)


@rule(
    measure=measure_ledger,
    severity="warning",
    title="Something else used the GPU",
    checks="Other programs on the GPU",
    says=Given(
        "beside_name",
        (
            "While {beside_name} ",
            Given("beside_mib", "held {beside_mib} of {gpus}", "was on {gpus}"),
            ", for {beside_s} of the training, a step took {beside_ratio} times as long.",
        ),
        (
            "{gpus} worked for {foreign_s} while no trial ran ",
            Given("several", "there", "on it"),
            ", {foreign_of_no_trial_pct} of the time without a trial that samples show.",
        ),
    ),
    remedy="List the processes on the GPU and move the other job away, or give the trials that this record lacks: "
    + LIST_PROCESSES,
    refuted_by="Not a problem if trials are missing from the record, or the clocks differ.",
    needs_all=("gpus",),
)
def foreign_load(
    ledger: LedgerProfile,
    *,
    max_foreign_pct: float = 5.0,
    min_foreign_s: float = 60.0,
    min_slower_ratio: float = 1.1,
    max_slower_p_pct: float = 1.0,
) -> Evidence | None:
    """Load that no trial explains takes memory and speed from the trials, and spoils every figure about them.

    More than 5 % of the time without a trial is at 10 % utilization or more (METHODS 3). That is a default without a
    published source, for a minute at least. Trials that leave a GPU no pause hide it: beside them nothing is said,
    unless samples show what the GPU did in most of its time without a trial, and in so long a time. In a
    training without trials, load of others looks like its own: there the steps must take 1.1 times as long while a
    process of another command is on its GPU, wherever that came or went, and so many slower ones by luck in less than
    1 % of cases (defaults without a published source). Of commands that are all there throughout nobody knows.
    """
    if not ledger.has_trials:
        slower = ledger.beside_ratio >= min_slower_ratio and 100 * ledger.beside_p < max_slower_p_pct
        if ledger.beside_throughout and not slower:
            raise NotMeasurable(
                "Several commands were on one GPU all the time: {names}. What a step takes without the others is not "
                "known.",
                "If one of them is no part of the training, move it or the training to another GPU.",
                names=ledger.beside_throughout,
            )
        if not ledger.beside_ratio > 0:
            raise NotApplicable(TRIALS_OR_PROCESSES)
        return _beside(ledger, min_slower_ratio) if slower else None
    if ledger.n_unknown_gpu:
        raise NotApplicable("Trials of unknown GPU may explain the load.")
    foreign = ledger.cells[(ledger.cells["cell"] == "foreign") & (ledger.cells["gpu_s"] > 0)]
    seconds = float(foreign["gpu_s"].sum())
    if not (ledger.foreign_of_no_trial_pct > max_foreign_pct and seconds >= min_foreign_s):
        _need_exact(ledger)
        _need_pauses(ledger, min_foreign_s)
        return None
    where = foreign.loc[foreign["gpu_s"] >= 0.05 * seconds, "gpu"].astype(str)
    return Evidence(
        values={"foreign_s": seconds, "foreign_of_no_trial_pct": ledger.foreign_of_no_trial_pct},
        where={"gpu": ", ".join(where)},
        lost_gpu_h=seconds / 3600,
        extra={"several": len(where) > 1, "beside_name": "", **dict.fromkeys(BESIDE, math.nan)},
        margin=ledger.foreign_of_no_trial_pct - max_foreign_pct,
    )


def _beside(ledger: LedgerProfile, min_slower_ratio: float) -> Evidence:
    """A process beside a training whose steps took longer meanwhile."""
    return Evidence(
        values={name: getattr(ledger, name) for name in (*BESIDE, "beside_p")},
        where={"gpu": ledger.beside_gpus},
        lost_gpu_h=ledger.beside_lost_gpu_h,
        extra={"beside_name": ledger.beside_name},
        margin=ledger.beside_ratio - min_slower_ratio,
        remedy=WHOSE,
    )


@rule(
    measure=measure_ledger,
    severity="note",
    title="The GPU also worked outside the trials",
    checks="GPU work outside the trials",
    says="{gpus} worked for {outside_busy_gpu_s} outside the time of the trials, {outside_of_work_pct} of all "
    "its work. Costs count only the time of the trials.",
    remedy="Give the trials that this record lacks, or record the other job on its own.",
    refuted_by="Not a problem if the job itself works outside trials, as in a last training with the best parameters, "
    "or the clocks differ.",
    needs_all=("gpus",),
)
def work_outside_trials(
    ledger: LedgerProfile, *, min_of_work_pct: float = 10.0, min_outside_s: float = 60.0
) -> Outcome:
    """What a GPU does outside of the trials is not theirs: means over the whole record mix the two.

    More than 10 % of the time at 10 % utilization or more lies outside, and a minute at least (defaults without a
    published source). Where the clocks may differ by more than a minute, so much must lie outside whatever they are:
    where nobody knows by how much, what is more than the trials' time can hold.
    """
    if not ledger.has_trials:
        raise NotApplicable(
            "No trial is known for the time observed, so load inside and outside of trials looks alike."
        )
    outside_s, of_work_pct = ledger.outside_busy_gpu_s, ledger.outside_of_work_pct
    if ledger.doubt_s > min_outside_s:
        sure_s = outside_s - ledger.n_gpus * ledger.doubt_s
        if math.isinf(ledger.doubt_s) and of_work_pct > 0:
            sure_s = 100 * outside_s / of_work_pct - ledger.total_gpu_s
        if not (sure_s >= min_outside_s and of_work_pct * sure_s / outside_s > min_of_work_pct):
            raise NotMeasurable(OPEN_CLOCK, STATE_OFFSET)
    if not (of_work_pct > min_of_work_pct and outside_s >= min_outside_s):
        says = "{outside_s} (limit {min_outside_s}), {outside_pct} of the GPU's work (limit {min_of_work_pct})."
        return Passed(says, outside_s=outside_s, outside_pct=of_work_pct)
    busy = ledger.per_gpu["outside_busy_s"]
    return Evidence(
        values={"outside_busy_gpu_s": outside_s, "outside_of_work_pct": of_work_pct},
        where={"gpu": ", ".join(busy.index[busy >= 0.05 * outside_s])},
        margin=of_work_pct - min_of_work_pct,
    )


@rule(
    measure=measure_ledger,
    severity="warning",
    title="The GPU was idle without a trial",
    checks="Idle time without a trial",
    says=(
        "{gpus} ",
        Given("several", "were", "was"),
        " idle without a trial for {no_trial_s}, {no_trial_pct} of the search; the longest stretch took {longest_s}",
        Given("ending_s", ", and {ending_s} passed after the last trial had begun"),
        ".",
    ),
    remedy="Keep the workers running: restart the command in a loop or as a service, and set n_trials or a timeout "
    "that lasts. Or release the GPU.",
    refuted_by="Not a problem if the GPU was released meanwhile, or trials are missing from the record.",
    explained_by=("trials-abandoned", "study-tail", "trial-duration-outliers", "trial-gaps"),
    needs_all=("gpus",),
)
def idle_without_trial(
    ledger: LedgerProfile, *, max_no_trial_pct: float = 10.0, min_no_trial_s: float = 600.0
) -> Outcome:
    """A search that stops for a night holds its GPU all the same.

    Of the observed time of the GPUs that trials ran on, from the first trial to the last, more than 10 % without a
    trial and at 10 % utilization or less (a default without a published source), for 10 minutes at least, as long as
    memory held without work counts as a zombie (METHODS 8). GPUs on which no trial ever ran are not counted.
    Where most of it passed after the last trial had begun, no worker was missing: a note, as the end of a search is.
    """
    if not ledger.has_trials:
        raise NotApplicable("No trial is known for the time observed, so nothing says when none ran.")
    if ledger.of_jobs:
        raise NotApplicable("A scheduler lists these jobs: without one, nobody holds a GPU.")
    cells = ledger.cells
    used = cells[cells["gpu"].isin(cells.loc[cells["cell"].isin(OWN_TIME) & (cells["gpu_s"] > 0), "gpu"])]
    empty = used[used["cell"] == "idle_no_trial"]
    seconds, observed = float(empty["gpu_s"].sum()), float(used.loc[used["cell"] != "unobserved", "gpu_s"].sum())
    share = 100 * seconds / observed if observed else float("nan")
    if not (share > max_no_trial_pct and seconds >= min_no_trial_s):
        _need_exact(ledger)
        says = "{idle_s} (limit {min_no_trial_s}), {idle_pct} of the observed time (limit {max_no_trial_pct})."
        return Passed(says, idle_s=seconds, idle_pct=share)
    named = empty.loc[empty["gpu_s"] >= 0.05 * seconds, "gpu"].astype(str)
    spans = ledger.spans[(ledger.spans["cell"] == "idle_no_trial") & ledger.spans["gpu"].isin(used["gpu"])]
    longest = (spans["end"] - spans["start"]).dt.total_seconds().max()
    ending_s = float(ledger.per_gpu["ending_s"].reindex(used["gpu"].unique()).sum())
    ends = ending_s > MOSTLY * seconds
    return Evidence(
        values={"no_trial_s": seconds, "no_trial_pct": share, "longest_s": float(longest)},
        where={"gpu": ", ".join(named)},
        lost_gpu_h=seconds / 3600,
        margin=share - max_no_trial_pct,
        severity=Severity.NOTE if ends else None,
        extra={"several": len(named) > 1, "ending_s": ending_s if ends else None},
        remedy=NONE_LEFT if ends else "",
        not_caused_by=("trial-gaps",) if ends else ("study-tail",),
    )


def _need_pauses(ledger: LedgerProfile, least_s: float) -> None:
    """Raise NotMeasurable where a GPU that trials ran on was hardly seen without one."""
    cells = ledger.cells
    used = cells.loc[cells["cell"].isin(OWN_TIME) & (cells["gpu_s"] > 0), "gpu"].unique()
    told = cells[cells["cell"].isin(["foreign", "idle_no_trial"])].groupby("gpu")["gpu_s"].sum().reindex(used).fillna(0)
    hidden = told[(told < least_s) | (told < MOST_OF_PAUSES * ledger.per_gpu["no_trial_s"].reindex(used))]
    if hidden.empty:
        return
    raise NotMeasurable(
        "Samples show {gpus} for {told_s} without a trial, too little to tell other work from that of the trials.",
        "List the processes on the GPU while trials run: " + LIST_PROCESSES,
        gpus=hidden.index.astype(str).tolist(),
        told_s=float(hidden.sum()),
    )


def _need_exact(ledger: LedgerProfile) -> None:
    if not ledger.exact:
        raise NotMeasurable(OPEN_CLOCK, STATE_OFFSET)
