"""Did the training come to its end?"""

from __future__ import annotations

from pathlib import PurePath

from gpudiag.errors import NotMeasurable
from gpudiag.measures.endings import FAILED, HELD, OPEN, OUTSIDE, WENT_ON, EndingsProfile, measure_endings
from gpudiag.rules._engine.evidence import Evidence, NotApplicable
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given, Sentence
from gpudiag.rules._engine.verdict import Severity

AFTER = Given("last_step", (" after step {last_step}", Given("total_steps", " of {total_steps}")))
ENDED: Sentence = (
    ("The log", Given("log", " {log}")),
    Given("is_open", " tells of an error", Given("outside", " ends", " ends with an error")),
    AFTER,
    Given("is_open", ", which may have been caught"),
    Given("went_on", Given("rerun", "", ", and a command that was started after it came to its end")),
    ": {text}",
    Given("outside", ". The scheduler or a user ended it"),
    ".",
    Given("rerun", " A later one, {rerun}, did all of the steps."),
    Given("n_more", " So do {n_more:more log}."),
)
LOGGED: Sentence = (
    Given(
        "held",
        (
            Given("all_steps", "All {total_steps} steps were done", "The training was done"),
            ", but the job went on until it was ended: {text}. Its GPUs were held until then.",
        ),
        ENDED,
    ),
)
RECORDED: Sentence = (
    Given("went_on", "An earlier recorded program ", "The recorded program "),
    Given("raised", "raised {text}", Given("killed", "was killed by {text}", "ended with {text}")),
    Given("time", " at {time} UTC"),
    AFTER,
    Given("is_open", ", when all steps were done"),
    Given("outside", ": a time limit, the scheduler or a user ended it"),
    Given("went_on", "; another was started after it"),
    ".",
    Given("n_more", " {n_more:more recording} ended so, too."),
)
READ_OUTPUT = (
    "Read what the program printed last, and keep it beside the recording: gpudiag record -o gpu.csv -- COMMAND 2>&1 | "
    "tee train.log. Killed: look at host memory (journalctl -k | grep -i oom) and at the scheduler's limits. Resume "
    "from the last checkpoint."
)
OF_KIND = {
    "oom": "The GPU's memory did not suffice: take a smaller batch, with accumulated gradients for the same "
    "result, or activation checkpointing. Resume from the last checkpoint.",
    "shm": "Give the container more shared memory (docker run --shm-size=16g or --ipc=host; in Kubernetes an emptyDir "
    "of medium Memory at /dev/shm), or give the loader fewer workers. Resume from the last checkpoint.",
    "nan": "Resume from a checkpoint of before the loss became NaN, with a lower learning rate, clipped gradients or "
    "bf16 for fp16, and see which input or layer gave it first (torch.autograd.set_detect_anomaly(True)).",
    "host_killed": "Look at the host's memory (journalctl -k | grep -i oom) and at the scheduler's limits, and give "
    "the loader fewer workers. Resume from the last checkpoint.",
    "time_limit": "Ask the scheduler for more time, or save a checkpoint before the limit and go on in another job. "
    "Resume from the last checkpoint.",
    "node_failure": "A node failed, and not the training: tell the administrators which one. Resume from the last "
    "checkpoint on other nodes.",
    "stuck": "Processes did not end when they were killed, as where storage or a GPU hangs: tell the administrators. "
    "Resume from the last checkpoint on other nodes.",
    "requeued": "The scheduler starts the job again: check that it then resumes from the last checkpoint.",
    "preempted": "The scheduler made room for another job: save checkpoints often enough, and let the job be queued "
    "again. Resume from the last checkpoint.",
    "canceled": "Resume from the last checkpoint if it is still needed: somebody, or the launcher, canceled the job.",
}
"""Kinds of ends about which something is to be done, whatever stands in the log."""
RESUME = "Resume from the last checkpoint. If a time limit ended it, ask the scheduler for more time."
RELEASE = (
    "Let the job end with the training: look in its script, and at processes that do not end, for what it waited for."
)
STAYED = "The job went on after its training was done"
MAYBE_CAUGHT = "The training met an error that it may have outlived"
RAN_THROUGH = (
    "Keep what was changed for the later one. If it is another training, and no second try, mend this one: read the "
    "lines above the error in its log."
)
LOOK_BACK = "Check in the log that it was resumed from a checkpoint, and how many steps were done again."


