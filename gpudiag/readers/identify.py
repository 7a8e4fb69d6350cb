"""Which reader, of all kinds, recognises a path."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from gpudiag.errors import InputError
from gpudiag.readers import artifacts, telemetry, trials
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import Reader

KnownKind = Literal["telemetry", "trials", "artifacts"]

EXPECTED = (
    "a log of GPU metrics, an Optuna study, a table of trials, what a batch leaves such as its logs, or a trace of a "
    "profiler ('What it reads' in README.md has the list)"
)


@lru_cache(maxsize=2)  # a walk through a folder asks before the file is read, and reading asks again
def identify(source: Source) -> tuple[KnownKind, Reader] | None:
    """The kind of input and its reader, or None if no reader of any kind recognises it.

    Raises InputError if several claim it, which is a bug in one of them.
    """
    if source.archive:
        return None
    registries: tuple[tuple[KnownKind, tuple[Reader, ...]], ...] = (
        ("telemetry", telemetry.READERS),
        ("trials", trials.READERS),
        ("artifacts", artifacts.READERS),
    )
    try:
        claims = [(kind, reader) for kind, readers in registries for reader in readers if reader.recognises(source)]
    except OSError as error:  # a folder that may not be listed
        raise InputError.unopened(source.path, error) from error
    if len(claims) > 1:
        names = ", ".join(reader.name for _, reader in claims)
        raise InputError(f"{source.path}: claimed by several readers ({names}); please report its first lines.")
    return claims[0] if claims else None
