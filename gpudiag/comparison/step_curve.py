"""How long trials of two runs take at the same number of steps: one curve of start-up and steps over both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy

from gpudiag.comparison.autocorrelation import MIN_UNITS
from gpudiag.comparison.power import ALPHA

START_UPS = (0.0, *np.geomspace(0.02, 4.0, 30))
"""Start-ups that are tried, over the time of the most steps; beyond, steps hardly show in the time of a trial."""
PASSES = 4
OUTLIER_MADS = 3.0


@dataclass(frozen=True, eq=False)
class StepCurve:
    """Logarithms of the times of trials of each run as if all had as many steps as their mean (``steps``).

    The spread of each side is stretched by what the fit leaves unsure, so that it is as sure of the ratio of their
    means as two samples with that spread. ``shared``: what one run's trials tell apart from the other's that is no
    other number of steps, in trials a side. ``explained``: whether steps explain times by more than chance.
    ``also``: the parameters that explain what steps leave, and are the same as well.
    """

    logs: tuple[np.ndarray, np.ndarray]
    means: tuple[float, float]
    steps: float
    shared: float
    explained: bool
    also: tuple[str, ...]

    @property
    def enough(self) -> bool:
        """Whether the runs have enough in common for an interval."""
        return self.shared >= MIN_UNITS


def step_curve(trials: pd.DataFrame, params: Mapping[str, pd.Series]) -> StepCurve:
    """Times of trials as ``factor of the run x (start-up + steps)``, by ``steps``, ``duration_s``, ``complete`` and
    ``experiment`` in the order in which they ran; both runs have the same start-up over steps.

    A COMPLETE trial may take longer by a factor, since it may save or test what it found. Of the ``params`` those are
    held the same as well that explain what is left (each alone, at 5 % over all): a sampler draws them otherwise, and
    a pruner lets those go on that do well.
    """
    y, n = np.log(trials["duration_s"].to_numpy(float)), trials["steps"].to_numpy(float)
    second = trials["experiment"].to_numpy(float)
    beside = [_column(trials["complete"])]
    found = _fit(y, n, second, beside)
    waiting = {name: _column(values) for name, values in params.items()}
    limit = ALPHA / max(len(waiting), 1)
    also: list[str] = []
    while chances := {name: _chance(found, column) for name, column in waiting.items()}:
        name = min(chances, key=lambda one: chances[one])
        if not chances[name] < limit:
            break
        also.append(name)
        beside.append(waiting.pop(name))
        found = _fit(y, n, second, beside)
    return _leveled(found, y, n, second, tuple(also))


@dataclass(frozen=True, eq=False)
class _Fit:
    """``bent``: logarithms of times with outliers moved to the edge; ``curve``: log of start-up and steps."""

    start_up: float
    curve: np.ndarray
    columns: np.ndarray
    bent: np.ndarray
    squares: float


def _fit(y: np.ndarray, n: np.ndarray, second: np.ndarray, beside: list[np.ndarray]) -> _Fit:
    """The start-up, in steps, that leaves least, again and again with outliers moved to the edge (Huber)."""
    columns = np.column_stack([1 - second, second, *beside])
    basis = scipy.linalg.orth(columns)
    tried = [(start * n.max(), np.log(n + start * n.max())) for start in START_UPS]
    bent = y
    for _ in range(PASSES):
        left = [(bent - curve) - basis @ (basis.T @ (bent - curve)) for _, curve in tried]
        best = min(range(len(tried)), key=lambda i: float(left[i] @ left[i]))
        fitted = bent - left[best]
        edge = OUTLIER_MADS * 1.4826 * float(np.median(np.abs(left[best])))
        squares, before = float(left[best] @ left[best]), bent
        bent = fitted + np.clip(y - fitted, -edge, edge)
    return _Fit(*tried[best], columns, before, squares)


def _column(values: pd.Series) -> np.ndarray:
    """Ranks of numbers, else one column a choice but the first; what is missing is a choice as well."""
    numbers = pd.to_numeric(values, errors="coerce")
    if (numbers.isna() == values.isna()).all() and numbers.nunique() > 2:
        known = numbers.notna()
        ranks = numbers.rank() / max(int(known.sum()), 1)
        column = (ranks - ranks.mean()).fillna(0.0).to_numpy(float)
        return np.column_stack([column, known.to_numpy(float)] if not known.all() else [column])
    texts = values.astype(str).where(values.notna(), "")
    choices = sorted(set(texts))[1:]
    if len(texts) < MIN_UNITS * len(choices):  # names, hardly two trials of one
        return np.zeros((len(texts), 0))
    return np.column_stack([np.zeros((len(texts), 0)), *((texts == one).to_numpy(float) for one in choices)])


def _chance(found: _Fit, column: np.ndarray) -> float:
    """The p of what is left of times that a further column explains (F)."""
    if not column.shape[1]:
        return 1.0
    more = np.hstack([found.columns, column])
    rest = found.bent - found.curve
    coefficients, _, rank, _ = np.linalg.lstsq(more, rest, rcond=None)
    left = rest - more @ coefficients
    added = int(rank) - int(np.linalg.matrix_rank(found.columns))
    return _p_of_f(found.squares, float(left @ left), added, len(rest) - int(rank) - 1)


def _p_of_f(before: float, after: float, added: int, freedom: int) -> float:
    if added <= 0 or freedom <= 0 or not before > after:
        return 1.0
    return float(scipy.stats.f.sf((before - after) / added / (after / freedom), added, freedom)) if after > 0 else 0.0


def _leveled(found: _Fit, y: np.ndarray, n: np.ndarray, second: np.ndarray, also: tuple[str, ...]) -> StepCurve:
    """Analysis of covariance: which run a trial is of counts as far as nothing else tells it (Frisch and Waugh)."""
    moved = 1 / (n + found.start_up)  # the curve, by how sure its start-up is
    others = np.column_stack([np.ones(len(n)), found.columns[:, 2:], moved])
    coefficients, _, rank, _ = np.linalg.lstsq(others, second, rcond=None)
    apart = second - others @ coefficients
    freedom = len(n) - 1 - int(rank)
    alone = float(apart @ apart) if freedom > 0 else 0.0
    known = found.curve + found.columns[:, 2:] @ _weights(found, found.bent - found.curve)[2:]
    level = y - known + float(known.mean())
    first, last = level[second == 0], level[second == 1]
    plain = len(first) * len(last) / len(n)
    stretch = math.sqrt(plain / alone * (len(n) - 2) / freedom) if alone else math.inf
    without_steps = found.bent - found.columns @ _weights(found, found.bent)
    return StepCurve(
        logs=(_stretched(first, stretch), _stretched(last, stretch)),
        means=(math.exp(float(first.mean())), math.exp(float(last.mean()))),
        steps=math.exp(float(np.log(n + found.start_up).mean())) - found.start_up,
        shared=2 * alone,
        explained=_p_of_f(float(without_steps @ without_steps), found.squares, 1, freedom) < ALPHA,
        also=also,
    )


def _weights(found: _Fit, rest: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.lstsq(found.columns, rest, rcond=None)[0])


def _stretched(values: np.ndarray, by: float) -> np.ndarray:
    middle = float(values.mean())
    return middle + (values - middle) * by
