"""Planted faults of pruning: too many, before it can be, before values mean anything."""

from __future__ import annotations

import numpy as np

from gpudiag.rules._engine.verdict import Severity, Status
from gpudiag.run import Run
from planted.base import Edge, fault, in_workers, reports, run, study, trials


@fault(
    "pruning-rate-high",
    edges={
        "high_pct": Edge({"n": 87}, {"n": 88}, Status.NOT_ASSESSED, Severity.NOTE),
        "min_trials": Edge({"n": 4, "of": 4}, {"n": 5, "of": 5}, Status.NOT_ASSESSED, Severity.CRITICAL),
        "high_cost_pct": Edge({"pruned_s": 7.9}, {"pruned_s": 8.1}, Severity.NOTE, Severity.WARNING),
        "high_first_pct": Edge({"at_first": 46}, {"at_first": 47}, Severity.NOTE, Severity.WARNING),
    },
    bigger=({"n": 95}, {"n": 99}, {"n": 99, "at_first": 90}),
)
def often(*, n: int = 92, of: int = 100, pruned_s: float = 5.0, at_first: int = 30) -> Run:
    """Of ``of`` trials ``n`` are pruned, after ``pruned_s`` each and ``at_first`` of them at step 1; the others
    take 92 s.
    """
    states = ["PRUNED"] * n + ["COMPLETE"] * (of - n)
    rows = [(s, a, b) for s, (_, a, b) in zip(states, in_workers([pruned_s] * n + [92.0] * (of - n)), strict=True)]
    told = [(i, step, 1.0) for i in range(n) for step in range(1, 2 if i < at_first else 3 + i % 3)]
    return run(trials=trials(rows), reports=reports(told), studies=study())


@fault(
    "pruned-before-possible",
    edges={"max_trials": Edge({"early": 0}, {"early": 1})},
    bigger=({"early": 5}, {"early": 10}),
)
def before_possible(*, early: int = 2) -> Run:
    """Of ten pruned trials ``early`` have three reports, where patience 2 needs four."""
    rows = [*in_workers([100.0] * 10, state="PRUNED"), ("COMPLETE", 2000.0, 2100.0)]
    told = [(i, step, 1.0) for i in range(10) for step in range(1, 4 if i < early else 5)]
    return run(
        trials=trials(rows), reports=reports(told), settings={"pruner": "patient(hyperband(1,100,3),patience=2)"}
    )


@fault(
    "pruned-too-early",
    edges={
        "too_early_ratio": Edge({"agree": 0.45}, {"agree": -0.1}, Status.NOT_ASSESSED),
        "safe_ratio": Edge({"agree": 0.5}, {"agree": 0.97}, Status.NOT_ASSESSED, Status.OK),
    },
    bigger=({"agree": -0.5}, {"agree": -1.0}),
)
def too_early(*, agree: float = -0.1) -> Run:
    """One trial is pruned at step 1; in 60 COMPLETE ones the values of step 1 correlate with the last by about
    ``agree``.
    """
    rng = np.random.default_rng(8)
    final, other = rng.standard_normal((2, 60))
    other -= final * (final @ other) / (final @ final)
    first = agree * final / final.std() + np.sqrt(1 - agree**2) * other / other.std()
    rows = [*in_workers([100.0] * 60), ("PRUNED", 7000.0, 7010.0)]
    told = [(i, step, value) for i in range(60) for step, value in ((1, first[i]), (5, final[i]))] + [(60, 1, 9.0)]
    return run(trials=trials(rows), reports=reports(told), studies=study())


@fault(
    "pruned-late",
    edges={
        "min_late_pct": Edge({"late": 20}, {"late": 21}, Status.NOT_ASSESSED),
        "high_cost_pct": Edge({"n_whole": 91}, {"n_whole": 89}, Severity.NOTE, Severity.WARNING),
    },
    bigger=({"late": 25}, {"late": 30}, {"late": 30, "n_whole": 10}),
)
def late(*, late: int = 30, n_whole: int = 30) -> Run:
    """Of 30 trials pruned at step 9 of 10, ``late`` last as long as the whole ones, 100 s."""
    # those of the 30 that are not late take 89 s
    rows = in_workers([100.0] * late + [89.0] * (30 - late), state="PRUNED") + in_workers([100.0] * n_whole)
    told = [(i, step, 1.0) for i in range(30 + n_whole) for step in (1, 10 if i >= 30 else 9)]
    return run(trials=trials(rows), reports=reports(told), studies=study())
