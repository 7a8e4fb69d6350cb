"""What the offset between trials and telemetry is, by the best evidence there is."""

from __future__ import annotations

from gpudiag.run import ClockRecord, Run


def establish_clock(run: Run) -> ClockRecord:
    """The offset between the trials' clock and the telemetry's."""
    given = run.info.given_offset_s
    if given is not None:
        return ClockRecord(given, "strong", "given", "The offset stands in run.toml.", applied_s=given)
    return ClockRecord(method="none", evidence="Equal clocks are assumed.")
