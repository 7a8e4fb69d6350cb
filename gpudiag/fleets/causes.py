"""Why GPU time was lost, over all runs: causes, and failed trials by kind."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from gpudiag.fleets.groups import GROUPS, UNKNOWN
from gpudiag.report.fleet.document import CauseTotal, FailedTrials, FailureTotal, RunRow


def causes_of(rows: Iterable[RunRow]) -> list[CauseTotal]:
    """What was found, by the GPU-hours it lost in runs where it was the costliest, then by runs."""
    titles: dict[str, str] = {}
    runs: Counter[str] = Counter()
    unpriced: Counter[str] = Counter()
    top: dict[str, list[RunRow]] = {}
    users: dict[str, Counter[str]] = {}
    for row in rows:
        for cause in row.causes:
            titles[cause.rule] = cause.title
            runs[cause.rule] += 1
            unpriced[cause.rule] += cause.lost_gpu_h is None
            users.setdefault(cause.rule, Counter())[row.user or UNKNOWN] += 1
        if row.top_cause:
            top.setdefault(row.top_cause, []).append(row)
    out = []
    for rule, n in runs.items():
        mine = sorted(top.get(rule, []), key=lambda row: -(row.recoverable_gpu_h or 0.0))
        lost = math.fsum(row.recoverable_gpu_h or 0.0 for row in mine)
        worst = mine[0].run if mine else ""
        repeated = tuple((who, k) for who, k in users[rule].most_common(3) if k > 1)
        paid = _paid(mine)
        n_top = sum(bool(row.recoverable_gpu_h) for row in mine)
        out.append(CauseTotal(rule, titles[rule], n, n_top, lost, unpriced[rule], worst, repeated, paid))
    return sorted(out, key=lambda one: (-one.lost_gpu_h, -one.n_runs, one.rule))


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
