"""Traces of torch.profiler: where the time of each GPU went in a few profiled steps."""

from __future__ import annotations

import re

from gpudiag.readers._io.source import Source
from gpudiag.readers._traces.profiled import profiled
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
    """Table ``profiled``: a row a GPU. Raises InputError for a trace that holds no work of a GPU."""
    return profiled(source, NAME)


READER = Reader(NAME, recognises, read)
