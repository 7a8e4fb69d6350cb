"""Are trials and telemetry on one clock?"""

from __future__ import annotations

import math

from gpudiag.errors import NotMeasurable
from gpudiag.measures.clock import ClockProfile, measure_clock
from gpudiag.rules._engine.evidence import Evidence
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity

UNDATED = "no date"
WITH_DATES = "Record with dates: gpudiag record, nvidia-smi --query-gpu=timestamp,... or nvidia-smi dmon -o DT."


@rule(
    measure=measure_clock,
    severity="warning",
    title="Trials or logs and telemetry are not from the same time",
    checks="Common time of run and telemetry",
    says="{clock}",
    remedy="Give the telemetry of the same run. If only the clocks differ, state timezone or clock_offset_s in "
    "run.toml (trials or log + offset = telemetry), or pass --timezone.",
    refuted_by="Not a problem if the times agree once the offset between the clocks is stated.",
)
def clocks_apart(clock: ClockProfile) -> Evidence | None:
    """Trials and GPU time can only be joined where they overlap.

    No trial, moved by the offset that was applied, lies within the telemetry. Figures of GPU time then say nothing
    about trials, and figures of trials nothing about GPUs (METHODS 2). Of a training's log without trials it is
    found where a tenth of the steps, and a minute, lie where no GPU worked, while GPUs worked as long beside the log
    (defaults without a published source). Telemetry without a date gets that of the trials or the log where only one
    fits; else it is not compared.
    """
    if clock.joined or not math.isnan(clock.set_by_s):
        return None
    if clock.method == UNDATED:
        raise NotMeasurable("{clock}", WITH_DATES, clock=clock.evidence)
    return Evidence(
        values={"offset_s": clock.offset_s, "confidence": clock.confidence}, extra={"clock": clock.evidence}
    )


@rule(
    measure=measure_clock,
    severity="note",
    title="The clocks of trials or logs and telemetry may differ",
    checks="Clocks of run and telemetry",
    says=(
        Given(
            "moved",
            ("The ", Given("of_log", "log's", "trials'"), " timestamps were moved to the clock of the telemetry. "),
            Given("was_set", "", "The data point to an offset; nothing was moved. "),
        ),
        "{clock}",
        Given("open", " What depends on their seconds is not assessed."),
        Given("n_parts", " The study changes its clock {n_parts:time}."),
    ),
    remedy="State timezone or clock_offset_s in run.toml, so that nothing is inferred; 0 if the clocks are equal. "
    "Correct the timestamps of a study within which the clock was set.",
    refuted_by="Not a problem if the records carry a zone, such as epoch seconds or the journal of Optuna 5.",
)
def clocks_differ(clock: ClockProfile, *, max_offset_s: float = 0.0) -> Evidence | None:
    """Whoever reads the report must know that times were moved, and on what evidence.

    Optuna up to 4 stores local time, Optuna 5 stores UTC, nvidia-smi prints local time, and none of them says so.
    An offset is applied only where it was given or where the data show it strongly. Where work between trials, memory
    that falls at one distance from their ends, or the best fit shows seconds to minutes beside it, these are told, and
    what depends on them is not assessed (METHODS 2). A clock that was set within a study moves a part of it; where that
    part cannot be put right, trials and telemetry are not joined.
    """
    was_set = not math.isnan(clock.set_by_s)
    moved = clock.joined and (abs(clock.applied_s) > max_offset_s or len(clock.parts) > 0 or was_set)
    apart = clock.joined and 0 < clock.doubt_s < math.inf
    leans = apart or (clock.confidence == "weak" and abs(clock.offset_s) > max_offset_s)
    if clock.method == UNDATED:
        raise NotMeasurable("{clock}", WITH_DATES, clock=clock.evidence)
    if not moved and not leans and not was_set:
        if clock.confidence == "undetermined" and (clock.joined or clock.method == "correlation"):
            raise NotMeasurable(
                "Whether trials and telemetry are on one clock is open; nothing was moved. {clock}",
                "State timezone or clock_offset_s in run.toml.",
                clock=clock.evidence,
            )
        return None
    return Evidence(
        values={"offset_s": clock.offset_s, "applied_s": clock.applied_s, "confidence": clock.confidence},
        severity=Severity.WARNING if leans or (was_set and not clock.joined) else None,
        extra={
            "moved": moved,
            "was_set": was_set,
            "open": clock.joined and not clock.exact,
            "clock": clock.evidence,
            "n_parts": len(clock.parts),
            "of_log": clock.of_log,
        },
    )
