"""A quantity of a comparison: two values, their ratio with its interval, and what may be said of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpudiag.comparison.autocorrelation import MIN_UNITS
from gpudiag.comparison.intervals import Ratio, adjusted
from gpudiag.comparison.match import Match
from gpudiag.comparison.power import ALPHA, Case, detectable, level_left
from gpudiag.statement import NOTHING, Statement, joined

FASTER, SLOWER, HIGHER, LOWER = "faster", "slower", "higher", "lower"
NO_EVIDENCE, EQUIVALENT, INVALID = "no evidence", "equivalent", "invalid"
FAILS_MORE, FAILS_LESS = "fails more", "fails less"
"""What a comparison is called, never a quantity, where the share of failed items changed and time per result did not,
or not for the worse where more fail.
"""
COSTS_MORE, COSTS_LESS = "costs more", "costs less"
"""The same where as many of the same steps took more or less wall time or GPU time in all, and the tested time of a
step does not say so: a fact of these two runs, not a statement about their settings.
"""
SAME_WITHIN = 0.05
"""Equivalent: the whole interval of the ratio lies within +-5 % (METHODS 7)."""
TIME, SPEED, PRICE, LEVEL, RATE, TOTAL, PEAK = "time", "speed", "price", "level", "rate", "total", "peak"
DISPLAY_ONLY = (TOTAL, PEAK)
WORK = (TIME, SPEED, PRICE)
"""Kinds that mean nothing unless both runs did the same work."""
OTHER_ITEMS = Statement("The runs hold different items.")


@dataclass(frozen=True)
class Quantity:
    """``ratio`` is experiment over baseline, ``low`` to ``high`` its 95 % interval, ``p`` and ``p_adjusted`` the
    two-sided p of a ratio of 1, alone and among all quantities; NaN is unknown. ``title`` and ``note`` say what it is
    the mean of and how it was compared.

    ``kind``: time and speed are called faster or slower; price, level and rate higher or lower; a total or a peak is
    one observation a side and is described. ``whole``: it is about the whole run, not about the items in both.
    ``follows``: the quantity whose number this is as well, and whose test counts for both; '' for its own.
    ``detectable``: the ratio above 1 that 4 of 5 pairs of this size would show as different (its inverse as well);
    ``cases``: the standard errors of the ratio's logarithm that pairs of this size may have.
    """

    name: str
    title: str | Statement
    unit: str
    kind: str
    baseline: float
    experiment: float
    ratio: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_adjusted: float = math.nan
    n_baseline: float = math.nan
    n_experiment: float = math.nan
    method: str = ""
    note: Statement = NOTHING
    verdict: str = NO_EVIDENCE
    whole: bool = True
    tested: bool = True
    follows: str = ""
    detectable: float = math.nan
    cases: tuple[Case, ...] = ()


def make(
    name: str,
    title: str | Statement,
    unit: str,
    kind: str,
    values: Sequence[float],
    ratio: Ratio | None = None,
    *,
    note: Statement = NOTHING,
    n_baseline: float = math.nan,
    n_experiment: float = math.nan,
    whole: bool = True,
    tested: bool = True,
    follows: str = "",
) -> Quantity:
    """A quantity of these two values; ``ratio`` where more is known than their quotient."""
    a, b = values
    found = ratio or Ratio(b / a if a and not math.isnan(a) else math.nan)
    return Quantity(
        name,
        title,
        unit,
        kind,
        a,
        b,
        found.ratio,
        found.low,
        found.high,
        found.p,
        n_baseline=n_baseline,
        n_experiment=n_experiment,
        method=found.method,
        note=joined(found.note, note),
        whole=whole,
        tested=tested,
        follows=follows,
        cases=found.cases or (Case(1.0, found.log_se, found.freedom),),
    )


def judged(found: list[list[Quantity]], invalid: list[bool], matches: list[Match]) -> list[list[Quantity]]:
    """Verdicts of all comparisons at once: of so many tests Benjamini and Hochberg's 5 % may be chance."""
    alone = [quantity.p if quantity.tested else math.nan for part in found for quantity in part]
    p = iter(adjusted(alone))
    out = []
    for part, bad, matched in zip(_with_power(found, alone), invalid, matches, strict=True):
        tested = [replace(quantity, p_adjusted=next(p)) for quantity in part]
        by_name = {quantity.name: quantity.p_adjusted for quantity in tested}
        shared = [replace(q, p_adjusted=by_name.get(q.follows or q.name, math.nan)) for q in tested]
        out.append([_judge(quantity, bad, matched) for quantity in shared])
    return out


def _with_power(found: list[list[Quantity]], p: list[float]) -> list[list[Quantity]]:
    """What each quantity could show among the p-values of all, of which its own (or the one it follows) is left out."""
    place, out = 0, []
    for part in found:
        at = {quantity.name: place + i for i, quantity in enumerate(part)}
        own = [at.get(quantity.follows or quantity.name, place + i) for i, quantity in enumerate(part)]
        levels = {i: level_left(p[:i] + p[i + 1 :]) for i in set(own)}
        out.append([replace(q, detectable=detectable(q.cases, levels[i])) for q, i in zip(part, own, strict=True)])
        place += len(part)
    return out


def _judge(quantity: Quantity, invalid: bool, matched: Match) -> Quantity:
    if quantity.verdict == INVALID:
        return quantity
    verdict = say(quantity)
    partial = quantity.whole and matched.named and not matched.same_set
    if partial and quantity.kind in (*WORK, TOTAL) and not invalid:
        return replace(quantity, verdict=INVALID, note=joined(quantity.note, OTHER_ITEMS))
    if invalid and (quantity.kind in WORK or verdict not in (NO_EVIDENCE, EQUIVALENT)):
        return replace(quantity, verdict=INVALID)
    return replace(quantity, verdict=verdict)


def say(quantity: Quantity) -> str:
    """What interval and adjusted p allow, the gate aside."""
    if quantity.kind in DISPLAY_ONLY:
        return NO_EVIDENCE
    few = any(n < MIN_UNITS for n in (quantity.n_baseline, quantity.n_experiment))
    if not few and quantity.low >= 1 / (1 + SAME_WITHIN) and quantity.high <= 1 + SAME_WITHIN:
        return EQUIVALENT
    if not quantity.p_adjusted < ALPHA or quantity.ratio == 1:
        return NO_EVIDENCE
    more = quantity.ratio > 1 or (math.isnan(quantity.ratio) and quantity.experiment > quantity.baseline)
    words = {TIME: (SLOWER, FASTER), SPEED: (FASTER, SLOWER)}.get(quantity.kind, (HIGHER, LOWER))
    return words[0] if more else words[1]
