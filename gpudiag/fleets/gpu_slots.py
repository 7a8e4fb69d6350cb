"""How many GPUs a run had: a board that another one replaced had the same slot."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gpudiag.measures._time.own_time import attempts

if TYPE_CHECKING:
    import pandas as pd

    from gpudiag.run import Run

NUMBER = re.compile(r"(\d+)[b-z]?")
"""A GPU is called by its number; a letter follows where another board had that number before."""


def n_slots(run: Run) -> int | None:
    """GPUs that a run had at once, with boards of the same number one after the other as one; None where none is known.

    Boards of one number that were sampled at the same time are those of several hosts: each counts.
    """
    seen = run.gpu.groupby("gpu")["time"].agg(["min", "max"])
    gpus = list(dict.fromkeys([*map(str, run.gpus["gpu"].dropna()), *map(str, seen.index)]))
    return max(_slots(of_attempt, seen) for of_attempt in attempts(run).by_attempt(gpus)) or None


def _slots(gpus: Iterable[str], seen: pd.DataFrame) -> int:
    boards: dict[str, list[str]] = {}
    for gpu in gpus:
        numbered = NUMBER.fullmatch(gpu)
        boards.setdefault(numbered[1] if numbered else gpu, []).append(gpu)
    return sum(_most_at_once(seen[seen.index.isin(held)]) for held in boards.values())


def _most_at_once(seen: pd.DataFrame) -> int:
    """The most boards between whose first and last sample lies the first of one of them; 1 where none was sampled."""
    return max((int(((seen["min"] <= at) & (at <= seen["max"])).sum()) for at in seen["min"]), default=1)
