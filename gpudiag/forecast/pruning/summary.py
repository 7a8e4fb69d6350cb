"""From the replays of the studies of a run to what is said about the candidate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable, in_words
from gpudiag.forecast.estimate import Estimate
from gpudiag.forecast.pruning.cost_bounds import Fates, Plays, longest
from gpudiag.forecast.pruning.document import ReplayLevel
from gpudiag.forecast.pruning.play import NOT_CUT, ReplayBacktest
from gpudiag.forecast.pruning.rank import rank_agreement
from gpudiag.forecast.pruning.recorded import Array, Recorded
from gpudiag.forecast.pruning.result import PrunerReplay
from gpudiag.forecast.pruning.saved_time import saved_hours
from gpudiag.measures._trials.pruner_spec import PrunerSpec

IDENTIFIED_PCT = 90.0
"""From this share of identified trials on, values are published beside the bounds (METHODS 5)."""
ORDER_SLACK, RATIO_SLACK = 0.05, 0.15
"""Bounds on cost are widened by this much where trials overlap or are cut off; by the second where a median-type pruner
compares with COMPLETE trials that the replay cannot know (METHODS 5; measured in benchmarks/accuracy.md). Where the
back-test ends a larger share of the trials elsewhere, by that share."""
RATE_SLACK_PCT = 3.0
"""Points by which the bounds on the pruning rate are widened where the order of reports is uncertain (measured)."""
BACKTEST_PCT = 90.0
RATIO_PRUNERS = ("median", "percentile")
BEYOND = "{beyond_pct} of the trials would have run beyond what was recorded, so that only bounds are known."
OTHER_PRUNER = (
    "The stated pruner repeats only {n_repeated} of {n_prunes} prunes of its own log, so that only bounds are given."
)


def compares_trials(spec: PrunerSpec | None) -> bool:
    """True if what the pruner says of a trial depends on other trials."""
    if spec is None:
        return True
    if spec.name == "patient":
        inner = spec.params["wrapped_pruner"]
        return inner is not None and compares_trials(inner)
    return spec.name not in ("threshold", "nop")


def prunes(spec: PrunerSpec | None) -> bool:
    """False if the pruner never prunes, whatever is reported: alone, or as what a patient pruner asks."""
    inner = spec.params.get("wrapped_pruner") if spec is not None else None
    return (spec is None or spec.name != "nop") and (not isinstance(inner, PrunerSpec) or prunes(inner))


def _is_ratio(spec: PrunerSpec | None) -> bool:
    if spec is None:
        return True
    inner = spec.params.get("wrapped_pruner")
    return spec.name in RATIO_PRUNERS or (isinstance(inner, PrunerSpec) and _is_ratio(inner))


def summarize(words: str, spec: PrunerSpec | None, plays: Sequence[Plays], shares: pd.Series) -> PrunerReplay:
    records = [p.record for p in plays]
    decided = [np.isin(r.state, ("COMPLETE", "PRUNED")) & (r.done > 0) & r.ran for r in records]
    n = int(sum(d.sum() for d in decided))
    if not n:
        raise NotMeasurable("No COMPLETE or PRUNED trial reported a value, so there is nothing to replay.")
    identified = sum(np.mean([(~f.censored[d]).sum() for f in p.fates]) for p, d in zip(plays, decided, strict=True))
    cut_off = any(f.censored.any() for p in plays for f in p.fates)
    compares = compares_trials(spec)
    ordered = all(r.ordered for r in records)
    workers = max(r.workers for r in records)
    uncertain = compares and (cut_off or workers > 1)
    tests = tuple(p.backtest for p in plays if p.backtest)
    slack = 0.0 if not uncertain else RATIO_SLACK if cut_off and _is_ratio(spec) else ORDER_SLACK
    slack = max(slack, _wrong_share(tests, n)) if uncertain else slack
    identified_pct = 100.0 * float(identified) / n
    alike = all(np.array_equal(p.fates[0].low, f.low) for p in plays for f in p.fates)
    level, reason = _level(identified_pct, cut_off or not alike, uncertain, tests)
    total = _Total(plays, level, reason, slack)
    logged = int(sum(r.done[r.ran].sum() for r in records))
    steps = total.estimate(lambda r, f, x: float(getattr(f, x)[r.ran].sum()), "steps")
    worker, gpu = saved_hours(plays, shares, slack, reason)
    best = _best(plays, total)
    return PrunerReplay(
        pruner=words,
        studies=tuple(r.study for r in records),
        level=level,
        reason=reason,
        n_trials=n,
        n_left_out=int(sum(((r.done == 0) & r.ran).sum() for r in records)),
        identified_pct=identified_pct,
        logged_pruned_pct=100.0 * sum(_pruned(r) for r in records) / n,
        pruned_pct=_pruned_pct(total, decided, n, uncertain) if prunes(spec) else Estimate(0.0, 0.0, 0.0, "%"),
        logged_steps=logged,
        steps=steps,
        saved_steps=_saved(logged, steps, "steps"),
        saved_worker_h=worker,
        saved_gpu_h=gpu,
        regret=best.regret,
        best_trial=best.trial,
        best_killed=best.killed,
        best_cut_step=best.cut_step,
        backtests=tests,
        workers=workers,
        ordered=ordered,
        n_replays=max(len(p.cuts) for p in plays),
        max_steps=max(r.max_steps for r in records),
        longest_complete=max(_longest_complete(r) for r in records),
        trials=pd.concat([_trials(p) for p in plays], ignore_index=True),
        rank=rank_agreement(records, _early_steps(plays)),
        reports=pd.concat([_reports(r) for r in records], ignore_index=True),
    )


def _longest_complete(record: Recorded) -> int:
    return max((int(d) for d, state in zip(record.done, record.state, strict=True) if state == "COMPLETE"), default=0)


def _pruned(record: Recorded) -> int:
    """PRUNED trials with a report: without one, something else ended them."""
    return int(((np.array(record.state) == "PRUNED") & (record.done > 0) & record.ran).sum())


def _level(
    identified_pct: float, cut_off: bool, uncertain: bool, tests: Sequence[ReplayBacktest]
) -> tuple[ReplayLevel, str]:
    """'exact', 'value' or 'bounds', and why not more."""
    failed = [t for t in tests if t.prunes and 100 * t.repeated < BACKTEST_PCT * t.prunes]
    if identified_pct < IDENTIFIED_PCT:
        return "bounds", in_words(BEYOND, {"beyond_pct": 100 - identified_pct})
    if failed:
        return "bounds", in_words(OTHER_PRUNER, {"n_repeated": failed[0].repeated, "n_prunes": failed[0].prunes})
    return ("value" if cut_off or uncertain else "exact"), ""


def _wrong_share(tests: Sequence[ReplayBacktest], n: int) -> float:
    """Share of the trials that the logging pruner, asked again, ends elsewhere: 1 at most.

    A back-test that fails says that another pruner ran than was stated, not how wrong the candidate's replay is.
    """
    held = [test for test in tests if 100 * test.repeated >= BACKTEST_PCT * test.prunes]
    return min(1.0, sum(test.prunes - test.repeated + test.others for test in held) / n)


class _Total:
    """Sums over the studies, and what they can be over all replays."""

    def __init__(self, plays: Sequence[Plays], level: ReplayLevel, reason: str, slack: float) -> None:
        self.plays, self.level, self.reason, self.slack = plays, level, reason, slack

    def sums(self, of: Callable[[Recorded, Fates, str], float]) -> tuple[float, float, float]:
        """(point, lowest, highest) of the sum over studies of ``of(record, fates, which)``."""
        point = sum(of(p.record, p.fates[p.point], "point") for p in self.plays)
        low = sum(min(of(p.record, f, "low") for f in p.fates) for p in self.plays)
        high = sum(max(of(p.record, f, "high") for f in p.fates) for p in self.plays)
        return point, low, high

    def estimate(self, of: Callable[[Recorded, Fates, str], float], unit: str) -> Estimate:
        """The sum as Estimate, widened by the slack."""
        point, low, high = self.sums(of)
        most = sum(of(p.record, longest(p.record), "high") for p in self.plays)
        return self.published(point, low * (1 - self.slack), min(high * (1 + self.slack), most), unit)

    def published(self, point: float, low: float, high: float, unit: str) -> Estimate:
        """With the value where the level allows it."""
        if self.level == "bounds":
            return Estimate.bounds(low, high, unit, self.reason)
        return Estimate(min(max(point, low), high), low, high, unit)


def _saved(logged: float, cost: Estimate, unit: str) -> Estimate:
    return Estimate(logged - cost.value, logged - cost.high, logged - cost.low, unit, cost.bounds_only, cost.reason)


def _pruned_pct(total: _Total, decided: Sequence[Array], n: int, uncertain: bool) -> Estimate:
    """Pruned, of those that are COMPLETE or PRUNED then.

    A trial that failed after the candidate would have cut it is pruned instead, and counts; would it fail before, it
    does not: the lower end leaves all of them out.
    """
    chosen = {id(p.record): d for p, d in zip(total.plays, decided, strict=True)}

    def count(record: Recorded, fates: Fates, which: str) -> float:
        hit = {"low": fates.within, "high": fates.within | fates.censored, "point": fates.pruned}[which]
        return float(hit[chosen[id(record)]].sum())

    def failed(record: Recorded, fates: Fates, which: str) -> float:
        return float((fates.within & (np.array(record.state) == "FAIL") & record.ran).sum())

    point, low, high = total.sums(count)
    saved, _, most = total.sums(failed)
    slack = RATE_SLACK_PCT if uncertain else 0.0
    return total.published(
        100 * (point + saved) / (n + saved),
        max(0.0, 100 * low / n - slack),
        min(100.0, 100 * (high + most) / (n + most) + slack),
        "%",
    )


@dataclass(frozen=True)
class _Best:
    regret: Estimate
    trial: int | None
    killed: bool | None
    cut_step: int | None


def _best(plays: Sequence[Plays], total: _Total) -> _Best:
    """The best feasible trial of the study with most COMPLETE ones, and the best that the candidate keeps."""
    p = max(plays, key=lambda p: p.record.state.count("COMPLETE"))
    record = p.record
    sign = 1.0 if record.direction == "minimize" else -1.0
    complete = (np.array(record.state) == "COMPLETE") & np.isfinite(record.value)
    done = np.flatnonzero(complete & ~record.infeasible)
    which = "broke no constraint" if len(done) < complete.sum() else "completed"
    if not len(done):
        why = "Every trial that completed broke a constraint" if complete.any() else "No trial completed"
        return _Best(Estimate.unknown("", f"{why}, so that no best value is known."), None, None, None)
    loss = sign * record.value
    best = int(done[np.argmin(loss[done])])
    kept = [done[~f.within[done]] for f in p.fates]
    worse = [float(loss[k].min() - loss[best]) if len(k) else math.inf for k in kept]
    killed = [bool(f.within[best]) for f in p.fates]
    steps = [record.steps[best][cut[best]] for cut, hit in zip(p.cuts, killed, strict=True) if hit]
    reason = f"The candidate prunes every trial that {which}." if math.isinf(max(worse)) else ""
    high = max(worse) if math.isfinite(max(worse)) else math.nan
    value = worse[p.point] if total.level != "bounds" and math.isfinite(worse[p.point]) else math.nan
    regret = Estimate(
        value,
        min(worse) if math.isfinite(min(worse)) else math.nan,
        high,
        "",
        math.isnan(value),
        reason or total.reason,
    )
    return _Best(
        regret,
        int(record.number[best]),
        killed[0] if len(set(killed)) == 1 else None,
        int(np.median(steps)) if steps else None,
    )


def _trials(p: Plays) -> pd.DataFrame:
    record = p.record
    within = np.array([f.within for f in p.fates])
    censored = np.array([f.censored for f in p.fates]).any(axis=0)
    outcome = np.select([censored, within.all(axis=0), ~within.any(axis=0)], ["unknown", "pruned", "kept"], "unknown")
    cut = p.cuts[0]
    step = [steps[c] if NOT_CUT < c < len(steps) else math.nan for c, steps in zip(cut, record.steps, strict=True)]
    frame = pd.DataFrame(
        {
            "study": record.study,
            "trial": record.number,
            "state": record.state,
            "steps": record.done,
            "outcome": outcome,
            "cut_step": step,
            "steps_low": np.min([f.low for f in p.fates], axis=0),
            "steps_high": np.max([f.high for f in p.fates], axis=0),
            "value": record.value,
        }
    )
    return frame[record.done > 0].sort_values("trial", ignore_index=True)


def _reports(record: Recorded) -> pd.DataFrame:
    count = [len(part) for part in record.steps]
    return pd.DataFrame(
        {
            "study": record.study,
            "trial": np.repeat(record.number, count),
            "step": np.concatenate([np.array(part, np.int64) for part in record.steps]),
            "value": np.concatenate([np.array(part, float) for part in record.values]),
        }
    )


def _early_steps(plays: Sequence[Plays]) -> list[int]:
    """The first step at which the candidate cuts a trial, and 1, 3, 9 ... from the first step reported."""
    steps = [
        part[c] for p in plays for c, part in zip(p.cuts[0], p.record.steps, strict=True) if NOT_CUT < c < len(part)
    ]
    first = min(r.counts_from for r in (p.record for p in plays))
    longest = max(p.record.max_steps for p in plays)
    grid = [first + 3**k - 1 for k in range(8) if 3**k < longest]
    return sorted({*grid, *([min(steps)] if steps else [])})
