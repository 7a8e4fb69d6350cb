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
from gpudiag.measures.inputs import unknown_logs
from gpudiag.measures.steps import GIVE_LOG
from gpudiag.readers._batches.log_lines import ENDINGS
from gpudiag.run import Run

AFTERWARDS = ("raised", "nccl")
"""What a program prints as it takes itself down, too."""
FROM_OUTSIDE = ("killed", "gpu_lost")
"""What the kernel logs of any program."""
NO_ERRORS = pd.DataFrame(columns=["path", "line", "kind", "detail", "time", "behind"])
COLUMNS = ["training", "kind", "text", "time", "last_step", "total_steps", "is_open"]


class TrainingEnd(Row):
    """A training whose log tells of an error behind its last step."""

    training: Column[str] = column("file of the log, the first where it goes on in others", label="training")
    kind: Column[str] = column("one of CLASSES of failures")
    text: Column[str] = column("the error, short", label="error")
    time: Column[pd.Timestamp] = column("when it was logged; NaT where its line has no timestamp")
    last_step: Column[float] = column("last step logged before it; NaN without one", label="last step logged")
    total_steps: Column[float] = column("steps that the log states; NaN unknown", label="steps stated")
    is_open: Column[bool] = column(
        "it may have ended nothing: ordinary lines follow, or all was done, and a program prints such an error as it "
        "takes itself down, too"
    )


class EndingsProfile(Profile, topic="endings"):
    """How trainings ended, those without a list of trials: an error behind the last step that a log tells of."""

    failed: Rows = table_of(TrainingEnd)
    n_logs: Fact[int] = fact("logs of trainings", label="logs of trainings")
    n_failed: Fact[int] = fact("of these those that end with an error", label="logs that end with an error")
    n_open: Fact[int] = fact("those with an error behind the last step that may have ended nothing")
    n_stopped: Fact[int] = fact("those that somebody stopped by hand")
    n_short: Fact[int] = fact("those that stop before the last step that they state, without an error")
    last_step: Fact[float] = fact("last step of the first that failed or stops short, NaN without one")
    total_steps: Fact[float] = fact("steps that it states, else NaN", label="steps stated")
    has_unknown_logs: Fact[bool] = fact("no log of steps was read, and of another log no reader knows the lines")


class _End(NamedTuple):
    """Where a log ends. ``errors``: those behind its last step, in order; ``stride``: steps from line to line."""

    training: str
    last_step: float = math.nan
    total_steps: float = math.nan
    stride: float = math.nan
    errors: pd.DataFrame = NO_ERRORS
    all_done: bool = False


def measure_endings(run: Run) -> EndingsProfile:
    """Ends of trainings. Needs the log of one; those of trials are none of these, whose own table tells of them."""
    ends = [] if len(run.trials) else _ends(run)
    if not ends and run.trials.empty:
        raise NotMeasurable("No log tells of a training.", GIVE_LOG)
    told = [_told(end) for end in ends if len(end.errors)]
    stopped = [row for row in told if row["kind"] == "stopped"]
    table = pd.DataFrame([row for row in told if row["kind"] != "stopped"], columns=[*COLUMNS, "is_nccl"])
    table = table.astype({"last_step": float, "total_steps": float, "is_open": bool})
    table["time"] = pd.to_datetime(table["time"], utc=True)
    table = table.sort_values(["is_open", "is_nccl", "time", "training"], kind="stable", ignore_index=True)[COLUMNS]
    short = [end for end in ends if end.errors.empty and end.last_step + end.stride < end.total_steps]
    places = [*zip(table["last_step"], table["total_steps"], strict=True), *(end[1:3] for end in short)]
    last, total = places[0] if places else (math.nan, math.nan)
    return EndingsProfile(
        failed=table,
        n_logs=len(ends),
        n_failed=int((~table["is_open"]).sum()),
        n_open=int(table["is_open"].sum()),
        n_stopped=len(stopped),
        n_short=len(short),
        last_step=float(last),
        total_steps=float(total),
        has_unknown_logs=bool(run.steps.empty and unknown_logs(run)),
    )


