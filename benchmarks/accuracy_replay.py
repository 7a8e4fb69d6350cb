"""Accuracy of the pruner replay on simulated studies, whose full curves are known: the truth is a run of the candidate.

    python benchmarks/accuracy_replay.py                 100 studies for each pair of pruners, about 10 minutes of CPU
    python benchmarks/accuracy_replay.py --studies 20    a glance

The tables are printed and written into benchmarks/accuracy.md.

Studies differ in trials (50-120), workers (1, 2, 4 or 8), epochs (20, 27, 30), noise, crossing of the curves and
direction, all drawn from the seed. Optuna's own pruner decides in the log and in the truth. The truth has its own
order of events: cutting a trial early lets the next one start early.
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from accuracy_ledger import gather, seeds, write_section

import gpudiag as gd
from gpudiag.forecast.pruning import judge as replay_judge
from gpudiag.forecast.pruning.play import as_recorded, backtest
from gpudiag.forecast.pruning.pruner import build_pruner, quiet
from gpudiag.forecast.pruning.recorded import recorded_studies
from gpudiag.forecast.pruning.stage import Stage
from gpudiag.manifest import Settings
from gpudiag.measures._trials.pruner_spec import parse_pruner
from gpudiag.run import Run, RunInfo
from gpudiag.schema import REPORTS, STUDIES, TRIALS, conform
from gpudiag.simulation import Curve, Spec, Trial
from gpudiag.simulation.trial_plan import draw_plan

BEGIN = pd.Timestamp("2026-01-05 08:00:00", tz="UTC")
STUDY = "study"
HB = "hyperband(max_resource=30)"
PAIRS = (
    ("nop()", HB),
    ("nop()", "median()"),
    (f"patient({HB},patience=2)", HB),
    (f"patient({HB},patience=2)", "median()"),
    (f"patient({HB},patience=2)", f"patient({HB},patience=5)"),
    ("median()", "percentile(25)"),
    ("median()", HB),
    ("median()", "median(n_warmup_steps=5)"),
    ("median()", f"patient({HB},patience=2)"),
    ("sha()", "sha(reduction_factor=3,min_resource=3)"),
    (HB, "hyperband(min_resource=3,max_resource=30)"),
    (HB, "nop()"),
)
LOGGERS = (
    "median()", "percentile(25,n_warmup_steps=3)", "sha()", HB, f"patient({HB},patience=2)", "threshold(upper=0.8)",
)  # fmt: skip


def spec_of(seed: int) -> Spec:
    """What varies from study to study."""
    rng = np.random.default_rng([seed, 99])
    epochs = int(rng.choice([20, 27, 30]))
    return Spec(
        n_trials=int(rng.integers(50, 120)),
        workers=int(rng.choice([1, 2, 4, 8])),
        trial=Trial(startup_s=(10.0, 40.0), epochs=epochs, epoch_s=(8.0, 16.0)),
        curve=Curve(
            direction="minimize" if rng.random() < 0.5 else "maximize",
            noise=float(rng.uniform(0.003, 0.04)),
            crossing=float(rng.uniform(0.0, 0.8)),
        ),
    )


def live(spec: Spec, seed: int, pruner: str, *, timed: bool = False) -> Run:
    """The study as that pruner would have run it; reports carry their times only if asked for."""
    stage = Stage(build_pruner(parse_pruner(pruner)), STUDY, spec.curve.direction)
    coming: list[tuple[float, int, int]] = []
    plans: list[Any] = []
    began: list[float] = []
    trials: list[tuple[Any, ...]] = []
    reports: list[tuple[Any, ...]] = []
    cut: set[int] = set()

    def take(at: float) -> None:
        number = len(plans)
        if number == spec.n_trials:
            return
        plans.append(draw_plan(spec, seed, number))
        began.append(at)
        stage.start(number)
        heapq.heappush(coming, (at + plans[number].startup_s + sum(plans[number].segments[0]), number, 0))

    for worker in range(spec.worker_steps[0][1]):
        take(0.5 * worker)
    while coming:
        at, number, epoch = heapq.heappop(coming)
        plan = plans[number]
        if epoch < 0:
            value, state = plan.values[~epoch], "PRUNED" if number in cut else "COMPLETE"
            stage.end(number, state, value)
            trials.append((number, state, began[number], at, value))
            take(at + plan.gap_s)
            continue
        reports.append((number, epoch + 1, plan.values[epoch], at))
        if stage.prunes(number, epoch + 1, plan.values[epoch]):
            cut.add(number)
        if number in cut or epoch + 1 == len(plan.values):
            heapq.heappush(coming, (at + (0.05 if number in cut else plan.tail_s), number, ~epoch))
        else:
            heapq.heappush(coming, (at + sum(plan.segments[epoch + 1]), number, epoch + 1))
    return _run(spec, pruner, trials, reports, timed)


def _run(spec: Spec, pruner: str, trials: list[Any], reports: list[Any], timed: bool) -> Run:
    rows = pd.DataFrame(trials, columns=["trial", "state", "start", "end", "value"]).sort_values("trial")
    told = pd.DataFrame(reports, columns=["trial", "step", "value", "time"]).sort_values(["trial", "step"])
    for frame, column in ((rows, "start"), (rows, "end"), (told, "time")):
        frame[column] = BEGIN + pd.to_timedelta(frame[column].round(6), unit="s")
    told = told if timed else told.drop(columns="time")
    studies = pd.DataFrame({"study": [STUDY], "directions": [spec.curve.direction.upper()]})
    return Run(
        trials=conform(rows.assign(study=STUDY), TRIALS),
        reports=conform(told.assign(study=STUDY), REPORTS),
        studies=conform(studies, STUDIES),
        info=RunInfo(settings=Settings(pruner=pruner, max_steps=spec.trial.epochs)),
    )


def replayed(pair: tuple[str, str], seed: int) -> dict[str, Any]:
    """One log replayed, against the truth. Costs are ratios to the truth, rates in percent."""
    spec = spec_of(seed)
    with quiet():
        log, truth = live(spec, seed, pair[0]), live(spec, seed, pair[1])
    found = gd.replay_pruner(log, pair[1])
    steps = len(truth.reports)
    rate = 100 * float((truth.trials["state"] == "PRUNED").mean())
    return {
        "identified": found.identified_pct,
        "level": found.level,
        "low": found.steps.low / steps,
        "high": found.steps.high / steps,
        "value": found.steps.value / steps,
        "rate": rate,
        "rate_low": found.pruned_pct.low,
        "rate_high": found.pruned_pct.high,
        "exact_miss": found.level == "exact" and found.steps.value != steps,
    }


def repeated(pruner: str, seed: int) -> dict[str, Any]:
    """The logging pruner replayed on its own log, with and without the times of reports."""
    spec = spec_of(seed)
    out: dict[str, Any] = {"workers": spec.worker_steps[0][1]}
    with quiet():
        log, timed = live(spec, seed, pruner), live(spec, seed, pruner, timed=True)
        record = recorded_studies(timed)[0]
        exact = backtest(
            as_recorded(record), Stage(build_pruner(parse_pruner(pruner)), STUDY, record.direction), pruner
        )
    found = gd.replay_pruner(log, pruner)
    for name, test in (("timed", exact), ("untimed", found.backtests[0])):
        out |= {f"{name}_hits": test.repeated, f"{name}_others": test.others, "prunes": test.prunes}
    out["holds"] = found.steps.low <= found.logged_steps <= found.steps.high
    return out


def pairs_section(studies: range) -> str:
    """A row for each pair of logging pruner and candidate."""
    lines = []
    for pair in PAIRS:
        rows = gather(partial(replayed, pair), studies)
        cost = (rows["low"] <= 1 + 1e-9) & (rows["high"] >= 1 - 1e-9)
        rate = (rows["rate_low"] <= rows["rate"] + 1e-9) & (rows["rate_high"] >= rows["rate"] - 1e-9)
        given = rows.loc[rows["level"] != "bounds", "value"]
        value = f"{given.median():.2f} ({given.quantile(0.05):.2f}-{given.quantile(0.95):.2f})" if len(given) else "–"
        lines.append(
            f"| `{pair[0]}` | `{pair[1]}` | {rows['identified'].median():.0f} % | {100 * cost.mean():.0f} % "
            f"| {rows['low'].median():.2f}-{rows['high'].median():.2f} | {value} "
            f"| {100 * len(given) / len(rows):.0f} % "
            f"| {100 * rate.mean():.0f} % | {rows['rate'].median():.0f} | {rows['rate_low'].median():.0f}-"
            f"{rows['rate_high'].median():.0f} | {int(rows['exact_miss'].sum())} |"
        )
        print(lines[-1], flush=True)
    return (
        f"{len(studies)} studies for each pair. Costs (steps trained) are ratios to the truth: the median of the lower "
        "and the upper bound, and median and 5-95 % of the values that were published; rates are percent of trials.\n\n"
        "| logged under | candidate | identified | cost bounds hold | cost bounds | cost value | published "
        "| rate bounds hold | true rate | rate bounds | exact and wrong |\n"
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n" + "\n".join(lines)
    )


def own_section(studies: range) -> str:
    """A row for each logging pruner."""
    lines = []
    for pruner in LOGGERS:
        rows = gather(partial(repeated, pruner), studies)
        alone = rows["workers"] == 1
        lines.append(
            f"| `{pruner}` | {int(rows['prunes'].sum()):,} | {_share(rows[alone], 'untimed')} | "
            f"{_share(rows[~alone], 'timed')} | {_share(rows[~alone], 'untimed')} | "
            f"{100 * rows['holds'].mean():.0f} % |"
        )
        print(lines[-1], flush=True)
    return (
        f"The logging pruner on its own log, {len(studies)} studies each: prunes repeated at the very report, and "
        "others: reports at which it says prune though the trial went on. Optuna keeps no times of reports; with "
        "several workers their order is then inferred.\n\n"
        "| pruner | prunes | one worker | several, times recorded | several, no times | "
        "bounds hold the logged cost |\n|---|--:|--:|--:|--:|--:|\n" + "\n".join(lines)
    )


def _share(rows: pd.DataFrame, name: str) -> str:
    hits, prunes, others = (int(rows[column].sum()) for column in (f"{name}_hits", "prunes", f"{name}_others"))
    share = "all" if hits == prunes else f"{100 * hits / prunes:.1f} %"
    return f"{share}, {others} others"


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--studies", type=int, default=100, help="studies for each pair of pruners")
    parser.add_argument("--first", type=int, default=0, help="first seed: another block for each committed table")
    options = parser.parse_args()
    replay_judge.SMALL = 0  # the same answers as Optuna's, in less time; logs and truths are Optuna's own
    sections: tuple[tuple[str, Callable[[range], str]], ...] = (
        ("Pruner replay: another pruner", pairs_section),
        ("Pruner replay: the logging pruner again", own_section),
    )
    for title, section in sections:
        studies = range(options.first, options.first + options.studies)
        write_section(title, section(studies) + seeds(options.first, options.studies))


if __name__ == "__main__":
    main()
