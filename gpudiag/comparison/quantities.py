"""Every quantity that two runs have in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from gpudiag.comparison.coverage import LEAST_COVER_PCT, usable
from gpudiag.comparison.differences import pollers_agree
from gpudiag.comparison.intervals import (
    Ratio,
    log_ratio,
    mean_ratio,
    paired_ratio,
    rate_ratio,
    share_ratio,
    unpaired_ratio,
)
from gpudiag.comparison.logged_steps import logged_times
from gpudiag.comparison.match import Match
from gpudiag.comparison.pruned_apart import as_prices
from gpudiag.comparison.quantity import (
    INVALID,
    LEVEL,
    PEAK,
    PRICE,
    RATE,
    SAME_WITHIN,
    SPEED,
    TIME,
    TOTAL,
    Quantity,
    make,
)
from gpudiag.comparison.same_steps import at_same_steps
from gpudiag.comparison.shared_gpus import SHARED, shared_gpus
from gpudiag.comparison.side import Side
from gpudiag.comparison.steps import steps_per_item
from gpudiag.comparison.throughput import throughput, throughput_ratio
from gpudiag.comparison.time_series import mean_over_time, time_series
from gpudiag.faults import Fault, attempt
from gpudiag.statement import NOTHING, Statement, joined

AT_ONCE = "{a} and {b} ran at once: longer items can still be more an hour."
EVENTS = "{n_a} in {a_s} and {n_b} in {b_s}, by the logs given."
SHARES = "{hits_a} of {n_a} and {hits_b} of {n_b}; Fisher's exact {p:as significance}."
REACHED = "Until the best value was {best}, which both reached; the final ones are {a} and {b}."
FEW = Statement("Fewer than 6 a side: described, not tested.")
READINGS = Statement("The numbers of readings during the jobs differ.")
PARTLY = (
    "Power or energy was recorded for {a_pct:exact} of {a} and {b_pct:exact} of {b}: how much was used in the rest is "
    "unknown."
)
OF_GPUS = ("gpu_time", "energy", "cost")
"""How the names of quantities begin that count GPU time."""
NOT_COMPARABLE = Statement("Their greatest readings are not comparable.")


def quantities(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    """All that both runs allow, without verdicts; those that fail by a fault of gpudiag are left out."""
    makers: tuple[Callable[[Side, Side, Match], list[Quantity]], ...] = (
        _durations,
        _per_step,
        _at_same_steps,
        _throughput,
        _logged_steps,
        _totals,
        _outcomes,
        _means,
        _peaks,
        _costs,
        _search,
        _parallelism,
    )
    made = [
        attempt(f"quantities {maker.__name__.strip('_')}", partial(maker, baseline, experiment, matched))
        for maker in makers
    ]
    found = as_prices([quantity for some in made if not isinstance(some, Fault) for quantity in some])
    return found if shared_gpus(baseline, experiment) is None else [_of_both(quantity) for quantity in found]


def _of_both(quantity: Quantity) -> Quantity:
    """The quantity of two runs that recorded the same GPU time: how much of it each used, and for what, is unknown."""
    if quantity.name.startswith(OF_GPUS):
        bare = make(quantity.name, quantity.title, quantity.unit, quantity.kind, (math.nan, math.nan), note=SHARED)
        return replace(bare, verdict=INVALID, tested=False)
    if quantity.kind in (LEVEL, PEAK):
        return replace(quantity, verdict=INVALID, tested=False, note=joined(quantity.note, SHARED))
    return quantity


def _complete_s(side: Side) -> np.ndarray:
    rows = side.items[(side.items["state"] == "COMPLETE") & (side.items["duration_s"] > 0)]
    return rows["duration_s"].to_numpy(float)


def _durations(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    """Durations of items that succeeded: paired where they have names, else as two samples."""
    pairs = matched.both_complete
    paired = matched.named and len(pairs) > 0
    if paired:
        a, b = pairs["baseline_s"].to_numpy(float), pairs["experiment_s"].to_numpy(float)
        what, ratio = Statement("{n} items that succeeded in both", n=len(a)), paired_ratio(a, b)
    else:
        a, b = _complete_s(baseline), _complete_s(experiment)
        what, ratio = Statement("COMPLETE trials"), unpaired_ratio(a, b) if len(a) and len(b) else Ratio(math.nan)
    if not len(a) or not len(b):
        return []
    item = partial(make, n_baseline=len(a), n_experiment=len(b), whole=not paired)
    geometric = [float(np.exp(np.log(x).mean())) for x in (a, b)]
    few = NOTHING if not math.isnan(ratio.low) else FEW
    at_once = _others_at_once(baseline, experiment)
    arithmetic = mean_ratio(a, b, paired=paired)
    return [
        item(
            "duration",
            Statement("Duration of an item, geometric mean of {what}", what=what),
            "s",
            TIME,
            geometric,
            ratio,
            note=joined(few, at_once),
        ),
        item(
            "mean_duration",
            Statement("Duration of an item, arithmetic mean of {what}", what=what),
            "s",
            TIME,
            (float(a.mean()), float(b.mean())),
            arithmetic,
            note=Statement("The mean that total time follows."),
        ),
    ]


def _others_at_once(baseline: Side, experiment: Side) -> Statement:
    """That another number of items ran at once, which may make each longer."""
    a, b = baseline.parallel, experiment.parallel
    known = math.isfinite(a) and math.isfinite(b)
    return Statement(AT_ONCE, a=a, b=b) if known and abs(b / a - 1) > 0.1 else NOTHING


def _at_same_steps(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    found = at_same_steps(baseline, experiment, matched)
    return [replace(one, note=joined(one.note, _others_at_once(baseline, experiment))) for one in found]


def _per_step(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    """Duration over steps of COMPLETE trials, where trials of the two runs have different numbers of steps."""
    a, b = (_step_s(side) for side in (baseline, experiment))
    steps = [steps_per_item(side) for side in (baseline, experiment)]
    if not len(a) or not len(b) or not steps[0] or not steps[1] or abs(steps[1] / steps[0] - 1) <= SAME_WITHIN:
        return []
    values = [float(np.exp(np.log(x).mean())) for x in (a, b)]
    title = "Time per reported step of COMPLETE trials, geometric mean"
    ratio = unpaired_ratio(a, b)
    return [make("step_time", title, "s", TIME, values, ratio, n_baseline=float(len(a)), n_experiment=float(len(b)))]


def _step_s(side: Side) -> np.ndarray:
    if side.run.reports.empty:
        return np.zeros(0)
    steps = side.run.reports.groupby(["study", "trial"])["step"].nunique().rename("steps").reset_index()
    rows = side.items[(side.items["state"] == "COMPLETE") & (side.items["duration_s"] > 0)].merge(
        steps, on=["study", "trial"]
    )
    return (rows["duration_s"] / rows["steps"]).to_numpy(float)


def _throughput(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    """Wall time per item that did not fail, and per COMPLETE item: what failed adds time and no result."""
    a, b = throughput(baseline), throughput(experiment)
    results = [len(side.results) for side in (baseline, experiment)]
    out = []
    if a.mean > 0 and b.mean > 0:
        counted = partial(make, n_baseline=float(results[0]), n_experiment=float(results[1]))
        one, many = _unit(baseline, experiment)
        ratio = throughput_ratio((a, b), f"wall time over {many}, error from cycles", paired=matched.same_set)
        out = [
            counted("time_per_item", f"Wall time per {one}", "s", TIME, (a.mean, b.mean), ratio),
            counted(
                "throughput",
                f"{many[0].upper()}{many[1:]} per hour",
                "1/h",
                SPEED,
                (3600 / a.mean, 3600 / b.mean),
                ratio.inverse,
                tested=False,
                follows="time_per_item",
            ),
        ]
    a, b = throughput(baseline, "COMPLETE"), throughput(experiment, "COMPLETE")
    if a.mean > 0 and b.mean > 0:
        n = [int((side.finished["state"] == "COMPLETE").sum()) for side in (baseline, experiment)]
        same = bool(out) and n == results
        ratio = throughput_ratio((a, b), "wall time over COMPLETE items, error from cycles", paired=matched.same_set)
        out.append(
            make(
                "time_per_complete",
                "Wall time per COMPLETE item",
                "s",
                TIME,
                (a.mean, b.mean),
                ratio,
                n_baseline=float(n[0]),
                n_experiment=float(n[1]),
                tested=not same,
                follows="time_per_item" if same else "",
            )
        )
    return out


def _unit(*sides: Side) -> tuple[str, str]:
    """What counts as an item, in words, one and many: where none failed, every finished one."""
    if any(len(side.results) < len(side.finished) for side in sides):
        return "item that did not fail", "items that did not fail"
    return "finished item", "finished items"


def _logged_steps(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    return logged_times(baseline, experiment)


def _totals(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    if not (baseline.wall_s > 0 and experiment.wall_s > 0):
        return []
    return [
        make("wall_time", "First start to last end", "s", TOTAL, (baseline.wall_s, experiment.wall_s), tested=False)
    ]


def _outcomes(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
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


ONE_EACH = Statement("One observation a side: described, not tested.")
MEANS = (
    ("utilization", "Mean GPU utilization during the job", "%", "util_pct"),
    ("power", "Mean power per GPU during the job", "W", "power_w"),
    ("memory", "Mean GPU memory in use during the job", "MiB", "mem_used_mib"),
)


def _means(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    out = []
    for name, title, unit, column in MEANS:
        a, b = mean_over_time(baseline, column), mean_over_time(experiment, column)
        if not (a.mean >= 0 and b.mean >= 0):
            continue
        ratio = log_ratio(a, b, "means of autocorrelated series, t with effective sample size")
        made = make(name, title, unit, LEVEL, (a.mean, b.mean), ratio, n_baseline=a.n, n_experiment=b.n)
        if math.isnan(ratio.low):
            made = replace(made, note=Statement("Fewer than 10 effective samples on a side: no interval."))
        out.append(_of_the_job(made, baseline, experiment))
    return out


def _of_the_job(quantity: Quantity, *sides: Side) -> Quantity:
    strange = [side.name for side in sides if not usable(side)]
    if not strange:
        return quantity
    note = Statement("Telemetry of {sides} does not belong to the job alone.", sides=" and of ".join(strange))
    return replace(quantity, verdict=INVALID, note=joined(quantity.note, note))


def _peaks(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
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
            out.append(_of_the_job(replace(counts, note=ONE_EACH), baseline, experiment))
    return out


def _costs(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
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
                f"{title} per {_unit(baseline, experiment)[0]}",
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


SAME_FACTOR = 1e-6
"""Within which two factors are the same but for rounding to microseconds."""
ENERGY = ("energy", "energy_per_item")
MOST_APART_PCT = 2.0
"""By how much of the job less may be known of one energy than of the other: less than half of what counts as equal."""


def _of_known_energy(quantity: Quantity, *sides: Side) -> Quantity:
    """Energy of a part of a job is not that of the job: it is withheld where power was recorded for too little."""
    costs = [side.get("costs") for side in sides]
    known = [part.energy_coverage_pct if part is not None else math.nan for part in costs]
    least = max(LEAST_COVER_PCT, max(known) - MOST_APART_PCT)
    if all(pct >= least for pct in known):
        return _of_the_job(quantity, *sides)
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


def _search(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    """Time from the start of a study until its best value was as good as the poorer of the two final ones."""
    reached = [_progress(side) for side in (baseline, experiment)]
    if reached[0] is None or reached[1] is None or reached[0][1] != reached[1][1]:
        return []
    sign = 1.0 if reached[0][1] == "MINIMIZE" else -1.0
    target = max(sign * float(part["best"].iloc[-1]) for part, _ in (reached[0], reached[1]))
    rows = [part[sign * part["best"] <= target + 1e-12].iloc[0] for part, _ in (reached[0], reached[1])]
    ends = [float(part["best"].iloc[-1]) for part, _ in (reached[0], reached[1])]
    note = joined(Statement(REACHED, best=sign * target, a=ends[0], b=ends[1]), ONE_EACH)
    out = [
        make(
            "time_to_best",
            "Time to the same best value",
            "s",
            TOTAL,
            [float(row["after_s"]) for row in rows],
            note=note,
            tested=False,
        )
    ]
    if all(math.isfinite(float(row["gpu_h"])) for row in rows):
        out.append(
            make(
                "gpu_time_to_best",
                "GPU time to the same best value",
                "GPU-h",
                TOTAL,
                [float(row["gpu_h"]) for row in rows],
                note=note,
                tested=False,
            )
        )
    return out


def _progress(side: Side) -> tuple[pd.DataFrame, str] | None:
    """Steps of the best value of the run's only study with seconds since its start, and its direction."""
    costs, studies = side.get("costs"), side.run.studies.drop_duplicates("study")
    if costs is None or costs.progress.empty or side.run.trials["study"].nunique() != 1:
        return None
    direction = studies.loc[studies["study"] == side.run.trials["study"].iloc[0], "directions"]
    if not len(direction) or direction.iloc[0] not in ("MINIMIZE", "MAXIMIZE"):
        return None
    after = (costs.progress["at"] - side.items["start"].min()).dt.total_seconds()
    return costs.progress.assign(after_s=after), str(direction.iloc[0])


def _parallelism(baseline: Side, experiment: Side, matched: Match) -> list[Quantity]:
    a, b = (side.get("parallelism") for side in (baseline, experiment))
    if a is None or b is None:
        return []
    return [
        make(
            "parallelism",
            "Items running at once, mean while any ran",
            "1",
            TOTAL,
            (float(a.effective), float(b.effective)),
            tested=False,
        )
    ]
