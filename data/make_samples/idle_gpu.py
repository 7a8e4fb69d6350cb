"""idle-second-gpu: four workers on one of two GPUs, and two runs that cannot be compared as they were."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from data.make_samples.steer import steer
from gpudiag.manifest import Settings
from gpudiag.simulation.cases.case import Case
from gpudiag.simulation.files import iso
from gpudiag.simulation.life import Life
from gpudiag.simulation.script import replay
from gpudiag.simulation.simulator import Simulated, observe, observed
from gpudiag.simulation.spec import Foreign, Gpu, Spec, TelemetrySpec

NAME = "idle-second-gpu"
SEED = 3
SYMBOLS = tuple(f"S{number:02d}" for number in range(1, 97))
WINDOWS = 6
SUBSET = ("S07", "S19", "S33", "S48", "S71", "S90")
OBSERVED_S = 394.0
TICKS = 78
WORKERS = 4
_Row = tuple[tuple[str, int], int, float, float]

STORY = """
Four workers train LightGBM models, one for each window of each symbol, on a machine with two GPUs; all the work goes
to GPU 1. `baseline/`: 96 symbols, 576 windows, 559 succeed and 17 fail, 400.3 s. `experiment/`: 36 windows of six of
the symbols, 34 succeed and 2 fail, 29.8 s, with larger models (num_leaves 127 -> 255, max_depth 9 -> 15, n_estimators
500 -> 1000, gpu_use_dp false -> true). 156 samples over 394 s (two GPUs, 78 ticks) go with each.

In the situation the baseline of the same 36 windows was taken to have lasted 260.0 s, and an experiment 8.7 times as
fast with models twice as complex was called impossible. The 260.0 s are the span, within the 576-window run, between
the start of the first and the end of the last of those 36 windows, with 340 other windows run in between. Per window
the experiment is 1.19 times slower (29.8/36 against 400.3/576 s). Telemetry covers 394 s, the experiment's job 29.8 s
of them: GPU 1's mean of 28 % belongs to another process. The parameters of the experiment stand in its request (a
note in run.toml) and nowhere in its results.

Scripted are the tasks: their order, duration and outcome; time is then stretched piecewise so that the three spans
are exact. "39 and 4 overlapping completions" are completions within 50 ms of the one before. Telemetry follows from
the tasks and from a foreign load, and readings are moved by whole units onto the stated means and extremes: GPU 0
baseline/experiment utilization mean 3/0, peak 6/0, memory 189/18, temperature 49/43; GPU 1 20/28, 37/78, 711/519,
61/56. `experiment/teacher_runs.json` is the experiment's own record (status and final stamp only) and is not part of
run.toml, which names tasks.jsonl.
"""


@dataclass(frozen=True)
class _Readings:
    """Stated figures of one GPU: mean and range of utilization, mean of memory and temperature."""

    util_mean: float
    util_low: float
    util_high: float
    mem_mib: float
    temp_c: float


@dataclass(frozen=True)
class _Side:
    """What differs between the two runs. ``subset_s`` is the span of the subset's windows, where others run too."""

    name: str
    start: str
    seed: int
    job_at_s: float
    job_s: float
    subset_s: float | None
    log_from_s: float
    typical_s: tuple[float, float]
    n_failed: int
    params: Mapping[str, Any]
    readings: tuple[_Readings, _Readings]
    foreign: tuple[Foreign, ...]
    notes: tuple[str, ...]


