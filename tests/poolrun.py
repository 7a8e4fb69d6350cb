"""A small pool of workers on GPUs, made without gpudiag.simulation: a second opinion for the tests of clock and ledger.

Time goes in half seconds. Each trial starts up without the GPU, computes with pauses, and ends with a tail;
its memory comes in two steps and goes at its end.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from gpudiag.run import Run, RunInfo
from gpudiag.schema import GPU, GPUS, STUDIES, TRIALS, conform

T0 = pd.Timestamp("2025-06-03 09:00:00", tz="UTC")
STEP_S = 0.5
CELLS = ("unobserved", "idle_no_trial", "foreign", "startup_only", "tail_only", "stalled", "busy_low", "busy")


@dataclass(frozen=True)
class Pool:
    """What to make. ``seen`` is the part of the study that telemetry covers, ``margin_s`` what it covers beyond it."""

    hours: float = 2.0
    gpus: int = 1
    workers: int = 2
    period_s: float = 5.0
    startup_s: float = 20.0
    work_s: float = 150.0
    tail_s: float = 3.0
    gap_s: float = 4.0
    seen: tuple[float, float] = (0.0, 1.0)
    margin_s: float = 60.0
    memory: bool = True
    stalls: bool = True
    util: tuple[float, float] = (0.3, 0.95)


def timestamps(seconds: object) -> pd.Series:
    us = np.round(np.asarray(seconds, float) * 1e6).astype("int64")
    return pd.Series(T0 + pd.to_timedelta(us, unit="us")).astype("datetime64[us, UTC]")


def make(seed: int, pool: Pool = Pool()) -> tuple[Run, pd.DataFrame]:
    """The run and the true seconds in each cell (index gpu), on one clock in UTC."""
    rng = np.random.default_rng(seed)
    n = int((pool.hours * 3600 + 3600) / STEP_S)
    idle, memory = np.ones((pool.gpus, n)), np.full((pool.gpus, n), 300.0)
    running, starting, ending = (np.zeros((pool.gpus, n), int) for _ in range(3))
    queue = [(float(rng.uniform(0, 8)), worker) for worker in range(pool.workers)]
    heapq.heapify(queue)
    rows = []
    while queue:
        start, worker = heapq.heappop(queue)
        if start > pool.hours * 3600:
            continue
        gpu = worker % pool.gpus
        begun = start + pool.startup_s * rng.lognormal(0, 0.2)
        done = begun + pool.work_s * rng.lognormal(0, 0.6)
        end = done + rng.uniform(0, 2 * pool.tail_s)
        life, up, work, tail = (
            slice(int(a / STEP_S), int(b / STEP_S))
            for a, b in ((start, end), (start, begun), (begun, done), (done, end))
        )
        running[gpu, life] += 1
        starting[gpu, up] += 1
        ending[gpu, tail] += 1
        share = np.full(work.stop - work.start, rng.uniform(*pool.util))
        if pool.stalls and rng.random() < 0.5:
            share[(np.arange(len(share)) * STEP_S) % 40 > 36] = 0
        idle[gpu, work] *= 1 - share
        memory[gpu, int((start + begun) / 2 / STEP_S) : life.stop] += 400
        memory[gpu, work.start : life.stop] += rng.uniform(1000, 4000)
        rows.append((len(rows), start, end, str(gpu), rng.choice(["COMPLETE", "PRUNED", "FAIL"], p=[0.5, 0.4, 0.1])))
        heapq.heappush(queue, (end + rng.exponential(pool.gap_s), worker))
    busy = 100 * (1 - idle)
    table = pd.DataFrame(rows, columns=["trial", "s", "e", "gpu", "state"])
    first, last = table["s"].min(), table["e"].max()
    low = first + pool.seen[0] * (last - first) - pool.margin_s * (pool.seen[0] == 0)
    high = first + pool.seen[1] * (last - first) + pool.margin_s * (pool.seen[1] == 1)
    ticks = np.arange(low, high, pool.period_s)
    run = Run(
        gpu=_telemetry(pool, rng, ticks, busy, memory),
        gpus=conform(pd.DataFrame({"gpu": [str(g) for g in range(pool.gpus)]}), GPUS),
        trials=conform(
            pd.DataFrame(
                {"study": "pool", "trial": table["trial"], "state": table["state"], "gpu": table["gpu"],
                 "start": timestamps(table["s"]), "end": timestamps(table["e"])}
            ), TRIALS,
        ),
        studies=conform(pd.DataFrame({"study": ["pool"], "directions": [""], "clock": ["local"]}), STUDIES),
        info=RunInfo(timezone="Asia/Taipei"),
    )  # fmt: skip
    return run, _truth(busy, running, starting, ending, (first, last), (ticks[0], ticks[-1]), pool.period_s)


def shift_trials(run: Run, seconds: float, first: int = 0) -> Run:
    """The run with its trials, from number ``first`` on, on a clock that is ahead by ``seconds``."""
    trials = run.trials.copy()
    rows = trials["trial"] >= first
    for column in ("start", "end"):
        trials.loc[rows, column] += pd.Timedelta(seconds=seconds)
    return replace(run, trials=trials)


def _telemetry(
    pool: Pool, rng: np.random.Generator, ticks: np.ndarray, busy: np.ndarray, memory: np.ndarray
) -> pd.DataFrame:
    frames = []
    at = np.clip((ticks / STEP_S).astype(int), 2, busy.shape[1] - 1)
    inside = ticks >= 1
    for gpu in range(pool.gpus):
        shown = np.where(inside, (busy[gpu, at - 1] + busy[gpu, at - 2]) / 2, 0)
        util = np.where(shown > 1, np.clip(shown + rng.normal(0, 3, len(at)), 0, 100), 0).round()
        frame = pd.DataFrame({"time": timestamps(ticks), "gpu": str(gpu), "util_pct": util})
        if pool.memory:
            frame["mem_used_mib"] = np.where(inside, memory[gpu, at], 300).round()
        frames.append(frame.assign(power_w=60 + 2.5 * util))
    return conform(pd.concat(frames, ignore_index=True), GPU)


def _truth(
    busy: np.ndarray, running: np.ndarray, starting: np.ndarray, ending: np.ndarray,
    window: tuple[float, float], seen: tuple[float, float], period_s: float,
) -> pd.DataFrame:  # fmt: skip
    middle = (np.arange(busy.shape[1]) + 0.5) * STEP_S
    inside = (middle >= window[0]) & (middle < window[1])
    unseen = (middle < seen[0] - period_s / 2) | (middle > seen[1] + period_s / 2)
    rows = {}
    for gpu in range(busy.shape[0]):
        util, n = busy[gpu], running[gpu]
        label = np.select(
            [unseen, (n == 0) & (util <= 10), n == 0, (util <= 10) & (starting[gpu] == n),
             (util <= 10) & (ending[gpu] == n), util <= 10, util < 50],
            range(7), 7,
        )  # fmt: skip
        rows[str(gpu)] = np.bincount(label[inside], minlength=8) * STEP_S
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(CELLS))
