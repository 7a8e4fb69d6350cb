"""Which value of a parameter failed trials, or others that stand out, have oftener than those that began near them
and ended well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from gpudiag.measures._trials.chances import p_more_often_within
from gpudiag.statement import NOTHING, Statement

MOST_VALUES = 10
"""A number with more values is cut at its deciles; of a text with more, those that are few are left out."""
MOST_TEXTS = 50
"""A text with more values is no choice but a name."""
LEAST = 5
"""Trials that must have failed, or a value, before values are compared."""


NEAR = 10
"""Trials that began one after the other and are compared with each other alone. A sampler drifts from one value to
another, and an outage fails every trial for a while: neither is a cause, and neither tells trials of ten apart."""
LEAST_PLACES = 3
"""Such places in which failed trials must have the value oftener than the others: one coincidence is none."""


@dataclass(frozen=True)
class InCommon:
    """``bad_with`` of ``n_bad`` failed trials with the parameter have the value, ``well_with`` of ``n_well`` others.
    ``p``: one-sided, exact within neighbors, times the values tried; NaN where there was nothing to compare.
    """

    condition: Statement = NOTHING
    n_bad: int = 0
    bad_with: int = 0
    n_well: int = 0
    well_with: int = 0
    p: float = math.nan


def in_common(trials: pd.DataFrame, ends: pd.DataFrame, bad: pd.Series, *, single: bool = False) -> InCommon:
    """The value that tells these bad trials best from those that began near them and ended well; it is counted among
    all that ended well between the first and the last of them.

    ``trials`` and ``ends`` (study, state, start, end) have the same rows. ``single``: numbers of few values are looked
    at one by one as well, and not only by borders.
    """
    return _best(trials, ends, bad, single=single)[0]


def having_in_common(trials: pd.DataFrame, ends: pd.DataFrame, bad: pd.Series, most_p: float) -> np.ndarray:
    """True for each trial with the value that tells these bad trials best; for none where that may be chance."""
    found, has = _best(trials, ends, bad, single=True)
    return has.to_numpy(bool) & (found.p < most_p)


def _best(trials: pd.DataFrame, ends: pd.DataFrame, bad: pd.Series, *, single: bool) -> tuple[InCommon, pd.Series]:
    """The value, and which trials have it."""
    if bad.sum() < LEAST:
        return InCommon(), bad & False
    well = ends["state"].isin(("COMPLETE", "PRUNED")) & ~bad
    near = _neighbors(ends, bad, well)
    at = ends.loc[bad, "end"]
    if at.notna().any():
        well &= ends["end"].between(at.min(), at.max())
    found = []
    for name in (str(name) for name in trials if str(name).startswith("params.")):
        values = trials[name]
        known = values.notna()
        n, m = int((bad & known).sum()), int((well & known).sum())
        mine = near[known[near.index]]
        for said, has in _conditions(name.removeprefix("params."), values, single=single) if min(n, m) >= LEAST else ():
            a, b = int((has & bad).sum()), int((has & well).sum())
            found.append((InCommon(said, n, a, m, b, _p_within(mine, has) if a * m > b * n else 1.0), has))
    if not found:
        return InCommon(), bad & False
    best, has = min(found, key=lambda one: one[0].p)
    return replace(best, p=min(1.0, best.p * len(found))), has


def _neighbors(ends: pd.DataFrame, bad: pd.Series, well: pd.Series) -> pd.DataFrame:
    """Bad trials and those that ended well, with the place of each: its study and ten in the order of starts."""
    judged = ends[bad | well].sort_values("start", kind="stable")
    tens = judged.groupby("study").cumcount() // NEAR
    return pd.DataFrame({"bad": bad[judged.index], "place": judged.groupby(["study", tens]).ngroup()})


def _p_within(near: pd.DataFrame, has: pd.Series) -> float:
    has = has[near.index]
    counts = pd.DataFrame({"n": 1, "bad": near["bad"], "has": has, "both": has & near["bad"]}).astype(int)
    places = counts.groupby(near["place"]).sum()
    oftener = places["both"] * places["n"] > places["bad"] * places["has"]
    if oftener.sum() < LEAST_PLACES:
        return 1.0
    groups = Counter(places[["n", "bad", "has"]].itertuples(index=False, name=None))
    return p_more_often_within(groups, int(places["both"].sum()))


def _conditions(name: str, values: pd.Series, *, single: bool) -> Iterator[tuple[Statement, pd.Series]]:
    """What a value can be said to be: one of a few, or a number of at least or at most so much."""
    number = pd.to_numeric(values, errors="coerce")
    if values.dtype == bool or number.notna().sum() < values.notna().sum():
        texts = values.astype(object).map(str).where(values.notna())
        often = texts.value_counts()
        often = often if len(often) <= MOST_VALUES else often[often >= LEAST]
        for text in sorted(often.index) if len(often) <= MOST_TEXTS else ():
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
