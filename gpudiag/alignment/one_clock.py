"""Trials, logs and telemetry of a run on one clock."""

from __future__ import annotations

from dataclasses import replace

from gpudiag.alignment.apply import apply_clock
from gpudiag.alignment.establish import establish_clock
from gpudiag.alignment.judge import TOLERANCE_S
from gpudiag.alignment.logs import apply_logs_clock, establish_logs_clock
from gpudiag.alignment.nodes import nodes_on_one_clock
from gpudiag.alignment.undated import Dated
from gpudiag.run import ClockRecord, Run
from gpudiag.statement import joined

UNDATED = ClockRecord(confidence="undetermined", method="no date", joined=False)


def on_one_clock(run: Run, dated: Dated) -> Run:
    """The run with its nodes on one clock, and its trials, or without trials its logs, on that of its telemetry.

    ``dated``: how telemetry without a date got one.
    """
    run = nodes_on_one_clock(run)
    if len(run.trials):
        return apply_clock(run, _of_trials(establish_clock(run), dated))
    logs = replace(UNDATED, evidence=dated.withheld) if dated.withheld else establish_logs_clock(run)
    run = apply_logs_clock(run, logs)
    return apply_clock(run, establish_clock(run))


def _of_trials(record: ClockRecord, dated: Dated) -> ClockRecord:
    """The record with what the dates of the telemetry rest on. A fit leaves seconds to a minute open."""
    if dated.withheld:
        return replace(UNDATED, evidence=dated.withheld, notes=record.notes)
    if not dated.placed or not record.joined:
        return record
    evidence, apart_s = joined(dated.placed, record.evidence), max(record.apart_s, TOLERANCE_S)
    return replace(record, confidence="strong", method="correlation", evidence=evidence, apart_s=apart_s)
