"""The steps of a training by its own log: how long one takes, and what time passed outside of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.gpu_rows import by_gpu
from gpudiag.measures._steps.all_pauses import AllPauses, checkpoint_every_s
from gpudiag.measures._steps.clocks import WHOLE_S
from gpudiag.measures._steps.courses import courses, has_pace, left_out
from gpudiag.measures._steps.late_steps import late_steps
from gpudiag.measures._steps.lines import MIN_LINES
from gpudiag.measures._steps.logs import training_logs
from gpudiag.measures._steps.paused_for import BOTH, between_epochs_s, held_s
from gpudiag.measures._steps.ranks import in_lock_step, longest_waits, one_of_each
from gpudiag.measures._steps.whole_time import says_whole_times
from gpudiag.measures._time.cells import cells, seen_us
from gpudiag.measures._time.expected import logged_window
from gpudiag.measures._time.gpu_time import gpu_time
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.weighted import weighted_quantiles
from gpudiag.measures._waits.divided import logged_gpus
from gpudiag.measures._waits.logged import PAUSES
from gpudiag.measures.base import Profile
from gpudiag.measures.causes import measure_causes
from gpudiag.measures.inputs import unknown_logs
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import LASTING

MOST_STRETCHES, FEWEST_STRETCHES, ROUNDED_S = 400, 10, 50.0
"""A clock of whole seconds is off by up to one at the ends of a stretch: 2 % of 50 s, which no picture shows."""
EVALUATION = LASTING[0]
WORKING, WAITING = 0.75, 0.9
"""A GPU works in evaluations if it is without a kernel for no more than this part of them, and waits from that part on.
"""
JOIN_LOGS = "Put the logs of one training into one file in their order, or each training into a folder of its own."
STATE_TIMES = (
    "Lines with the step and a timestamp or a speed are read, such as those of Hugging Face, Lightning, Megatron, "
    "Keras or a tqdm bar. Begin each line with the time, or log the time of a step."
)
WITH_CLOCK = (
    "Give its progress bar (stderr) as well, or set include_num_input_tokens_seen=True: then trainer_state.json has "
    "the time of each line."
)
GIVE_LOG = (
    "Put the training log into the run folder (or give it with --artifacts). Lines with the step and a "
    "timestamp or a speed are read, such as those of Hugging Face, Lightning, Megatron, Keras or a tqdm bar."
)


class TrainingSteps(Row):
    """A training: one log, and one rank of it where lines name ranks. NaN is unknown."""

    training: Column[str] = column("file of the log, the first where it goes on in others")
    rank: Column[float] = column("rank, where its lines name one")
    trial: Column[float] = column("trial, where its lines name one", label="trial")
    unit: Column[str] = column("what its lines count: step or epoch")
    n_steps: Column[float] = column("steps done between its lines, repeated ones included", label="steps")
    startup_s: Column[float] = column("time from the log's first timestamp to its first steps", label="start-up")
    logged_s: Column[float] = column("time from its first steps to its last line", label="log spans")
    step_s: Column[float] = column("median time of a step", label="time of a step")
    pauses_s: Column[float] = column("time outside of steps: evaluation, checkpoints, waits", label="pauses")
    first_s: Column[float] = column("how much longer the first steps took", label="slow first steps")
    resumption_s: Column[float] = column(
        "time lost to resumptions: down, and steps done twice", label="lost to resumptions"
    )
    productive_pct: Column[float] = column(
        "share of the span for steps, without slow first ones and what was lost", label="time in steps"
    )


class StepPause(Row):
    """A pause between steps, the longest first."""

    training: Column[str] = column("file of the log, the first where it goes on in others")
    start: Column[pd.Timestamp] = column("earliest moment at which it can have begun, NaT without timestamps")
    end: Column[pd.Timestamp] = column("latest moment at which it can have ended, NaT without timestamps")
    after_step: Column[int] = column("steps done by the end of the interval", label="by step")
    behind: Column[bool] = column("it lies behind the last step that the log names")
    paused_s: Column[float] = column("time beyond the usual time of the interval's steps", label="pause")
    since: Column[str] = column("other work that the log tells of in it: evaluation, checkpoint", label="log tells of")


class StepCourse(Row):
    """A stretch of the training that spans most, of at most 400: the pace from one line to a later one."""

    done: Column[float] = column("steps done at its end")
    each_s: Column[float] = column("mean time of a step in it, pauses left out")
    paused_s: Column[float] = column("longest pause in it, 0 without one")


class StepsProfile(Profile, topic="steps"):
    """Steps of the trainings whose logs were read; of ranks that do them together those of one. NaN is unknown."""

    trainings: Rows = table_of(TrainingSteps)
    pauses: Rows = table_of(StepPause)
    course: Rows = table_of(StepCourse)
    n_step_lines: Fact[int] = fact("log lines that name a step", label="log lines that name a step")
    n_trainings: Fact[int] = fact("trainings, ranks apart")
    n_undated: Fact[float] = fact(
        "of these lines those whose timestamp lies before an earlier line's and tells nothing"
    )
    n_left_out: Fact[int] = fact("trainings with too few lines to tell of, of which nothing is counted")
    n_joined: Fact[int] = fact("files that go on with the training of another, and count as one log with it")
    n_twice: Fact[int] = fact("files left out, since another tells of the same steps")
    n_unclear: Fact[int] = fact(
        "files of which it is not clear whether they go on with the training of another; they are taken for others",
        label="log files that may go on with the training of another",
    )
    unit: Fact[str] = fact("what is counted: step or epoch")
    n_steps: Fact[float] = fact("steps between these lines", label="steps")
    startup_s: Fact[float] = fact("time from the logs' first timestamps to their first steps", label="start-up")
    logged_s: Fact[float] = fact("time that the logs span, from their first steps on", label="log spans")
    step_s: Fact[float] = fact("median time of a step, weighted by steps", label="time of a step")
    n_paced: Fact[int] = fact("trainings whose median time of a step is known, ranks of one together")
    least_step_s: Fact[float] = fact("the least of these medians", label="least time of a step by training")
    most_step_s: Fact[float] = fact("the greatest of them", label="greatest time of a step by training")
    p95_step_s: Fact[float] = fact("95th percentile likewise", label="95 % of the steps take at most")
    pauses_s: Fact[float] = fact("time outside of steps")
    pauses_pct: Fact[float] = fact(
        "its share of the span; more where ``n_unseen`` is not 0", label="time outside of steps"
    )
    unnamed_s: Fact[float] = fact(
        "time in pauses of which the log does not tell what they are", label="pauses without a name"
    )
    unnamed_between_epochs_s: Fact[float] = fact(
        "of it what lies where an epoch begins behind another", label="of it between epochs"
    )
    n_unnamed_every: Fact[float] = fact(
        "steps from one such pause to the next, where they come at multiples of it; else NaN"
    )
    between_epochs_s: Fact[float] = fact(
        "time where an epoch begins behind another that is more than the fastest of the steps there need, and is no "
        "stated evaluation or checkpoint: the most that epochs can wait for their first batch; NaN where few lines "
        "lie between those",
        label="most time for the start of epochs",
    )
    n_unseen: Fact[float] = fact("stretches that may hold time outside of steps which no clock of the log tells")
    open_s: Fact[float] = fact(
        "time by which intervals took far longer than their steps usually do, though not apart from the others: pauses "
        "or slow steps",
        label="pauses or slow steps",
    )
    n_pauses: Fact[int] = fact("pauses", label="pauses")
    n_evaluations: Fact[int] = fact("pauses in which the log tells of an evaluation", label="pauses with an evaluation")
    evaluations_s: Fact[float] = fact(
        "time of evaluations in pauses, at most: as lines state it, else all that is left of a pause in which the log "
        "tells of one",
        label="for evaluations, at most",
    )
    evaluations_low_s: Fact[float] = fact("time of evaluations in pauses, at least", label="for evaluations, at least")
    evaluating_gpus: Fact[float] = fact(
        "GPUs that run kernels for a quarter of the evaluations in pauses or more; NaN unknown",
        label="GPUs that evaluate",
    )
    waiting_gpus: Fact[float] = fact(
        "GPUs that are without a kernel for 90 % of these evaluations or more; NaN unknown",
        label="GPUs that wait for evaluations",
    )
    checkpoints_s: Fact[float] = fact("time of checkpoints in pauses, at most", label="for checkpoints, at most")
    checkpoints_low_s: Fact[float] = fact("time of checkpoints in pauses, at least", label="for checkpoints, at least")
    both_s: Fact[float] = fact("time in both of these, since it may be of either", label="for either")
    checkpoint_s: Fact[float] = fact(
        "median of the stated times of checkpoints in pauses, and of the pauses of which the log tells nothing but a "
        "checkpoint",
        label="pause for a checkpoint",
    )
    checkpoint_every_s: Fact[float] = fact(
        "median time between pauses with a checkpoint, resumptions apart", label="between checkpoints"
    )
    logged_gpus: Fact[float] = fact("GPUs on which measure causes sees the log's pauses; NaN unknown")
    recorded_pauses_s: Fact[float] = fact(
        "part of these pauses that telemetry on the log's clock covers; NaN where that is unknown",
        label="pauses recorded",
    )
    idle_paused_gpu_h: Fact[float] = fact(
        "GPU time without a kernel in these pauses, as measure causes divides it",
        label="without a kernel in the pauses",
    )
    sampling_period_s: Fact[float] = fact(
        "time from sample to sample on these GPUs, of the one sampled least often; NaN without one"
    )
    idle_paused_pct: Fact[float] = fact(
        "its share of the GPU time without a kernel that lies within the work", label="waits within the work, in pauses"
    )
    first_s: Fact[float] = fact("how much longer the first steps took than usual")
    n_resumed: Fact[int] = fact("times that a training was resumed", label="resumptions")
    n_down_unknown: Fact[float] = fact(
        "of these those of which no timestamp tells how long it was down: what is lost to them is a least value",
        label="resumptions after an unknown time",
    )
    down_s: Fact[float] = fact(
        "time from the last line before a resumption to the next, without the steps done in it", label="down"
    )
    n_repeated: Fact[float] = fact("steps that were done twice", label="steps done twice")
    resumption_s: Fact[float] = fact("time lost to resumptions: down, and steps done twice")
    resumption_gpu_h: Fact[float] = fact(
        "GPU time of it that telemetry was recorded in, on the GPUs on which the log's pauses are seen; NaN unknown",
        label="GPU time lost to resumptions",
    )
    resumption_pct: Fact[float] = fact("its share of the span", label="lost to resumptions")
    productive_pct: Fact[float] = fact(
        "share of the span for steps, without slow first ones and what was lost", label="time in steps"
    )
    goodput_pct: Fact[float] = fact(
        "share of start-up and span together for steps that were not lost (Google's ML Goodput)", label="goodput"
    )
    ettr_pct: Fact[float] = fact(
        "share of it that start-up and resumptions leave (effective training time ratio, arXiv 2410.21680)",
        label="effective training time",
    )
    mttf_s: Fact[float] = fact("time of start-up and span to one resumption; NaN without one", label="between failures")
    late_ratio: Fact[float] = fact(
        "time of a step in the last fifth over that in the first, of the training that spans most: by median or by "
        "mean, the one nearer to 1",
        label="time of a step, last fifth to first",
    )
    steady_pct: Fact[float] = fact(
        "share of the fifths between, in order, whose median lies between those", label="fifths in order"
    )
    p_late: Fact[float] = fact(
        "one-sided Mann-Whitney of the last fifth against the first, less sure where neighbors resemble each other",
        label="chance of slower steps by luck (p)",
    )
    loader_pct: Fact[float] = fact(
        "stated wait for data over stated time of the steps", label="wait for data in a step"
    )
    loader_steps: Fact[float] = fact("steps with a stated wait for data")


def unnamed_is_most(steps: StepsProfile) -> bool:
    """Whether the log does not name the largest part of the time outside of steps."""
    return steps.unnamed_s > max(steps.evaluations_s, steps.checkpoints_s)


def some_wait(steps: StepsProfile) -> bool:
    """Whether some GPUs evaluate while others wait for them."""
    return steps.evaluating_gpus > 0 and steps.waiting_gpus > 0


@memoized
def measure_steps(run: Run) -> StepsProfile:
    """Time of steps and time outside of them. Needs log lines with a step and a time."""
    every, few = courses(run), left_out(run)
    told = one_of_each(every)
    if not told:
        raise _no_course(run, few)
    unit = str(told[0]["unit"].iloc[0])
    whole = pd.concat([part.assign(behind=_behind_steps(part)) for part in told], ignore_index=True)
    rows = pd.DataFrame([_training(part) for part in told])
    longest = max(told, key=lambda part: float(part["took_s"].sum()))
    late = late_steps(longest)
    pauses = AllPauses.of(whole)
    unnamed_s = pauses.unnamed_s
    (evaluations_low_s, evaluations_s), (checkpoints_low_s, checkpoints_s) = (
        held_s(pauses.parts, work) for work in LASTING
    )
    at_pace = whole[whole["usual"]]
    (p50,) = weighted_quantiles(rows["step_s"], rows["n_steps"], (0.5,))
    paced = rows.groupby(["training", "trial"], dropna=False)["step_s"].median().dropna()
    (p95,) = weighted_quantiles(at_pace["each_s"], at_pace["n"], (0.95,))
    span, startup = float(rows["logged_s"].sum()), float(rows["startup_s"].sum(min_count=1))
    wall = span + float(np.nan_to_num(startup))
    n_resumed = sum(_n_resumed(part) for part in told)
    waits, logs = _waits(run), training_logs(run)
    loader_pct, loader_steps = _loader(every)
    n_gpus = waits.n_gpus if in_lock_step(every) else math.nan
    recorded_s, pauses_s = _recorded_s(run, pauses.rows), float(rows["pauses_s"].sum())
    evaluated_s = pauses.likeliest_s(EVALUATION) * recorded_s / pauses_s if n_gpus > 0 and pauses_s else 0.0
    evaluating, waiting = _at_evaluations(waits, evaluated_s)
    lost = float(rows["resumption_s"].sum(skipna=False))
    at_pace_s = float((rows["productive_pct"] * rows["logged_s"]).sum(skipna=False)) / 100
    return StepsProfile(
        trainings=rows if len(told) == len(every) else pd.DataFrame([_training(part) for part in every]),
        pauses=pauses.table,
        course=_stretches(longest),
        n_step_lines=sum(map(len, every)),
        n_undated=float(whole["undated"].sum()),
        n_trainings=len(every),
        n_left_out=len(few),
        n_joined=logs.n_joined,
        n_twice=logs.n_twice,
        n_unclear=logs.n_unclear,
        unit=unit,
        n_steps=float(rows["n_steps"].sum(skipna=False)),
        startup_s=startup,
        logged_s=span,
        step_s=p50,
        n_paced=len(paced),
        least_step_s=float(paced.min()),
        most_step_s=float(paced.max()),
        p95_step_s=p95,
        pauses_s=pauses_s,
        pauses_pct=100 * pauses_s / span,
        unnamed_s=float(unnamed_s.sum()),
        unnamed_between_epochs_s=float(unnamed_s[pauses.rows["new_epoch"].to_numpy(bool)].sum()),
        n_unnamed_every=pauses.n_unnamed_every(whole) if unit == "step" else math.nan,
        between_epochs_s=float(sum(map(between_epochs_s, told))),
        n_unseen=float(whole["unseen"].sum()),
        open_s=float(whole["open_s"].sum()),
        n_pauses=len(pauses.rows),
        n_evaluations=int(pauses.rows["since"].str.contains("evaluation", regex=False).sum()),
        evaluations_s=evaluations_s,
        evaluations_low_s=evaluations_low_s,
        evaluating_gpus=evaluating,
        waiting_gpus=waiting,
        checkpoints_s=checkpoints_s,
        checkpoints_low_s=checkpoints_low_s,
        both_s=pauses.likeliest_s(BOTH),
        checkpoint_s=pauses.checkpoint_s,
        checkpoint_every_s=checkpoint_every_s(told),
        logged_gpus=n_gpus,
        recorded_pauses_s=recorded_s,
        idle_paused_gpu_h=waits.paused_gpu_h,
        sampling_period_s=waits.period_s,
        idle_paused_pct=waits.paused_pct,
        first_s=float(rows["first_s"].sum(skipna=False)),
        n_resumed=n_resumed,
        n_down_unknown=float(whole["down_open"].sum()),
        down_s=float(whole["down_s"].sum(skipna=False)),
        n_repeated=float(whole["repeated"].sum()),
        resumption_s=lost,
        resumption_gpu_h=n_gpus * (lost - _unrecorded_s(run, whole, waits.gpus)) / 3600,
        resumption_pct=100 * lost / span,
        productive_pct=100 * at_pace_s / span,
        goodput_pct=100 * at_pace_s / wall,
        ettr_pct=math.nan if whole["down_open"].any() else 100 * (span - lost) / wall,
        mttf_s=wall / n_resumed if n_resumed else math.nan,
        late_ratio=late.ratio,
        steady_pct=late.steady_pct,
        p_late=late.p,
        loader_pct=loader_pct,
        loader_steps=loader_steps,
    )


def _behind_steps(part: pd.DataFrame) -> np.ndarray:
    """Whether an interval is the one from the last line on a step of its log to the last line on other work."""
    behind = np.zeros(len(part), bool)
    behind[-1] = part["n"].iloc[-1] == 0
    return behind


def _loader(every: Sequence[pd.DataFrame]) -> tuple[float, float]:
    """Stated wait for data over stated time of the steps, in percent (NaN without any), and how many steps state it."""
    told = pd.concat(every, ignore_index=True)
    stated = longest_waits(told[told["loader_s"].notna() & told["work_s"].notna()])
    pct = 100 * float(stated["loader_s"].sum() / stated["work_s"].sum()) if len(stated) else math.nan
    return pct, float(stated["n"].sum())


def _recorded_s(run: Run, pauses: pd.DataFrame) -> float:
    """Time of the pauses within the telemetry, where that is of the log's clock; a pause is as likely anywhere in its
    interval.
    """
    if logged_window(run) is None or pauses["start"].isna().any() or pauses["end"].isna().any():
        return math.nan
    start, end = microseconds(pauses["start"]), microseconds(pauses["end"])
    recorded = [(one["start_us"].to_numpy(), one["end_us"].to_numpy()) for _, one in by_gpu(cells(run, "util_pct"))]
    seen = [max(seen_us(*one, span) for one in recorded) for span in zip(start.tolist(), end.tolist(), strict=True)]
    return float((pauses["paused_s"].to_numpy() * np.array(seen, float) / np.maximum(end - start, 1)).sum())


def _no_course(run: Run, few: list[pd.DataFrame]) -> NotMeasurable:
    """Why no training is told of, and what to do."""
    if not few and says_whole_times(run):
        return NotMeasurable(
            "The lines of Hugging Face's Trainer have no clock. It states how long a training took at its end only, "
            "and after a resumption without the time before.",
            WITH_CLOCK,
        )
    if few and not any(part["took_s"].sum() > 0 for part in few):
        return NotMeasurable("The lines on steps that were read tell no time and no speed of a step.", STATE_TIMES)
    if any(len(part) >= MIN_LINES and not has_pace(part) for part in few):
        return NotMeasurable(
            "The log does not tell how long a step took: most have no time, or its bars have no name and take turns at "
            "two paces.",
            "Name the bars, such as tqdm(..., desc='train'), or log each 10 to 50 steps with a timestamp.",
        )
    if few:
        return NotMeasurable(
            "Too few lines on steps belong together whose times the clock tells apart: they are of {n:training}, and "
            "{least:line} or more of one are needed.", GIVE_LOG, n=len(few), least=MIN_LINES,
        )  # fmt: skip
    if unread := unknown_logs(run):
        return NotMeasurable(
            "{logs} in the folder was not read, for no reader knows its lines.", STATE_TIMES, logs=", ".join(unread)
        )
    return NotMeasurable("No training log with the times of {n:step} or more was read.", GIVE_LOG, n=MIN_LINES)


def _training(part: pd.DataFrame) -> dict[str, object]:
    took, usual_s = part["took_s"], float(part["usual_s"].iloc[0])
    between = part["first"] & (part["resumed"] > 0)
    span = float(took.sum()) + float(part.loc[between, ["resumed", "paused_s"]].sum().sum())
    first = part[part["first"] & took.notna()]
    slow_s = float((first["took_s"] - first["n"] * first["pace_s"]).clip(lower=0).sum())
    first_s = slow_s if part["first"].any() else math.nan
    lost = float(part["down_s"].sum(skipna=False) + part["again_s"].sum(skipna=False))
    pauses = float(part["paused_s"].sum())
    productive = 100 * max(span - pauses - first_s - lost, 0.0) / span
    return {
        "training": part["training"].iloc[0],
        "rank": float(part["rank"].iloc[0]),
        "trial": float(part["trial"].iloc[0]),
        "unit": part["unit"].iloc[0],
        "n_steps": float(part["n"][took.notna() | between].sum(skipna=False)),
        "startup_s": _startup_s(part),
        "logged_s": span,
        "step_s": usual_s,
        "pauses_s": pauses,
        "first_s": first_s,
        "resumption_s": float(np.minimum(lost, span)),
        "productive_pct": math.nan if (part["unseen"] | part["down_open"]).any() else productive,
    }


class _Waits(NamedTuple):
    """GPU-hours without a kernel in pauses, their share of those within the work (NaN without telemetry), the GPUs on
    which the log's pauses are seen, the longest time from sample to sample of these, and how many seconds each of them
    is without a kernel in evaluations.
    """

    paused_gpu_h: float = math.nan
    paused_pct: float = math.nan
    gpus: tuple[str, ...] = ()
    period_s: float = math.nan
    evaluations_s: tuple[float, ...] = ()

    @property
    def n_gpus(self) -> float:
        return len(self.gpus) or math.nan


def _waits(run: Run) -> _Waits:
    try:
        causes = measure_causes(run)
    except NotMeasurable:
        return _Waits()
    rows = causes.by_cause
    within = float(rows.loc[rows["source"] != "record", "gpu_s"].sum())
    if not causes.has_log or not within > 0:
        return _Waits()
    held = float(rows["gpu_s"].reindex(list(PAUSES)).sum())
    logged = causes.causes[(causes.causes["source"] == "log") & (causes.causes["gpu_s"] > 0)]
    gpus = tuple(logged["gpu"].unique())
    evaluations_s = logged[logged["cause"] == EVALUATION].groupby("gpu")["gpu_s"].sum().reindex(gpus, fill_value=0.0)
    period_s = max((logged_gpus(run)[gpu].part.period_s for gpu in gpus), default=math.nan)
    return _Waits(held / 3600, 100 * held / within, gpus, period_s, tuple(evaluations_s))


def _at_evaluations(waits: _Waits, evaluated_s: float) -> tuple[float, float]:
    """How many GPUs work and how many wait in evaluations of so many seconds that were recorded; NaN without any."""
    if not evaluated_s > 0:
        return math.nan, math.nan
    part = np.array(waits.evaluations_s) / evaluated_s
    return float((part <= WORKING).sum()), float((part >= WAITING).sum())


def _unrecorded_s(run: Run, whole: pd.DataFrame, gpus: Sequence[str]) -> float:
    """Seconds for which the training was down and no telemetry was recorded, as between two jobs: nobody knows whether
    it held its GPUs. Mean over the GPUs.
    """
    down = whole[(whole["down_s"] > 0) & whole["start"].notna() & whole["end"].notna()]
    if down.empty or not gpus:
        return 0.0
    begin_us, end_us = microseconds(down["start"]), microseconds(down["end"])
    lines = [gpu_time(run).timelines[gpu] for gpu in gpus]
    seen_s = np.mean([line.recorded_s(begin_us, end_us) for line in lines], axis=0)
    return float(np.clip((end_us - begin_us) / SECOND_US - seen_s, 0.0, down["down_s"]).sum())


def _startup_s(part: pd.DataFrame) -> float:
    """Time from the log's first timestamp to the first steps; NaN where the log begins with these."""
    first = part.iloc[0]
    steps_s = first["took_s"] if first["took_s"] >= 0 else first["n"] * first["pace_s"]
    startup_s = float(first["begun_s"] - steps_s)
    return startup_s if startup_s >= 0 else math.nan


def _n_resumed(part: pd.DataFrame) -> int:
    """Attempts after the first, and resumptions of which only the log tells."""
    return int(part["attempt"].max()) + int(((part["resumed"] > 0) & ~part["first"]).sum())


def _stretches(part: pd.DataFrame) -> pd.DataFrame:
    """Intervals of known length in equal numbers to a stretch, in order. On a clock of whole seconds they take what
    their lines state, else stretches are so long that it is hardly off.
    """
    known = part[part["each_s"].notna()]
    work = known["told_s"].fillna(known["each_s"]) * known["n"]
    rounded = (known["tick_s"] >= WHOLE_S) & known["told_s"].isna() & ~(known["paused_s"] > 0)
    most = max(int(work.sum() / ROUNDED_S), FEWEST_STRETCHES) if 2 * rounded.sum() > len(known) else MOST_STRETCHES
    stretch = np.arange(len(known)) * min(MOST_STRETCHES, most, len(known)) // max(len(known), 1)
    by = known.assign(work=work).groupby(stretch)
    each_s = by["work"].sum() / by["n"].sum()
    out = pd.DataFrame({"done": by["done"].last(), "each_s": each_s, "paused_s": by["paused_s"].max()})
    return out.reset_index(drop=True)
