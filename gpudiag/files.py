"""Files that gpudiag writes: whole or not at all, and those of one output together."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpudiag.errors import ConfigError
from gpudiag.scratch import scratch

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

DEVICES = ("/dev", "/dev/fd", "/proc/self/fd")
"""Folders of names that may lead to a file, but are not to be replaced by one."""
LONGEST_WAIT_S = 60
"""For another process that puts files into the same folder, which takes less than a second."""
_inputs: set[tuple[int, int]] = set()
"""Device and inode of the files that this process read as inputs of a run."""
Content = str | bytes | None
"""Text, bytes, or None for a file that is to go."""


def never_replace(path: Path) -> None:
    """Remember an input of a run: :func:`write` and :func:`write_all` refuse to put anything in its place."""
    with suppress(OSError):
        _inputs.add(_identity(path))


def write(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all: readers never see half of it. What is no file (/dev/stdout) is written to."""
    if is_device(path):
        path.write_bytes(_bytes(content))
    else:
        write_all(path.parent, [(path, content)])


def is_device(path: Path) -> bool:
    """Whether the path is no place for a file, but takes bytes: /dev/stdout, /dev/null, a pipe."""
    if not path.exists() or path.is_dir():
        return False
    return not path.is_file() or str(path.absolute().parent) in DEVICES


def write_all(folder: Path, contents: Iterable[tuple[Path, Content]]) -> None:
    """Put the files of one output in place, or where that fails leave the earlier ones as they were.

    All are written aside first. Then the earlier files go, the last of ``contents`` first, and the new ones come, the
    last of them last. So files of two outputs never lie together, and where the last one lies, the others do: also if
    the process is killed in between, and if two processes write the same output at once.

    Args:
        folder: where they lie, some perhaps in folders below it; made where it does not exist.
        contents: what each file holds, made one after the other while nobody else writes there; the last is not None.
            Characters that UTF-8 lacks are escaped.

    Raises:
        ConfigError: a folder has the name of a file, a file is an input of a run, or another process keeps the folder
            locked.
        OSError: no room, or no permission. No file has changed then.
    """
    with _folders(folder), _alone(folder), scratch(folder) as aside:
        drafts = {path: _draft(path, content, aside / str(at)) for at, (path, content) in enumerate(contents)}
        with _folders(*(path.parent for path in drafts)):
            match list(drafts.items()):
                case [(path, Path() as draft)]:
                    draft.replace(path)
                case _:
                    _swap(drafts, aside)


def _draft(path: Path, content: Content, draft: Path) -> Path | None:
    if path.is_dir():
        raise ConfigError(f"{path}: is a folder, but a file is written there; move it or choose another output.")
    if path.exists() and _identity(path) in _inputs:
        raise ConfigError(f"{path}: is an input of the run and would be overwritten; choose another output.")
    if content is None:
        return None
    draft.write_bytes(_bytes(content))
    return draft


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8", "backslashreplace")


def _swap(drafts: dict[Path, Path | None], aside: Path) -> None:
    """Move the earlier files aside and the new ones in place; undo all of it at any exception, Ctrl-C included."""
    moved: list[tuple[Path, Path]] = []
    try:
        for at, path in enumerate(reversed(drafts)):
            if path.is_symlink() or path.exists():
                moved.append((path, aside / f"old-{at}"))
                path.rename(moved[-1][1])
        for path, draft in drafts.items():
            if draft is not None:
                moved.append((draft, path))
                draft.rename(path)
    except BaseException:
        for before, now in reversed(moved):
            _surely_back(now, before)
        raise


def _surely_back(now: Path, before: Path) -> None:
    """Undo a move, however often somebody presses Ctrl-C meanwhile."""
    while True:
        try:
            with suppress(OSError):  # it may not have been moved, or is back
                now.rename(before)
        except (KeyboardInterrupt, SystemExit):
            continue
        return


@contextmanager
def _folders(*folders: Path) -> Iterator[None]:
    """Make folders; those that were made go again if what follows fails."""
    made: list[Path] = []
    try:
        for folder in dict.fromkeys(folders):
            missing = [one for one in (folder, *folder.parents) if not one.exists()]
            made += missing[::-1]
            folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in reversed(made):
            with suppress(OSError):  # somebody else has put something there
                folder.rmdir()
        raise


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """While no other process puts files in place there; on Windows, and disks without locks, without that."""
    if fcntl is None:
        yield
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            _wait_for(held, folder)
        yield
    finally:
        os.close(held)


def _wait_for(held: int, folder: Path) -> None:
    """Take the lock. Raises OSError where there are no locks."""
    until = time.monotonic() + LONGEST_WAIT_S
    while True:
        try:
            return fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise ConfigError(
                    f"{folder}: another process has kept this folder locked for {LONGEST_WAIT_S} s; "
                    "end it, or choose another output."
                ) from None
        time.sleep(0.05)
