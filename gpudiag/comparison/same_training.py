"""Whether two trainings without trials count the same work by the step (check 1), are two (3), and ended alike (8)."""

from __future__ import annotations

import math

import pandas as pd

from gpudiag.comparison.check import FAIL, PASS, UNKNOWN, GateCheck
from gpudiag.comparison.logged_steps import Logged, logged
from gpudiag.comparison.side import Side
from gpudiag.comparison.step_work import n_gpus
from gpudiag.comparison.steps import SAME_STEPS
from gpudiag.errors import NotMeasurable
from gpudiag.measures.endings import EndingsProfile
from gpudiag.measures.steps import measure_steps
from gpudiag.statement import NOTHING, Statement, joined

SAME_LINES = 0.95
"""Part of the lines of the shorter log that stand in the other at the same time, from which on it is the same log."""
LEAST_LINES = 6
OTHER_WORK = "A step of {b} is {times} times the {unit}s of one of {a}: the time of {of} is compared."
SAME_STEP = "Both logs count {unit}s, of as many {what}s each."
STEP_UNKNOWN = "Both logs count {unit}s. Whether one is the same work in both (batch, tokens), the logs do not say."
STATE = (
    "How many samples or tokens of all GPUs together a step is, nothing says, and {which}: a step may be other work. "
    "State tokens_per_step under [training] of each run.toml, or log the global batch size."
)
UNTIMED = "How long a step of {side} takes is not known: {why}"
OTHER_UNITS = "One log counts {a}s and the other {b}s."
OTHER_LINES = "The lines of the two logs are of different kinds, so their steps may not be the same."
SAME_LOG = (
    "{n_same} of {n} lines on steps have the same step and time in both: {which}, and there is nothing to compare."
)
SAME_FILE = "A log is the same file in both: they are the same run, and there is nothing to compare."
TWO_LOGS = "The lines of the two logs have other times."
ONE_DIED = "{side} ended with an error{place}: {text}; {other} did not."
BOTH_DIED = "Both trainings ended with an error."
NONE_DIED = "Neither training ended with an error."
NOT_ENDED = "Nothing says how the training of {sides} ended; it may go on."
STOPS = "The log of {side} stops at step {step} of {total} without an error: the training was cut, or goes on."
STOPPED = "The training of {side} was ended by a scheduler, a time limit or a user."
DIED = "the training of one ended with an error"
BASELINE_DIED = "only the baseline's training ended with an error"
ONE_CUT = "only one training came to its last step"
FAILED, CUT, OPEN, DONE = "failed", "cut", "open", "done"


def same_step(baseline: Side, experiment: Side) -> GateCheck | None:
    """Whether a step is the same work in both logs, or how much more; None where a run has no log of steps."""
    found = logged(baseline, experiment)
    if any(part.empty for part in found.lines):
        untimed = [why for side in found.sides if (why := _untimed(side))]
        return GateCheck("same-unit", UNKNOWN, joined(*untimed)) if untimed else None
    units = [str(part["unit"].iloc[0]) for part in found.lines]
    if not found.comparable:
        why = Statement(OTHER_UNITS, a=units[0], b=units[1]) if units[0] != units[1] else Statement(OTHER_LINES)
        return GateCheck("same-unit", UNKNOWN, why)
    if found.work is None:
        apart = _apart(found) if units[0] == "step" else []
        if apart:
            return GateCheck("same-unit", FAIL, Statement(STATE, which=joined(*apart, by=", and ")))
        return GateCheck("same-unit", UNKNOWN, Statement(STEP_UNKNOWN, unit=units[0]))
    if not found.other_work:
        return GateCheck("same-unit", PASS, Statement(SAME_STEP, unit=units[0], what=found.work.unit))
    names = {"a": baseline.name, "b": experiment.name, "unit": found.work.unit, "of": found.per_step[1]}
    return GateCheck("same-unit", PASS, Statement(OTHER_WORK, times=found.work.ratio, **names))


def _untimed(side: Side) -> Statement:
    """Why the steps in the log of a training have no times; nothing where there are none, or they do."""
    if not side.run.trials.empty or side.run.steps.empty:
        return NOTHING
    try:
        side.analysis[measure_steps]
    except NotMeasurable as error:
        return Statement(UNTIMED, side=side.name, why=error.reason)
    return NOTHING


