"""Private folders for what exists only while gpudiag works, and the removal of those that killed processes left."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PREFIX = "gpudiag-"
OWN_NAME = re.compile(rf"\.?{PREFIX}[a-z0-9_]{{8}}")
"""How such a folder is called; earlier releases took the letters from :func:`tempfile.mkdtemp`."""
LOCK = "gpudiag.lock"
"""A file in such a folder, locked as long as its process lives. The system unlocks it, however the process ends."""
_SAYS = (
    "A run of gpudiag that was killed left this folder, unless it still works. The next run removes it.\n"
    "Made as inode {inode} of device {device}; a copy is nobody's.\n"
)

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
    folder = _unused(there, PREFIX if beside is None else f".{PREFIX}")
    lock = None
    _mine.add(folder)
    try:
        folder.mkdir(mode=0o700)
        lock = _locked(folder)
        yield folder
    finally:
        try:
            _remove(folder)
        except BaseException:  # a signal came meanwhile; a second one ends the process
            _remove(folder)
            raise
        finally:
            if lock is not None:
                os.close(lock)
            _mine.discard(folder)


def _unused(there: Path, prefix: str) -> Path:
    """A name for a folder, known before there is one: what interrupts its making can remove it."""
    while (folder := there / f"{prefix}{secrets.token_hex(4)}").exists():
        pass
    return folder


def sweep(there: Path) -> None:
    """Remove the scratch folders in a folder that are this user's and whose processes have ended.

    All is proven by the lock: it names the very folder that was made, by its inode, so that a copy or a folder of the
    user that only looks like one is left as it is; as are one of another user or of a process that lives, and without
    locks (Windows, some network disks) all.
    """
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(there) as entries:
        left = [Path(entry) for entry in entries if OWN_NAME.fullmatch(entry.name)]
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
        os.write(file, _says(folder))
        unnamed.rename(folder / LOCK)
    except OSError:
        os.close(file)
        return None
    return file


def _remove_dead(folder: Path) -> None:
    with suppress(OSError):
        if not (_is_own(made := folder.lstat()) and stat.S_ISDIR(made.st_mode)):
            return
        file = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
        try:
            if _is_own(os.fstat(file)) and os.read(file, 1000) == _says(folder):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
        finally:
            os.close(file)


def _says(folder: Path) -> bytes:
    """What the lock of this very folder holds."""
    made = folder.lstat()
    return _SAYS.format(inode=made.st_ino, device=made.st_dev).encode()


def _remove(folder: Path) -> None:
    """Remove it, the lock last: what a kill in between leaves is still known by it."""
    with suppress(OSError):
        with os.scandir(folder) as entries:
            others = [entry for entry in entries if entry.name != LOCK]
        for entry in others:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                Path(entry.path).unlink()
        (folder / LOCK).unlink(missing_ok=True)
        folder.rmdir()


def _is_own(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid()
