"""A clock that was set within a study: put right where the data determine it; else nothing is joined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from gpudiag.alignment.apply import behind
from gpudiag.alignment.judge import Judgement
from gpudiag.alignment.places import Places
from gpudiag.alignment.scan import REACH_S
from gpudiag.alignment.signals import SampleTimes, make_grid, starts_and_ends, trial_signals
from gpudiag.alignment.steps import JUST_S, SLACK_S, Step, find_steps
from gpudiag.alignment.throughout import misfit
from gpudiag.run import ClockRecord, ClockStep, Run
from gpudiag.spans import seconds
from gpudiag.statement import Statement, joined
from gpudiag.timezones import quarters_s

SET = (
    "The trials' clock was set {way} by about {size_s} near {moment:as minute} UTC of its own time: trials before "
    "fit the telemetry best at {before_s:as shift} (correlation {before_fit:as ratio}), later ones at "
    "{after_s:as shift} (correlation {after_fit:as ratio})."
)
SEVERAL = "{evidence} It was set {n:more time|more times} later on."
SHORTER = "{evidence} Trials that ran meanwhile look shorter by as much."
TAKEN_OUT = (
    "{evidence} The step was taken off all later times; {n_across:trial} that ran meanwhile would look longer by as "
    "much."
)
IN_PART = (
    "{evidence} But the {which} trials do not fit there, and fit elsewhere: the trials' clock may have been set within "
    "the study. Nothing was moved."
)
WITHHELD = (
    "{evidence} How the clocks lie to each other is not known to the second, so trials and telemetry are not joined. "
    "Put the timestamps of the trials right, or give the trials before and after apart."
)


def with_step(
    run: Run, samples: SampleTimes, record: ClockRecord, judged: Callable[[pd.DataFrame], Judgement]
) -> ClockRecord:
    """The record with a step of the trials' clock that the telemetry shows; as it is where none is shown.

    One step forward is taken out, since it leaves no time in doubt. Trials and telemetry stay joined only where it is
    of whole quarters of an hour and the trials without it are ``judged`` strong, as for any offset that is applied.
    A clock that was set back shows times twice: nothing is moved. Where no step is shown, but the first or last trials
    fit elsewhere, nothing is moved either.
    """
    places = None if record.parts else _places(run, samples)
    if places is None:
        return record
    steps = find_steps(places)
    if not steps:
        return _doubted(record, places)
    step = steps[0]
    set_by = ClockStep(step.at_s, step.size_s, moved=False)
    if len(steps) > 1:
        return _withheld(record, set_by, Statement(SEVERAL, evidence=_said(step), n=len(steps) - 1))
    if step.size_s < 0:
        return _withheld(record, set_by, Statement(SHORTER, evidence=_said(step)))
    whole_s = quarters_s(step.size_s)
    whole = abs(step.size_s - whole_s) <= SLACK_S and _until_s(run, step) <= step.at_s - whole_s + JUST_S
    set_by = ClockStep(step.at_s, whole_s if whole else step.size_s, moved=True)
    first = pd.Timestamp(step.at_s, unit="s", tz="UTC")
    n_across = int(((run.trials["start"] < first) & (run.trials["end"] >= first)).sum())
    evidence = Statement(TAKEN_OUT, evidence=_said(step), n_across=n_across)
    found = judged(behind(run.trials, ("start", "end"), set_by, -set_by.size_s))
    if record.method == "given" or not whole or found.confidence != "strong":
        return _withheld(record, set_by, evidence)
    return replace(
        record,
        offset_s=found.offset_s,
        applied_s=found.offset_s,
        confidence="strong",
        method="correlation",
        evidence=joined(evidence, found.evidence),
        candidates=found.candidates,
        apart_s=found.apart_s,
        step=set_by,
    )


def _until_s(run: Run, step: Step) -> float:
    """The last start or end before a step."""
    times_s = np.concatenate([seconds(run.trials[name]) for name in ("start", "end")])
    return float(times_s[times_s < step.at_s].max())


def _said(step: Step) -> Statement:
    return Statement(
        SET,
        way="forward" if step.size_s > 0 else "back",
        size_s=abs(step.size_s),
        moment=datetime.fromtimestamp(round(step.at_s), UTC),
        before_s=step.before_s,
        before_fit=step.fits[0],
        after_s=step.after_s,
        after_fit=step.fits[1],
    )


def _withheld(record: ClockRecord, step: ClockStep, evidence: Statement) -> ClockRecord:
    stated_s = record.applied_s if record.method == "given" else 0.0
    evidence = Statement(WITHHELD, evidence=evidence)
    return replace(
        record,
        offset_s=stated_s,
        applied_s=stated_s,
        confidence="undetermined",
        evidence=evidence,
        step=step,
        joined=False,
    )


def _doubted(record: ClockRecord, places: Places) -> ClockRecord:
    """The record without an offset that the data show of some of the trials only."""
    if record.method != "correlation" or record.confidence != "strong":
        return record
    which = misfit(places, record.applied_s)
    if not which:
        return record
    evidence = Statement(IN_PART, evidence=record.evidence, which=which)
    return replace(record, offset_s=0.0, applied_s=0.0, confidence="undetermined", evidence=evidence)


def _places(run: Run, samples: SampleTimes) -> Places | None:
    """What the telemetry shows of the trials; None where it shows nothing."""
    start, end = starts_and_ends(run.trials)
    if not len(start) or not {"util_pct", "mem_used_mib"} & set(run.gpu.columns):
        return None
    grid = make_grid(samples, start.min() - REACH_S, end.max() + REACH_S, float(np.median(end - start)))
    signals = trial_signals(run, samples, grid)[0] if grid else []
    return Places(signals, grid, start, end) if grid and signals else None
