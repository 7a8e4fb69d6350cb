"""How the clock of the trials stands to the clock of the telemetry, as established when the run was loaded."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures.base import Profile, need_gpu, need_trials
from gpudiag.memo import memoized
from gpudiag.run import ClockRecord, Run
from gpudiag.statement import Statement


class ClockCandidate(Row):
    """An offset that was tried, in order of the offset; none where nothing was compared."""

    offset_s: Column[float] = column("offset")
    fit: Column[float] = column("correlation of telemetry and trials at that offset")


class ClockPart(Row):
    """A part of a study that changes its clock on the way."""

    study: Column[str] = column("study")
    first_trial: Column[int] = column("its first trial")
    offset_s: Column[float] = column("its offset")


class ClockNote(Row):
    """A remark."""

    note: Column[Statement] = column("what else is odd")


class ClockProfile(Profile, topic="clock"):
    """How the clock of trials, or of logs, lies to that of the telemetry: trials + ``offset_s`` = telemetry."""

    candidates: Rows = table_of(ClockCandidate)
    parts: Rows = table_of(ClockPart)
    notes: Rows = table_of(ClockNote)
    offset_s: Fact[float] = fact("offset found", label="offset found")
    applied_s: Fact[float] = fact("what was added to the timestamps of the trials or logs", label="offset applied")
    confidence: Fact[str] = fact("strong, weak, assumed or undetermined", label="confidence")
    method: Fact[str] = fact("given, utc, correlation, logs or ends (of jobs), none, no date or not examined")
    evidence: Fact[Statement] = fact("what it rests on, in words")
    exact: Fact[bool] = fact(
        "starts and ends of trials may be read off the telemetry to the second, as far as the data show"
    )
    doubt_s: Fact[float] = fact(
        "how far from there they may lie else; infinite where nobody knows", label="apart by up to"
    )
    set_by_s: Fact[float] = fact(
        "by how much the trials' clock was set forward within the study, negative: back; NaN where no step is shown",
        label="step of the clock",
    )
    joined: Fact[bool] = fact("trials and telemetry share time; the steps of a log lie on work of the GPUs")
    of_log: Fact[bool] = fact("the clock is that of training logs, for there are no trials")


@memoized
def measure_clock(run: Run) -> ClockProfile:
    """The record of the clock. Needs trials with a start, or logs with timestamps, and telemetry."""
    of_log = run.info.logs_clock.method != ClockRecord().method
    if not of_log:
        need_trials(run, "start")
    need_gpu(run, "time")
    clock = run.info.logs_clock if of_log else run.info.clock
    candidates = np.array(clock.candidates, float).reshape(-1, 2)
    return ClockProfile(
        candidates=pd.DataFrame(candidates, columns=["offset_s", "fit"]),
        parts=pd.DataFrame(clock.parts, columns=["study", "first_trial", "offset_s"]),
        notes=pd.DataFrame({"note": list(clock.notes)}),
        offset_s=clock.offset_s,
        applied_s=clock.applied_s,
        confidence=clock.confidence,
        method=clock.method,
        evidence=clock.evidence,
        exact=clock.exact,
        doubt_s=clock.doubt_s,
        set_by_s=clock.step.size_s if clock.step else float("nan"),
        joined=clock.joined,
        of_log=of_log,
    )