BASELINE = _Side(
    name="baseline",
    start="2025-10-28T14:02:10",
    seed=496,
    job_at_s=0.0,
    job_s=400.3,
    subset_s=260.0,
    log_from_s=3.0,
    typical_s=(1.9, 3.6),
    n_failed=17,
    params={"num_leaves": 127, "max_depth": 9, "n_estimators": 500, "gpu_use_dp": False},
    readings=(_Readings(3, 1, 6, 189, 49), _Readings(20, 2, 37, 711, 61)),
    foreign=(Foreign(0, -60.0, 600.0, 3.0, 171.0), Foreign(1, -60.0, 600.0, 1.0, 120.0)),
    notes=(),
)
EXPERIMENT = _Side(
    name="experiment",
    start="2025-10-28T16:31:40",
    seed=9,
    job_at_s=61.4,
    job_s=29.8,
    subset_s=None,
    log_from_s=0.0,
    typical_s=(2.5, 4.2),
    n_failed=2,
    params={},
    readings=(_Readings(0, 0, 0, 18, 43), _Readings(28, 0, 78, 519, 56)),
    foreign=(
        Foreign(1, -20.0, 150.0, 24.0, 420.0),
        Foreign(1, 170.0, 420.0, 33.0, 420.0),
        Foreign(1, 251.0, 257.0, 65.0, 200.0),
    ),
    notes=("requested: num_leaves 255, max_depth 15, n_estimators 1000, gpu_use_dp true",),
)

SPEC = Spec(
    record="tasks",
    study="windows",
    timezone="Asia/Kolkata",
    workers=WORKERS,
    declares=("worker",),
    gpus=(
        Gpu(
            name="NVIDIA RTX A5000", base_mib=18, mem_total_mib=24564, power_limit_w=230.0, idle_w=19.0, context_w=30.0,
            full_w=215.0, ambient_c=38.0, c_per_w=0.25, max_clock_mhz=1965, mem_util_ratio=0.3,
        ),
    ) * 2,
    settings=Settings(parallel=WORKERS, cpu_cores=32),
)  # fmt: skip


def make() -> Case:
    """Script both runs."""
    runs = {
        side.name: _run(side, jobs) for side, jobs in ((BASELINE, _baseline_jobs()), (EXPERIMENT, _jobs_of(SUBSET)))
    }
    record = {"experiment/teacher_runs.json": list(_own_record(runs["experiment"]))}
    return Case(NAME, SEED, STORY, runs, extras=record, made_by="make samples")


def _jobs_of(symbols: tuple[str, ...]) -> list[tuple[str, int]]:
    return [(symbol, window) for symbol in symbols for window in range(1, WINDOWS + 1)]


def _baseline_jobs() -> list[tuple[str, int]]:
    """All windows in a mixed order, those of the subset between the 60th and the 435th."""
    rng = np.random.default_rng([SEED, 9])
    others = _jobs_of(tuple(symbol for symbol in SYMBOLS if symbol not in SUBSET))
    rng.shuffle(others)
    subset = _jobs_of(SUBSET)
    rng.shuffle(subset)
    places = np.sort(np.concatenate(([60, 434], 61 + rng.choice(373, len(subset) - 2, replace=False))))
    jobs = [(str(symbol), int(window)) for symbol, window in others]
    for place, (symbol, window) in zip(places.tolist(), subset, strict=True):
        jobs.insert(place, (str(symbol), int(window)))
    return jobs


def _run(side: _Side, jobs: list[tuple[str, int]]) -> Simulated:
    telemetry = TelemetrySpec(
        period_s=OBSERVED_S / (TICKS - 1),
        jitter_s=0.005,
        lead_s=side.job_at_s - side.log_from_s,
        lag_s=side.log_from_s + OBSERVED_S + 0.5 - side.job_at_s - side.job_s,
        util_noise_pct=3.0,
    )
    spec = replace(
        SPEC,
        name=f"{NAME} {side.name}",
        start=side.start,
        n_trials=len(jobs),
        telemetry=telemetry,
        foreign=side.foreign,
        notes=side.notes,
    )
    simulated = observe(spec, replay(spec, _tasks(side, jobs)), SEED)
    return observed(spec, simulated.history, _steered(simulated.samples, side))


