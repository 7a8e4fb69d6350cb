"""Which parameters a trial's memory depends on: columns of a design, chosen one block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

Array = np.ndarray

MAX_LEVELS = 20
"""A text parameter with more values than this is a name and no choice."""
MAX_BLOCKS = 6
MAX_ROWS = 4000
LARGEST = 1e150
"""Squares of parameters beyond it are no numbers any more."""
LEAST_SPREAD = 0.003
"""Differences below this share of the mean are not worth a parameter."""


@dataclass(frozen=True)
class Design:
    """``columns`` (n_trials, p), the first is 1; ``names`` of the parameters in it, the most telling first."""

    columns: Array
    names: tuple[str, ...]


def parameters(trials: pd.DataFrame) -> dict[str, Array]:
    """Columns by parameter that varies: numbers as one standardised column, text and switches as one per value."""
    out: dict[str, Array] = {}
    for name in (str(column) for column in trials.columns if str(column).startswith("params.")):
        values = trials[name]
        if values.nunique(dropna=False) < 2:
            continue
        number = pd.to_numeric(values, errors="coerce")
        if pd.api.types.is_float_dtype(number.dtype):
            number = number.clip(-LARGEST, LARGEST)
        if values.dtype != bool and number.notna().sum() == values.notna().sum() and number.nunique() > 1:
            filled = number.fillna(number.mean()).to_numpy(float)
            out[name] = ((filled - filled.mean()) / max(filled.std(), 1e-12))[:, None]
        elif values.nunique() <= MAX_LEVELS:
            out[name] = pd.get_dummies(values.astype(str)).to_numpy(float)[:, 1:]
    return {name: columns for name, columns in out.items() if columns.shape[1]}


def choose(columns: dict[str, Array], weigh: Array, rows: Array | None, y: Array) -> Design:
    """Blocks that explain ``y`` best, one after the other while BIC falls: parameters, then products of those chosen.

    ``rows`` (len(y), n_trials) sums over trials, sparse; None where y has one row a trial. ``weigh`` weights the rows
    of y by 1/sd.
    """
    n_trials = len(next(iter(columns.values()))) if columns else (len(y) if rows is None else rows.shape[1])
    chosen: list[tuple[str, ...]] = []
    design = np.ones((n_trials, 1))
    picked = np.linspace(0, len(y) - 1, min(len(y), MAX_ROWS)).astype(int)
    summed = (lambda block: block[picked]) if rows is None else rows[picked].__matmul__
    target, scale = y[picked] * weigh[picked], weigh[picked][:, None]
    floor = len(picked) * (LEAST_SPREAD * float(np.mean(np.abs(target)))) ** 2
    basis, left = _project(np.zeros((len(picked), 0)), summed(design) * scale, target)
    best = _bic(left, basis, floor)
    while len(chosen) < MAX_BLOCKS:
        trials = [(key, block, *_project(basis, summed(block) * scale, left)) for key, block in _open(columns, chosen)]
        scores = [_bic(rest, wider, floor) for _, _, wider, rest in trials]
        if not scores or min(scores) >= best - 2.0:
            break
        best = min(scores)
        key, block, basis, left = trials[scores.index(best)]
        chosen.append(key)
        design = np.hstack([design, block])
    return Design(design, tuple(key[0].removeprefix("params.") for key in chosen if len(key) == 1))


def _open(columns: dict[str, Array], chosen: list[tuple[str, ...]]) -> Iterator[tuple[tuple[str, ...], Array]]:
    """Blocks that may come next."""
    for name, block in columns.items():
        if (name,) not in chosen:
            yield (name,), block
    for a, b in combinations([key[0] for key in chosen if len(key) == 1], 2):
        if (a, b) not in chosen:
            yield (a, b), (columns[a][:, :, None] * columns[b][:, None, :]).reshape(len(columns[a]), -1)


def _project(basis: Array, block: Array, left: Array) -> tuple[Array, Array]:
    """The orthonormal basis with the block in it, and what it leaves unexplained."""
    size = float(np.sqrt((block**2).sum(axis=0).max(initial=0.0)))
    for _ in range(2):  # twice is enough (Kahan): what is left is orthogonal to rounding
        block = block - basis @ (basis.T @ block)
    q, spread, _ = np.linalg.svd(block, full_matrices=False)
    q = q[:, spread > 1e-8 * max(size, 1e-300)]
    return np.hstack([basis, q]), left - q @ (q.T @ left)


def _bic(left: Array, basis: Array, floor: float) -> float:
    n = len(left)
    return float(n * np.log(max(float(left @ left), floor, 1e-12) / n) + basis.shape[1] * np.log(n))
