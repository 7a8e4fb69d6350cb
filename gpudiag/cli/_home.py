"""A machine without a home, as containers are: user ids that nobody knows, homes that nobody may write to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpudiag.scratch import scratch

NOWHERE = "/nonexistent"
"""As Debian calls the home of those who have none. In the folder of temporary files, others could put settings."""
_MATPLOTLIB = (".config/matplotlib", ".cache/matplotlib")


@contextmanager
def without_home() -> Iterator[None]:
    """Within it there is a path of a home, which Jupyter asks for, and a folder that matplotlib can write to."""
    before = dict(os.environ)
    try:
        home = Path.home()
    except RuntimeError:
        home = Path(NOWHERE)
        os.environ["HOME"] = NOWHERE
    try:
        if "MPLCONFIGDIR" in os.environ or all(_takes_files(home / name) for name in _MATPLOTLIB):
            yield
            return
        with scratch() as folder:
            os.environ["MPLCONFIGDIR"] = str(folder)
            yield
    finally:
        for name in ("HOME", "MPLCONFIGDIR"):
            if name not in before:
                os.environ.pop(name, None)


def _takes_files(folder: Path) -> bool:
    there = next(one for one in (folder, *folder.parents) if os.path.exists(one))  # noqa: PTH110 - False where forbidden
    return os.access(there, os.W_OK) and there != Path(there.anchor)
