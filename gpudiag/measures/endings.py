"""How trainings ended, by their logs: with an error, before their last step, or as they should."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._steps.lines import floats
from gpudiag.measures._steps.log_files import of_one_process
from gpudiag.measures._steps.logs import training_logs
from gpudiag.measures._trials.error_texts import short_error
from gpudiag.measures._trials.failure_text import classify
from gpudiag.measures.base import Profile
from gpudiag.measures.steps import GIVE_LOG
from gpudiag.readers._batches.log_lines import ENDINGS
from gpudiag.run import Run

AFTERWARDS = ("raised", "nccl")
"""What a program prints as it takes itself down, too."""


class TrainingEnd(Row):
    """A training whose log ends with an error, or that never began a step for one."""

    training: Column[str] = column("file of the log, the first where it goes on in others", label="training")
    kind: Column[str] = column("one of CLASSES of failures")
    text: Column[str] = column("the error, short", label="error")
    time: Column[pd.Timestamp] = column("when it was logged; NaT where its line has no timestamp")
    last_step: Column[float] = column("last step logged before it; NaN without one", label="last step logged")
    total_steps: Column[float] = column("steps that the log states; NaN unknown", label="steps stated")
    was_over: Column[bool] = column("all was done, and a program prints such an error as it takes itself down, too")


class EndingsProfile(Profile, topic="endings"):
    """How trainings ended, those without a list of trials: an error behind the last step that a log tells of."""

    failed: Rows = table_of(TrainingEnd)
    n_logs: Fact[int] = fact("logs of trainings", label="logs of trainings")
    n_failed: Fact[int] = fact("of these those that end with an error", label="logs that end with an error")
    n_over: Fact[int] = fact("those with an error after all was done, which may come from the program's way down")
    n_stopped: Fact[int] = fact("those that somebody stopped by hand")
    n_short: Fact[int] = fact("those that stop before the last step that they state, without an error")
    last_step: Fact[float] = fact("last step of the first that failed or stops short, NaN without one")
    total_steps: Fact[float] = fact("steps that it states, else NaN", label="steps stated")


class _End(NamedTuple):
    """Where a log ends. ``error``: the first behind its last step; ``stride``: steps from line to line."""

    training: str
    last_step: float
    total_steps: float
    stride: float
    error: pd.Series | None
    was_over: bool = False


def measure_endings(run: Run) -> EndingsProfile:
    """Ends of trainings. Needs the log of one; those of trials are none of these, whose own table tells of them."""
    ends = [] if len(run.trials) else _ends(run)
    if not ends and run.trials.empty:
        raise NotMeasurable("No log tells of a training.", GIVE_LOG)
    failed, n_stopped = [], 0
    for end in ends:
        if end.error is None:
            continue
        kind = classify(str(end.error["detail"]))
        n_stopped += kind == "stopped"
        if kind != "stopped":
            text = short_error(str(end.error["detail"]))
            failed.append((end.training, kind, text, end.error["time"], end.last_step, end.total_steps, end.was_over))
    short = [end for end in ends if end.error is None and end.last_step + end.stride < end.total_steps]
    columns = ["training", "kind", "text", "time", "last_step", "total_steps", "was_over"]
    table = pd.DataFrame(failed, columns=columns).astype({"was_over": bool})
    table = table.astype({"last_step": float, "total_steps": float}).assign(
        time=pd.to_datetime(table["time"], utc=True)
    )
    table = table.sort_values(["was_over", "time", "training"], kind="stable", ignore_index=True)
    places = [*zip(table["last_step"], table["total_steps"], strict=True), *(end[1:3] for end in short)]
    last, total = places[0] if places else (math.nan, math.nan)
    return EndingsProfile(
        failed=table,
        n_logs=len(ends),
        n_failed=int((~table["was_over"]).sum()),
        n_over=int(table["was_over"].sum()),
        n_stopped=n_stopped,
        n_short=len(short),
        last_step=float(last),
        total_steps=float(total),
    )


def _ends(run: Run) -> list[_End]:
    """The end of each training; without any step, of each log that tells of an error."""
    errors = run.events[run.events["kind"].isin(ENDINGS)].reindex(columns=["path", "line", "kind", "detail", "time"])
    errors = errors.sort_values("line", kind="stable")
    if run.steps.empty:
        of_logs = errors[errors["kind"] != "gpu_lost"].groupby("path", sort=True)
        return [_End(str(path), math.nan, math.nan, math.nan, found.iloc[0]) for path, found in of_logs]
    last_step = errors["path"].map(run.steps.groupby("path")["line"].max()).to_numpy(float, na_value=math.nan)
    errors = errors.assign(with_steps=~np.isnan(last_step))
    behind = errors[~(errors["line"].to_numpy(float, na_value=math.nan) <= last_step)]
    lines = training_logs(run).lines
    elsewhere = behind[~behind["path"].isin(lines["path"])]
    logs = [(str(log), part) for log, part in lines.groupby("log", sort=False)]
    return [_end(log, part, behind, elsewhere, alone=len(logs) == 1) for log, part in logs]


def _end(training: str, lines: pd.DataFrame, errors: pd.DataFrame, elsewhere: pd.DataFrame, *, alone: bool) -> _End:
    """Of the last file of a log, with the first error behind its last step; where all was done by then, the first that
    is more than words of a program that takes itself down, if there is one.
    """
    file = lines[lines["part"] == lines["part"].max()].sort_values("line")
    last, ahead = file.iloc[-1:], np.diff(floats(file, "step"))
    step, total, epoch = (float(floats(last, name)[0]) for name in ("step", "total", "epoch"))
    stride = float(np.median(ahead[ahead > 0])) if (ahead > 0).any() else 0.0
    path = str(last["path"].iloc[0])
    behind = errors[errors["path"] == path]
    over = (step >= total and math.isnan(epoch)) or ("then" in last and "end" in str(last["then"].iloc[0]))
    if behind.empty and not over:
        behind = _on_the_other_stream(path, elsewhere, alone=alone, is_short=step < total)
    if behind.empty:
        return _End(training, step, total, stride, None)
    grave = behind[~behind["kind"].isin(AFTERWARDS)]
    if over and len(grave):
        return _End(training, step, total, stride, grave.iloc[0])
    return _End(training, step, total, stride, behind.iloc[0], over)


def _on_the_other_stream(path: str, errors: pd.DataFrame, *, alone: bool, is_short: bool) -> pd.DataFrame:
    """Errors in a file of the same process, such as the stderr of a job, or in one that tells of the same steps. What
    is caught stands there as well, so that an exception counts only where the log stops short.
    """
    mine = [
        (alone and told) or of_one_process(path, str(other))
        for other, told in zip(errors["path"], errors["with_steps"], strict=True)
    ]
    return errors[np.array(mine, dtype=bool) & (is_short | ~errors["kind"].isin(AFTERWARDS))]
