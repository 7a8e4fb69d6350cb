"""The gate before any ratio: eight checks (METHODS 7), each pass, fail or unknown, with its evidence."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy import stats

from gpudiag.comparison.applied import parameters_applied
from gpudiag.comparison.check import ERROR, FAIL, PASS, UNKNOWN, GateCheck, worst
from gpudiag.comparison.consistency import SAME_WORK, samples_per_item_ratio, steps_per_item
from gpudiag.comparison.coverage import telemetry_covers_job
from gpudiag.comparison.differences import logged_params
from gpudiag.comparison.intervals import MIN_UNITS
from gpudiag.comparison.match import SAME_SET, Match
from gpudiag.comparison.side import Side
from gpudiag.faults import Fault, attempt
from gpudiag.report.format import duration, number, quantity, ratio

SAME_STEPS = 0.1
"""Part by which the steps of a COMPLETE trial may differ and the trial is still the same unit."""
WARM_RATIO = 1.2
WARM_P = 0.01
FIRST_SHARE = 0.1


def run_gate(baseline: Side, experiment: Side, matched: Match) -> tuple[GateCheck, ...]:
    """All eight checks in the order of METHODS 7."""
    checks: dict[str, Callable[[], GateCheck]] = {
        "same-unit": lambda: same_unit(baseline, experiment, matched),
        "same-workload": lambda: same_workload(baseline, experiment, matched),
        "not-a-subset": lambda: not_a_subset(baseline, experiment, matched),
        "parameters-applied": lambda: parameters_applied(baseline, experiment),
        "telemetry-covers-job": lambda: telemetry_covers_job(baseline, experiment),
        "warm-up": lambda: warm_up(baseline, experiment),
        "sample-size": lambda: sample_size(baseline, experiment, matched),
        "equal-success": lambda: equal_success(baseline, experiment, matched),
    }
    made = {name: attempt(f"gate {name}", check) for name, check in checks.items()}
    return tuple(GateCheck(name, ERROR, str(one)) if isinstance(one, Fault) else one for name, one in made.items())


def same_unit(baseline: Side, experiment: Side, matched: Match) -> GateCheck:
    """1. Durations against durations, of items that are the same amount of work; parallelism stated on both sides."""
    if baseline.run.trials.empty or experiment.run.trials.empty:
        return GateCheck("same-unit", UNKNOWN, "A run has no trials or tasks, so there is no unit of work to compare.")
    found = []
    a, b = (bool(side.finished["duration_s"].notna().any()) for side in (baseline, experiment))
    if a != b:
        with_, without = (baseline, experiment) if a else (experiment, baseline)
        found.append(
            (
                FAIL,
                f"{with_.name} has durations of its items and {without.name} completion timestamps at most: "
                "a duration is not wall time over n.",
            )
        )
    elif not a:
        found.append((UNKNOWN, "Neither run has durations of its items; only wall time over n can be compared."))
    steps = steps_per_item(baseline), steps_per_item(experiment)
    if steps[0] and steps[1] and abs(steps[1] / steps[0] - 1) > SAME_STEPS:
        found.append(
            (
                FAIL,
                f"A COMPLETE trial is {number(steps[0])} steps in {baseline.name} and {number(steps[1])} in "
                f"{experiment.name}: compare time per step.",
            )
        )
    samples = samples_per_item_ratio(baseline, experiment)
    if samples is not None and abs(samples - 1) > SAME_WORK:
        found.append(
            (
                FAIL,
                f"By the training logs an item of {experiment.name} is {number(samples)} times the samples of "
                f"one of {baseline.name}: it is not the same unit.",
            )
        )
    if a and b:
        found.append(
            (
                PASS,
                f"Both have durations of their items; {_parallel(baseline)} and {_parallel(experiment)} ran at "
                "once, which time per item (wall time over n) takes into account.",
            )
        )
    return worst("same-unit", found, "")


def same_workload(baseline: Side, experiment: Side, matched: Match) -> GateCheck:
    """2. The same items by name, or searches over the same parameters."""
    if baseline.run.trials.empty or experiment.run.trials.empty:
        return GateCheck(
            "same-workload", UNKNOWN, "A run has no trials or tasks; whether the work was the same is not known."
        )
    if matched.named:
        return _same_items(matched)
    a, b = set(logged_params(baseline)), set(logged_params(experiment))
    directions = [_directions(side) for side in (baseline, experiment)]
    if all(directions) and directions[0] != directions[1]:
        return GateCheck(
            "same-workload", FAIL, f"The studies seek different things: {directions[0]} and {directions[1]}."
        )
    if not a or not b:
        return GateCheck(
            "same-workload",
            UNKNOWN,
            "The trials carry neither names nor, in both runs, parameters: whether the work was the same is not known.",
        )
    if a != b:
        apart = ", ".join(sorted(a ^ b)[:6])
        return GateCheck("same-workload", FAIL, f"The searches have different parameters ({apart} in one only).")
    return GateCheck(
        "same-workload",
        PASS,
        f"Trials without names, drawn from a search over the same "
        f"{len(a)} parameters: compared as samples, not item by item.",
    )


def _same_items(matched: Match) -> GateCheck:
    counts = (
        f"{matched.n_baseline:,} items there, {matched.n_experiment:,} here, {matched.n_shared:,} in both "
        f"(Jaccard {ratio(matched.jaccard)})"
    )
    if matched.same_set:
        return GateCheck("same-workload", PASS, f"{counts}.")
    nested = matched.n_shared >= SAME_SET * min(matched.n_baseline, matched.n_experiment)
    interleaved = matched.subset is not None and matched.subset.n_between > 0
    if matched.n_shared >= MIN_UNITS and not (nested and interleaved):
        return GateCheck(
            "same-workload", PASS, f"{counts}: only those in both are compared; totals of the runs are not."
        )
    few = "" if matched.n_shared >= MIN_UNITS else f", fewer than {MIN_UNITS} to compare"
    return GateCheck("same-workload", FAIL, f"The item sets differ: {counts}{few}.")


def not_a_subset(baseline: Side, experiment: Side, matched: Match) -> GateCheck:
    """3. Neither run's trials are the other's, nor were its items taken out of a run that did other work among them."""
    n = min(len(baseline.items), len(experiment.items))
    if not n:
        return GateCheck("not-a-subset", UNKNOWN, "A run has no trials or tasks.")
    if matched.same_timestamps >= max(2, 0.5 * n):
        which = (
            "they are the same run"
            if len(baseline.items) == len(experiment.items) == matched.same_timestamps
            else ("one run is a part of the other")
        )
        return GateCheck(
            "not-a-subset",
            FAIL,
            f"{matched.same_timestamps:,} of {n:,} trials have the same start and end in "
            f"both: {which}, and there is nothing to compare.",
        )
    if not math.isnan(matched.moved_s) and matched.moved_s != 0:
        return GateCheck(
            "not-a-subset",
            FAIL,
            f"All shared trials have equal durations and lie {duration(abs(matched.moved_s))} apart: "
            "the same run, its timestamps moved.",
        )
    part = matched.subset
    if part is not None and part.n_between:
        return GateCheck(
            "not-a-subset",
            FAIL,
            f"The {part.n_shared:,} items of {part.inner} are among the {part.n_outer:,} of {part.outer}. There they "
            f"span {duration(part.span_s)}, in which {part.n_between:,} other items ended and these were at work for "
            f"only {quantity(part.busy_s, 'worker-s')}: the span is no duration of these items. Throughput of the "
            "whole run is used instead.",
        )
    if not matched.named:
        return GateCheck("not-a-subset", PASS, "No trial has the same start and end in both runs.")
    return GateCheck("not-a-subset", PASS, "No other items ended among those of either run, and no trial is in both.")


def warm_up(baseline: Side, experiment: Side) -> GateCheck:
    """6. The first items against the later ones of each run: a cold start in one run alone is a difference of order."""
    cold = [_cold_start(side) for side in (baseline, experiment)]
    if None in cold:
        return GateCheck(
            "warm-up",
            UNKNOWN,
            "Too few items to tell the first from the later ones; run the two in turns (A, B, B, A).",
        )
    ratios = [one for one in cold if one is not None]
    text = f"First items took {ratio(ratios[0][0])} and {ratio(ratios[1][0])} times as long as the later ones"
    slow = [one[0] > WARM_RATIO and one[1] < WARM_P for one in ratios]
    if slow[0] != slow[1]:
        which = baseline.name if slow[0] else experiment.name
        return GateCheck(
            "warm-up", FAIL, f"{text}: {which} began cold and the other did not. Repeat in turns (A, B, B, A)."
        )
    if slow[0]:
        return GateCheck("warm-up", PASS, f"{text}: both began cold alike.")
    return GateCheck(
        "warm-up", PASS, f"{text}. What a cache kept from the first run to the second, only turns (A, B, B, A) show."
    )


def _cold_start(side: Side) -> tuple[float, float] | None:
    """Geometric mean of the first items over that of the later ones, and its p; None with fewer than ten."""
    done = side.items[(side.items["state"] == "COMPLETE") & (side.items["duration_s"] > 0)]
    first = max(round(FIRST_SHARE * len(done)), 3)
    if len(done) < 10:
        return None
    logs = np.log(done["duration_s"].to_numpy(float))
    p = float(stats.mannwhitneyu(logs[:first], logs[first:], alternative="greater").pvalue)
    return math.exp(float(logs[:first].mean() - logs[first:].mean())), p


def sample_size(baseline: Side, experiment: Side, matched: Match) -> GateCheck:
    """7. At least six units a side for an interval."""
    if matched.named and matched.n_shared and len(matched.both_complete):
        n = len(matched.both_complete)
        what = f"{n:,} items that succeeded in both"
        enough = n >= MIN_UNITS
    else:
        counts = [
            int(((s.items["state"] == "COMPLETE") & (s.items["duration_s"] > 0)).sum()) for s in (baseline, experiment)
        ]
        what = f"{counts[0]:,} and {counts[1]:,} COMPLETE trials with durations"
        enough = min(counts) >= MIN_UNITS
    if enough:
        return GateCheck("sample-size", PASS, f"{what}.")
    return GateCheck(
        "sample-size", FAIL, f"{what}: with fewer than {MIN_UNITS} a side, numbers are described and not tested."
    )


def equal_success(baseline: Side, experiment: Side, matched: Match) -> GateCheck:
    """8. Failed items are short, so durations are compared on items that succeeded in both."""
    if not matched.named:
        failed = [int((side.items["state"] == "FAIL").sum()) for side in (baseline, experiment)]
        if not len(baseline.items) or not len(experiment.items):
            return GateCheck("equal-success", UNKNOWN, "A run has no trials or tasks.")
        text = f"{failed[0]:,} and {failed[1]:,} trials failed"
        if not any(failed):
            return GateCheck("equal-success", PASS, f"{text}.")
        return GateCheck(
            "equal-success",
            UNKNOWN,
            f"{text}; without names nobody knows whether the same ones. Durations are of COMPLETE trials.",
        )
    rows = matched.pairs
    if rows.empty:
        return GateCheck("equal-success", UNKNOWN, "No item is in both runs.")
    good_a, good_b = rows["baseline_state"] == "COMPLETE", rows["experiment_state"] == "COMPLETE"
    if (good_a == good_b).all():
        return GateCheck(
            "equal-success", PASS, f"The same {int(good_a.sum()):,} of {len(rows):,} shared items succeeded."
        )
    return GateCheck(
        "equal-success",
        FAIL,
        f"{int(good_a.sum()):,} and {int(good_b.sum()):,} of the {len(rows):,} shared items "
        f"succeeded, {int((good_a & good_b).sum()):,} of them in both: durations are of those.",
    )


def _parallel(side: Side) -> str:
    found = side.get("parallelism")
    return number(found.effective) if found is not None else "an unknown number"


def _directions(side: Side) -> str:
    known = side.run.studies["directions"].dropna().astype(str)
    return ", ".join(sorted(pd.unique(known[known != ""])))
