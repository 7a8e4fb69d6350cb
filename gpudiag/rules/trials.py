"""Did the trials end, and how?"""

from __future__ import annotations

import math

import pandas as pd

from gpudiag.errors import NotMeasurable, in_words
from gpudiag.measures._trials.failure_periods import LEAST_ENDED
from gpudiag.measures._trials.horizon import IDLE_S, STALE_FACTOR, Sign
from gpudiag.measures.trials import LEFT_IDLE, MOST_STUDIES, TrialsProfile, measure_trials
from gpudiag.rules._engine.evidence import MOST_PLACES, Evidence, Outcome, Passed
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given, Sentence
from gpudiag.rules._engine.verdict import Severity
from gpudiag.rules.endings import OF_KIND
from gpudiag.statement import Statement

SIGNS = {
    Sign.END: Statement("its end is unknown; counted to the last timestamp of the run"),
    Sign.STALE: Statement("older than {factor} times the longest finished trial of the study", factor=STALE_FACTOR),
    Sign.REUSED: Statement("the worker started another trial"),
    Sign.VANISHED: Statement("the process left the GPU"),
    Sign.IDLE: Statement("the GPU was idle in the last {n:minute} or more of the telemetry", n=IDLE_S / 60),
    Sign.SILENT: Statement("its heartbeats stopped"),
    Sign.MARKED: Statement("it was marked FAIL after its end"),
    Sign.CROWDED: Statement("otherwise more trials ran at once than were configured"),
    Sign.BEYOND: Statement("otherwise more trials ran at once than before and after"),
    Sign.FREED: Statement("GPU memory was freed though no other trial ended"),
}
"""What shows that a trial is dead."""


WHAT_ENDED = (
    "Find out what ended these processes, which leave no error message: the out-of-memory killer of the host "
    "(journalctl -k | grep -i oom), a scheduler, sys.exit(), a reboot."
)
AT_THE_LIMIT = "Jobs reached their time limit"
WHOLE_STUDIES = "All trials of a study failed"
MOSTLY = 0.5
JOB_ENDS = (
    "See how each of them ended, by its State and ExitCode (sacct) and by the last lines of its log. Out of GPU "
    "memory, a kill by the host and a time limit have different cures."
)
JOBS: Sentence = (
    Given(
        "all_timed_out",
        "{n_fail} of {n_finished:finished job} reached the time limit.",
        (
            "{n_fail} of {n_finished:finished job} failed",
            Given("n_timed_out", ", {n_timed_out} of these at the time limit"),
            ".",
        ),
    ),
    Given(
        "job_gpu_h",
        (
            " That took {failed_job_gpu_h}",
            Given("has_others", " of {job_gpu_h}"),
            Given("all_timed_out", "", Given("n_timed_out", ", {timed_out_gpu_h} of it up to the time limit")),
            ".",
        ),
    ),
    Given("logged", " The logs tell what became of the work."),
)
PERIOD = "{n_fail} of {n_ended} failed with {n_workers}"


def _by_workers(periods: pd.DataFrame) -> str:
    """How many failed with each number of workers, in order of time; '' where it never changed, or too few ended."""
    if periods["n_workers"].nunique() < 2:
        return ""
    sums = periods.groupby("n_workers", sort=False)[["n_fail", "n_ended"]].sum().reset_index()
    first, *others = sums[sums["n_ended"] >= LEAST_ENDED].to_dict("records") or [{}]
    return (
        ", ".join([in_words(PERIOD, first), *(in_words(PERIOD.replace(" failed", ""), row) for row in others)])
        if others
        else ""
    )


