"""Why GPU time was lost, over all runs: causes, and failed trials by kind."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import starmap

from gpudiag.fleets.groups import GROUPS, UNKNOWN
from gpudiag.fleets.touched import touched_gpu_h, what_is_touched
from gpudiag.report.fleet.document import Cause, CauseTotal, FailedTrials, FailureTotal, RunRow

WORTH_SAYING = 0.01
"""A cause that lost, or is about, a smaller share of all GPU time comes after all others."""
SEVERITIES = ("critical", "warning", "note")


def causes_of(rows: Iterable[RunRow]) -> list[CauseTotal]:
    """What was found, in the order of :func:`_ranked`."""
    rows = list(rows)
    found: dict[str, list[tuple[RunRow, Cause]]] = {}
    for row in rows:
        for cause in row.causes:
            found.setdefault(cause.rule, []).append((row, cause))
    gpu_h = math.fsum(row.gpu_s or 0.0 for row in rows) / 3600
    return _ranked(starmap(_total, found.items()), gpu_h, Counter(row.top_cause for row in rows))


def _total(rule: str, held: Sequence[tuple[RunRow, Cause]]) -> CauseTotal:
    """One cause over the runs that had it."""
    top = sorted((row for row, _ in held if row.top_cause == rule), key=lambda row: -(row.recoverable_gpu_h or 0.0))
    touched = [(hours, row) for row, cause in held if (hours := touched_gpu_h(row, cause)) is not None]
    users = Counter(row.user or UNKNOWN for row, _ in held)
    most = max(touched, key=lambda one: one[0], default=None)
    worst = top[0] if top and top[0].recoverable_gpu_h else most[1] if most else next(iter(top), None)
    return CauseTotal(
        rule=rule,
        title=held[-1][1].title,
        n_runs=len(held),
        n_top=sum(bool(row.recoverable_gpu_h) for row in top),
        lost_gpu_h=math.fsum(row.recoverable_gpu_h or 0.0 for row in top),
        n_unpriced=sum(cause.lost_gpu_h is None for _, cause in held),
        worst_run=worst.run if worst else "",
        offenders=tuple((who, k) for who, k in users.most_common(3) if k > 1),
        touched=what_is_touched(rule),
        touched_gpu_h=math.fsum(hours for hours, _ in touched) if touched else None,
        lost_cost=_paid(top),
        severity=min((cause.severity for _, cause in held), key=SEVERITIES.index),
    )


def _ranked(held: Iterable[CauseTotal], gpu_h: float, n_first: Mapping[str, int]) -> list[CauseTotal]:
    """First the causes whose loss is known, from WORTH_SAYING of all GPU time on, by that; then those of which the GPU
    time of their trials is known, and of these trials what was lost is not, by that time; then those of which only the
    GPU time of their runs is known, notes aside, by that; then the rest. ``n_first``: runs that had each before all
    others.
    """
    least = WORTH_SAYING * gpu_h

    def key(one: CauseTotal) -> tuple[float, ...]:
        own = one.touched_gpu_h or 0.0
        if one.lost_gpu_h > 0 and one.lost_gpu_h >= least:
            return 0, -one.lost_gpu_h
        if own > 0 and own >= least and one.touched != "runs":
            return 1, -own
        if own > 0 and own >= least and one.severity != SEVERITIES[-1]:
            return 2, -own
        return 3, -max(one.lost_gpu_h, 0.0 if one.touched == "runs" else own)

    return sorted(held, key=lambda one: (*key(one), -n_first.get(one.rule, 0), -one.n_runs, one.rule))


def _paid(rows: Iterable[RunRow]) -> dict[str, float]:
    """What the lost GPU-hours cost, by currency, in runs whose price is known."""
    out: dict[str, list[float]] = {}
    for row in rows:
        if row.price_per_gpu_h is not None and row.recoverable_gpu_h:
            out.setdefault(row.currency, []).append(row.recoverable_gpu_h * row.price_per_gpu_h)
    return {currency: math.fsum(held) for currency, held in sorted(out.items())}


def failures_of(rows: Iterable[RunRow], group: str) -> list[FailureTotal]:
    """Failed trials by kind, the most GPU time first, then the most trials; with the parts of the fleet that had
    most of them.
    """
    held: dict[str, list[tuple[RunRow, FailedTrials]]] = {}
    for row in rows:
        for one in row.failures:
            held.setdefault(one.kind, []).append((row, one))
    out = []
    for kind, mine in held.items():
        known = [one.gpu_s for _, one in mine if one.gpu_s is not None]
        groups: Counter[str] = Counter()
        for row, one in mine:
            groups[GROUPS[group](row) or UNKNOWN] += one.n_trials
        n = sum(one.n_trials for _, one in mine)
        total_s = math.fsum(known) if known else None
        out.append(FailureTotal(kind, n, len(mine), total_s, tuple(groups.most_common(3))))
    return sorted(out, key=lambda one: (-(one.gpu_s or 0.0), -one.n_trials, one.kind))
