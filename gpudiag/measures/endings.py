"""How trainings ended, by their logs and by recordings of their commands: with an error, cut, or as they should."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from gpudiag._run.allocated_gpus import of_a_search
from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._ends.how import NOTHING, How
from gpudiag.measures._ends.logged import LogEnd, log_ends, rerun_of, told
from gpudiag.measures._ends.recorded import Recorded, recorded
from gpudiag.measures.base import Profile
from gpudiag.measures.inputs import unknown_logs
from gpudiag.measures.steps import GIVE_LOG
from gpudiag.memo import memoized
from gpudiag.run import Run

COLUMNS = ["training", "kind", "by", "text", "time", "last_step", "total_steps", "outcome", "rerun"]
FAILED, OUTSIDE, HELD, OPEN, WENT_ON = OUTCOMES = ("failed", "outside", "held", "open", "went_on")
"""The gravest first."""
_ORDER = {name: place for place, name in enumerate((*OUTCOMES, "log", "exception"))}


class TrainingEnd(Row):
    """An end of a training that was not its own: an error behind its last step, or the end of a recorded command."""

    training: Column[str] = column(
        "file of the log, the first where it goes on in others, or of the recording", label="training"
    )
    kind: Column[str] = column("one of CLASSES of failures, or of REASONS for which a scheduler ends a job")
    by: Column[str] = column("what tells of it: log, or of a recording exit_code, signal or exception")
    text: Column[str] = column("the error, short", label="error")
    time: Column[pd.Timestamp] = column("when it was logged; NaT where its line has no timestamp")
    last_step: Column[float] = column("last step logged before it; NaN without one", label="last step logged")
    total_steps: Column[float] = column("steps that the log states; NaN unknown", label="steps stated")
    outcome: Column[str] = column(
        "failed; outside: ended by a scheduler, a time limit or a user; held: all was done, but the job went on until "
        "one of these ended it; open: it may have ended nothing, for ordinary lines follow, or all was done, and a "
        "program may fail so as it takes itself down, too; went_on: another was started after it"
    )
    rerun: Column[str] = column("file of a later log that did all of its steps, '' without one")


class EndingsProfile(Profile, topic="endings"):
    """How trainings ended, those without a list of trials, and recorded commands."""

    failed: Rows = table_of(TrainingEnd)
    n_logs: Fact[int] = fact("logs of trainings", label="logs of trainings")
    n_recorded: Fact[int] = fact("recorded commands after which none was started", label="recorded commands")
    n_failed: Fact[int] = fact("of both those that end with an error", label="ends with an error")
    n_failed_recorded: Fact[int] = fact("recorded commands among these; their failures count where no log tells of one")
    n_outside: Fact[int] = fact("those that a scheduler, a time limit or a user ended")
    n_held: Fact[int] = fact("those that went on when all was done, until they were ended")
    n_open: Fact[int] = fact("those with an error behind the last step that may have ended nothing")
    n_went_on: Fact[int] = fact("those after which another was started")
    n_stopped: Fact[int] = fact("those that somebody stopped by hand")
    n_short: Fact[int] = fact("logs that stop before the last step that they state, without an error")
    n_done: Fact[int] = fact("recorded commands with exit code 0")
    n_unended: Fact[int] = fact("recorded commands without an end, where no log says how it was")
    last_step: Fact[float] = fact("last step of the first that failed or stops short, NaN without one")
    total_steps: Fact[float] = fact("steps that it states, else NaN", label="steps stated")
    has_unknown_logs: Fact[bool] = fact("no log of steps was read, and of another log no reader knows the lines")
    has_trials: Fact[bool] = fact("there are trials of a search, so that only recorded commands are looked at")


@memoized
def measure_endings(run: Run) -> EndingsProfile:
    """Ends of trainings. Needs the log of one, or a recorded command. Logs of trials are none of these, whose own
    table tells of them; those of jobs of a scheduler are.
    """
    has_trials = len(of_a_search(run.trials)) > 0
    logs = [] if has_trials else log_ends(run)
    last, earlier = _known(run, of_trials=has_trials)
    if not (logs or last or earlier or has_trials):
        raise NotMeasurable("No log tells of a training, and no recording of a command.", GIVE_LOG)
    rows = [_by_log(log, last, logs) for log in logs if len(log.errors)]
    stopped = [row for row in rows if row["kind"] == "stopped"]
    n_stopped = max(len(stopped), sum(one.end.how is How.BY_HAND for one in last))
    is_told = any(row["outcome"] in (FAILED, OUTSIDE) for row in rows)
    rows = [row for row in rows if row["kind"] != "stopped"]
    rows += [] if is_told else _by_recordings(last, logs)
    table = _table(rows + [_row(one, WENT_ON) for one in earlier])
    is_cut = any(one.end.how in (How.FAILED, How.OUTSIDE, How.BY_HAND) for one in last)
    short = [] if is_cut else [log for log in logs if log.is_short]
    places = [*zip(table["last_step"], table["total_steps"], strict=True), *(log[1:3] for log in short)]
    step, total = places[0] if places else (math.nan, math.nan)
    n = {outcome: int((table["outcome"] == outcome).sum()) for outcome in OUTCOMES}
    return EndingsProfile(
        failed=table,
        n_logs=len(logs),
        n_recorded=len(last),
        n_failed=n[FAILED],
        n_failed_recorded=int((table["outcome"].eq(FAILED) & table["by"].ne("log")).sum()),
        n_outside=n[OUTSIDE],
        n_held=n[HELD],
        n_open=n[OPEN],
        n_went_on=n[WENT_ON],
        n_stopped=n_stopped,
        n_short=len(short),
        n_done=sum(one.end.how is How.DONE for one in last),
        n_unended=0 if stopped or _all_done(logs) else sum(one.is_open for one in last),
        last_step=float(step),
        total_steps=float(total),
        has_unknown_logs=bool(run.steps.empty and unknown_logs(run)),
        has_trials=has_trials,
    )


def _known(run: Run, *, of_trials: bool) -> tuple[list[Recorded], list[Recorded]]:
    """Recorded programs of whose end something is known or missing, and the earlier ones that were cut. Beside trials
    only commands that are the last: what became of a trial is in its own table.
    """
    last, earlier = recorded(run)
    last = [one for one in last if one.is_open or one.end is not NOTHING]
    earlier = [one for one in earlier if one.end.how in (How.FAILED, How.OUTSIDE)]
    return ([one for one in last if one.of_command], []) if of_trials else (last, earlier)


def _by_log(log: LogEnd, last: Sequence[Recorded], logs: Sequence[LogEnd]) -> dict[str, object]:
    """The row of a log that ends in an error. One behind which a command that was started came to its end, or a log
    tells of all of its steps, tells of an earlier try.
    """
    row = told(log)
    time = log.time if pd.isna(row["time"]) else row["time"]
    went_on = len(last) > 0 and all(one.end.how is How.DONE and bool(one.start > time) for one in last)
    rerun = rerun_of(log, logs)
    is_open, is_canceled, is_held = (row.pop(name) for name in ("is_open", "is_canceled", "is_held"))
    ended = HELD if is_held else OPEN if is_open else OUTSIDE if is_canceled else FAILED
    return row | {"by": "log", "outcome": WENT_ON if went_on or rerun else ended, "rerun": rerun}


def _by_recordings(last: Sequence[Recorded], logs: Sequence[LogEnd]) -> list[dict[str, object]]:
    """The rows of programs that failed or were ended. What a log calls done was not cut, but may fail behind it."""
    log, all_done = (logs[0] if len(logs) == 1 else LogEnd("")), _all_done(logs)
    failed = [one for one in last if one.end.how is How.FAILED]
    ended = [one for one in last if one.end.how is How.OUTSIDE and not all_done]
    rows = [_row(one, OPEN if all_done and one.end.is_way_down else FAILED, log) for one in failed]
    return rows + [_row(one, OUTSIDE, log) for one in ended]


def _all_done(logs: Sequence[LogEnd]) -> bool:
    return len(logs) > 0 and all(log.all_done for log in logs)


def _row(one: Recorded, outcome: str, log: LogEnd | None = None) -> dict[str, object]:
    steps = {"last_step": log.last_step, "total_steps": log.total_steps} if log else {}
    end = one.end
    return {
        "training": one.path, "kind": end.kind, "by": end.by, "text": end.text, "time": one.time, "outcome": outcome,
        "rerun": "",
    } | steps  # fmt: skip


def _table(rows: Sequence[dict[str, object]]) -> pd.DataFrame:
    """The gravest first, and of these the cause before what follows from it."""
    table = pd.DataFrame(list(rows), columns=[*COLUMNS, "is_nccl"]).astype({"last_step": float, "total_steps": float})
    table["time"] = pd.to_datetime(table["time"], utc=True)
    table["order"] = table["outcome"].map(_ORDER)
    table["kind_of_source"] = table["by"].map(_ORDER).fillna(len(_ORDER))
    table["is_nccl"] = table["is_nccl"].eq(True)
    order = ["order", "kind_of_source", "is_nccl", "time", "training"]
    return table.sort_values(order, kind="stable", ignore_index=True)[COLUMNS]
