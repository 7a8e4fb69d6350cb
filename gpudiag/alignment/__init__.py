"""The offset between the clock of the trials, or of logs, and the clock of the telemetry: found, applied, said."""

from gpudiag.alignment.apply import apply_clock
from gpudiag.alignment.establish import establish_clock
from gpudiag.alignment.logs import apply_logs_clock, establish_logs_clock
from gpudiag.alignment.one_clock import on_one_clock
from gpudiag.alignment.undated import with_dates

__all__ = ["apply_clock", "apply_logs_clock", "establish_clock", "establish_logs_clock", "on_one_clock", "with_dates"]
