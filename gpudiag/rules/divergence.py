"""Does the training still learn?"""

from __future__ import annotations

from pathlib import PurePath

from gpudiag.errors import NotMeasurable
from gpudiag.measures.divergence import DivergenceProfile, measure_divergence
from gpudiag.rules._engine.evidence import Evidence, NotApplicable
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity

LOG_THE_LOSS = "Log the loss that is trained on in each line on a step. If that is it, the training gave no result."
KEEP = "Keep what was changed for the later one, and let a training stop where its loss is not finite."


@rule(
    measure=measure_divergence,
    severity="critical",
    title="The loss was NaN or infinite to the end",
    checks="Finite loss",
    says=(
        "The loss",
        Given("log", " in {log}"),
        " is NaN or infinite ",
        Given(
            "since_step",
            ("from step {since_step:as count}", Given("total_steps", " of {total_steps:as count}"), " on, "),
        ),
        Given("since_epoch", "from epoch {since_epoch:as count} on, "),
        "in each of the last {n_not_finite:line}: {wasted_pct} of the training",
        Given("wasted_s", " ({wasted_s})"),
        " gave no result.",
        Given("rerun", " A later one, {rerun}, did all of the steps."),
        Given("n_more", " So did the end of {n_more:more log}."),
    ),
    remedy="Resume from a checkpoint of before, with a lower learning rate, clipped gradients or bf16 for fp16. Let "
    "the training stop where the loss is not finite: if not torch.isfinite(loss): raise. "
    "torch.autograd.set_detect_anomaly(True) names the first operation that gave NaN.",
    refuted_by="Not a problem if the log shows another loss than the one that is trained on.",
)
def loss_not_finite(divergence: DivergenceProfile, *, min_lines: float = 3.0) -> Evidence | None:
    """A loss that is NaN has made the weights NaN: what the GPU does from then on is lost, however busy it is.

    The last 3 lines or more that state a loss all state one that is NaN or infinite (a default without a published
    source), after one that was finite: some bars show NaN for no loss at all. A step that a loss scaler skips is one
    such line, and a finite loss follows. Of Hugging Face's Trainer, which leaves NaN out of the mean that it prints, a
    loss of 0 beside a norm of the gradients that is NaN counts too. Time is counted from the first of these lines to
    the last. Where a later log tells of all the steps, it is a note.
    """
    if divergence.has_trials:
        raise NotApplicable("The trials say themselves how they ended.")
    if not divergence.n_not_finite >= min_lines:
        if divergence.n_never > 0:
            raise NotMeasurable(
                "{n_never:log} states no finite loss from the first line on, as a bar does that shows NaN for none.",
                LOG_THE_LOSS,
                n_never=divergence.n_never,
            )
        return None
    found = divergence.trainings[divergence.trainings["n_not_finite"] >= min_lines]
    first = found.iloc[0]
    rerun = PurePath(str(first["rerun"])).name
    return Evidence(
        values={
            name: float(first[name])
            for name in ("n_not_finite", "since_step", "since_epoch", "total_steps", "wasted_pct", "wasted_s")
        },
        where={"path": str(first["training"])},
        margin=divergence.n_not_finite - min_lines,
        lost_gpu_h=divergence.wasted_gpu_h if divergence.wasted_gpu_h > 0 else None,
        severity=Severity.NOTE if rerun else None,
        remedy=KEEP if rerun else "",
        extra={
            "rerun": rerun,
            "log": PurePath(str(first["training"])).name if divergence.n_logs > 1 else "",
            "n_more": len(found) - 1 or None,
        },
    )
