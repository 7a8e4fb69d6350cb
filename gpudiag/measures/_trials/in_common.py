"""Which value of a parameter failed trials have oftener than chance lets them, against those that ended well."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.measures._trials.chances import p_more_often
from gpudiag.statement import NOTHING, Statement

MOST_VALUES = 10
"""A number with more values is cut at its deciles."""
LEAST = 5
"""Trials that must have failed, or a value, before values are compared."""


@dataclass(frozen=True)
class InCommon:
    """``bad_with`` of ``n_bad`` failed trials with the parameter have the value, ``well_with`` of ``n_well`` others.
    ``p``: one-sided Fisher, times the values tried; NaN where there was nothing to compare.
    """

    condition: Statement = NOTHING
    n_bad: int = 0
    bad_with: int = 0
    n_well: int = 0
    well_with: int = 0
    p: float = math.nan


def in_common(trials: pd.DataFrame, ends: pd.DataFrame, bad: pd.Series, *, single: bool = False) -> InCommon:
    """The value that tells these bad trials best from those that ended well between the first and the last of them.

    ``trials`` and ``ends`` (state, end) have the same rows. ``single``: numbers of few values are looked at one by
    one as well, and not only by borders.
    """
    if bad.sum() < LEAST:
        return InCommon()
    well = ends["state"].isin(("COMPLETE", "PRUNED"))
    at = ends.loc[bad, "end"]
    if at.notna().any():
        well &= ends["end"].between(at.min(), at.max())
    found = []
    for name in (str(name) for name in trials if str(name).startswith("params.")):
        values = trials[name]
        known = values.notna()
        n, m = int((bad & known).sum()), int((well & known).sum())
        for said, has in _conditions(name.removeprefix("params."), values, single=single) if min(n, m) >= LEAST else ():
            a, b = int((has & bad).sum()), int((has & well).sum())
            found.append(InCommon(said, n, a, m, b, p_more_often(a, n, b, m)))
    if not found:
        return InCommon()
    best = min(found, key=lambda one: one.p)
    return InCommon(
        best.condition, best.n_bad, best.bad_with, best.n_well, best.well_with, min(1.0, best.p * len(found))
    )


def _conditions(name: str, values: pd.Series, *, single: bool) -> Iterator[tuple[Statement, pd.Series]]:
    """What a value can be said to be: one of a few, or a number of at least or at most so much."""
    number = pd.to_numeric(values, errors="coerce")
    if values.dtype == bool or number.notna().sum() < values.notna().sum():
        texts = values.astype(object).map(str).where(values.notna())
        if texts.nunique() <= MOST_VALUES:
            for text in sorted(texts.dropna().unique()):
                yield Statement("{name} = {text}", name=name, text=text), texts == text
        return
    cuts = np.unique(number.dropna())
    if len(cuts) > MOST_VALUES:
        cuts = np.unique(np.quantile(cuts, np.arange(0.1, 1.0, 0.1)))
    lows, highs = cuts[1:], cuts[:-1]
    if single and 1 < len(cuts) <= MOST_VALUES and number.nunique() == len(cuts):
        for value in cuts:
            yield Statement("{name} = {value}", name=name, value=float(value)), number == value
        lows = highs = cuts[1:-1]  # beyond the outer ones there is a single value
    for least, most in zip(lows, highs, strict=True):
        yield Statement("{name} ≥ {least}", name=name, least=float(least)), number >= least
        yield Statement("{name} ≤ {most}", name=name, most=float(most)), number <= most
