"""What did the failed trials die of?"""

from __future__ import annotations

from dataclasses import replace

from gpudiag.errors import NotMeasurable
from gpudiag.measures.failures import FailuresProfile, measure_failures
from gpudiag.rules._engine.evidence import MOST_PLACES, Evidence, NotApplicable
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given, Sentence
from gpudiag.rules._engine.verdict import Severity

STORE_TEXT = (
    "Save the error message: catch the exception in the objective, call trial.set_user_attr('error', str(error)) and "
    "raise it again. Or put the training log into the run folder (or give it with --artifacts)."
)
ALONE = (
    "Limit the parameters that take memory (batch size, model size) and reject such combinations before they start: "
    "these trials had their GPU to themselves. Catch torch.OutOfMemoryError so that one trial fails and not the worker."
)
READ_ALONE = (
    "Read the error messages: only they show whether memory was the cause. If it was, limit the parameters that take "
    "memory: these trials had their GPU to themselves."
)


def _kind_says(what: str) -> Sentence:
    """The sentence that one class of failure occurred."""
    return (
        Given("n", "{n} of {n_fail:failed trial}", "{n_lines:log line}"),
        f" {what}",
        Given("followers", "; {followers} of them followed another one in the same process"),
        ".",
    )


@rule(
    measure=measure_failures,
    severity="warning",
    title="Trials ran out of GPU memory",
    checks="Failures out of GPU memory",
    says=_kind_says("ran out of GPU memory"),
    remedy="Run fewer trials at once, or limit the parameters that take memory (batch size, model size) and reject "
    "such combinations before they start. Catch torch.OutOfMemoryError so that one trial fails and not the worker.",
    refuted_by="Not a problem if the search is meant to find the limit.",
    explained_by=("memory-leak", "failures-by-number-at-once"),
)
def failures_out_of_memory(failures: FailuresProfile, *, max_trials: float = 0.0) -> Evidence | None:
    """A trial that does not fit costs its time and often that of its neighbors.

    Failure texts or log events of the class out of memory such as CUDA out of memory or
    CUBLAS_STATUS_ALLOC_FAILED (METHODS 6). A device-side assert is another class, and fullness alone is no proof.
    """
    own = failures.failures[failures.failures["kind"] == "oom"]
    found = _kind(failures, "oom", max_trials)
    return replace(found, remedy=ALONE) if found and len(own) and own["alone"].all() else found


@rule(
    measure=measure_failures,
    severity="warning",
    title="Trials ended in a device-side assert",
    checks="Failures by device-side assert",
    says=_kind_says("ended in a device-side assert"),
    remedy="Run one of these configurations with CUDA_LAUNCH_BLOCKING=1, or on the CPU: an index or label is out of "
    "range. Restart the process after such a failure: its CUDA context is unusable.",
    refuted_by="Not a problem if some configurations are meant to fail this way.",
)
def failures_device_assert(failures: FailuresProfile, *, max_trials: float = 0.0) -> Evidence | None:
    """A device-side assert is a logic error and has nothing to do with how full the memory was.

    Failure texts or log events of the class device-side assert (METHODS 0 and 6).
    """
    return _kind(failures, "device_assert", max_trials)


@rule(
    measure=measure_failures,
    severity="warning",
    title="Trials ended in a value that is not finite",
    checks="Failures without a finite value",
    says=_kind_says("ended in a value that is not finite"),
    remedy="End a trial at its first value that is not finite: raise optuna.TrialPruned() where it is not "
    "math.isfinite. If good settings are among them, lower the largest learning rate, or clip gradients.",
    refuted_by="Not a problem if the value is so by design, as where a metric is not defined.",
)
def failures_not_finite(failures: FailuresProfile, *, max_trials: float = 0.0, max_pct: float = 2.0) -> Evidence | None:
    """A loss that is NaN stays NaN: what the trial computes from then on is lost, and resuming brings it back.

    Failure texts or log events of the class NaN, and trials without a text whose last reported value is NaN: Optuna
    fails a trial that returns one (METHODS 0). Up to 2 % of the finished trials it is a note (a default without a
    published source): a search over learning rates meets some.
    """
    found = _kind(failures, "nan", max_trials)
    n_nan = int(failures.by_kind.loc[failures.by_kind["kind"] == "nan", "n"].sum())
    few = 100 * n_nan <= max_pct * failures.n_finished
    return replace(found, severity=Severity.NOTE) if found and few else found


@rule(
    measure=measure_failures,
    severity="warning",
    title="Trials were killed from outside",
    checks="Processes killed from outside",
    says=_kind_says("ended by a kill from outside"),
    remedy="Look at host memory and the kernel log (journalctl -k | grep -i oom): each loader worker may hold a copy "
    "of the data set. Use fewer workers, or shared memory.",
    refuted_by="Not a problem if a scheduler ended the job at its time limit.",
)
def failures_host_killed(failures: FailuresProfile, *, max_trials: float = 0.0) -> Evidence | None:
    """The host's out-of-memory killer takes the whole process and leaves no exception behind.

    Failure texts or log events such as Killed, exit code 137, oom-kill or MemoryError (METHODS 6).
    """
    return _kind(failures, "host_killed", max_trials)


