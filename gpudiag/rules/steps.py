"""Is the training's time spent in its steps?"""

from __future__ import annotations

import math
from typing import NamedTuple

import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.measures.steps import GIVE_LOG, JOIN_LOGS, StepsProfile, measure_steps, some_wait, unnamed_is_most
from gpudiag.rules._engine.counted import LOOKS_BACK_S, Cost
from gpudiag.rules._engine.evidence import Evidence, Outcome, Passed
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity

MOSTLY = 0.9
"""A record that covers this share of the pauses needs no word."""

CLEAR_S = 1.0
"""Bounds closer to each other say the same."""
GIVE_TIMESTAMPS = "Let the log begin its lines with a timestamp, such as %(asctime)s in the format of Python's logging."
NAME_PAUSES = "Let the log have a line where an evaluation or a checkpoint begins, and one where it ends."
AT_THE_END = (
    "Look at what the log says there. An evaluation at the end can use a part of the data, or run in a job of its own "
    "that holds fewer GPUs or none."
)
EVALUATE_LESS = "Evaluate less often, or on a part of the data."
SAVE_LESS = "Save less often, or in the background (asynchronous checkpoints)."
"""Where the log names nothing else in the pauses."""
EVALUATE_ON_ALL = "Evaluate on all GPUs, each with its part of the data, or less often."
KEEP_WORKERS = (
    "Often loader workers start anew each epoch: persistent_workers=True keeps them. "
    "Time the first batch of an epoch to see; it may be an evaluation or a save that is not logged."
)
FIND_OUT = (
    "Find out in the log of the system, or while a pause lasts (py-spy dump --pid PID): "
    "storage, another process, an evaluation or a save that is not logged."
)
"""Where the log names nothing in most of the pauses."""
AT_MULTIPLES = (
    "See which setting has that number of steps, such as save_steps: checkpoints can be saved less often, or in the "
    "background. It may be an evaluation that is not logged, or the number of steps in an epoch: loader workers that "
    "start anew (persistent_workers=True keeps them)."
)
"""Where such pauses come every so many steps."""
IDLE_RANGE = Given(
    "is_rough",
    " The GPU was idle for {least_pct} to {most_pct} of the pauses, as samples are {sampling_period_s} apart.",
)
_CHECKPOINTS = (Given("checkpoints_open", "at most "), "{checkpoints_s}")


