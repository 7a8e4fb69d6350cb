"""What a search draws from: the space that its study declares, else the values that were tried."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy

from gpudiag.comparison.autocorrelation import MIN_UNITS
from gpudiag.comparison.side import Side
from gpudiag.statement import Statement, joined

SAME_SPACE = 0.95
"""Jaccard index from which two ranges or sets of choices are the same space, as for items by name."""
CHANCE = 1e-3
SLACK = 1e-9


@dataclass(frozen=True)
class Domain:
    """Values of a parameter: ``low`` to ``high`` (on a logarithmic scale if ``log``), or ``choices``."""

    low: float = math.nan
    high: float = math.nan
    log: bool = False
    choices: frozenset[str] = frozenset()

    @property
    def fixed(self) -> bool:
        return len(self.choices) == 1 or self.low == self.high

    @property
    def said(self) -> Statement:
        """As a reader would write it."""
        if self.choices:
            return Statement("{choices}", choices=", ".join(sorted(self.choices)[:6]))
        if self.fixed:
            return Statement("{low}", low=self.low)
        return Statement("{low} to {high}", low=self.low, high=self.high)

    def holds(self, values: pd.Series) -> bool:
        """Whether all of these values lie in it."""
        if self.choices:
            return set(_texts(values)) <= self.choices
        numbers = _numbers(values)
        slack = SLACK * max(abs(self.low), abs(self.high))
        return numbers is not None and bool(((numbers >= self.low - slack) & (numbers <= self.high + slack)).all())


def declared(side: Side) -> dict[str, Domain]:
    """Domains by parameter, where every study that tried it declares it and no value contradicts that."""
    trials, studies = side.run.trials, side.run.studies
    if "space" not in studies or trials.empty:
        return {}
    texts = studies.drop_duplicates("study").set_index("study")["space"].reindex(trials["study"].unique())
    if texts.isna().any():
        return {}
    spaces = [{name: _domain(held) for name, held in json.loads(str(text)).items()} for text in texts]
    names = set.union(*(set(space) for space in spaces))
    found = {name: _union([space[name] for space in spaces if name in space]) for name in names}
    tried = {name: trials[f"params.{name}"].dropna() for name in names if f"params.{name}" in trials}
    return {n: domain for n, domain in found.items() if domain is not None and n in tried and domain.holds(tried[n])}


def tried(values: pd.Series) -> Domain:
    """The domain that values span: from the least to the greatest number, or all choices."""
    numbers = _numbers(values)
    if numbers is None:
        return Domain(choices=frozenset(_texts(values)))
    return Domain(float(numbers.min()), float(numbers.max()))


def shared(a: Domain, b: Domain) -> float:
    """Jaccard index of two domains: what is in both over what is in either."""
    if bool(a.choices) != bool(b.choices):
        return 0.0
    if a.choices:
        return len(a.choices & b.choices) / len(a.choices | b.choices)
    if (a.low, a.high) == (b.low, b.high):
        return 1.0
    log = a.log and b.log and min(a.low, b.low) > 0
    ends = [math.log(x) if log else float(x) for x in (a.low, a.high, b.low, b.high)]
    both, either = min(ends[1], ends[3]) - max(ends[0], ends[2]), max(ends[1], ends[3]) - min(ends[0], ends[2])
    return max(both, 0.0) / either if either > 0 else 1.0


def apart(a: pd.Series, b: pd.Series) -> bool:
    """Whether nothing of what one run tried lies among what the other did: ranges that touch at most, no choice in
    common. False below 6 values a side, where chance does so.
    """
    if min(len(a), len(b)) < MIN_UNITS:
        return False
    one, other = tried(a), tried(b)
    if one.choices or other.choices:
        return not one.choices & other.choices
    return (one.low, one.high) != (other.low, other.high) and (one.high <= other.low or other.high <= one.low)


def drawn_apart(a: pd.Series, b: pd.Series, tests: int) -> bool:
    """Whether values were drawn from the two alike but for chance: Kolmogorov-Smirnov of numbers, chi-squared else.

    A sampler that learns draws unevenly, so that this alone is no other space. ``tests``: parameters that are asked.
    """
    x, y = _numbers(a), _numbers(b)
    if x is not None and y is not None:
        return bool(scipy.stats.ks_2samp(x, y, method="asymp").pvalue < CHANCE / tests)
    texts = [pd.Series(_texts(values)).value_counts() for values in (a, b)]
    table = pd.concat(texts, axis=1).fillna(0).to_numpy()
    return len(table) > 1 and bool(scipy.stats.chi2_contingency(table).pvalue < CHANCE / tests)


def said_of(names: list[str], a: dict[str, Domain], b: dict[str, Domain]) -> Statement:
    """Each parameter with its two domains, baseline first; four of them at most."""
    each = [Statement("{name} {a} and {b}", name=name, a=a[name].said, b=b[name].said) for name in names[:4]]
    more = [Statement("{n} more", n=len(names) - 4)] if len(names) > 4 else []
    return joined(*each, *more, by="; ")


def _domain(held: dict[str, object]) -> Domain:
    if "choices" in held:
        return Domain(choices=frozenset(str(choice) for choice in held["choices"]))  # type: ignore[attr-defined]
    return Domain(float(str(held["low"])), float(str(held["high"])), bool(held["log"]))


def _union(domains: list[Domain]) -> Domain | None:
    if len({bool(domain.choices) for domain in domains}) != 1:
        return None
    choices = frozenset[str]().union(*(domain.choices for domain in domains))
    low, high = min(domain.low for domain in domains), max(domain.high for domain in domains)
    return Domain(low, high, all(domain.log for domain in domains), choices)


def _numbers(values: pd.Series) -> np.ndarray | None:
    """Values as numbers, None where one is none (truth values are choices)."""
    if values.map(lambda value: isinstance(value, bool | np.bool_)).any():
        return None
    numbers = pd.to_numeric(values, errors="coerce")
    return None if numbers.isna().any() else numbers.to_numpy(float)


def _texts(values: pd.Series) -> list[str]:
    """Choices as JSON has them, text as it is."""
    return [value if isinstance(value, str) else json.dumps(value, default=str) for value in values.tolist()]
