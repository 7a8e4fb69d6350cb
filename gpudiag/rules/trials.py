"""Did the trials end, and how?"""

from __future__ import annotations

from gpudiag.errors import NotMeasurable
from gpudiag.measures._trials.horizon import IDLE_S, STALE_FACTOR, Sign
from gpudiag.measures.trials import TrialsProfile, measure_trials
from gpudiag.rules._engine.evidence import Evidence
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity
from gpudiag.statement import Statement

SIGNS = {
    Sign.END: Statement("nothing shows that it ended; counted to the last timestamp of the run"),
    Sign.STALE: Statement("older than {factor} times the longest finished trial of the study", factor=STALE_FACTOR),
    Sign.REUSED: Statement("the worker started another trial"),
    Sign.VANISHED: Statement("the process left the GPU"),
    Sign.IDLE: Statement("the GPU was not active in the last {n:minute} or more of the telemetry", n=IDLE_S / 60),
    Sign.CROWDED: Statement("another trial started in the place, which no other trial had left"),
    Sign.FREED: Statement("memory of the GPU was freed though no other trial ended"),
}
"""What shows that a trial is dead."""


@rule(
    measure=measure_trials,
    severity="warning",
    title="Many trials fail",
    says=(
        "{n_fail} of {n_finished:finished trial} failed: {fail_pct:exact} (95 % interval {fail_low_pct} to "
        "{fail_high_pct}), {fail_s} of trial time",
        Given("streak", "; {fail_streak} of them in a row, which is more than chance"),
        Given("few", "; too few to tell a rate"),
        ".",
    ),
    remedy="Read the failure texts by kind before blaming memory: out of memory, device-side assert (an index or "
    "label out of range) and lost GPUs have different cures. A streak on one worker is often one event.",
    refuted_by="Failures raised on purpose to reject a configuration: prune those instead.",
    explained_by=("failures-out-of-memory", "failures-device-assert", "failures-after-full-memory"),
)
def failure_rate_high(
    trials: TrialsProfile,
    *,
    max_pct: float = 2.0,
    severe_pct: float = 25.0,
    chance_pct: float = 1.0,
    min_trials: float = 5.0,
) -> Evidence | None:
    """A failed trial costs its time and tells the search nothing.

    FAIL of the finished trials, judged by the lower end of the Wilson 95 % interval, so that few failures count for
    as little as they prove. 2 % and, for critical, 25 % are defaults without a published source. A streak is called
    more than chance where the Markov recursion gives it less than 1 %. Below 5 finished trials a failure is only a
    note (a default without a published source).
    """
    if not trials.n_finished:
        raise NotMeasurable("No trial has finished yet.", "Measure again when some trials have ended.")
    low, few = trials.fail_low_pct, trials.n_finished < min_trials
    if not low > max_pct:
        if few:
            raise NotMeasurable(
                "Only {n_finished:trial} finished."
                if trials.n_fail
                else "Only {n_finished:trial} finished, and none failed.",
                "Measure again when some more have ended.",
                n_finished=trials.n_finished,
            )
        return None
    streak = trials.fail_streak > 1 and trials.p_fail_streak < chance_pct / 100
    names = (
        "fail_pct", "fail_low_pct", "fail_high_pct", "n_fail", "n_finished", "fail_streak", "p_fail_streak",
        "fail_worker_h",
    )  # fmt: skip
    return Evidence(
        values={name: getattr(trials, name) for name in names},
        margin=low - max_pct,
        severity=Severity.NOTE if few else Severity.CRITICAL if low > severe_pct else None,
        extra={"fail_s": 3600 * trials.fail_worker_h, "streak": streak, "few": few},
    )


@rule(
    measure=measure_trials,
    severity="warning",
    title="Trials are RUNNING though their process is gone",
    says=(
        Given("crowded", "At least "),
        "{abandoned} of {n_running:RUNNING trial} ",
        Given("several", "are", "is"),
        " dead",
        Given("crowded", ", unless another worker ran"),
        ": {reasons}",
        Given("names", (" ({names}", Given("more", ", ..."), ")")),
        ".",
    ),
    remedy="Find out what ended them: Optuna leaves RUNNING what SIGKILL, SIGTERM or sys.exit() ended, and a kill for "
    "lack of memory looks like this. Mark them FAIL; with heartbeat_interval the storage does so by itself.",
    refuted_by="The study is still running, or more workers run than were stated.",
    explained_by=("parallelism-above-configured",),
)
def trials_abandoned(trials: TrialsProfile, *, max_abandoned: float = 0.0) -> Evidence | None:
    """An abandoned trial counts as running for ever: it hides a crash and confuses samplers that look at running
    trials.

    Dead by the evidence of METHODS 4: its worker took another trial, its process left the GPU, its GPU went idle for
    good, its memory was freed, another trial took its place, or it is older than 5 times the longest finished trial of
    its study, Optuna's own rule (optuna/visualization/_timeline.py).
    """
    if not trials.n_running:
        return None
    if trials.abandoned > max_abandoned:
        dead = trials.open_trials[trials.open_trials["abandoned"]]
        reasons = dead["reason"].value_counts()
        of_studies = dead["name"].str.contains("/", regex=False).any()
        return Evidence(
            values={"abandoned": trials.abandoned, "n_running": trials.n_running},
            where={"trial": ", ".join(dead["name"].head(20))},
            margin=trials.abandoned - max_abandoned,
            extra={
                "crowded": Sign.CROWDED in reasons.index,
                "several": trials.abandoned != 1,
                "reasons": "; ".join(str(SIGNS[sign]) for sign in reasons.index),
                "names": ", ".join(dead["name"].head(3)) if of_studies else "",
                "more": len(dead) > 3,
            },
        )
    if trials.n_running > len(trials.open_trials):
        raise NotMeasurable(
            "{n_running:trial} RUNNING, some without a start: nobody can tell whether they live.",
            "Give the storage itself instead of an export.",
            n_running=trials.n_running,
        )
    raise NotMeasurable(
        "{n_running:trial} RUNNING at the end of the record; nothing shows whether they were alive.",
        "Set heartbeat_interval on the storage (optuna.storages.RDBStorage), or record the processes on the GPU.",
        n_running=trials.n_running,
    )
