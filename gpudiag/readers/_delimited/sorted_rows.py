"""All rows of a log together, those of each GPU in one stretch."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from gpudiag.readers._delimited.pieces import BlockRows, column_of
from gpudiag.readers._shape.finish import Known

_MANY_ROWS = 500_000


@dataclass(eq=False)
class SortedRows:
    """All rows, those of each GPU together. ``code`` is a position in ``labels``; ``tick`` numbers the rounds."""

    columns: dict[str, np.ndarray]
    lines: np.ndarray
    code: np.ndarray
    labels: list[str]
    gpus: list[Known]
    tick: np.ndarray | None = None


def lines_of(order: Sequence[tuple[BlockRows, slice]]) -> np.ndarray:
    return np.concatenate([piece.lines[cut] for piece, cut in order])


def columns_of(order: Sequence[tuple[BlockRows, slice]]) -> dict[str, np.ndarray]:
    """Each column over all pieces; what is taken is freed, so that a long log is in memory only once."""
    pieces = list(dict.fromkeys(piece for piece, _ in order))

    def whole(name: str) -> np.ndarray:
        columns = {piece: column_of(piece, name) for piece in pieces}
        for piece in pieces:
            piece.columns.pop(name, None)
        parts = [columns[piece][cut] for piece, cut in order]
        return np.concatenate(parts, dtype=None if name == "time" else np.float64)

    names = list(dict.fromkeys(name for piece in pieces for name in piece.columns))
    if sum(map(len, pieces)) < _MANY_ROWS:
        return {name: whole(name) for name in names}
    with ThreadPoolExecutor(2) as pool:  # most of it is the wait for fresh memory
        return dict(zip(names, pool.map(whole, names), strict=True))
