"""Forecasts of a study whose trials change in its course: what its last third shows, and what if it goes on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from smallruns import gpu as gpu_of
from smallruns import run as run_of
from smallruns import trials as trials_of

import gpudiag as gd
from gpudiag.forecast.parallelism.drift import carried_on

N = 60


def lasting(lengths_s: np.ndarray, n_trials: int | None = 2 * N, *, workers: int = 2) -> gd.Run:
    """Trials of these lengths that follow each other on their workers, each using 30 % of the GPU."""
    free = 7.0 * np.arange(workers)
    rows = []
    for length in lengths_s:
        worker = int(free.argmin())
        rows.append(("COMPLETE", float(free[worker]), float(free[worker] + length)))
        free[worker] += length
    seconds = np.arange(0.0, free.min(), 2.0)
    begin, end = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    running = ((begin <= seconds[:, None]) & (seconds[:, None] < end)).sum(axis=1)
    return run_of(
        gpu=gpu_of(seconds, util_pct=30.0 * running, mem_used_mib=500.0),
        trials=trials_of(rows),
        settings={"parallel": workers, "n_trials": n_trials},
    )


def rising(first_s: float, last_s: float) -> np.ndarray:
    return np.linspace(first_s, last_s, N) * (1 + 0.02 * np.sin(np.arange(N)))


def hours(lengths_s: np.ndarray, workers: int = 2) -> float:
    return float(lengths_s.sum()) / workers / 3600


@pytest.mark.slow
@pytest.mark.parametrize("blind", [False, True])
@pytest.mark.parametrize(("first_s", "last_s"), [(20.0, 80.0), (80.0, 20.0)])
def test_what_is_left_holds_the_last_level_and_the_trend(first_s: float, last_s: float, blind: bool) -> None:
    """60 trials are left. Those of the last third take some 70 s each, or 24 s. Trials that go on to get longer take
    80 to 140 s; those that get shorter go on to do so.
    """
    run = lasting(rising(first_s, last_s))
    if blind:
        run = replace(run, gpu=run.gpu.iloc[:0])
    made = gd.what_if(run, [2])
    now = made.at(2)
    assert made.drift.found and now.bounds_only and "last third of the log" in " ".join(repr(made).split())
    ends = np.array([(end - run.trials["start"].min()).total_seconds() for end in run.trials["end"]])
    latest = rising(first_s, last_s)[ends > 2 / 3 * ends.max()]
    level = hours(np.full(N, latest.mean()))
    assert now.left.low <= level <= now.left.high
    assert made.rate.value == pytest.approx(N / level, rel=0.06), "of the last third, where the whole log has others"
    if last_s > first_s:
        assert now.left.low <= hours(np.linspace(81.0, 140.0, N)) <= now.left.high
    else:
        assert now.left.low < hours(np.full(N, 18.0)) <= now.left.high


def test_without_a_drift_all_of_the_log_counts() -> None:
    rng = np.random.default_rng(4)
    made = gd.what_if(replace(run := lasting(rng.uniform(30, 50, N)), gpu=run.gpu.iloc[:0]), [2])
    assert not made.drift.found and made.rate.value == pytest.approx(3600 * 2 / 40, rel=0.06)
    assert (made.at(2).throughput.low, made.at(2).throughput.high) == (made.rate.low, made.rate.high)


def test_a_course_goes_on_over_the_trials_that_are_left() -> None:
    """Work of 1, 2 ... 30: the last ten take 25.5, the next ten 35.5, the next hundred 80.5 in the mean."""
    work, last = np.arange(1.0, 31.0), np.arange(30) >= 20
    assert carried_on(work, last, 10) == pytest.approx(25.5 / 35.5)
    assert carried_on(work, last, 100) == pytest.approx(25.5 / 80.5)
    halved = 2.0 ** -np.arange(30.0)
    assert carried_on(halved, last, 10) == pytest.approx(2.0**10), "each takes half as long as the one before"
    far = carried_on(np.append(halved, 0.0), np.append(last, False), 5000)
    assert far == pytest.approx(carried_on(np.append(halved, 0.0), np.append(last, False), 31)), "no farther than seen"
