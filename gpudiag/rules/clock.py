"""Are trials and telemetry on one clock?"""

from __future__ import annotations

from gpudiag.errors import NotMeasurable
from gpudiag.measures.clock import ClockProfile, measure_clock
from gpudiag.rules._engine.evidence import Evidence
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given
from gpudiag.rules._engine.verdict import Severity


@rule(
    measure=measure_clock,
    severity="warning",
    title="Trials and telemetry share no time",
    says="{clock}",
    remedy="Give the telemetry of the same run. If only the clocks differ, state the zone of times that name none "
    "(--timezone, or timezone in run.toml), or clock_offset_s in run.toml (trials + offset = telemetry).",
    refuted_by="A common time after the offset between the clocks is stated.",
)
def clocks_apart(clock: ClockProfile) -> Evidence | None:
    """Nothing may be read off a GPU about a trial that did not run while it was observed.

    No trial, moved by the offset that was applied, lies within the span of the telemetry. Then every figure
    of GPU time counts without trials, and every figure of trials without GPUs (METHODS 2).
    """
    if clock.joined:
        return None
    return Evidence(
        values={"offset_s": clock.offset_s, "confidence": clock.confidence}, extra={"clock": clock.evidence}
    )


@rule(
    measure=measure_clock,
    severity="note",
    title="The trials' timestamps were moved, or should be",
    says=(
        Given("moved", "The trials' timestamps were moved.", "The data lean towards an offset; nothing was moved."),
        " {clock}",
        Given("n_parts", " A study changes its clock on the way, {n_parts:time}."),
    ),
    remedy="State timezone or clock_offset_s in run.toml, so that nothing need be inferred.",
    refuted_by="Records that carry a zone, such as epoch seconds or the journal of Optuna 5.",
)
def clocks_differ(clock: ClockProfile, *, max_offset_s: float = 0.0) -> Evidence | None:
    """Whoever reads the report must know that times were moved, and on what evidence.

    Optuna up to 4 stores local time, Optuna 5 stores UTC, nvidia-smi prints local time, and none of them says so.
    An offset is applied only where it was given or where the data show it strongly (METHODS 2).
    """
    moved = abs(clock.applied_s) > max_offset_s or len(clock.parts) > 0
    leans = clock.confidence == "weak" and abs(clock.offset_s) > max_offset_s
    if not moved and not leans:
        if clock.method == "correlation" and clock.confidence == "undetermined":
            raise NotMeasurable(
                "Whether trials and telemetry are on one clock is open; nothing was moved. {clock}",
                "State timezone or clock_offset_s in run.toml.",
                clock=clock.evidence,
            )
        return None
    return Evidence(
        values={"offset_s": clock.offset_s, "applied_s": clock.applied_s, "confidence": clock.confidence},
        severity=Severity.WARNING if leans else None,
        extra={"moved": moved, "clock": clock.evidence, "n_parts": len(clock.parts)},
    )
