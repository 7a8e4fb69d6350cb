"""Snapshots of PyTorch's memory allocator; recognized in order to say what reads them."""

from __future__ import annotations

from gpudiag.readers._io.source import Source
from gpudiag.readers._traces.memory_snapshot import is_memory_snapshot, refuse_memory_snapshot
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "torch-memory"


def read(source: Source, options: ReadOptions) -> Trials:
    """Raise InputError: nothing of it is unpickled."""
    raise refuse_memory_snapshot(source.path)


READER: Reader[Trials] = Reader(NAME, is_memory_snapshot, read, refuses=True)
