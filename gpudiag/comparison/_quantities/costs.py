"""GPU time, energy and money of two runs."""

from __future__ import annotations

import math
from dataclasses import replace

from gpudiag.comparison._quantities.levels import of_the_job
from gpudiag.comparison._quantities.wall_time import one_and_many
from gpudiag.comparison.coverage import LEAST_COVER_PCT
from gpudiag.comparison.match import Match
from gpudiag.comparison.quantity import INVALID, PRICE, TOTAL, Quantity, make
from gpudiag.comparison.side import Side
from gpudiag.comparison.throughput import throughput, throughput_ratio
from gpudiag.comparison.time_series import mean_over_time
from gpudiag.statement import Statement

PARTLY = (
    "Power or energy was recorded for {a_pct:exact} of {a} and {b_pct:exact} of {b}: how much was used in the rest is "
    "unknown."
)
SAME_FACTOR = 1e-6
"""Within which two factors are the same but for rounding to microseconds."""
ENERGY = ("energy", "energy_per_item")
MOST_APART_PCT = 2.0
"""By how much of the job less may be known of one energy than of the other: less than half of what counts as equal."""


def costs_and_energy(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    """GPU time, energy and money, in all and per item that did not fail."""
    costs = [side.get("costs") for side in (baseline, experiment)]
    n = [len(side.results) for side in (baseline, experiment)]
    if costs[0] is None or costs[1] is None or not all(n):
        return []
    time = [throughput(side) for side in (baseline, experiment)]
    judged = {"time_per_item": [one.mean for one in time]}
    out = []
    for name, title, unit, field in (
        ("gpu_time", "GPU time", "GPU-h", "total_gpu_h"),
        ("energy", "Energy", "kWh", "energy_kwh"),
        ("cost", "Cost", costs[0].currency or "1", "cost"),
    ):
        total = [float(getattr(part, field)) for part in costs]
        if not all(value > 0 for value in total) or (name == "cost" and costs[0].currency != costs[1].currency):
            continue
        each = [value / count for value, count in zip(total, n, strict=True)]
        power = [mean_over_time(side, "power_w") for side in (baseline, experiment)] if name == "energy" else []
        ratio = throughput_ratio(time, "as time per item", each, power, paired=matched.same_set)
        out.append(make(name, f"{title} in all", unit, TOTAL, total, tested=False))
        follows = "" if name == "energy" else _follows(each, judged)
        if name == "gpu_time":
            judged["gpu_time_per_item"] = each
        small, scale = ("Wh", 1000.0) if unit == "kWh" else ("GPU-s", 3600.0) if unit == "GPU-h" else (unit, 1.0)
        out.append(
            make(
                f"{name}_per_item",
                f"{title} per {one_and_many(baseline, experiment)[0]}",
                small,
                PRICE,
                [scale * x for x in each],
                ratio,
                tested=not follows,
                follows=follows,
                n_baseline=float(n[0]),
                n_experiment=float(n[1]),
            )
        )
    return [_of_known_energy(q, baseline, experiment) if q.name in ENERGY else q for q in out]


def _follows(each: list[float], judged: dict[str, list[float]]) -> str:
    """Which of the quantities judged this one is times a constant, the same in both runs; '' where there is none: with
    another number of GPUs GPU time is no longer that of the wall, with another price money no longer that of GPU time.
    """
    for name, values in judged.items():
        one, other = (value / known for value, known in zip(each, values, strict=True))
        if math.isclose(one, other, rel_tol=SAME_FACTOR):
            return name
    return ""


def _of_known_energy(quantity: Quantity, *sides: Side) -> Quantity:
    """Energy of a part of a job is not that of the job: it is withheld where power was recorded for too little."""
    costs = [side.get("costs") for side in sides]
    known = [part.energy_coverage_pct if part is not None else math.nan for part in costs]
    least = max(LEAST_COVER_PCT, max(known) - MOST_APART_PCT)
    if all(pct >= least for pct in known):
        return of_the_job(quantity, *sides)
    a, b = (
        value if pct >= least else math.nan
        for value, pct in zip((quantity.baseline, quantity.experiment), known, strict=True)
    )
    note = Statement(PARTLY, a=sides[0].name, a_pct=known[0], b=sides[1].name, b_pct=known[1])
    return replace(
        make(quantity.name, quantity.title, quantity.unit, quantity.kind, (a, b), note=note, tested=False),
        n_baseline=quantity.n_baseline,
        n_experiment=quantity.n_experiment,
        verdict=INVALID,
    )
