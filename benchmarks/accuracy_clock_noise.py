"""Runs whose load has nothing to do with their trials: what the clock makes of noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.alignment import establish_clock
from gpudiag.run import Run, RunInfo
from gpudiag.schema import GPU, GPUS, STUDIES, TRIALS, conform

BEGIN = pd.Timestamp("2026-02-02 09:00", tz="UTC")
ZONES = ("UTC", "Europe/Berlin", "Asia/Taipei", "America/New_York")


def white(rng: np.random.Generator, time_s: np.ndarray) -> np.ndarray:
    """Every sample by itself."""
    return rng.uniform(60, 99, len(time_s))


def drifting(rng: np.random.Generator, time_s: np.ndarray) -> np.ndarray:
    """A random walk that is thrown back."""
    return 80 + np.cumsum(rng.normal(0, 1, len(time_s))) % 19


def spikes(rng: np.random.Generator, time_s: np.ndarray) -> np.ndarray:
    """Idle in one sample of fifty."""
    return np.where(rng.random(len(time_s)) < 0.02, 5.0, 95.0)


def waves(rng: np.random.Generator, time_s: np.ndarray) -> np.ndarray:
    """Idle in a part of each period, as another job that runs in steps is."""
    period_s = float(np.exp(rng.uniform(np.log(10), np.log(600))))
    phase = (time_s / period_s + rng.random()) % 1
    return np.where(phase < rng.uniform(0.05, 0.5), 3.0, 90.0) + rng.uniform(0, 5, len(time_s))


def other_jobs(rng: np.random.Generator, time_s: np.ndarray) -> np.ndarray:
    """Busy and idle in turn, each for a random while."""
    mean_s = float(np.exp(rng.uniform(np.log(8), np.log(400))))
    n = int((time_s[-1] - time_s[0]) / mean_s * 2) + 20
    changes = time_s[0] + np.cumsum(rng.exponential(mean_s, n))
    return np.where(np.searchsorted(changes, time_s) % 2 == 1, 85.0, 0.0) + rng.uniform(0, 5, len(time_s))


KINDS: dict[str, Callable[[np.random.Generator, np.ndarray], np.ndarray]] = {
    "white": white,
    "drifting": drifting,
    "spikes": spikes,
    "waves": waves,
    "other jobs": other_jobs,
}


def noise_run(seed: int) -> tuple[Run, str]:
    """10 to 80 trials of workers or at random times, on a GPU that does something else, and what it does.

    The study lasts from a minute and a half to six hours; both clocks are right. A third of the telemetry is of another
    time of the day.
    """
    rng = np.random.default_rng([43, seed])
    kind = list(KINDS)[seed % len(KINDS)]
    n, study_s = int(rng.integers(10, 81)), float(np.exp(rng.uniform(np.log(90), np.log(21_600))))
    start, end = (_at_random if rng.random() < 0.5 else _of_workers)(rng, n, study_s)
    period_s = float(rng.choice([period for period in (0.5, 1, 2, 5, 10, 30) if period < study_s / 60]))
    lead_s = float(rng.uniform(0, 600)) if rng.random() < 0.5 else 5.0
    time_s = np.arange(start.min() - lead_s, end.max() + lead_s, period_s)
    away_s = float(rng.uniform(-43_200, 43_200)) if rng.random() < 1 / 3 else 0.0
    columns: dict[str, Any] = {
        "gpu": "0",
        "time": _at(time_s + away_s),
        "util_pct": np.clip(KINDS[kind](rng, time_s), 0, 100),
    }
    if rng.random() < 0.4:
        load = np.where(other_jobs(rng, time_s) > 50, 8000.0, 0.0)
        columns["mem_used_mib"] = 2000 + load + rng.normal(0, 20, len(time_s)).round()
    trials = {"study": "s", "trial": np.arange(n), "state": "COMPLETE", "start": _at(start), "end": _at(end)}
    return Run(
        gpu=conform(pd.DataFrame(columns), GPU),
        gpus=conform(pd.DataFrame({"gpu": ["0"]}), GPUS),
        trials=conform(pd.DataFrame(trials), TRIALS),
        studies=conform(pd.DataFrame({"study": ["s"], "directions": [""], "clock": ["local"]}), STUDIES),
        info=RunInfo(timezone=str(rng.choice(ZONES))),
    ), kind


def _at_random(rng: np.random.Generator, n: int, study_s: float) -> tuple[np.ndarray, np.ndarray]:
    start = np.sort(rng.uniform(0, study_s, n))
    return start, start + rng.uniform(0.003, 0.02, n) * study_s * rng.uniform(0.5, 5)


def _of_workers(rng: np.random.Generator, n: int, study_s: float) -> tuple[np.ndarray, np.ndarray]:
    workers = int(rng.integers(1, 5))
    duration = rng.lognormal(0, rng.uniform(0.05, 0.7), (workers, -(-n // workers)))
    step = duration + rng.uniform(0, 0.1) * rng.exponential(1, duration.shape)
    scale = study_s / step.sum(axis=1).max()
    end = scale * np.cumsum(step, axis=1)
    start = end - scale * duration
    order = np.argsort(start, axis=None)[:n]
    return start.ravel()[order], end.ravel()[order]


def _at(time_s: np.ndarray) -> pd.Series:
    moved = BEGIN + pd.to_timedelta(np.round(time_s * 1e6).astype("int64"), unit="us")
    return pd.Series(moved).astype("datetime64[us, UTC]")


def noise_result(seed: int) -> dict[str, Any]:
    """What was found: of clocks that agree nothing may be moved, and no lean be told."""
    run, kind = noise_run(seed)
    clock = establish_clock(run)
    best = max(clock.candidates, key=lambda pair: pair[1]) if clock.candidates else (0.0, 0.0)
    length_s = (run.trials["end"].max() - run.trials["start"].min()).total_seconds()
    return {
        "kind": kind,
        "length_s": length_s,
        "strong": clock.confidence == "strong",
        "moved": clock.applied_s != 0,
        "leans": clock.confidence == "weak" and clock.offset_s != 0,
        "fit": best[1],
    }


def noise_section(rows: pd.DataFrame) -> str:
    """A row for each kind of load."""
    lines = [
        f"{len(rows)} runs of 10 to 80 trials, from a minute and a half to six hours long, on a GPU whose load has "
        "nothing to do with them; both clocks are right, and a third of the telemetry is of another time of the day.",
        "",
        "| load | runs | strong, at equal clocks | moved | a lean is told |",
        "|---|--:|--:|--:|--:|",
    ]
    for kind, part in [*rows.groupby("kind", sort=False), ("all", rows)]:
        equal, moved = int((part["strong"] & ~part["moved"]).sum()), int(part["moved"].sum())
        lines.append(f"| {kind} | {len(part)} | {equal} | {moved} | {int(part['leans'].sum())} |")
    return "\n".join(lines)
