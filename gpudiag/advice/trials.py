"""Remedies for trials that end badly, or never."""

from __future__ import annotations

import math

from gpudiag.advice._engine.gains import NOTHING, saved_gain
from gpudiag.advice._engine.proposal import Change, Proposal, SuccessCheck
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.measures.failures import FailuresProfile
from gpudiag.measures.trials import TrialsProfile, TrialState
from gpudiag.report.format import duration, quantity

FAILURES = (
    "failure-rate-high",
    "failures-out-of-memory",
    "failures-device-assert",
    "failures-not-finite",
    "failures-bimodal",
)
FIRST_S = 60.0
"""A checkpoint that comes later saves nothing of a trial that fails before."""
WORTH = 0.05
MOSTLY = 0.5
BY_THE_MACHINE = ("failures-host-killed", "gpu-lost")
"""Failures that a trial has no part in, so that it goes on where it is resumed."""
ABANDONED_RULES = ("trials-abandoned", "parallelism-above-configured")


@remedy(
    title="Let the storage detect dead trials",
    answers=ABANDONED_RULES,
    tier=1,
    effort="minutes",
    apply="next study",
    pros=("a killed trial becomes FAIL by itself", "counts and parallelism are right again"),
    cons=("a write a minute to the storage", "a trial that hangs longer than the grace period is failed too"),
    refute="The worker still runs: then it is one worker more, not a dead trial.",
    rollback="Create the storage without heartbeat_interval.",
)
def heartbeat(now: Situation) -> Proposal | None:
    """SIGKILL, SIGTERM and sys.exit() leave a trial RUNNING for ever (METHODS 0); a heartbeat bounds that.

    Not proposed where a process most likely hangs: its thread sends heartbeats all the same.
    """
    trials = now.profile(TrialsProfile)
    if not now.optuna or (trials is not None and trials.hangs):
        return None
    code = "storage = optuna.storages.RDBStorage(url, heartbeat_interval=60, grace_period=120)"
    now_code = (
        "for trial in study.get_trials(states=[TrialState.RUNNING]):   # only after every worker has been stopped\n"
        "    study.tell(trial.number, state=TrialState.FAIL)"
    )
    return Proposal(
        (
            Change("heartbeat_interval", None, 60, code),
            Change("dead RUNNING trials", _whole(now.fact(TrialsProfile.n_running)), "FAIL", now_code),
        ),
        saved_gain(now.bounds, "abandoned"),
        "At most the time of dead trials comes back; nothing if other trials took their workers.",
        (SuccessCheck.of(TrialsProfile.abandoned, "<=", 0.0),),
    )


@remedy(
    title="Save the error message of failed trials",
    answers=FAILURES,
    tier=0,
    effort="minutes",
    pros=("separates out-of-memory from a device-side assert or a wrong argument",),
    cons=(),
    refute="The log already names the kind of every failure.",
    rollback="Remove the handler.",
)
def log_failures(now: Situation) -> Proposal | None:
    """Kinds of failure have different cures; 97 % memory beside a device-side assert proves nothing (METHODS 0).

    Not proposed where the kind of every failure is known, but for those of processes that were killed: these leave no
    message.
    """
    died = now.fact(TrialsProfile.n_died)
    silent = now.fact(FailuresProfile.n_fail) - (died if died > 0 else 0.0)
    if now.fact(FailuresProfile.n_told) >= silent:
        return None
    keep = (
        'trial.set_user_attr("failure", f"{type(error).__name__}: {error}"[:200])'
        if now.optuna
        else 'logging.error("task failed: %s: %s", type(error).__name__, error)'
    )
    code = f"except Exception as error:\n    {keep}\n    raise"
    changes = (Change("failure in the record", None, "its text", code),)
    return Proposal(changes, NOTHING, "It shows the cause and speeds nothing up.")


@remedy(
    title="Save checkpoints to resume from",
    answers=("failure-rate-high", "trials-abandoned", *BY_THE_MACHINE),
    tier=1,
    effort="hours",
    apply="next study",
    pros=("a crash costs the time since the last checkpoint",),
    cons=("disk, and a stall of the GPU while it is written", "a failure by wrong data comes back each time"),
    refute="Failures come in the first minute: then there is nothing to save.",
    rollback="Stop writing them.",
)
def checkpoint(now: Situation) -> Proposal | None:
    """Only worth it where trials fail late: the time of the failed trials is all that can come back.

    Not proposed where half of the failures come in the first minute, or together take less than 5 % of the trial time
    (a default without a published source): it takes hours to write. Nor where no trial ended well, unless the machine
    ended them: a trial that is resumed fails again, so that the error message comes first. Nor where half of the
    failures or more are NaN or device-side asserts, which come back.
    """
    recurring = now.fact(FailuresProfile.n_recurring) >= MOSTLY * now.fact(FailuresProfile.n_fail)
    if recurring and not now.has(*BY_THE_MACHINE):
        return None
    well = any(now.fact(TrialState.total_worker_s.at(state)) > 0 for state in ("COMPLETE", "PRUNED"))
    if not now.torch or not (well or now.has(*BY_THE_MACHINE)):
        return None
    usual, failed = now.usual_duration(), now.fact(TrialState.median_s.at("FAIL"))
    total = now.fact(TrialState.total_worker_s.at("FAIL"))
    if usual is None or not failed >= max(now.fact(usual) / 2, FIRST_S):
        return None
    lost = (now.bounds.lost_gpu_h or {}).get("failures", math.nan)
    if lost < WORTH * now.bounds.trial_gpu_h:
        return None
    code = (
        'torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path + ".tmp")\n'
    )
    return Proposal(
        (Change("checkpoints", None, "every epoch", code + 'os.replace(path + ".tmp", path)'),),
        saved_gain(now.bounds, "failures"),
        f"Failed trials took {quantity(total, 'worker-s')} in all (median {duration(failed)}): at most that is saved.",
    )


def _whole(value: float) -> int | None:
    return int(value) if value >= 0 else None
