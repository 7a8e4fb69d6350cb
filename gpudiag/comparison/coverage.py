"""Whether the telemetry belongs to the job (check 5): it covers it, and not much else."""

from __future__ import annotations

import math

from gpudiag.comparison.check import FAIL, PASS, UNKNOWN, GateCheck, GateFinding, worst
from gpudiag.comparison.consistency import needed_util_pct
from gpudiag.comparison.differences import pollers_agree
from gpudiag.comparison.side import Side
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.coverage import coverage_pct, least_pct
from gpudiag.measures._time.expected import logged_window
from gpudiag.statement import Statement

LEAST_COVER_PCT = 90.0
MOST_OUTSIDE_PCT = 10.0
"""METHODS 7, check 5."""
COVERS = "Telemetry of {side} covers {cover_pct:exact} of the job ({job_s}); {outside_pct:exact} of it lies outside"
OF_THE_STEPS = "Telemetry of {side} covers {cover_pct:exact} of the steps in its log: its means are those of a part."
NOT_OF_THE_JOB = (
    "{seen}. {gpu} averaged {mean_pct:exact} over all of it, for which the job alone would have needed {needed_pct}: "
    "it belongs to something else."
)


def telemetry_covers_job(baseline: Side, experiment: Side) -> GateCheck:
    """5. Overlap of 90 % or more and less than 10 % outside, on both sides; and nothing that needs over 100 %."""
    found = [finding(side) for side in (baseline, experiment)]
    agree, why = pollers_agree(baseline, experiment)
    if agree is False:
        found.append((PASS, Statement("{why} Peaks of different pollers are not comparable; means are.", why=why)))
    return worst("telemetry-covers-job", found)


def finding(side: Side) -> GateFinding:
    """How far the telemetry of one run belongs to its job."""
    return side.memo.once("coverage", lambda: _finding(side))


def _finding(side: Side) -> GateFinding:
    sampling = side.get("sampling")
    if sampling is None:
        return UNKNOWN, Statement("{side} has no GPU telemetry.", side=side.name)
    if side.run.trials.empty:
        if (steps_pct := steps_cover_pct(side)) < LEAST_COVER_PCT:
            return FAIL, Statement(OF_THE_STEPS, side=side.name, cover_pct=steps_pct)
        return UNKNOWN, Statement("{side} has no trials or tasks that its telemetry could cover.", side=side.name)
    if side.window is None:
        return UNKNOWN, Statement("In {side} the clocks of telemetry and tasks cannot be joined.", side=side.name)
    cover, outside = float(sampling.coverage_pct), max(float(sampling.outside_pct), 0.0)
    job_s = side.wall_s if math.isfinite(side.wall_s) else "of unknown length"
    seen = Statement(COVERS, side=side.name, cover_pct=cover, job_s=job_s, outside_pct=outside)
    needed = needed_util_pct(side)
    if cover < LEAST_COVER_PCT or math.isnan(cover):
        return FAIL, Statement("{seen}: its means are those of a part.", seen=seen)
    if needed is not None and needed[1] > 100:
        gpu, needed_pct, mean_pct, _ = needed
        return FAIL, Statement(NOT_OF_THE_JOB, seen=seen, gpu=gpu, mean_pct=mean_pct, needed_pct=needed_pct)
    if outside >= MOST_OUTSIDE_PCT:
        return FAIL, Statement("{seen}: means of the whole log are not the job's.", seen=seen)
    return PASS, Statement("{seen}.", seen=seen)


def steps_cover_pct(side: Side) -> float:
    """Part of the time in which its log tells of steps that telemetry covers, the least of the GPUs; NaN not known."""
    logged = logged_window(side.run)
    return least_pct(coverage_pct(side.run, cells(side.run), logged).values()) if logged else math.nan


def usable(side: Side) -> bool:
    """Whether means over the job's own time are the job's: it is covered, and what lies outside was not busy."""
    status, _ = finding(side)
    if status == PASS:
        return True
    sampling, needed = side.get("sampling"), needed_util_pct(side)
    if sampling is None or side.window is None:
        return side.run.trials.empty and sampling is not None and status != FAIL
    return bool(sampling.coverage_pct >= LEAST_COVER_PCT) and not (needed is not None and needed[1] > 100)
