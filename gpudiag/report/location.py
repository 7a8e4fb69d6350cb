"""The file at which a viewer of code shows the findings of a run: they are about no line of any."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from gpudiag._run.tables import InputRecord
from gpudiag.manifest import MANIFEST
from gpudiag.readers._io.url import is_url


def location(inputs: Iterable[InputRecord], folder: Path | None, root: Path) -> str:
    """run.toml where the run has one, else its first input that is a file, else what the run lies in; with slashes, and
    as seen from ``root`` where it lies below.
    """
    below = folder or Path()
    manifest = [below / MANIFEST] if folder and (folder / MANIFEST).is_file() else []
    files = [below / one.path for one in inputs if not is_url(one.path)]
    path = os.path.normpath(root / [*manifest, *files, below][0])
    base = os.path.normpath(root)
    return (Path(path).relative_to(base) if Path(path).is_relative_to(base) else Path(path)).as_posix()
