"""How items of two runs ended: failures, pruning and what logs tell of."""

from __future__ import annotations

from dataclasses import replace

from gpudiag.comparison.intervals import rate_ratio, share_ratio
from gpudiag.comparison.match import Match
from gpudiag.comparison.quantity import RATE, Quantity, make
from gpudiag.comparison.side import Side
from gpudiag.statement import Statement

EVENTS = "{n_a} in {a_s} and {n_b} in {b_s}, by the logs given."
SHARES = "{hits_a} of {n_a} and {hits_b} of {n_b}; Fisher's exact {p:as significance}."


def outcomes(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    """Failures of finished items, failures as events, and PRUNED of decided trials."""
    out = []
    a, b = (side.get("failures") for side in (baseline, experiment))
    if a is not None and b is not None and a.n_finished and b.n_finished:
        out.append(_share("failures", "FAIL of finished items", (a.n_fail, a.n_finished), (b.n_fail, b.n_finished)))
        if a.n_events != a.n_fail or b.n_events != b.n_fail:
            events = [(s.n_events, s.n_finished - (s.n_fail - s.n_events)) for s in (a, b)]
            note = Statement("A streak of short failures on one worker is one event.")
            out.append(replace(_share("failure_events", "Failure events of finished items", *events), note=note))
        out += _log_events(baseline, experiment)
    a, b = (side.get("pruning") for side in (baseline, experiment))
    if a is not None and b is not None and (a.n_pruned or b.n_pruned) and a.n_decided and b.n_decided:
        out.append(
            _share(
                "pruning",
                "PRUNED of decided (COMPLETE + PRUNED) trials",
                (a.n_pruned, a.n_decided),
                (b.n_pruned, b.n_decided),
            )
        )
    return out


def _log_events(baseline: Side, experiment: Side) -> list[Quantity]:
    """Failures that logs tell of (out of memory, Xid and the like) per hour of wall time, as two Poisson rates."""
    sides = (baseline, experiment)
    n = [int(side.get("failures").by_kind["n_events"].sum()) for side in sides]  # type: ignore[union-attr]
    hours = [side.wall_s / 3600 for side in sides]
    if not sum(n) or not all(hour > 0 for hour in hours):
        return []
    rates = [count / hour for count, hour in zip(n, hours, strict=True)]
    note = Statement(EVENTS, n_a=n[0], a_s=sides[0].wall_s, n_b=n[1], b_s=sides[1].wall_s)
    return [make("log_events", "Failures told by logs, per hour", "1/h", RATE, rates, rate_ratio(n, hours), note=note)]


def _share(name: str, title: str, a: tuple[int, int], b: tuple[int, int]) -> Quantity:
    made = make(name, title, "%", RATE, (100 * a[0] / a[1], 100 * b[0] / b[1]), share_ratio(*a, *b))
    note = Statement(SHARES, hits_a=a[0], n_a=a[1], hits_b=b[0], n_b=b[1], p=made.p)
    return replace(made, n_baseline=float(a[1]), n_experiment=float(b[1]), note=note)