@rule(
    measure=measure_endings,
    severity="critical",
    title="The training did not run through",
    checks="End of the training",
    says=Given("by_log", LOGGED, RECORDED),
    remedy="Read the lines above it in the log. Out of GPU memory: a smaller batch, or activation checkpointing. "
    "Killed: look at host memory (journalctl -k | grep -i oom) and at the scheduler's limits. Resume from the last "
    "checkpoint.",
    refuted_by="Not a problem if the error was caught, and the training was over.",
    explained_by=("memory-leak",),
    remedy_by_cause={
        "memory-leak": "Mend what grows, then resume from the last checkpoint. With a smaller batch the training would "
        "run out of memory as well, only later."
    },
)
def training_failed(endings: EndingsProfile, *, max_trainings: float = 0.0) -> Evidence | None:
    """A training that dies has given no result, however well it used the GPU.

    The log tells of an error behind its last step: an exception, a CUDA or NCCL error, a kill, a time limit, or what a
    launcher or a scheduler (Slurm, PBS, LSF) writes as a process fails. Or a recorded program ended with another exit
    code than 0, by a signal or by an exception. Where all steps were done by then, an exception or an error of NCCL may
    come from the program's way down, and where ordinary lines follow, it may have been caught: a note. A log that
    counts the steps of each epoch does not say that all were done. Ctrl-C is no failure. What a scheduler, a time limit
    or a user ends is a note (SIGTERM, SIGHUP, exit code 124 of timeout, what a scheduler canceled without a reason, to
    make room or to start it again), and so is a job that was ended when all steps were done, or an end after which
    another program was started, or a later log tells of all its steps. One that stopped early, as its log says, did so
    by itself. Only logs that do not go on in another file count. Where there are trials, their states tell of each, and
    a recorded command that failed is a warning (METHODS 6). Where memory grew until it ran out, growth is the cause.
    """
    if endings.has_trials and not (endings.n_failed or endings.n_outside):
        raise NotApplicable("The trials say themselves how they ended.")
    n = endings.n_failed or endings.n_outside or endings.n_held or endings.n_open
    if n > max_trainings:
        if endings.has_unknown_logs and endings.failed["by"].iloc[0] == "log":
            raise NotMeasurable(
                "A log ends with an error, and of another no reader knows the lines: it may be the rest of the "
                "training.",
                "Put the logs of one training into one file in their order.",
            )
        return _evidence(endings, n, max_trainings)
    if endings.n_short:
        raise NotMeasurable(
            "The log stops at step {last_step} of {total_steps} and tells of no error: the training may still run, or "
            "it was killed."
            if endings.n_unended or not endings.n_done
            else "The log stops at step {last_step} of {total_steps}, and the recorded command ended with exit code "
            "0: it stopped early on purpose, or the rest of the log is missing.",
            "Put the whole log into the folder, with what the launcher and the scheduler wrote.",
            last_step=endings.last_step,
            total_steps=endings.total_steps,
        )
    if endings.n_unended:
        raise NotMeasurable(
            "The recording stops without the end of its command: it may still run, or it was killed with its recorder.",
            "Put the log of the training into the folder, with what the launcher and the scheduler wrote.",
        )
    return _evidence(endings, endings.n_went_on, max_trainings) if endings.n_went_on > max_trainings else None


def _evidence(endings: EndingsProfile, n: int, max_trainings: float) -> Evidence:
    """By the first of the gravest ends."""
    first = endings.failed.iloc[0]
    outcome, by_log = str(first["outcome"]), first["by"] == "log"
    rerun = PurePath(str(first["rerun"])).name
    grave = Severity.WARNING if endings.has_trials else None
    return Evidence(
        values={
            "n_failed": endings.n_failed,
            "n_logs": endings.n_logs,
            "last_step": float(first["last_step"]),
            "total_steps": float(first["total_steps"]),
            "text": str(first["text"]),
        },
        where={"path": str(first["training"])},
        margin=n - max_trainings,
        severity=grave if outcome == FAILED else Severity.NOTE,
        remedy=_remedy(outcome, str(first["kind"]), by_log=by_log, rerun=bool(rerun)),
        title={HELD: STAYED, OPEN: MAYBE_CAUGHT}.get(outcome, ""),
        not_caused_by=() if str(first["kind"]) == "oom" else ("memory-leak",),
        extra={
            "n_more": n - 1 or None,
            "by_log": by_log,
            "raised": first["by"] == "exception",
            "killed": first["by"] == "signal",
            "time": first["time"],
            "held": outcome == HELD,
            "all_steps": bool(first["last_step"] >= first["total_steps"]),
            "is_open": outcome == OPEN,
            "outside": outcome == OUTSIDE,
            "went_on": outcome == WENT_ON,
            "rerun": rerun,
            "log": PurePath(str(first["training"])).name if by_log and endings.n_logs > 1 else "",
        },
    )


def _remedy(outcome: str, kind: str, *, by_log: bool, rerun: bool) -> str:
    """Empty for that of the rule."""
    if outcome == HELD:
        return RELEASE
    if outcome == OUTSIDE and not by_log:
        return OF_KIND["time_limit"] if kind == "time_limit" else RESUME
    if rerun:
        return RAN_THROUGH
    if outcome == WENT_ON and not by_log:
        return LOOK_BACK
    return OF_KIND.get(kind, "" if by_log else READ_OUTPUT)