@rule(
    measure=measure_steps,
    severity="note",
    title="Much time passes outside of training steps",
    checks="Time outside of training steps",
    says=(
        "{pauses_s} of {logged_s} ({pauses_pct}) passed outside of {unit}s, in {n_pauses:pause}",
        Given("at_epochs", ", mostly where epochs begin"),
        ". The longest took {longest_s}",
        Given(
            "placed",
            (
                " and ",
                Given(
                    "behind",
                    "came after the last {unit} logged ({after_step:as count})",
                    "ended by {unit} {after_step}",
                ),
            ),
        ),
        Given(
            "evaluations_s",
            (
                (
                    ". Evaluations took ",
                    Given("evaluations_open", "at most "),
                    "{evaluations_s} of it",
                    Given("some_wait", " ({evaluating_gpus:GPU} worked while {waiting_gpus:GPU} waited)"),
                ),
                Given("checkpoints_s", (", checkpoints ", *_CHECKPOINTS)),
            ),
            Given("checkpoints_s", (". Checkpoints took ", *_CHECKPOINTS, " of it")),
        ),
        Given("both_s", ", and {both_s} may be of either"),
        Given(
            "unnamed_most",
            (". The log does not name {unnamed_s} of it", Given("n_every", ", which came every {n_every:step}")),
        ),
        Given("recorded_part", ". The GPU's record covers {recorded_pauses_s} of the pauses"),
        Given("unrecorded", ". The GPU's record covers none of the pauses"),
        Given("idle_paused_pct", ". The pauses hold {idle_paused_pct} of the time that the GPU waited within its work"),
        Given("n_unseen", ". It may be more: its lines on steps have no timestamps"),
        ".",
        IDLE_RANGE,
    ),
    remedy="Look at what the log says there: evaluate or save less often, save in the background (asynchronous "
    "checkpoints), evaluate on a part of the data.",
    refuted_by="Not a problem if the pauses are evaluations that you need as often as that.",
)
def steps_paused(steps: StepsProfile, *, max_pauses_pct: float = 10.0, severe_pauses_pct: float = 25.0) -> Outcome:
    """Between steps a training evaluates, saves and waits, and mostly leaves the GPU idle.

    Above 10 % of the time that the log spans, a warning from a quarter on (defaults without a published source). An
    interval between two lines holds a pause if it stands apart from the others, took twice the time of its steps, and
    ten steps or five seconds more. Where neither timestamps nor one bar tell of the time between epochs, or what may be
    pauses does not stand apart, nothing is said of less. The cost is the time without a kernel in the pauses. Samples
    meet a pause or miss it, as they do the waits of the check on waits without a period: the bounds are as there.
    """
    if steps.pauses_pct > max_pauses_pct:
        longest, n_every, cost = steps.pauses.iloc[0], steps.n_unnamed_every, _cost(steps)
        return Evidence(
            values={
                "pauses_pct": steps.pauses_pct,
                "pauses_s": steps.pauses_s,
                "logged_s": steps.logged_s,
                "n_pauses": steps.n_pauses,
                "idle_paused_pct": steps.idle_paused_pct,
                "evaluations_s": steps.evaluations_s,
                "checkpoints_s": steps.checkpoints_s,
                "both_s": steps.both_s,
                "step_s": steps.step_s,
            },
            margin=steps.pauses_pct - max_pauses_pct,
            severity=Severity.WARNING if steps.pauses_pct >= severe_pauses_pct else None,
            lost_gpu_h=cost.lost_gpu_h,
            held_gpu_h=cost.held_gpu_h,
            extra={
                "is_rough": cost.is_rough,
                "least_pct": cost.least_pct,
                "most_pct": cost.most_pct,
                "sampling_period_s": steps.sampling_period_s,
                "recorded_part": 0 < steps.recorded_pauses_s < MOSTLY * steps.pauses_s,
                "unrecorded": steps.recorded_pauses_s == 0,
                "recorded_pauses_s": steps.recorded_pauses_s,
                "evaluations_open": steps.evaluations_s - steps.evaluations_low_s >= CLEAR_S,
                "checkpoints_open": steps.checkpoints_s - steps.checkpoints_low_s >= CLEAR_S,
                "longest_s": float(longest["paused_s"]),
                "placed": steps.n_steps >= 0,
                "unit": steps.unit,
                "after_step": int(longest["after_step"]),
                "behind": bool(longest["behind"]),
                "n_unseen": steps.n_unseen,
                "unnamed_most": unnamed_is_most(steps) and (steps.unnamed_s < steps.pauses_s or n_every > 0),
                "unnamed_s": steps.unnamed_s,
                "n_every": n_every,
                "at_epochs": 2 * steps.unnamed_between_epochs_s > steps.pauses_s,
                "some_wait": some_wait(steps),
                "evaluating_gpus": steps.evaluating_gpus,
                "waiting_gpus": steps.waiting_gpus,
            },
            remedy=_remedy(steps),
        )
    if not steps.pauses_pct >= 0:
        raise NotMeasurable("The log does not say how long its steps took.", GIVE_LOG)
    if steps.n_unseen:
        raise NotMeasurable(
            "The log's lines on steps have no timestamps, and how much time passed outside of them is unknown.",
            GIVE_TIMESTAMPS,
        )
    if steps.pauses_pct + 100 * steps.open_s / steps.logged_s > max_pauses_pct:
        raise NotMeasurable(
            "Times between lines differ much: {open_s} of {logged_s} may be pauses as well as slow steps.",
            NAME_PAUSES,
            open_s=steps.open_s,
            logged_s=steps.logged_s,
        )
    return Passed("{pauses_pct} of the time that the log spans (limit {max_pauses_pct}).", pauses_pct=steps.pauses_pct)


class _Cost(NamedTuple):
    """GPU-hours without a kernel in the pauses, or the most where that is unknown; and their share of the recorded
    pauses, at least and at most.
    """

    lost_gpu_h: float | None = None
    held_gpu_h: float | None = None
    is_rough: bool = False
    least_pct: float = math.nan
    most_pct: float = math.nan


def _cost(steps: StepsProfile) -> _Cost:
    """Of the mean GPU, as all are sampled at once: samples that miss a pause miss it on each."""
    if not (steps.idle_paused_gpu_h > 0 and steps.logged_gpus > 0):
        return _Cost()
    idle_s = 3600 * steps.idle_paused_gpu_h / steps.logged_gpus
    if not (steps.recorded_pauses_s > 0 and steps.sampling_period_s > 0):
        return _Cost(steps.idle_paused_gpu_h)
    times = min(float(steps.n_pauses), idle_s / steps.sampling_period_s)
    paused, idle, n = (pd.Series([value], ["0"]) for value in (steps.recorded_pauses_s, idle_s, times))
    cost = Cost.of(paused, idle, n, steps.sampling_period_s, unseen_s=LOOKS_BACK_S)
    return _Cost(
        cost.lost_gpu_h and cost.lost_gpu_h * steps.logged_gpus,
        cost.held_gpu_h and cost.held_gpu_h * steps.logged_gpus,
        bool(cost.range_of("0")["is_rough"]),
        float(cost.least_pct["0"]),
        float(cost.most_pct["0"]),
    )