@rule(
    measure=measure_failures,
    severity="warning",
    title="One failure makes the next trials fail",
    checks="Failures that follow each other",
    says="{n_fail:failed trial} are {n_events:event}: {followers} failed within seconds of another on the same worker.",
    remedy="Run each trial in its own process, or end the worker after a CUDA error so that it starts anew.",
    refuted_by="Not a problem if these trials fail at once for reasons of their own, such as a wrong path.",
    explained_by=("failures-device-assert",),
    needs_all=("workers",),
)
def failures_poisoned(failures: FailuresProfile, *, max_followers_trials: float = 2.0) -> Evidence | None:
    """A CUDA error leaves the process unusable, and its next trials fail in seconds: that is one event, not many.

    FAIL of at most a tenth of the usual duration, right after a FAIL on the same worker, both of a kind that poisons
    (assert, illegal access, or without text). Short failures must come oftener there than after trials that ended well
    (Fisher, 1 % without text), and not with a value of a parameter. Without text they must do so in each study even
    without its longest stretch in which none began that ended well: what begins broken fails in a row, too. More than 2
    such followers are a finding (a default without a published source); where only that stretch holds them, it is open
    which of both it was.
    """
    if not failures.n_fail:
        raise NotApplicable("No trial failed.")
    followers = failures.n_fail - failures.n_events
    if not followers > max_followers_trials:
        if followers + failures.n_open > max_followers_trials:
            raise NotMeasurable(
                "Failures without a message follow each other within seconds, but in one stretch only: each may have "
                "come from the one before it, or all from something that was broken then.",
                STORE_TEXT,
            )
        return None
    return Evidence(
        values={"n_fail": failures.n_fail, "n_events": failures.n_events, "followers": followers},
        margin=followers - max_followers_trials,
    )


@rule(
    measure=measure_failures,
    severity="note",
    title="Memory was fuller before failures",
    checks="Memory before failures",
    says="Memory peaked at {fail_before_pct} in the minute before failures (median), and at {ok_before_pct} before "
    "other ends. This is an association, not a cause.",
    remedy="Read the error messages: only they show whether memory was the cause. If it was, run fewer trials at once "
    "or limit the parameters that take memory.",
    refuted_by="Not a problem if large trials fail for another reason, such as a numerical one.",
)
def failures_after_full_memory(
    failures: FailuresProfile, *, max_p_pct: float = 1.0, min_before_pct: float = 85.0
) -> Evidence | None:
    """An association and no proof: full memory goes with failures here, whatever the cause.

    Greatest memory in use in the 60 s before FAIL against before COMPLETE and PRUNED, one-sided Mann-Whitney below
    1 %: power is close to 1 for 5 failures at 93 against 75 % (METHODS 6). The median before failures must be 85 % or
    more (a default without a published source).
    """
    if not failures.n_fail:
        raise NotApplicable("No trial failed.")
    if failures.p_memory < max_p_pct / 100 and failures.fail_before_pct >= min_before_pct:
        return Evidence(
            values={
                name: getattr(failures, name) for name in ("fail_before_pct", "ok_before_pct", "p_memory", "full_pct")
            },
            margin=failures.fail_before_pct - min_before_pct,
            remedy=READ_ALONE if len(failures.failures) and failures.failures["alone"].all() else "",
        )
    if not failures.p_memory >= 0:
        raise NotMeasurable(
            "Fewer than 5 failures, or 5 other ends, have memory readings in the minute before them.",
            "Record memory.used and memory.total on the trials' clock.",
        )
    return None


@rule(
    measure=measure_failures,
    severity="note",
    title="Trials fail either early or late",
    checks="Time until failure",
    says="{short_n:trial} failed after about {short_s}, {long_n} after about {long_s}.",
    remedy="Look at one of each: early ones fail at start (configuration, broken process), late ones in training.",
    refuted_by="Not a problem if the search tries two models of very different speed.",
    explained_by=("failures-poisoned",),
)
def failures_bimodal(
    failures: FailuresProfile, *, max_p_pct: float = 1.0, min_times_ratio: float = 5.0
) -> Evidence | None:
    """Two kinds of failure have two causes, and one cure does not fit both.

    The best split of log durations has groups of three or more that differ by a factor of 5. One kind of failure
    reaches their distance (Ashman's D) in less than 1 % of 2,000 draws of as many (defaults without a published
    source). It is drawn as lognormal, exponential, even in time, and even in its logarithm.
    """
    if failures.n_fail < 6:
        raise NotApplicable("Only {n_fail:trial} failed.", n_fail=failures.n_fail)
    if not (failures.p_one_group < max_p_pct / 100 and failures.long_s >= min_times_ratio * failures.short_s):
        return None
    names = ("short_n", "short_s", "long_n", "long_s", "split_s", "ashman_d", "p_one_group")
    return Evidence(
        values={name: getattr(failures, name) for name in names},
        margin=max_p_pct - 100 * failures.p_one_group,
    )


def _kind(failures: FailuresProfile, kind: str, limit: float) -> Evidence | None:
    """The finding that one class of failure occurred; less than half of the failures is not why trials fail."""
    rows = failures.by_kind[failures.by_kind["kind"] == kind]
    n, events = (int(rows[name].sum()) for name in ("n", "n_events"))
    if max(n, events) > limit:
        own = failures.failures[failures.failures["kind"] == kind]
        followers = int(own["follows"].sum())
        return Evidence(
            values={"n": n, "n_lines": events, "followers": followers, "n_fail": failures.n_fail},
            where={"trial": ", ".join(own["name"].head(MOST_PLACES))} if n else {},
            margin=max(n, events) - limit,
            not_cause_of=("failure-rate-high",) if 0 < 2 * n < failures.n_fail else (),
        )
    if not failures.n_fail:
        raise NotApplicable("No trial failed.")
    if not failures.n_told:
        raise NotMeasurable(
            "{n_fail:trial} failed, and no error message was saved.", STORE_TEXT, n_fail=failures.n_fail
        )
    return None
