"""Studies run by the real Optuna for tests of the replay; a curve depends on the seed and the trial's number alone."""

from __future__ import annotations

import heapq
from dataclasses import replace
from datetime import datetime

import numpy as np
import optuna
import pandas as pd

from gpudiag.forecast.pruning.pruner import build_pruner, quiet
from gpudiag.manifest import Settings
from gpudiag.measures._trials.pruner_spec import parse_pruner
from gpudiag.run import Run, RunInfo
from gpudiag.schema import REPORTS, STUDIES, TRIALS, conform

PRUNED = optuna.trial.TrialState.PRUNED
T0 = pd.Timestamp("2026-02-01 09:00:00", tz="UTC")
SPECS = (
    "median()",
    "percentile(25,n_startup_trials=3,n_warmup_steps=2,interval_steps=3)",
    "percentile(80,n_startup_trials=0,n_min_trials=4)",
    "sha()",
    "sha(min_resource=2,reduction_factor=3,min_early_stopping_rate=1,bootstrap_count=2)",
    "hyperband()",
    "hyperband(min_resource=2,max_resource=30,reduction_factor=4)",
    "patient(hyperband(max_resource=30),patience=2)",
    "patient(median(),patience=1,min_delta=0.01)",
    "patient(none,patience=3)",
    "threshold(upper=0.9,lower=0.1,n_warmup_steps=1,interval_steps=2)",
    "wilcoxon(p_threshold=0.2)",
    "nop()",
)


def curve(seed: int, number: int, epochs: int, direction: str) -> list[float]:
    """One learning curve."""
    rng = np.random.default_rng([seed, number])
    values = rng.uniform(0.1, 0.6) + 0.6 * np.arange(1, epochs + 1) ** -0.7 + 0.05 * rng.standard_normal(epochs)
    return (values if direction == "minimize" else 1 - values).tolist()


def optuna_study(
    pruner: str, *, seed: int = 0, n: int = 50, epochs: int = 20, direction: str = "minimize", jobs: int = 1
) -> tuple[optuna.Study, pd.DataFrame]:
    """A study as Optuna runs it, and trial, step, time of its reports.

    The workers take turns in one thread, by a clock of their own: the same seed gives the same order on any machine.
    """
    with quiet():
        study = optuna.create_study(
            study_name="curves",
            direction=direction,
            pruner=build_pruner(parse_pruner(pruner)),
            sampler=optuna.samplers.RandomSampler(seed),
        )
        told, intervals = _work(study, [curve(seed, number, epochs, direction) for number in range(n)], seed, jobs)
        timed = optuna.create_study(study_name="curves", direction=direction, pruner=study.pruner)
        for trial in study.trials:
            trial.datetime_start, trial.datetime_complete = (_utc(at) for at in intervals[trial.number])
            timed.add_trial(trial)
    return timed, pd.DataFrame(told, columns=["trial", "step", "time"])


def _work(
    study: optuna.Study, curves: list[list[float]], seed: int, jobs: int
) -> tuple[list[tuple[int, int, pd.Timestamp]], dict[int, tuple[float, float]]]:
    """Run every curve; reports in order, and start and end (s) of each trial."""
    rng = np.random.default_rng([seed, jobs])
    told: list[tuple[int, int, pd.Timestamp]] = []
    intervals: dict[int, tuple[float, float]] = {}
    turns = [(0.001 * worker, worker) for worker in range(jobs)]
    running: dict[int, tuple[optuna.Trial, int]] = {}
    while turns:
        at, worker = heapq.heappop(turns)
        if worker not in running:
            if len(intervals) == len(curves):
                continue
            trial = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
            intervals[trial.number] = (at, at)
            running[worker] = (trial, 0)
        else:
            trial, step = running[worker]
            values = curves[trial.number]
            trial.report(values[step], step)
            told.append((trial.number, step, T0 + pd.Timedelta(seconds=at)))
            prune = trial.should_prune()
            running[worker] = (trial, step + 1)
            if prune or step + 1 == len(values):
                study.tell(trial, None if prune else values[-1], state=PRUNED if prune else None)
                intervals[trial.number] = (intervals[trial.number][0], at)
                del running[worker]
        heapq.heappush(turns, (at + 60 * rng.uniform(0.5, 1.5), worker))
    return told, intervals


def _utc(seconds: float) -> datetime:
    """As Optuna keeps it: naive, in UTC."""
    return (T0 + pd.Timedelta(seconds=seconds)).tz_localize(None).to_pydatetime(warn=False)


def run_of(study: optuna.Study, pruner: str = "", **settings: object) -> Run:
    """The study as a run that states its pruner."""
    run = Run.from_files(trials=study, timezone="UTC")
    return replace(run, info=replace(run.info, settings=Settings(pruner=pruner or None, **settings)))


def with_times(run: Run, told: pd.DataFrame) -> Run:
    """The same, with the times of its reports."""
    reports = run.reports.merge(told, on=["trial", "step"], how="left")
    return replace(run, reports=conform(reports, REPORTS))


def hand_run(
    curves: dict[int, list[float]],
    states: dict[int, str],
    *,
    directions: str = "MINIMIZE",
    first_step: int = 1,
    study: str = "s",
    **settings: object,
) -> Run:
    """Trials one after the other, a minute for each report and ten seconds of start-up."""
    rows, told, at = [], [], 0.0
    for number, values in curves.items():
        end = at + 10 + 60 * len(values)
        final = values[-1] if values and states[number] in ("COMPLETE", "PRUNED") else np.nan
        rows.append((study, number, states[number], at, end if states[number] != "RUNNING" else np.nan, final))
        told += [(study, number, first_step + k, value) for k, value in enumerate(values)]
        at = end + 1
    trials = pd.DataFrame(rows, columns=["study", "trial", "state", "start", "end", "value"])
    for column in ("start", "end"):
        trials[column] = T0 + pd.to_timedelta(trials[column], unit="s")
    return Run(
        trials=conform(trials, TRIALS),
        reports=conform(pd.DataFrame(told, columns=["study", "trial", "step", "value"]), REPORTS),
        studies=conform(pd.DataFrame({"study": [study], "directions": [directions]}), STUDIES),
        info=RunInfo(settings=Settings(**settings)),
    )
