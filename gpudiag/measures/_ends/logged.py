"""Where the logs of trainings end: by the errors behind their last steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag._run.allocated_gpus import are_jobs
from gpudiag._run.failure_text import classify
from gpudiag.measures._ends.reasons import OF_OTHERS, reason_of
from gpudiag.measures._ends.recorded import recorded_paths
from gpudiag.measures._steps.lines import floats
from gpudiag.measures._steps.log_files import may_be_one, of_one_process
from gpudiag.measures._steps.logs import training_logs
from gpudiag.measures._trials.error_texts import short_error
from gpudiag.readers._batches.log_lines import ENDINGS
from gpudiag.run import Run

OF_SCHEDULERS = ("time_limit", "canceled")
AFTERWARDS = ("raised", "exited", "nccl", *OF_SCHEDULERS)
"""What may come of a training that is done: what a program prints as it takes itself down, and the end of its job."""
_NO_CAUSE = ("nccl", "exited")
"""What follows from an error: each rank that waits for one that died tells of it, and the launcher of each process."""
_KIND_OF = {"time_limit": "time_limit", "killed": "host_killed"}
FROM_OUTSIDE = ("killed", "gpu_lost")
"""What the kernel logs of any program."""
NO_ERRORS = pd.DataFrame(columns=["path", "line", "kind", "detail", "time", "behind"])


class LogEnd(NamedTuple):
    """Where a log ends. ``errors``: those behind its last step, in order; ``stride``: steps from line to line;
    ``begun`` and ``time``: of its first and its last step, NaT unknown.
    """

    training: str
    last_step: float = math.nan
    total_steps: float = math.nan
    stride: float = math.nan
    errors: pd.DataFrame = NO_ERRORS
    all_done: bool = False
    time: pd.Timestamp = pd.NaT
    begun: pd.Timestamp = pd.NaT

    @property
    def is_short(self) -> bool:
        """Whether it stops before the last step that it states, and tells of no error and no end of its own."""
        return self.errors.empty and not self.all_done and self.last_step + self.stride < self.total_steps


def told(end: LogEnd) -> dict[str, object]:
    """The error that others follow from: the first, but one of _NO_CAUSE only where there is no other, or a scheduler
    ended what was left of the job. Where all was done, the first that does not come of a training that is done.
    """
    behind = end.errors
    is_open = not ((behind["behind"] == 0) | (behind["kind"] == "diverged")).any()  # it says that it stops
    if end.all_done:
        grave = behind[~behind["kind"].isin(AFTERWARDS)]
        behind, is_open = (grave, is_open) if len(grave) else (behind, True)
    causes = behind[~behind["kind"].isin(_NO_CAUSE)]
    error = (behind if causes.empty or causes["kind"].iloc[0] in OF_SCHEDULERS else causes).iloc[0]
    detail, logged = str(error["detail"]), str(error["kind"])
    reason, found = reason_of(detail) if logged in OF_SCHEDULERS else "", classify(detail)
    return {
        "training": end.training,
        "kind": reason or (_KIND_OF.get(logged, found) if found in ("other", "unknown") else found),
        "text": short_error(detail).rstrip("."),
        "time": error["time"],
        "last_step": end.last_step,
        "total_steps": end.total_steps,
        "is_open": is_open,
        "is_held": end.all_done and logged in OF_SCHEDULERS,
        "is_nccl": logged == "nccl",
        "is_canceled": reason in OF_OTHERS,
    }


def rerun_of(log: LogEnd, others: Sequence[LogEnd]) -> str:
    """The file of a log that began behind the end of this one and did all of the same steps; '' where there is none."""
    done = [
        one.training
        for one in others
        if one.all_done and one.begun > log.time and one.total_steps == log.total_steps <= one.last_step
        and may_be_one(log.training, one.training)
    ]  # fmt: skip
    return done[0] if done else ""


def log_ends(run: Run) -> list[LogEnd]:
    """The end of each training; without any step, of each log that tells of an error. What a scheduler's list of jobs
    says of one of them is no line of a log.
    """
    errors = run.events[run.events["kind"].isin(ENDINGS)].reindex(columns=list(NO_ERRORS))
    errors = errors[~errors["path"].isin({*recorded_paths(run), *_lists_of_jobs(run)})]
    errors = errors.assign(behind=errors["behind"].fillna(0)).sort_values("line", kind="stable")
    last_step = errors["path"].map(run.steps.groupby("path")["line"].max()).to_numpy(float, na_value=math.nan)
    errors = errors.assign(with_steps=~np.isnan(last_step))
    behind = errors[~(errors["line"].to_numpy(float, na_value=math.nan) <= last_step)]
    lines = training_logs(run).lines
    if lines.empty:
        of_logs = behind[behind["kind"] != "gpu_lost"].groupby("path", sort=True)
        return [LogEnd(str(path), errors=found) for path, found in of_logs]
    elsewhere = behind[~behind["path"].isin(lines["path"])]
    logs = [(str(log), part) for log, part in lines.groupby("log", sort=False)]
    return [_end(log, part, behind, elsewhere, alone=len(logs) == 1) for log, part in logs]


def _lists_of_jobs(run: Run) -> set[str]:
    jobs = run.trials["study"][are_jobs(run.trials)] if len(run.trials) else []
    return set(run.studies["source"][run.studies["study"].isin(jobs)].dropna()) if "source" in run.studies else set()


def _end(training: str, lines: pd.DataFrame, errors: pd.DataFrame, elsewhere: pd.DataFrame, *, alone: bool) -> LogEnd:
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
    return LogEnd(training, step, total, stride, behind, over, last["time"].max(), lines["time"].min())


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
