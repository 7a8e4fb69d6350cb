"""Did the training come to its end?"""

from __future__ import annotations

from gpudiag.errors import NotMeasurable
from gpudiag.measures.endings import EndingsProfile, measure_endings
from gpudiag.rules._engine.evidence import Evidence, NotApplicable
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity


@rule(
    measure=measure_endings,
    severity="critical",
    title="The log of the training ends in an error",
    checks="End of the training",
    says=(
        Given("is_open", "The log tells of an error", "The log ends with an error"),
        Given("last_step", (" after step {last_step}", Given("total_steps", " of {total_steps}"))),
        Given("is_open", ", which may have been caught"),
        ": {text}.",
        Given("n_more", " So do {n_more:more log}."),
    ),
    remedy="Read the lines above it in the log. Out of GPU memory: a smaller batch, or activation checkpointing. "
    "Killed: look at host memory (journalctl -k | grep -i oom) and at the scheduler's limits. Resume from the last "
    "checkpoint.",
    refuted_by="Not a problem if the error was caught, and the training was over.",
)
def training_failed(endings: EndingsProfile, *, max_trainings: float = 0.0) -> Evidence | None:
    """A training that dies has given no result, however well it used the GPU.

    The log tells of an error behind its last step: an exception, a CUDA or NCCL error, a kill or a time limit. Where
    all steps were done by then, an exception or an error of NCCL may come from the program's way down, and where
    ordinary lines follow, it may have been caught: a note. A log that counts the steps of each epoch does not say that
    all were done. Only logs that do not go on in another file count, and only where there are no trials, whose states
    tell the same (METHODS 6).
    """
    if not endings.n_logs:
        raise NotApplicable("The trials say themselves how they ended.")
    if endings.has_unknown_logs:
        raise NotMeasurable(
            "A log ends with an error, and of another no reader knows the lines: it may be the rest of the training.",
            "Put the logs of one training into one file in their order.",
        )
    n = endings.n_failed or endings.n_open
    if n > max_trainings:
        first = endings.failed.iloc[0]
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
            severity=Severity.NOTE if first["is_open"] else None,
            extra={"n_more": n - 1 or None, "is_open": bool(first["is_open"])},
        )
    if endings.n_short:
        raise NotMeasurable(
            "The log stops at step {last_step} of {total_steps} and tells of no error: the training may still run, or "
            "it was killed.",
            "Put the whole log into the folder, with what the launcher and the scheduler wrote.",
            last_step=endings.last_step,
            total_steps=endings.total_steps,
        )
    return None