def _remedy(steps: StepsProfile) -> str:
    """What to do about the largest part of the pauses, which may have no name; '' for both kinds of work."""
    if steps.n_evaluations and steps.pauses["behind"].all():
        return AT_THE_END
    if unnamed_is_most(steps):
        if 2 * steps.unnamed_between_epochs_s > steps.unnamed_s:
            return KEEP_WORKERS
        return AT_MULTIPLES if steps.n_unnamed_every > 0 else FIND_OUT
    if (steps.evaluations_s > 0) == (steps.checkpoints_s > 0):
        return ""
    if steps.checkpoints_s > 0:
        return SAVE_LESS
    return EVALUATE_ON_ALL if some_wait(steps) else EVALUATE_LESS


@rule(
    measure=measure_steps,
    severity="warning",
    title="Steps became slower",
    checks="Steps that become slower",
    says=("In the last fifth of the log a step took {late_ratio} times as long as in the first.",),
    remedy="Look for what changed, or grows: the length of samples, a list that is appended to at each step, swapped "
    "memory, a clock that falls with heat. Time a step from the end with the settings of the beginning.",
    refuted_by="Not a problem if later steps were meant to do more: longer sequences, larger batches.",
    explained_by=("foreign-load",),
)
def steps_slower(
    steps: StepsProfile, *, max_late_ratio: float = 1.2, min_steady_pct: float = 75.0, max_p_pct: float = 3.0
) -> Outcome:
    """A training of equal steps takes as long for its last as for its first.

    The median and the mean of the last fifth over 1.2 times those of the first, with three of the four changes between
    fifths in that direction, and so many slower steps by luck in less than 3 % of cases, as where steps take one of
    two times (defaults without a published source). Pauses and the first steps are left out.
    """
    slower = steps.late_ratio > max_late_ratio and steps.steady_pct >= min_steady_pct
    if slower and 100 * steps.p_late < max_p_pct:
        return Evidence(
            values={"late_ratio": steps.late_ratio, "step_s": steps.step_s, "p95_step_s": steps.p95_step_s},
            margin=steps.late_ratio - max_late_ratio,
        )
    if not steps.late_ratio > 0:
        raise NotMeasurable(
            "The log holds too few lines on steps to show a course.",
            "Let the training log every 10 to 50 steps, with a time.",
        )
    _check_logs(steps)
    if steps.late_ratio > max_late_ratio:
        return None
    says = "In the last fifth {late_ratio:as ratio} times as long as in the first (limit {max_late_ratio:as ratio})."
    return Passed(says, late_ratio=steps.late_ratio)


@rule(
    measure=measure_steps,
    severity="warning",
    title="Time was lost to resumptions",
    checks="Time lost to resumptions",
    says=(
        "The training was resumed {n_resumed:time}: ",
        Given("n_down_unknown", "at least "),
        "{resumption_s} ({resumption_pct}) went into standing still",
        Given("n_repeated", " and into doing {n_repeated:step} twice"),
        Given("n_down_unknown", ". How long it was down is unknown: the log's lines on steps have no timestamps"),
        ".",
    ),
    remedy="See in the log, above where it was resumed, what stopped the training, and mend that. Let the scheduler "
    "resume it at once. If many steps are done twice, save checkpoints more often.",
    refuted_by="Not a problem if the training was stopped on purpose, or went on with another setting.",
)
def steps_lost(steps: StepsProfile, *, max_lost_pct: float = 5.0) -> Outcome:
    """What is done between the last checkpoint and a failure is done twice, and nothing is done until it is resumed.

    Above 5 % of the time that the log spans (a default without a published source). The interval between checkpoints is
    Young's (1974, doi 10.1145/361147.361115).
    """
    if steps.resumption_pct > max_lost_pct:
        return Evidence(
            values={
                "resumption_pct": steps.resumption_pct,
                "resumption_s": steps.resumption_s,
                "logged_s": steps.logged_s,
                "n_resumed": steps.n_resumed,
                "n_repeated": steps.n_repeated,
            },
            extra={"n_down_unknown": steps.n_down_unknown},
            margin=steps.resumption_pct - max_lost_pct,
            lost_gpu_h=steps.resumption_gpu_h if steps.resumption_gpu_h > 0 else None,
        )
    if not steps.resumption_pct >= 0:
        raise NotMeasurable("The log does not say how long its steps took.", GIVE_LOG)
    if steps.n_down_unknown:
        raise NotMeasurable(
            "The training was resumed {n:time}, and how long it was down is unknown: the log's lines on steps have no "
            "timestamps.",
            GIVE_TIMESTAMPS,
            n=steps.n_resumed,
        )
    _check_logs(steps)
    if not steps.n_resumed:
        return Passed("The log tells of no resumption.")
    says = "{n_resumed:resumption} took {resumption_pct} of the time that the log spans (limit {max_lost_pct})."
    return Passed(says, n_resumed=steps.n_resumed, resumption_pct=steps.resumption_pct)


def _check_logs(steps: StepsProfile) -> None:
    """Raises NotMeasurable where files may be parts of one training: all may be well in each, and not in the whole."""
    if steps.n_unclear:
        raise NotMeasurable("{n:log file} may go on with the training of another.", JOIN_LOGS, n=steps.n_unclear)
