"""Whether a run has changed since it was diagnosed, by its files alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from gpudiag.errors import ConfigError, InputError
from gpudiag.load import locate
from gpudiag.manifest import MANIFEST, manifest_if_any
from gpudiag.readers._io.url import is_url


def fingerprint(run: Path) -> str:
    """Name, size and time of change of every file of the run, of those that its run.toml names elsewhere too, as one
    digest; '' where an input is a URL.
    """
    places: list[Path | str] = [run]
    with suppress(ConfigError, InputError, OSError):  # reading the run says so
        places += [locate(name, run) for name in manifest_if_any(run / MANIFEST).inputs]
    if any(map(is_url, places)):
        return ""
    digest = sha256()
    for path in (path for place in places for path in _files(Path(place))):
        with suppress(OSError):
            held = os.stat(path)  # noqa: PTH116 - a fleet has 100,000 files
            digest.update(f"{path}\0{held.st_size}\0{held.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _files(run: Path) -> Iterator[str]:
    """Files of a folder, through links as well; a file with what SQLite writes beside it."""
    if not run.is_dir():
        yield from (f"{run}{suffix}" for suffix in ("", "-wal", "-journal"))
        return
    met: set[str] = set()
    for folder, folders, files in os.walk(run, followlinks=True):
        real = os.path.realpath(folder)
        if real in met:
            folders.clear()
            continue
        met.add(real)
        folders.sort()
        yield from (f"{folder}/{name}" for name in sorted(files))
