"""Changes over the weeks: of the whole fleet and of each large project, with what changed at the same time.

A change of the fleet's mean need not be one of any project: another mix of projects does the same (Simpson's paradox).
So the difference is split into what changed within the projects and what their shares changed (Kitagawa, JASA 50,
1955).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from gpudiag.fleets.factors import factors_at
from gpudiag.fleets.mix import LARGE, mixes
from gpudiag.fleets.quantities import QUANTITIES, Quantity, ratio
from gpudiag.fleets.steps import FEWEST, steps
from gpudiag.report.fleet.changes import Change, ChangedFactor, ChangeKind, Changes
from gpudiag.report.fleet.document import RunRow
from gpudiag.report.format import precise

LEVEL = 0.05
"""Chance of any false step among all series of a fleet: it is divided by their number (Bonferroni), one half among
those of the whole fleet, the other among those of projects."""
MOST_PROJECTS = 6
"""The largest ones are looked at: each further series makes all others harder to judge."""


@dataclass(frozen=True)
class Series:
    """A quantity by week: of the fleet where ``project`` is ''."""

    project: str
    quantity: Quantity
    weeks: tuple[str, ...]
    rows: tuple[tuple[RunRow, ...], ...]
    values: tuple[float, ...]


def changes_of(rows: Iterable[RunRow], week_of: Callable[[str | None], str]) -> Changes:
    """The steps of the fleet, GPU time of no single job included, and of its largest projects."""
    rows = [row for row in rows if row.start]
    every = [_series(quantity, project, part, week_of) for project, part in _scopes(rows) for quantity in QUANTITIES]
    series = [one for one in every if len(one.weeks) >= FEWEST]
    short = sum(0 < len(one.weeks) < FEWEST for one in every)
    whole = sum(not one.project for one in series)
    weights = {True: 2 * whole, False: 2 * (len(series) - whole)} if whole < len(series) else {True: whole, False: 0}
    made = [_changes(one, weights[not one.project]) for one in series]
    alike = median([correlation for _, correlation in made]) if made else 0.0
    found = [change for found, _ in made for change in found]
    return Changes(len(series), short, FEWEST, tuple(_weighed(one, found) for one in found), alike)


def _weighed(one: Change, found: Sequence[Change]) -> Change:
    """Less utilization is no loss where, in the same week, a completed trial began to take less GPU time."""
    if one.quantity != "util_pct" or not one.worse:
        return one
    for other in found:
        of_same = (other.project, other.first_week) == (one.project, one.first_week)
        if of_same and other.quantity == "gpu_s" and not other.worse:
            before, after = (precise(value, other.unit) for value in (other.before, other.after))
            cost = ChangedFactor(other.title, before, after, often=False)
            kinds: tuple[ChangeKind, ...] = tuple("improvement" if kind == "regression" else kind for kind in one.kinds)
            return replace(one, worse=False, factors=(cost, *one.factors), kinds=kinds)
    return one


def _scopes(rows: Sequence[RunRow]) -> list[tuple[str, list[RunRow]]]:
    """The fleet, and its largest projects where there are several."""
    held: dict[str, list[RunRow]] = {}
    for row in rows:
        held.setdefault(row.project, []).append(row)
    several, named = len(held) > 1, [name for name in held if name]
    largest = sorted(named, key=lambda name: (-math.fsum(row.gpu_s or 0.0 for row in held[name]), name))
    return [("", list(rows)), *((name, held[name]) for name in largest[:MOST_PROJECTS] if several)]


def _series(quantity: Quantity, project: str, rows: Iterable[RunRow], week_of: Callable[[str | None], str]) -> Series:
    by_week: dict[str, list[RunRow]] = {}
    for row in rows:
        if quantity.of(row) is not None:
            by_week.setdefault(week_of(row.start), []).append(row)
    held = [(week, tuple(mine), ratio(quantity, mine)) for week, mine in sorted(by_week.items())]
    known = [
        (week, mine, value) for week, mine, value in held if value is not None and (value > 0 or not quantity.relative)
    ]
    weeks, parts, values = zip(*known, strict=True) if known else ((), (), ())
    return Series(project, quantity, weeks, parts, values)


def _changes(series: Series, among: int) -> tuple[list[Change], float]:
    """The steps of one series, and the correlation of neighboring weeks beside them; ``among``: by how many the chance
    of a false one is divided.
    """
    quantity = series.quantity
    held = steps([quantity.scaled(value) for value in series.values], LEVEL / among, quantity.least)
    edges = [0, *(one.at for one in held), len(series.weeks)]
    spans = list(zip(pairwise(edges), pairwise(edges[1:]), held, strict=False))
    alike = _correlation([list(map(quantity.scaled, series.values[low:high])) for low, high in pairwise(edges)])
    made = [_change(series, low, at, high, min(step.p * among, 1.0)) for (low, at), (_, high), step in spans]
    return [one for one in made if one is not None], alike


def _correlation(parts: Sequence[Sequence[float]]) -> float:
    """Of neighboring weeks, once the mean of each part is taken away; 0 without noise."""
    left = [value - math.fsum(part) / len(part) for part in parts for value in part]
    power = math.fsum(value**2 for value in left)
    return math.fsum(a * b for a, b in pairwise(left)) / power if power > 1e-20 else 0.0


def _change(series: Series, low: int, at: int, high: int, p: float) -> Change | None:
    """The step at one place, between its neighbors; None where it is too small to matter."""
    quantity = series.quantity
    early, late = ([row for week in part for row in week] for part in (series.rows[low:at], series.rows[at:high]))
    before, after = ratio(quantity, early), ratio(quantity, late)
    if before is None or after is None:
        return None
    size = abs(after / before - 1) if quantity.relative else abs(after - before)
    if size < quantity.relevant:
        return None
    worse = (after < before) == quantity.higher_is_better
    factors, missing, kinds = factors_at(series.rows[low:high], at - low)
    mix = mixes(quantity, series.project, early, late)
    if mix:
        kinds.append("mix")
    if not factors and not any(part.share_pct >= 100 * LARGE for part in mix):
        kinds.append("regression" if worse else "improvement")  # what the mix leaves open
    return Change(
        project=series.project,
        quantity=quantity.name,
        title=quantity.title,
        unit=quantity.unit,
        last_week=series.weeks[at - 1],
        first_week=series.weeks[at],
        before=before,
        after=after,
        n_before=at - low,
        n_after=high - at,
        worse=worse,
        p=p,
        kinds=tuple(kinds),
        factors=tuple(factors),
        mix=tuple(mix),
        not_recorded=tuple(missing),
    )
