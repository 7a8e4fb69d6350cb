"""How well an early value ranks trials as a later one does: what any early cut rests on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gpudiag.forecast.pruning.recorded import Array, Recorded
from gpudiag.measures._trials.chances import spearman, spearman_drawn

FEWEST = 15
"""Trials below which no agreement is given (METHODS 5)."""
MOST = 400
RESAMPLES = 400
TOO_EARLY, SAFE = 0.3, 0.7
"""An interval of the rank correlation wholly below the first: too early; above the second: safe to cut (a default)."""
COLUMNS = ("step", "n", "spearman", "spearman_low", "spearman_high", "n_pairs", "depth", "concordance",
           "concordance_low", "concordance_high", "reading")  # fmt: skip


def rank_agreement(records: Sequence[Recorded], steps: Sequence[int]) -> pd.DataFrame:
    """One row a step: agreement between the order of trials there and later.

    ``spearman`` of the value at the step and the final value over the ``n`` COMPLETE trials that reported there: these
    survived, which overstates what early values tell. ``concordance`` (-1 to 1, Kendall) over all pairs of trials
    of one study, each compared at the deepest step that both reached, over ``n_pairs`` trials; ``depth`` is the
    median of these steps. Intervals are 95 % by bootstrap over trials; NaN below 15 trials.
    ``reading``: too early, safe, undecided or too few trials.
    """
    tables = [_table(record) for record in records]
    rows = []
    for step in steps:
        n, rho = _spearman(records, tables, step)
        pairs = _concordance(tables, step)
        rows.append((step, n, *rho, *pairs, _reading(n, rho)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _reading(n: int, rho: tuple[float, float, float]) -> str:
    if n < FEWEST:
        return "too few trials"
    if rho[2] < TOO_EARLY:
        return "too early"
    return "safe" if rho[1] > SAFE else "undecided"


def _table(record: Recorded) -> list[dict[int, float]]:
    """Values by step of each trial, signed so that less is better."""
    sign = 1.0 if record.direction == "minimize" else -1.0
    return [
        {step: sign * value for step, value in zip(steps, values, strict=True) if np.isfinite(value)}
        for steps, values in zip(record.steps, record.values, strict=True)
    ]


def _spearman(
    records: Sequence[Recorded], tables: Sequence[list[dict[int, float]]], step: int
) -> tuple[int, tuple[float, float, float]]:
    """Over COMPLETE trials of the study that has most of them."""
    best: tuple[Array, Array] = (np.zeros(0), np.zeros(0))
    for record, table in zip(records, tables, strict=True):
        sign = 1.0 if record.direction == "minimize" else -1.0
        chosen = [
            i
            for i, state in enumerate(record.state)
            if state == "COMPLETE" and step in table[i] and np.isfinite(record.value[i]) and max(table[i]) > step
        ]
        if len(chosen) > len(best[0]):
            best = np.array([table[i][step] for i in chosen]), sign * record.value[chosen]
    early, late = (x[:: max(1, -(-len(x) // MOST))] for x in best)
    n = len(best[0])
    if n < FEWEST:
        return n, (np.nan,) * 3
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(early), (RESAMPLES, len(early)))
    spread = spearman_drawn(early, late, drawn)
    low, high = np.nanquantile(spread, [0.025, 0.975])
    middle = spearman(early, late)
    return n, (middle, min(float(low), middle), max(float(high), middle))


def _concordance(tables: Sequence[list[dict[int, float]]], step: int) -> tuple[int, float, float, float, float]:
    """(trials, median depth, concordance, low, high) over pairs within the study that has most such trials."""
    chosen: list[dict[int, float]] = []
    for table in tables:
        reached = [values for values in table if step in values and max(values) > step]
        chosen = max(chosen, reached, key=len)
    n = len(chosen)
    if n < FEWEST:
        return n, np.nan, np.nan, np.nan, np.nan
    chosen = chosen[:: max(1, -(-n // MOST))]
    grid = sorted({s for values in chosen for s in values if s >= step})
    curves = np.array([[values.get(s, np.nan) for s in grid] for values in chosen])
    known = np.isfinite(curves)
    sign, depth = np.zeros((len(chosen), len(chosen))), np.full((len(chosen), len(chosen)), -1)
    early = np.sign(curves[:, 0][:, None] - curves[:, 0][None])
    for column in range(len(grid) - 1, 0, -1):
        both = known[:, column][:, None] & known[:, column][None] & (depth < 0)
        late = np.sign(np.nan_to_num(curves[:, column])[:, None] - np.nan_to_num(curves[:, column])[None])
        sign[both], depth[both] = (early * late)[both], column
    pair = depth >= 0
    np.fill_diagonal(pair, val=False)
    if not pair.any():
        return n, np.nan, np.nan, np.nan, np.nan
    rng = np.random.default_rng(0)
    weight = rng.multinomial(len(chosen), np.full(len(chosen), 1 / len(chosen)), RESAMPLES).astype(float)
    agreed, counted = ((weight @ x * weight).sum(axis=1) for x in (np.where(pair, sign, 0.0), pair.astype(float)))
    middle = float(sign[pair].mean())
    low, high = np.quantile(agreed[counted > 0] / counted[counted > 0], [0.025, 0.975])
    return n, float(np.median(np.array(grid)[depth[pair]])), middle, min(float(low), middle), max(float(high), middle)
