"""Traces of the profiler of TensorFlow and JAX; recognized in order to say what reads them."""

from __future__ import annotations

from gpudiag.readers._io.source import Source
from gpudiag.readers._traces.xla_trace import is_xplane, names_xla_processes, refuse_xla_trace
from gpudiag.readers.artifacts import torch_profiler
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "xla-profiler"


def recognises(source: Source) -> bool:
    """True for an XSpace, and for a Chrome trace with XLA's processes and nothing that Kineto writes."""
    return is_xplane(source) or (names_xla_processes(source) and not torch_profiler.recognises(source))


def read(source: Source, options: ReadOptions) -> Trials:
    """Raise InputError: the names of its host's work say nothing of what a GPU waited for."""
    raise refuse_xla_trace(source.path)


READER: Reader[Trials] = Reader(NAME, recognises, read, refuses=True)