FEW_FAIL: Sentence = (
    "{n_fail} of ",
    Given("are_jobs", "{n_finished:finished job}", "{n_finished:finished trial}"),
    " failed",
    Given("n_fail", ", {fail_pct:estimate}"),
    Given("limited", ", which is not surely more than {max_pct}.", " (limit {max_pct})."),
)
TRIALS: Sentence = (
    "{n_fail} of {n_finished:finished trial} failed, {fail_pct:estimate}.",
    Given("periods", " The number of workers changed: {periods}."),
    Given("died", " {n_died} of these ended with their process, which reported no error."),
    Given(
        "common",
        (
            Given("study", " In study {study}, ", " "),
            "{n_fail_with} of {n_fail_compared:failed trial} had {condition}; of those that ended well meanwhile, "
            "{n_well_with} of {n_well_compared}.",
        ),
    ),
    Given(
        "n_failed_studies",
        (
            " In {n_failed_studies} of {n_studies} studies every finished trial failed: {failed_studies}",
            Given("n_more_studies", " and {n_more_studies} more"),
            ".",
        ),
    ),
    Given("fail_s", " That took {fail_s} of trial time."),
    Given("streak", " {fail_streak} failed in a row, more than by chance."),
    Given("few", " These are too few for a rate."),
)


@rule(
    measure=measure_trials,
    severity="warning",
    title="Too many trials fail",
    checks="Failure rate",
    says=Given("jobs", JOBS, TRIALS),
    remedy="Read the error messages by kind: out of memory, device-side assert (an index or label out of range) and "
    "lost GPUs have different cures. A streak on one worker is often one event.",
    refuted_by="Not a problem if failures reject configurations on purpose: prune those instead.",
    explained_by=(
        "failures-by-number-at-once",
        "failures-out-of-memory",
        "failures-device-assert",
        "failures-not-finite",
        "failures-host-killed",
    ),
    needs_all=("outcomes",),
)
def failure_rate_high(
    trials: TrialsProfile,
    *,
    max_pct: float = 2.0,
    severe_pct: float = 25.0,
    chance_pct: float = 1.0,
    min_trials: float = 5.0,
) -> Outcome:
    """A failed trial costs its time and teaches the search nothing.

    FAIL of the finished trials, judged by the lower end of the Wilson 95 % interval, so that few failures count for
    as little as they prove. 2 % and, for critical, 25 % are defaults without a published source. A streak is called
    more than chance where the Markov recursion gives it less than 1 %. Below 5 finished trials a failure is only a
    note (a default without a published source), and so is a study of several of which every finished trial failed,
    however few these are of all. A value of a parameter is named that failed trials have oftener than those that began
    near them and ended well. It is a one-sided exact test within each ten trials in the order of
    starts, below 1 % times all values tried. Where the number of workers changed, a rate over all of the run is that of
    no part of it, so the sentence gives each.

    Jobs of a scheduler are no trials: each is a piece of work, which a time limit cut. Where most of the time of those
    that failed ended so, and no log tells of the work, it is critical, as the log of a training that ends so is. With
    logs it is a note: whether anything was lost, they tell.
    """
    if not trials.n_finished:
        raise NotMeasurable("No trial has finished yet.", "Measure again when some trials have ended.")
    if trials.n_nodes:
        raise NotMeasurable(
            "The jobs ran on {n_nodes:node}, and nothing says which of these the telemetry is of.",
            "State host in run.toml: the node that was recorded.",
            n_nodes=trials.n_nodes,
        )
    few = trials.n_finished < min_trials
    whole = not trials.fail_low_pct > max_pct and trials.n_failed_studies > 0
    if not trials.fail_low_pct > max_pct and not whole:
        return _seldom(trials, max_pct, few=few)
    limited = trials.are_jobs and trials.n_timed_out > 0
    limited &= not trials.timed_out_h < MOSTLY * trials.fail_worker_h
    critical = limited or trials.fail_low_pct > severe_pct
    mild = trials.jobs_logged or whole or (few and not limited)
    streak = trials.fail_streak > 1 and trials.p_fail_streak < chance_pct / 100
    common = trials.p_condition < chance_pct / 100
    timed = not math.isnan(trials.fail_worker_h)
    took_s = float(trials.by_state["total_worker_s"].sum())
    return Evidence(
        values={name: getattr(trials, name) for name in _named(trials, timed=timed, streak=streak, common=common)},
        lost_time_pct=100 * 3600 * trials.fail_worker_h / took_s if took_s > 0 else None,
        margin=None if whole else trials.fail_low_pct - max_pct,
        title=AT_THE_LIMIT if limited else WHOLE_STUDIES if whole else "",
        remedy=_remedy(trials, limited=limited),
        severity=Severity.NOTE if mild else Severity.CRITICAL if critical else None,
        extra={
            **{name: getattr(trials, name) for name in SAID},
            "fail_s": 3600 * trials.fail_worker_h if timed else 0.0,
            "streak": streak,
            "died": trials.n_died > 0,
            "common": common,
            "study": trials.fail_study,
            "condition": trials.fail_condition,
            "n_more_studies": max(trials.n_failed_studies - MOST_STUDIES, 0),
            "few": few,
            "periods": _by_workers(trials.by_period),
            "jobs": trials.are_jobs,
            "logged": trials.jobs_logged,
            "has_others": trials.failed_job_gpu_h < trials.job_gpu_h,
            "all_timed_out": trials.n_timed_out == trials.n_fail,
        },
    )