def _tasks(side: _Side, jobs: list[tuple[str, int]]) -> list[Life]:
    """Tasks in order of start: whichever worker is free takes the next job."""
    rng = np.random.default_rng([SEED, 7, side.seed, len(jobs)])
    eligible = [job for job in jobs if side.subset_s is None or job[0] not in SUBSET]
    failed = {eligible[i] for i in rng.choice(len(eligible), side.n_failed, replace=False).tolist()}
    free = [(0.01 * worker, worker) for worker in range(WORKERS)]
    rows: list[_Row] = []
    for job in jobs:
        start, worker = heapq.heappop(free)
        end = start + float(rng.uniform(*((0.3, 0.7) if job in failed else side.typical_s)))
        rows.append((job, worker, start, end))
        heapq.heappush(free, (end + float(rng.uniform(0.02, 0.06)), worker))
    warp = _warp(side, rows)
    return [
        _task(number, job, worker, warp(start), warp(end), job in failed, side)
        for number, (job, worker, start, end) in enumerate(rows)
    ]


def _warp(side: _Side, rows: list[_Row]) -> Callable[[float], float]:
    """Time stretched so that the run, and the subset's windows in it, last exactly as stated."""
    last = max(end for *_, end in rows)
    known, wanted = [0.0, last], [0.0, side.job_s]
    if side.subset_s is not None:
        first = min(start for (symbol, _), _, start, _ in rows if symbol in SUBSET)
        final = max(end for (symbol, _), _, _, end in rows if symbol in SUBSET)
        begin_s = first * (side.job_s - side.subset_s) / (first + last - final)
        known, wanted = [0.0, first, final, last], [0.0, begin_s, begin_s + side.subset_s, side.job_s]
    return lambda at: side.job_at_s + round(float(np.interp(at, known, wanted)), 3)


def _task(number: int, job: tuple[str, int], worker: int, start: float, end: float, failed: bool, side: _Side) -> Life:
    """One window: 30 % of its time on the CPU, then on GPU 1; a failed one never gets there."""
    symbol, window = job
    life = Life(number, worker, 1, start, dict(side.params), 0.075, end_s=end, name=f"{symbol}_w{window}")
    life.state = "FAIL" if failed else "COMPLETE"
    life.detail = "ValueError: only one class in y_train" if failed else ""
    life.user_attrs = {"symbol": symbol, "window": window}
    if not failed:
        begin = start + 0.3 * (end - start)
        life.spans = [(begin, end - 0.04 * (end - start))]
        life.memory = [(begin, 165.0), (end, 0.0)]
        life.peak_mib = 165.0
    return life


def _own_record(simulated: Simulated) -> Iterator[str]:
    """What the experiment's script wrote: one line a window, with how and when it ended and nothing else."""
    for life in sorted(simulated.history.lives, key=lambda life: life.end_s):
        status = "failed" if life.state == "FAIL" else "success"
        timestamp = iso(simulated.spec, life.end_s)
        yield json.dumps(
            {"symbol": life.user_attrs["symbol"], "window_label": life.name, "status": status, "timestamp": timestamp}
        )


def _steered(samples: pd.DataFrame, side: _Side) -> pd.DataFrame:
    """The readings with the stated figures."""
    out = samples.copy()
    for gpu, stated in enumerate(side.readings):
        own = samples["gpu"] == str(gpu)
        util = steer(
            samples.loc[own, "util_pct"].to_numpy(), mean=stated.util_mean, low=stated.util_low, high=stated.util_high
        )
        out.loc[own, "util_pct"] = util
        out.loc[own, "mem_util_pct"] = np.rint(SPEC.gpus[gpu].mem_util_ratio * util)
        out.loc[own, "mem_used_mib"] = steer(samples.loc[own, "mem_used_mib"].to_numpy(), mean=stated.mem_mib)
        out.loc[own, "temp_c"] = steer(samples.loc[own, "temp_c"].to_numpy(), mean=stated.temp_c)
    return out
