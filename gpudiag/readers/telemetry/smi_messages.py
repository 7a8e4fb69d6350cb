"""What ``nvidia-smi`` prints in place of values; a file of nothing else is refused with what it says."""

from __future__ import annotations

import re

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.moments import read_moment
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "nvidia-smi message"

_FAILURES = (
    (r"NVIDIA-SMI has failed because it couldn't communicate", "it could not communicate with the driver"),
    (r"NVIDIA-SMI couldn't find (?:libnvidia-ml|nvml)", "it found no NVIDIA driver library"),
    (r"Failed to initialize NVML: Driver/library version mismatch", "driver and library versions do not match"),
    (r"Failed to initialize NVML", "it could not initialize NVML"),
    (r"Unable to determine the device handle for (?:gpu|GPU)", "a GPU did not answer"),
    (r"No devices were found", "no GPU was found"),
    (r"nvidia-smi: (?:command )?not found|'nvidia-smi' is not recognized", "nvidia-smi is not installed"),
)
_KNOWN = tuple((re.compile(pattern), what) for pattern, what in _FAILURES)
_ADVICE = re.compile(r"Make sure that the latest NVIDIA driver|Reboot the system to recover|NVML library version")


def failure(line: str) -> str:
    """What the failure message in a line says, in a few words; empty if the line holds none."""
    return next((what for pattern, what in _KNOWN if pattern.search(line)), "")


def recognises(source: Source) -> bool:
    """True if every line of the head is a failure message or a date line."""
    lines = [line.strip() for line in source.lines if line.strip()]
    return bool(lines) and all(failure(line) or _ADVICE.search(line) or _is_date(line) for line in lines)


def _is_date(line: str) -> bool:
    moment = read_moment(line)
    return moment is not None and moment.day


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Raise InputError: such a file holds no sample."""
    texts = [failure(line) for line in source.lines]
    message = next((text for text in texts if text), "")
    if message:
        count = sum(bool(text) for text in texts)
        raise InputError(
            f"{source.path}: holds no sample, only {count} message(s) in which nvidia-smi says that {message}; "
            "repair the driver and record again."
        )
    raise InputError(f"{source.path}: holds only date lines and no sample: the monitor ended before its first table.")


READER = Reader(NAME, recognises, read, refuses=True)