SAID = (
    "fail_streak", "n_died", "n_fail_with", "n_fail_compared", "n_well_with", "n_well_compared", "n_timed_out",
    "failed_job_gpu_h", "job_gpu_h", "timed_out_gpu_h", "n_failed_studies", "n_studies", "failed_studies",
)  # fmt: skip
"""What the sentence on failed trials names of the profile."""


def _named(trials: TrialsProfile, *, timed: bool, streak: bool, common: bool) -> tuple[str, ...]:
    """The numbers of the profile that are evidence."""
    return (
        *(("n_timed_out",) if trials.are_jobs and trials.n_timed_out else ()),
        *(("failed_job_gpu_h", "job_gpu_h", "timed_out_gpu_h") if trials.are_jobs and trials.job_gpu_h > 0 else ()),
        "fail_pct", "fail_low_pct", "fail_high_pct", "n_fail", "n_finished",
        *(("fail_worker_h",) if timed else ()),
        *(("n_died",) if trials.n_died > 0 else ()),
        *(("fail_streak", "p_fail_streak") if streak else ()),
        *(("n_failed_studies",) if trials.n_failed_studies > 0 else ()),
        *(("n_fail_with", "n_fail_compared", "n_well_with", "n_well_compared", "p_condition") if common else ()),
    )  # fmt: skip


def _seldom(trials: TrialsProfile, max_pct: float, *, few: bool) -> Passed:
    """Where too many failures are not shown."""
    if few:
        raise NotMeasurable(
            "Only {n_finished:trial} finished."
            if trials.n_fail
            else "Only {n_finished:trial} finished, and none failed.",
            "Measure again when some more have ended.",
            n_finished=trials.n_finished,
        )
    names = ("n_fail", "n_finished", "are_jobs", "fail_pct", "fail_low_pct", "fail_high_pct")
    limited = trials.fail_low_pct <= max_pct < trials.fail_pct
    return Passed(FEW_FAIL, limited=limited, **{name: getattr(trials, name) for name in names})


def _remedy(trials: TrialsProfile, *, limited: bool) -> str:
    """Empty for that of the rule."""
    if limited:
        return OF_KIND["time_limit"]
    if trials.are_jobs:
        return JOB_ENDS
    return WHAT_ENDED if 2 * trials.n_died > trials.n_fail else ""


HANGS = "A trial hangs and its GPU is idle"
LEFT = "A GPU stayed idle after its trial died"
FIND_WHERE = (
    "See where its process stands (py-spy dump --pid PID) before you end it. Give each trial a time limit, and data "
    "loaders a timeout (DataLoader(timeout=...)), so that what hangs fails and its GPU goes on."
)
OF_IDLE = (
    "idle-without-trial", "idle-after-work", "gpu-allocated-idle", "gpu-low-utilization", "gpu-imbalance",
    "memory-residual", "parallelism-below-configured", "trials-serialised",
)  # fmt: skip
"""Checks of GPUs and workers that did nothing."""


MARKED_RUNNING: Sentence = (
    Given("at_least", "At least "),
    "{abandoned} of {n_running:trial} marked RUNNING ",
    Given("several", "are", "is"),
    Given("hangs", " no longer at work (", " dead ("),
    Given("several", "trials", "trial"),
    " {names}",
    Given("more", ", ..."),
    "): {reasons}.",
)


