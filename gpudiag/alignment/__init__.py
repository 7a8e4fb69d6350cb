"""The offset between the clock of the trials, or of logs, and the clock of the telemetry: found, applied, said."""

from gpudiag.alignment.apply import apply_clock
from gpudiag.alignment.establish import establish_clock
from gpudiag.alignment.log_zones import logs_in_one_zone
from gpudiag.alignment.logs import apply_logs_clock, establish_logs_clock
from gpudiag.alignment.one_clock import on_one_clock
from gpudiag.alignment.undated import with_dates

__all__ = [
    "apply_clock",
    "apply_logs_clock",
    "establish_clock",
    "establish_logs_clock",
    "logs_in_one_zone",
    "on_one_clock",
    "with_dates",
]
