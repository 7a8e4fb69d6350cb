"""The offset between the clock of training logs and the telemetry's, in a run without trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpudiag.alignment.apply import later
from gpudiag.alignment.establish import correlate, zone_of
from gpudiag.alignment.logged_steps import logged_stretches, of_one_rank, placed, times_of_work
from gpudiag.alignment.signals import SampleTimes
from gpudiag.run import ClockRecord, Run
from gpudiag.statement import Statement

GIVEN = "Stated as clock_offset_s in run.toml."
APART = (
    "{misplaced_s} of {logged_s} of logged steps lie where no GPU was seen at work, and GPUs worked for {elsewhere_s} "
    "before or after the log. So the log has another clock, or is of other work, and is not joined with the telemetry."
)
FITS = (
    "{misplaced_s} of {logged_s} of logged steps lay where no GPU was seen at work. {signals} fit the log best at "
    "{best_s:as shift} (correlation {fit:as ratio}; other whole quarters of an hour reach {rival_fit:as ratio} at "
    "most)."
)

AS_WRITTEN = ClockRecord(method="none")


def establish_logs_clock(run: Run) -> ClockRecord:
    """How the clock of the logs stands to the telemetry's.

    Tested are runs without trials whose logs carry timestamps: where steps lie on idle or unrecorded GPUs while others
    work elsewhere, the two are not joined, unless one whole quarter of an hour fits as clearly as trials must
    (METHODS 2) and puts the steps on the work. Timestamps that carry a zone on both sides are taken at their word.
    """
    steps = of_one_rank(run.steps)
    if len(run.trials) or run.gpu.empty or "util_pct" not in run.gpu or len(steps) < 2:
        return ClockRecord()
    given = run.info.given_offset_s
    if given is not None:
        return ClockRecord(given, "strong", "given", Statement(GIVEN), applied_s=given)
    if _zones_known(run):
        return ClockRecord(method="utc")
    stretches, line_s = logged_stretches(steps)
    if stretches.empty:
        return ClockRecord()
    samples = SampleTimes.of(run)
    work = times_of_work(run, samples.period_s, line_s)
    as_written = placed(stretches, 0.0, work)
    if not as_written.is_wrong:
        return AS_WRITTEN
    made = correlate(run, samples, stretches, zone_of(run))
    if made.confidence == "strong" and not made.offset_s:
        return replace(AS_WRITTEN, confidence="strong", candidates=made.candidates)
    if made.confidence == "strong" and not placed(stretches, made.offset_s, work).is_wrong:
        fit = made.evidence.values["evidence"]  # of another time zone, which seconds do not matter to
        assert isinstance(fit, Statement)
        said = {name: fit.values[name] for name in ("signals", "best_s", "fit", "rival_fit")}
        told = Statement(FITS, misplaced_s=as_written.misplaced_s, logged_s=as_written.logged_s, **said)
        return ClockRecord(made.offset_s, "strong", "correlation", told, made.offset_s, made.candidates)
    told = Statement(
        APART,
        misplaced_s=as_written.misplaced_s,
        logged_s=as_written.logged_s,
        elsewhere_s=as_written.elsewhere_s,
    )
    return ClockRecord(confidence="undetermined", method="none", evidence=told, joined=False)


def apply_logs_clock(run: Run, record: ClockRecord) -> Run:
    """The run with ``record`` kept and its ``applied_s`` added to the timestamps of the logs that tell of steps."""
    info = replace(run.info, logs_clock=record)
    if not record.applied_s:
        return replace(run, info=info)
    logs = run.events["path"].isin(run.steps["path"]) if "path" in run.events else np.zeros(len(run.events), bool)
    moved = np.where(logs, record.applied_s, 0.0)
    return replace(
        run,
        steps=later(run.steps, ("time",), np.full(len(run.steps), record.applied_s)),
        events=later(run.events, ("time",), moved),
        info=info,
    )


def _zones_known(run: Run) -> bool:
    logs = set(run.steps["path"])
    clocks = [one.clock for one in run.info.inputs if one.kind == "telemetry" or one.path in logs]
    return bool(clocks) and all(clock == "utc" for clock in clocks)
