"""Private folders for what exists only while gpudiag works, and the removal of those that killed processes left."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PREFIX = "gpudiag-"
LOCK = "gpudiag.lock"
"""A file in such a folder, locked as long as its process lives. The system unlocks it, however the process ends."""
_SAYS = b"A run of gpudiag that was killed left this folder, unless it still works. The next run removes it.\n"

_mine: set[Path] = set()


@contextmanager
def scratch(beside: Path | None = None) -> Iterator[Path]:
    """A folder of this user alone that is gone afterwards; first those go that killed processes left in that place.

    Args:
        beside: a folder in which it is made, hidden; default: that of temporary files.

    Raises OSError where none can be made.
    """
    there = Path(tempfile.gettempdir() if beside is None else beside).absolute()
    sweep(there)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX if beside is None else f".{PREFIX}", dir=there))
    _mine.add(folder)
    lock = None
    try:
        lock = _locked(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)
        _mine.discard(folder)


def sweep(there: Path) -> None:
    """Remove the scratch folders in a folder that are this user's and whose processes have ended.

    Both are proven by the lock: a folder without it, of another user or of a process that lives is left as it is, and
    without locks (Windows, some network disks) all are.
    """
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(there) as entries:
        left = [Path(entry) for entry in entries if entry.name.startswith((PREFIX, f".{PREFIX}"))]
        for folder in left:
            if folder not in _mine:  # some disks would give this very process the lock once more
                _remove_dead(folder)


def _locked(folder: Path) -> int | None:
    """The lock, taken before the file has its name, so that nobody finds it without; None where there are no locks."""
    if fcntl is None:
        return None
    unnamed = folder / f"{LOCK}.new"
    file = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(file, _SAYS)
        unnamed.rename(folder / LOCK)
    except OSError:
        os.close(file)
        return None
    return file


def _remove_dead(folder: Path) -> None:
    with suppress(OSError):
        if not _is_own(folder.lstat()):
            return
        file = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
        try:
            if _is_own(os.fstat(file)):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(file)


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid()
