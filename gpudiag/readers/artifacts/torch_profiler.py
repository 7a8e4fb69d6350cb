"""Traces of torch.profiler, known only to say what reads them: they tell of a few steps, not of a run."""

from __future__ import annotations

import re

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "torch-profiler"

_TRACE = re.compile(
    r'"schemaVersion"\s*:\s*\d+\s*,|"cat"\s*:\s*"(?:cpu_op|kernel|cuda_runtime|user_annotation|Operator)"'
)


def recognises(source: Source) -> bool:
    """True if the head is JSON with the marks of a trace by Kineto."""
    text = source.text
    if text.lstrip("\ufeff \t\r\n")[:1] not in ("{", "["):
        return False
    return ('"traceEvents"' in text or '"deviceProperties"' in text) and bool(_TRACE.search(text))


def read(source: Source, options: ReadOptions) -> Trials:
    """Raise InputError, which names the command that reads it."""
    raise InputError(
        f"{source.path}: is a trace of torch.profiler, which tells of a few steps and not of the run; see it with "
        "gpudiag trace FILE."
    )


READER = Reader(NAME, recognises, read, refuses=True)
