"""Utilization, power and memory of two jobs: means and greatest readings."""

from __future__ import annotations

import math
from dataclasses import replace

from gpudiag.comparison.coverage import usable
from gpudiag.comparison.differences import pollers_agree
from gpudiag.comparison.intervals import log_ratio
from gpudiag.comparison.match import Match
from gpudiag.comparison.quantity import INVALID, LEVEL, PEAK, Quantity, make
from gpudiag.comparison.side import Side
from gpudiag.comparison.time_series import mean_over_time, time_series
from gpudiag.statement import NOTHING, Statement, joined

ONE_EACH = Statement("One observation a side: described, not tested.")
READINGS = Statement("The numbers of readings during the jobs differ.")
NOT_COMPARABLE = Statement("Their greatest readings are not comparable.")
MEANS = (
    ("utilization", "Mean GPU utilization during the job", "%", "util_pct"),
    ("power", "Mean power per GPU during the job", "W", "power_w"),
    ("memory", "Mean GPU memory in use during the job", "MiB", "mem_used_mib"),
)


def means(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    out = []
    for name, title, unit, column in MEANS:
        a, b = mean_over_time(baseline, column), mean_over_time(experiment, column)
        if not (a.mean >= 0 and b.mean >= 0):
            continue
        ratio = log_ratio(a, b, "means of autocorrelated series, t with effective sample size")
        made = make(name, title, unit, LEVEL, (a.mean, b.mean), ratio, n_baseline=a.n, n_experiment=b.n)
        if math.isnan(ratio.low):
            made = replace(made, note=Statement("Fewer than 10 effective samples on a side: no interval."))
        out.append(of_the_job(made, baseline, experiment))
    return out


def peaks(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    """Greatest readings, comparable only where the pollers agree: a faster or longer poll sees more."""
    agree, why = pollers_agree(baseline, experiment)
    out = []
    for name, title, unit, column in MEANS:
        a, b = (time_series(side, column) for side in (baseline, experiment))
        if a.empty or b.empty:
            continue
        made = make(
            f"{name}_peak",
            title.replace("Mean", "Greatest"),
            unit,
            PEAK,
            (float(a["value"].max()), float(b["value"].max())),
            tested=False,
        )
        counts = replace(made, n_baseline=float(len(a)), n_experiment=float(len(b)))
        fewer = min(len(a), len(b)) / max(len(a), len(b))
        reason = why if agree is False else NOTHING if fewer >= 0.8 else READINGS
        if reason:
            out.append(replace(counts, verdict=INVALID, note=joined(reason, NOT_COMPARABLE)))
        else:
            out.append(of_the_job(replace(counts, note=ONE_EACH), baseline, experiment))
    return out


def of_the_job(quantity: Quantity, *sides: Side) -> Quantity:
    strange = [side.name for side in sides if not usable(side)]
    if not strange:
        return quantity
    note = Statement("Telemetry of {sides} does not cover the job, or not it alone.", sides=" and of ".join(strange))
    return replace(quantity, verdict=INVALID, note=joined(quantity.note, note))
