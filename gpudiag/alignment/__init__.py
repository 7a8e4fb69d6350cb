"""The offset between the clock of the trials and the clock of the telemetry: found, applied, said."""

from gpudiag.alignment.apply import apply_clock
from gpudiag.alignment.establish import establish_clock

__all__ = ["apply_clock", "establish_clock"]
