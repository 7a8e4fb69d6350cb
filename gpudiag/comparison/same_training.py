"""Whether two trainings without trials count the same work by the step (check 1), are two (3), and ended alike (8)."""

from __future__ import annotations

import math

import pandas as pd

from gpudiag.comparison.check import FAIL, PASS, UNKNOWN, GateCheck
from gpudiag.comparison.logged_steps import Logged, logged
from gpudiag.comparison.side import Side
from gpudiag.comparison.step_work import n_gpus
from gpudiag.comparison.steps import SAME_STEPS
from gpudiag.measures.endings import EndingsProfile
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
DIED = "the training of one ended with an error"


def same_step(baseline: Side, experiment: Side) -> GateCheck | None:
    """Whether a step is the same work in both logs, or how much more; None where a run has no log of steps."""
    found = logged(baseline, experiment)
    if any(part.empty for part in found.lines):
        return None
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


def _apart(found: Logged) -> list[Statement]:
    """What is set up so differently that a step may be other work."""
    out = []
    gpus = [n_gpus(side) for side in found.sides]
    if gpus[0] != gpus[1] and not math.isnan(sum(gpus)):
        out.append(Statement("{a} and {b} GPUs worked", a=int(gpus[0]), b=int(gpus[1])))
    totals = [float(part["total"].astype(float).max()) for part in found.lines]
    if totals[0] > 0 and abs(totals[1] / totals[0] - 1) > SAME_STEPS:
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
    ends = [side.get("endings") for side in (baseline, experiment)]
    known = [end for end in ends if end is not None and _tells(end)]
    if len(known) < len(ends):
        return None
    failed = [bool(end.n_failed) for end in known]
    if not any(failed):
        return GateCheck("equal-success", PASS, Statement(NONE_DIED))
    if all(failed):
        return GateCheck("equal-success", UNKNOWN, Statement(BOTH_DIED))
    (side, other), end = ((baseline, experiment), known[0]) if failed[0] else ((experiment, baseline), known[1])
    place = NOTHING if math.isnan(end.last_step) else Statement(" after step {step}", step=int(end.last_step))
    text = str(end.failed["text"].iloc[0]).rstrip(".")
    why = Statement(ONE_DIED, side=side.name, place=place, text=text, other=other.name)
    return GateCheck("equal-success", FAIL, why, DIED)


def _tells(end: EndingsProfile) -> bool:
    """Whether it is known that a training without trials came to its own end, or failed."""
    is_cut = end.n_short or end.n_outside or end.n_stopped or end.n_unended
    return bool((end.n_logs or end.n_recorded) and not end.has_trials and (end.n_failed or not is_cut))


def died(side: Side) -> bool:
    """Whether a training without trials ended with an error."""
    end = side.get("endings")
    return end is not None and end.n_failed > 0 and not end.has_trials