@rule(
    measure=measure_trials,
    severity="warning",
    title="Trials marked RUNNING are dead",
    checks="Abandoned trials",
    says=(
        Given(
            "n_running", MARKED_RUNNING, "{n_dead:failed trial} ended long before being marked FAIL (trial {names})."
        ),
        Given(
            "idle_s",
            (
                " {gpus} ",
                Given("several_gpus", "were", "was"),
                " idle for {idle_s} since then",
                Given(
                    "held_mib",
                    ", with {held_mib} held: most likely a process there lives and hangs.",
                    ", and nothing took the place.",
                ),
            ),
        ),
    ),
    remedy="Find out what ended them: SIGKILL, SIGTERM, sys.exit() and the out-of-memory killer leave a trial "
    "RUNNING. Mark them FAIL; with heartbeat_interval a storage of Optuna does so by itself.",
    refuted_by="Not a problem if the study is still running, or more workers run than were stated.",
    explained_by=("parallelism-above-configured",),
)
def trials_abandoned(trials: TrialsProfile, *, max_abandoned: float = 0.0) -> Outcome:
    """An abandoned trial counts as running for ever: it hides a crash and confuses samplers that look at running
    trials.

    Dead is a trial whose worker took another one, whose process left the GPU, whose heartbeats stopped, whose GPU went
    idle for good, whose memory was freed, or in whose place another trial runs (METHODS 4). So is one older than 5
    times the longest finished trial of its study, Optuna's own rule (optuna/visualization/_timeline.py). What it
    cost is the time that its GPU was idle without a trial from then on, also behind the last one where memory is held.
    From a tenth of the search on, trials that were marked FAIL later count, too.
    """
    left = trials.dead_idle_gpu_h >= LEFT_IDLE * trials.span_s / 3600
    if not trials.n_running and not left:
        return Passed("No trial is marked RUNNING.")
    if trials.abandoned > max_abandoned or not trials.n_running:
        opens = trials.open_trials
        its = opens["abandoned"] if trials.n_running else opens["state"] == "FAIL"
        dead = opens[its.astype(bool)].sort_values(["start", "name"])
        reasons = dead["reason"].value_counts()
        idle = trials.dead_idle_gpu_h > 0
        crowded = bool({Sign.CROWDED, Sign.BEYOND} & set(reasons.index))
        return Evidence(
            values={
                **({"abandoned": trials.abandoned, "n_running": trials.n_running} if trials.n_running else {}),
                **({"dead_idle_gpu_h": trials.dead_idle_gpu_h} if idle else {}),
            },
            where={
                "trial": ", ".join(dead["name"].head(MOST_PLACES)),
                **({"gpu": trials.dead_idle_gpus} if idle else {}),
            },
            lost_gpu_h=trials.dead_idle_gpu_h if idle else None,
            margin=trials.abandoned - max_abandoned,
            title=HANGS if trials.hangs else LEFT if left else "",
            remedy=FIND_WHERE if trials.hangs else "",
            not_cause_of=() if left else OF_IDLE,
            extra={
                "idle_s": 3600 * trials.dead_idle_gpu_h if left else 0.0,
                "several_gpus": ", " in trials.dead_idle_gpus,
                "held_mib": trials.dead_held_mib if trials.hangs else 0.0,
                "hangs": trials.hangs,
                "n_running": trials.n_running,
                "n_dead": len(dead),
                "at_least": crowded and trials.abandoned < trials.n_running,
                "several": trials.abandoned != 1,
                "reasons": "; ".join(str(SIGNS[sign]) for sign in reasons.index),
                "names": ", ".join(dead["name"].head(3)),
                "more": len(dead) > 3,
            },
        )
    if trials.n_running > len(trials.open_trials):
        raise NotMeasurable(
            "{n_running:trial} marked RUNNING, some without a start: nothing shows whether they still run.",
            "Give the storage itself instead of an export.",
            n_running=trials.n_running,
        )
    raise NotMeasurable(
        "{n_running:trial} marked RUNNING at the end of the record; nothing shows whether they still ran.",
        "Set heartbeat_interval on the storage (optuna.storages.RDBStorage), or record the processes on the GPU.",
        n_running=trials.n_running,
    )
