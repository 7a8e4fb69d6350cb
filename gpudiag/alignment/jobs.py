"""The clock of a scheduler beside the telemetry's: what logs and GPUs show of a job lies within the job."""

from __future__ import annotations

import math
from dataclasses import replace

from gpudiag._run.allocated_gpus import are_jobs
from gpudiag.alignment.job_ends import EARLY_S, Pinned, outside_s, pinned_ends
from gpudiag.alignment.job_logs import Bounds, bounds_by_logs
from gpudiag.alignment.judge import LOBE_S
from gpudiag.alignment.signals import SampleTimes
from gpudiag.run import ClockRecord, Run
from gpudiag.statement import Statement
from gpudiag.timezones import quarters_s

BY_LOGS, BY_ENDS = "logs", "ends"
WITHIN = (
    "The lines of {n:log} lie within the jobs that the files name. So the clocks lie less than {most_s} apart, and are "
    "taken as they are."
)
BESIDE = (
    "The lines of {n:log} lie outside the jobs that the files name. They lie within them if the jobs' clock is "
    "{low_s} to {high_s} {way}."
)
AT_ENDS = "GPU memory falls at the end of {n} of {n_ends:job}, so the clocks are taken as they are."
FALLS = "GPU memory falls {low_s} to {high_s} {side} the recorded end of {n} of {n_ends:job}, and of few at any other."
STATE = "{evidence} If the clocks differ so, state clock_offset_s = {stated} in run.toml."
INSIDE = "No GPU worked or held memory outside the jobs. Equal clocks are assumed."
OUTSIDE = "GPUs worked or held memory for {outside_s} outside all jobs. The clocks differ, or jobs are not listed."


def with_jobs(run: Run, samples: SampleTimes, record: ClockRecord) -> ClockRecord:
    """The record with what is known of jobs of a scheduler beyond the fit to the telemetry.

    Few jobs fit telemetry no better than chance would. But nothing of a job happens before its start or after its end:
    logs that name their jobs bound the offset, and memory falls where their processes end. What shows a whole quarter
    of an hour is applied; seconds are told. Where nothing shows a difference, equal clocks are assumed, as for a pair
    of trials.
    """
    if record.method in ("given", "utc") or record.parts or not are_jobs(run.trials).all():
        return record
    bounds = bounds_by_logs(run, samples.period_s)
    if bounds is not None:
        return _by_logs(record, bounds)
    if record.confidence == "strong" and (record.applied_s or not record.apart_s):
        return record
    pinned = pinned_ends(run, samples)
    if pinned is not None:
        return _by_ends(record, pinned)
    if record.confidence != "undetermined":
        return record
    out_s = outside_s(run, samples)
    if out_s:
        return replace(record, evidence=Statement(OUTSIDE, outside_s=out_s))
    return replace(record, confidence="assumed", evidence=Statement(INSIDE))


def _by_logs(record: ClockRecord, bounds: Bounds) -> ClockRecord:
    if bounds.as_shown:
        most_s = max(abs(bounds.low_s), abs(bounds.high_s))
        return _shown(record, BY_LOGS, 0.0, Statement(WITHIN, n=bounds.n, most_s=most_s))
    low_s, high_s = sorted((abs(bounds.low_s), abs(bounds.high_s)))
    way = "ahead" if bounds.high_s < 0 else "behind"
    evidence = Statement(BESIDE, n=bounds.n, low_s=low_s, high_s=high_s, way=way)
    if not math.isnan(bounds.quarter_s):
        return _shown(record, BY_LOGS, bounds.quarter_s, evidence)
    return _apart(record, BY_LOGS, bounds.low_s, bounds.high_s, evidence)


def _by_ends(record: ClockRecord, pinned: Pinned) -> ClockRecord:
    if not pinned.lag_s:
        return _shown(record, BY_ENDS, 0.0, Statement(AT_ENDS, n=pinned.n, n_ends=pinned.n_ends))
    far_s, side = abs(pinned.lag_s), "after" if pinned.lag_s > 0 else "before"
    low_s, high_s = far_s - pinned.within_s, far_s + pinned.within_s
    evidence = Statement(FALLS, low_s=low_s, high_s=high_s, side=side, n=pinned.n, n_ends=pinned.n_ends)
    whole_s = quarters_s(pinned.lag_s)
    if whole_s and abs(pinned.lag_s - whole_s) <= EARLY_S:
        return _shown(record, BY_ENDS, whole_s, evidence)
    return _apart(record, BY_ENDS, pinned.lag_s - pinned.within_s, pinned.lag_s + pinned.within_s, evidence)


def _shown(record: ClockRecord, method: str, offset_s: float, evidence: Statement) -> ClockRecord:
    return replace(
        record,
        offset_s=offset_s,
        applied_s=offset_s,
        confidence="strong",
        method=method,
        evidence=evidence,
        apart_s=0.0,
    )


def _apart(record: ClockRecord, method: str, low_s: float, high_s: float, evidence: Statement) -> ClockRecord:
    """An offset between these bounds: the whole quarter of an hour that lies beside it is applied, seconds are told."""
    middle_s = (low_s + high_s) / 2
    told = Statement(STATE, evidence=evidence, stated=str(round(middle_s)))
    whole_s = quarters_s(middle_s)
    if whole_s and abs(middle_s - whole_s) <= LOBE_S:
        beside_s = max(abs(low_s - whole_s), abs(high_s - whole_s))
        return replace(_shown(record, method, whole_s, told), apart_s=beside_s)
    leaning = replace(record, offset_s=middle_s, applied_s=0.0, confidence="weak", method=method)
    return replace(leaning, evidence=told, apart_s=max(abs(low_s), abs(high_s)))