def _apart(found: Logged) -> list[Statement]:
    """What is set up so differently that a step may be other work."""
    out = []
    gpus = [n_gpus(side) for side in found.sides]
    if gpus[0] != gpus[1] and not math.isnan(sum(gpus)):
        out.append(Statement("{a} and {b} GPUs worked", a=int(gpus[0]), b=int(gpus[1])))
    totals = [float(part["total"].astype(float).max()) for part in found.lines]
    if all(n > 0 for n in totals) and not math.isclose(*totals, rel_tol=SAME_STEPS):
        out.append(Statement("the trainings are of {a} and {b} steps", a=int(totals[0]), b=int(totals[1])))
    return out


def same_log(baseline: Side, experiment: Side) -> GateCheck | None:
    """Whether the steps of both were logged at the same times; None where a run has no log of steps."""
    files = [_files(side) for side in (baseline, experiment)]
    if not all(files):
        return None
    a, b = (_moments(side) for side in (baseline, experiment))
    n, n_same = min(len(a), len(b)), len(a.merge(b))
    if n >= LEAST_LINES and n_same >= SAME_LINES * n:
        whole = max(len(a), len(b)) <= n_same / SAME_LINES
        which = "they are the same run" if whole else "one run is a part of the other"
        return GateCheck("not-a-subset", FAIL, Statement(SAME_LOG, n_same=n_same, n=n, which=which))
    if files[0] & files[1]:
        return GateCheck("not-a-subset", FAIL, Statement(SAME_FILE))
    return GateCheck("not-a-subset", PASS, Statement(TWO_LOGS)) if n >= LEAST_LINES else None


def _moments(side: Side) -> pd.DataFrame:
    """Steps with the time at which they were logged, each once."""
    return side.run.steps.reindex(columns=["time", "step"]).dropna().drop_duplicates()


def _files(side: Side) -> set[str]:
    """The logs of steps by their content; by their paths where that is not known."""
    paths = tuple(side.run.steps["path"].dropna().unique()) if len(side.run.steps) else ()
    known = [record for record in side.run.info.inputs if any(f"/{path}".endswith(f"/{record.path}") for path in paths)]
    return {record.sha256 for record in known if record.sha256} or set(paths)


def same_end(baseline: Side, experiment: Side) -> GateCheck | None:
    """Whether both trainings came to their end, or neither; None where neither log nor recording tells."""
    sides = (baseline, experiment)
    known = [end for side in sides if (end := side.get("endings")) is not None and not end.has_trials]
    if len(known) < len(sides) or not all(end.n_logs or end.n_recorded for end in known):
        return None
    how = [_how(end) for end in known]
    if FAILED in how:
        if how[0] == how[1]:
            return GateCheck("equal-success", UNKNOWN, Statement(BOTH_DIED))
        return _one_died(sides, known, how.index(FAILED))
    if OPEN in how:
        names = " and of ".join(side.name for side, one in zip(sides, how, strict=True) if one == OPEN)
        return GateCheck("equal-success", UNKNOWN, Statement(NOT_ENDED, sides=names))
    cut = [_cut(side, end) for side, end, one in zip(sides, known, how, strict=True) if one == CUT]
    if not cut:
        return GateCheck("equal-success", PASS, Statement(NONE_DIED))
    status = FAIL if len(cut) < len(sides) else UNKNOWN
    return GateCheck("equal-success", status, joined(*cut), ONE_CUT)


def _how(end: EndingsProfile) -> str:
    """How a training without trials ended."""
    if end.n_failed:
        return FAILED
    if end.n_short or end.n_outside or end.n_stopped:
        return CUT
    return OPEN if end.n_unended else DONE


def _one_died(sides: tuple[Side, Side], ends: list[EndingsProfile], place: int) -> GateCheck:
    side, other, end = sides[place], sides[1 - place], ends[place]
    at = NOTHING if math.isnan(end.last_step) else Statement(" after step {step}", step=int(end.last_step))
    text = str(end.failed["text"].iloc[0]).rstrip(".")
    why = Statement(ONE_DIED, side=side.name, place=at, text=text, other=other.name)
    return GateCheck("equal-success", FAIL, why, DIED if place else BASELINE_DIED)


def _cut(side: Side, end: EndingsProfile) -> Statement:
    """A training that was ended from outside, or whose log stops."""
    if not end.n_short or math.isnan(end.total_steps):
        return Statement(STOPPED, side=side.name)
    return Statement(STOPS, side=side.name, step=int(end.last_step), total=int(end.total_steps))


def died(side: Side) -> bool:
    """Whether a training without trials ended with an error."""
    end = side.get("endings")
    return end is not None and end.n_failed > 0 and not end.has_trials