def _told(end: _End) -> dict[str, object]:
    """The error that others follow from: the first, but one of NCCL only where there is no other, for each rank that
    waits for one that died tells of it. Where all was done, the first that no program prints as it takes itself down.
    """
    behind, is_open = end.errors, not (end.errors["behind"] == 0).any()
    if end.all_done:
        grave = behind[~behind["kind"].isin(AFTERWARDS)]
        behind, is_open = (grave, is_open) if len(grave) else (behind, True)
    others = behind[behind["kind"] != "nccl"]
    error = (others if len(others) else behind).iloc[0]
    return {
        "training": end.training,
        "kind": classify(str(error["detail"])),
        "text": short_error(str(error["detail"])).rstrip("."),
        "time": error["time"],
        "last_step": end.last_step,
        "total_steps": end.total_steps,
        "is_open": is_open,
        "is_nccl": error["kind"] == "nccl",
    }


def _ends(run: Run) -> list[_End]:
    """The end of each training; without any step, of each log that tells of an error."""
    errors = run.events[run.events["kind"].isin(ENDINGS)].reindex(columns=list(NO_ERRORS))
    errors = errors.assign(behind=errors["behind"].fillna(0)).sort_values("line", kind="stable")
    if run.steps.empty:
        of_logs = errors[errors["kind"] != "gpu_lost"].groupby("path", sort=True)
        return [_End(str(path), errors=found) for path, found in of_logs]
    last_step = errors["path"].map(run.steps.groupby("path")["line"].max()).to_numpy(float, na_value=math.nan)
    errors = errors.assign(with_steps=~np.isnan(last_step))
    behind = errors[~(errors["line"].to_numpy(float, na_value=math.nan) <= last_step)]
    lines = training_logs(run).lines
    elsewhere = behind[~behind["path"].isin(lines["path"])]
    logs = [(str(log), part) for log, part in lines.groupby("log", sort=False)]
    return [_end(log, part, behind, elsewhere, alone=len(logs) == 1) for log, part in logs]


def _end(training: str, lines: pd.DataFrame, errors: pd.DataFrame, elsewhere: pd.DataFrame, *, alone: bool) -> _End:
    """By the last file of a log."""
    file = lines[lines["part"] == lines["part"].max()].sort_values("line")
    last, ahead = file.iloc[-1:], np.diff(floats(file, "step"))
    step, total, epoch = (float(floats(last, name)[0]) for name in ("step", "total", "epoch"))
    stride = float(np.median(ahead[ahead > 0])) if (ahead > 0).any() else 0.0
    path = str(last["path"].iloc[0])
    behind = errors[errors["path"] == path]
    over = (step >= total and math.isnan(epoch)) or ("then" in last and "end" in str(last["then"].iloc[0]))
    if behind.empty and not over:
        behind = _on_the_other_stream(path, elsewhere, alone=alone, is_short=step < total)
    return _End(training, step, total, stride, behind, over)


def _on_the_other_stream(path: str, errors: pd.DataFrame, *, alone: bool, is_short: bool) -> pd.DataFrame:
    """Errors in a file of the same process, such as the stderr of a job, in one that tells of the same steps, or, where
    there is one log that stops short, in the only other file that holds errors of a program. What is caught stands
    there as well, so that an exception counts only where the log stops short.
    """
    only = is_short and errors["path"].nunique() == 1 and not errors["kind"].isin(FROM_OUTSIDE).any()
    mine = [
        (alone and (told or only)) or of_one_process(path, str(other))
        for other, told in zip(errors["path"], errors["with_steps"], strict=True)
    ]
    return errors[np.array(mine, dtype=bool) & (is_short | ~errors["kind"].isin(AFTERWARDS))]
