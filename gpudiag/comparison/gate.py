"""The gate before any ratio: eight checks (METHODS 7), each pass, fail or unknown, with its evidence."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import scipy

from gpudiag.comparison.applied import SERIAL, parameters_applied
from gpudiag.comparison.autocorrelation import MIN_UNITS
from gpudiag.comparison.check import ERROR, FAIL, PASS, TITLES, UNKNOWN, GateCheck, GateFinding, worst
from gpudiag.comparison.consistency import SAME_WORK, samples_per_item_ratio
from gpudiag.comparison.coverage import telemetry_covers_job
from gpudiag.comparison.differences import logged_params
from gpudiag.comparison.logged_steps import n_logged
from gpudiag.comparison.match import SAME_SET, Match
from gpudiag.comparison.same_search import same_fixed_values, same_search
from gpudiag.comparison.same_training import same_end, same_log, same_step
from gpudiag.comparison.shared_gpus import AT_ONE_TIME, shared_gpus
from gpudiag.comparison.side import Side
from gpudiag.comparison.steps import SAME_STEPS, SURE, chance_of_steps, steps_of_items
from gpudiag.faults import Fault, attempt
from gpudiag.statement import Statement

WARM_RATIO = 1.2
WARM_P = 0.01
FIRST_SHARE = 0.1
OTHER_KINDS = "{side} has no trials or tasks and {other} has: they share no unit of work."
NO_UNIT = "A run has no trials or tasks, so there is no unit of work to compare."
NO_ITEMS = "A run has no trials or tasks."
NO_DURATIONS = (
    "{side} has durations of its items and {other} completion timestamps at most: a duration is not wall time over n."
)
WALL_TIME_ONLY = "Neither run has durations of its items; only wall time over n can be compared."
STEPS = "A COMPLETE trial is {steps_a} steps in {a} and {steps_b} in {b}: compare time per step."
STEPS_BY_CHANCE = (
    "A COMPLETE trial is {steps_a} steps in {a} and {steps_b} in {b}, which differ no more than trials of one run do."
)
STEPS_OF_FEW = "A COMPLETE trial is {steps_a} steps in {a} and {steps_b} in {b}: too few trials to tell why."
SAMPLES = "By the training logs an item of {b} is {times} times the samples of one of {a}: it is not the same unit."
DURATIONS = (
    "Both have durations of their items; {at_once_a} and {at_once_b} ran at once, which time per item (wall time over "
    "n) takes into account."
)
NO_WORKLOAD = "A run has no trials or tasks; whether the work was the same is not known."
UNNAMED = "The trials carry neither names nor, in both runs, parameters: whether the work was the same is not known."
DIRECTIONS = "The studies seek different things: {a} and {b}."
PARAMETERS = "The searches have different parameters ({apart} in one only)."
SEARCHES = (
    "Trials without names, drawn from a search over the same {n} parameters: compared as samples, not item by item."
)
ITEMS = "{n_baseline} items there, {n_experiment} here, {n_shared} in both (Jaccard {jaccard:as ratio})"
SAME_TRIALS = "{n_same} of {n} trials have the same start and end in both: {which}, and there is nothing to compare."
MOVED = "All shared trials have equal durations and lie {apart_s} apart: the same run, its timestamps moved."
SUBSET = (
    "The {n_shared} items of {inner} are among the {n_outer} of {outer}. There they span {span_s}, in which "
    "{n_between} other items ended and these were at work for only {busy_worker_s}: the span is no duration of these "
    "items. Throughput of the whole run is used instead."
)
UNMIXED = "No other items ended among those of either run, and no trial is in both."
TOO_FEW = "Too few items to tell the first from the later ones; run the two in turns (A, B, B, A)."
FIRST = "First items took {a:as ratio} and {b:as ratio} times as long as the later ones"
ONE_COLD = "{first}: {side} began cold and the other did not. Repeat in turns (A, B, B, A)."
CROWDED = (
    "{first}. In {side} they ran beside trials that no pruner stopped yet, which makes them longer, as a cold start "
    "does."
)
CACHE = "{first}. What a cache kept from the first run to the second, only turns (A, B, B, A) show."
SMALL = "{what}: with fewer than {least} a side, numbers are described and not tested."
UNKNOWN_FAILED = "{failed}; without names nobody knows whether the same ones. Durations are of COMPLETE trials."
MENDED = "only the baseline's items failed"
OTHERS_SUCCEEDED = (
    "{n_a} and {n_b} of the {n} shared items succeeded, {n_both} of them in both: durations are of those."
)


def run_gate(baseline: Side, experiment: Side, matched: Match | Fault) -> tuple[GateCheck, ...]:
    """All eight checks in the order of METHODS 7; where matching the items failed, so did each that rests on it."""
    both = (baseline, experiment)
    alone: dict[str, Callable[[], GateCheck]] = {
        "same-unit": lambda: same_unit(*both),
        "parameters-applied": lambda: parameters_applied(*both),
        "telemetry-covers-job": lambda: telemetry_covers_job(*both),
        "warm-up": lambda: warm_up(*both),
    }
    of_items: dict[str, Callable[[Match], GateCheck]] = {
        "same-workload": lambda found: same_workload(*both, found),
        "not-a-subset": lambda found: not_a_subset(*both, found),
        "sample-size": lambda found: sample_size(*both, found),
        "equal-success": lambda found: equal_success(*both, found),
    }
    made: dict[str, GateCheck | Fault] = {name: attempt(f"gate {name}", check) for name, check in alone.items()}
    for name, check in of_items.items():
        made[name] = matched if isinstance(matched, Fault) else attempt(f"gate {name}", partial(check, matched))
    return tuple(_or_error(name, made[name]) for name in TITLES)


def _or_error(name: str, made: GateCheck | Fault) -> GateCheck:
    return GateCheck(name, ERROR, Statement(str(made))) if isinstance(made, Fault) else made


def same_unit(baseline: Side, experiment: Side) -> GateCheck:
    """1. Durations against durations, of items that are the same amount of work; parallelism stated on both sides."""
    if baseline.run.trials.empty != experiment.run.trials.empty:
        without, other = sorted((baseline, experiment), key=lambda side: len(side.run.trials))
        return GateCheck("same-unit", UNKNOWN, Statement(OTHER_KINDS, side=without.name, other=other.name))
    if baseline.run.trials.empty:
        return same_step(baseline, experiment) or GateCheck("same-unit", UNKNOWN, Statement(NO_UNIT))
    found: list[GateFinding] = []
    a, b = (bool(side.finished["duration_s"].notna().any()) for side in (baseline, experiment))
    if a != b:
        with_, without = (baseline, experiment) if a else (experiment, baseline)
        found.append((FAIL, Statement(NO_DURATIONS, side=with_.name, other=without.name)))
    elif not a:
        found.append((UNKNOWN, Statement(WALL_TIME_ONLY)))
    found += _same_steps(baseline, experiment)
    samples = samples_per_item_ratio(baseline, experiment)
    if samples is not None and not math.isclose(samples, 1, rel_tol=SAME_WORK):
        found.append((FAIL, Statement(SAMPLES, a=baseline.name, b=experiment.name, times=samples)))
    if a and b:
        at_once = {"at_once_a": _parallel(baseline), "at_once_b": _parallel(experiment)}
        found.append((PASS, Statement(DURATIONS, **at_once)))
    return worst("same-unit", found)


def _same_steps(baseline: Side, experiment: Side) -> list[GateFinding]:
    """Whether COMPLETE trials have the same number of steps, but for what chance gives."""
    a, b = (steps_of_items(side) for side in (baseline, experiment))
    if not len(a) or not len(b) or math.isclose(a.mean(), b.mean(), rel_tol=SAME_STEPS):
        return []
    steps: dict[str, float | str] = {
        "steps_a": float(a.mean()),
        "a": baseline.name,
        "steps_b": float(b.mean()),
        "b": experiment.name,
    }
    p = chance_of_steps(a, b)
    if p < SURE:
        return [(FAIL, Statement(STEPS, **steps))]
    return [(PASS, Statement(STEPS_BY_CHANCE if p >= SURE else STEPS_OF_FEW, **steps))]


def same_workload(baseline: Side, experiment: Side, matched: Match) -> GateCheck:
    """2. The same items by name, or searches of the same space, data and budget."""
    if baseline.run.trials.empty or experiment.run.trials.empty:
        return GateCheck("same-workload", UNKNOWN, Statement(NO_WORKLOAD))
    if matched.named:
        items = _same_items(matched)
        doubts = same_fixed_values(baseline, experiment) if items.status == PASS else []
        return worst("same-workload", [(items.status, items.evidence), *doubts])
    a, b = set(logged_params(baseline)), set(logged_params(experiment))
    directions = [_directions(side) for side in (baseline, experiment)]
    if all(directions) and directions[0] != directions[1]:
        return GateCheck("same-workload", FAIL, Statement(DIRECTIONS, a=directions[0], b=directions[1]))
    if not a or not b:
        return GateCheck("same-workload", UNKNOWN, Statement(UNNAMED))
    if a != b:
        apart = ", ".join(sorted(a ^ b)[:6])
        return GateCheck("same-workload", FAIL, Statement(PARAMETERS, apart=apart))
    found = same_search(baseline, experiment)
    return worst("same-workload", found if FAIL in dict(found) else [(PASS, Statement(SEARCHES, n=len(a))), *found])


def _same_items(matched: Match) -> GateCheck:
    counts = Statement(
        ITEMS,
        n_baseline=matched.n_baseline,
        n_experiment=matched.n_experiment,
        n_shared=matched.n_shared,
        jaccard=matched.jaccard,
    )
    if matched.same_set:
        return GateCheck("same-workload", PASS, Statement("{counts}.", counts=counts))
    nested = matched.n_shared >= SAME_SET * min(matched.n_baseline, matched.n_experiment)
    interleaved = matched.subset is not None and matched.subset.n_between > 0
    if matched.n_shared >= MIN_UNITS and not (nested and interleaved):
        why = Statement("{counts}: only those in both are compared; totals of the runs are not.", counts=counts)
        return GateCheck("same-workload", PASS, why)
    if matched.n_shared >= MIN_UNITS:
        return GateCheck("same-workload", FAIL, Statement("The item sets differ: {counts}.", counts=counts))
    few = Statement("The item sets differ: {counts}, fewer than {least} to compare.", counts=counts, least=MIN_UNITS)
    return GateCheck("same-workload", FAIL, few)


def not_a_subset(baseline: Side, experiment: Side, matched: Match) -> GateCheck:
    """3. Neither run is a part of the other or of a larger one, and they had no GPU together at the same time."""
    found, together = _not_a_part(baseline, experiment, matched), shared_gpus(baseline, experiment)
    if together is None or found.status == FAIL:
        return found
    return GateCheck("not-a-subset", *together.finding(baseline, experiment), cause=AT_ONE_TIME)


def _not_a_part(baseline: Side, experiment: Side, matched: Match) -> GateCheck:
    """Neither run's trials are the other's, nor were its items taken out of a run that did other work among them."""
    n = min(len(baseline.items), len(experiment.items))
    if not n:
        return same_log(baseline, experiment) or GateCheck("not-a-subset", UNKNOWN, Statement(NO_ITEMS))
    if matched.same_timestamps >= max(2, 0.5 * n):
        same_run = len(baseline.items) == len(experiment.items) == matched.same_timestamps
        which = "they are the same run" if same_run else "one run is a part of the other"
        why = Statement(SAME_TRIALS, n_same=matched.same_timestamps, n=n, which=which)
        return GateCheck("not-a-subset", FAIL, why)
    if not math.isnan(matched.moved_s) and matched.moved_s != 0:
        return GateCheck("not-a-subset", FAIL, Statement(MOVED, apart_s=abs(matched.moved_s)))
    part = matched.subset
    if part is not None and part.n_between:
        why = Statement(
            SUBSET,
            n_shared=part.n_shared,
            inner=part.inner,
            n_outer=part.n_outer,
            outer=part.outer,
            span_s=part.span_s,
            n_between=part.n_between,
            busy_worker_s=part.busy_s,
        )
        return GateCheck("not-a-subset", FAIL, why)
    if not matched.named:
        return GateCheck("not-a-subset", PASS, Statement("No trial has the same start and end in both runs."))
    return GateCheck("not-a-subset", PASS, Statement(UNMIXED))


def warm_up(baseline: Side, experiment: Side) -> GateCheck:
    """6. The first items against the later ones of each run: a cold start in one run alone is a difference of order."""
    cold = [_cold_start(side) for side in (baseline, experiment)]
    if None in cold:
        return GateCheck("warm-up", UNKNOWN, Statement(TOO_FEW))
    ratios = [one for one in cold if one is not None]
    text = Statement(FIRST, a=ratios[0][0], b=ratios[1][0])
    slow = [one[0] > WARM_RATIO and one[1] < WARM_P for one in ratios]
    if slow[0] != slow[1]:
        which = baseline if slow[0] else experiment
        if (which.items["state"] == "PRUNED").any() and which.at_once > SERIAL:
            return GateCheck("warm-up", UNKNOWN, Statement(CROWDED, first=text, side=which.name))
        return GateCheck("warm-up", FAIL, Statement(ONE_COLD, first=text, side=which.name))
    return GateCheck("warm-up", PASS, Statement("{first}: both began cold alike." if slow[0] else CACHE, first=text))


def _cold_start(side: Side) -> tuple[float, float] | None:
    """Geometric mean of the first items over that of the later ones, and its p; None with fewer than ten."""
    done = side.items[(side.items["state"] == "COMPLETE") & (side.items["duration_s"] > 0)]
    first = max(round(FIRST_SHARE * len(done)), 3)
    if len(done) < 10:
        return None
    logs = np.log(done["duration_s"].to_numpy(float))
    p = float(scipy.stats.mannwhitneyu(logs[:first], logs[first:], alternative="greater").pvalue)
    return math.exp(float(logs[:first].mean() - logs[first:].mean())), p


def sample_size(baseline: Side, experiment: Side, matched: Match) -> GateCheck:
    """7. At least six units a side for an interval."""
    if matched.named and matched.n_shared and len(matched.both_complete):
        n = len(matched.both_complete)
        what = Statement("{n} items that succeeded in both", n=n)
        enough = n >= MIN_UNITS
    elif counts := n_logged(baseline, experiment):
        what = Statement("{n_a} and {n_b} stretches of logged steps", n_a=counts[0], n_b=counts[1])
        enough = min(counts) >= MIN_UNITS
    elif baseline.run.trials.empty or experiment.run.trials.empty:
        return GateCheck("sample-size", UNKNOWN, Statement(NO_ITEMS))
    else:
        counts = [
            int(((s.items["state"] == "COMPLETE") & (s.items["duration_s"] > 0)).sum()) for s in (baseline, experiment)
        ]
        what = Statement("{n_a} and {n_b} COMPLETE trials with durations", n_a=counts[0], n_b=counts[1])
        enough = min(counts) >= MIN_UNITS
    if enough:
        return GateCheck("sample-size", PASS, Statement("{what}.", what=what))
    return GateCheck("sample-size", FAIL, Statement(SMALL, what=what, least=MIN_UNITS))


def equal_success(baseline: Side, experiment: Side, matched: Match) -> GateCheck:
    """8. Failed items are short, so durations are compared on items that succeeded in both."""
    if not matched.named:
        failed = [int((side.items["state"] == "FAIL").sum()) for side in (baseline, experiment)]
        if not len(baseline.items) or not len(experiment.items):
            return same_end(baseline, experiment) or GateCheck("equal-success", UNKNOWN, Statement(NO_ITEMS))
        text = Statement("{n_a} and {n_b} trials failed", n_a=failed[0], n_b=failed[1])
        if not any(failed):
            return GateCheck("equal-success", PASS, Statement("{failed}.", failed=text))
        return GateCheck("equal-success", UNKNOWN, Statement(UNKNOWN_FAILED, failed=text))
    rows = matched.pairs
    if rows.empty:
        return GateCheck("equal-success", UNKNOWN, Statement("No item is in both runs."))
    good_a, good_b = rows["baseline_state"] == "COMPLETE", rows["experiment_state"] == "COMPLETE"
    if (good_a == good_b).all():
        why = Statement("The same {n_good} of {n} shared items succeeded.", n_good=int(good_a.sum()), n=len(rows))
        return GateCheck("equal-success", PASS, why)
    counts = {"n_a": int(good_a.sum()), "n_b": int(good_b.sum()), "n_both": int((good_a & good_b).sum())}
    cause = MENDED if bool(good_b[good_a].all()) else ""
    return GateCheck("equal-success", FAIL, Statement(OTHERS_SUCCEEDED, **counts, n=len(rows)), cause)


def _parallel(side: Side) -> float | str:
    found = side.get("parallelism")
    return float(found.effective) if found is not None else "an unknown number"


def _directions(side: Side) -> str:
    known = side.run.studies["directions"].dropna().astype(str)
    return ", ".join(sorted(pd.unique(known[known != ""])))
