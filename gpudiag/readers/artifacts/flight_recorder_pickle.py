"""Dumps of PyTorch's flight recorder in pickle, as it writes them by itself; known in order to say how to read them."""

from __future__ import annotations

import shlex

from gpudiag.errors import InputError
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "torch-flight-recorder-pickle"
COMMAND = (
    "python -c \"import json, pickle, shutil, sys; a = sys.argv[1]; json.dump(pickle.load(open(a, 'rb')), "
    "open(a + '.json', 'w')); shutil.copystat(a, a + '.json')\""
)
"""It keeps the time of the dump, by which is told how long ranks waited."""


def recognises(source: Source) -> bool:
    """True for a pickle of protocol 2 to 5 that begins as a dump does."""
    head = source.head
    return source.is_pickle and (b"pg_config" in head or b"collective_seq_id" in head)


def read(source: Source, options: ReadOptions) -> Trials:
    """Raise InputError with the command that makes JSON of it, or nothing but a note where that was done.

    To unpickle a file is to run what it holds: only who wrote it can know that this is safe.
    """
    name = as_text(source.path.name)
    if source.path.with_name(source.path.name + ".json").is_file():
        return Trials(notes=(f"{name}: is read from {name}.json.",), reader=NAME)
    raise InputError(
        f"{source.path}: is a dump of PyTorch's flight recorder in pickle, which gpudiag never opens; if you trust "
        f"the file, write it as JSON with {COMMAND} {shlex.quote(as_text(source.path))}"
    )


READER = Reader(NAME, recognises, read, refuses=True)
