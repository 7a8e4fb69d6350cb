"""How pandas holds text while a run is diagnosed: for many small tables, its own objects are quicker than Arrow's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SMALL_MIB = 8.0
"""Of files. A call on a column of Arrow costs more than the same on one of objects, and a row costs less: at 9 MiB of
nvidia-smi's lines the two are alike (benchmarks/fleet.md).
"""
MIB = 2**20


@contextmanager
def text_for(place: str) -> Iterator[None]:
    """Within it, new columns of text are held as suits the size of the run; what they say is the same."""
    import pandas as pd

    if not 0 < _size_mib(Path(place)) <= SMALL_MIB:
        yield
        return
    with pd.option_context("mode.string_storage", "python"):
        yield


def _size_mib(place: Path) -> float:
    """Of the file, or of all files of the folder; 0 where there is none, as of a URL."""
    files = [place] if place.is_file() else place.rglob("*")
    try:
        return sum(one.stat().st_size for one in files if one.is_file()) / MIB
    except OSError:
        return 0.0
