"""Batches of named items and changed copies of runs, made without gpudiag.simulation: every number is known."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.manifest import DataLoader, Settings
from gpudiag.run import ClockRecord, Run, RunInfo
from gpudiag.schema import GPU, GPUS, TRIALS, conform

T0 = pd.Timestamp("2026-02-02 08:00:00", tz="UTC")


def unlike(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """The same values in an order in which neighbors are anything but alike: the least, the greatest, and so on."""
    rising = np.sort(values)
    out = np.empty_like(rising)
    out[0::2], out[1::2] = rising[: (len(rising) + 1) // 2], rising[::-1][: len(rising) // 2]
    return out


def batch(
    name: str,
    seconds: Sequence[float] | np.ndarray,
    *,
    workers: int = 1,
    items: Sequence[str] | None = None,
    states: Sequence[str] | None = None,
    params: dict[str, Any] | None = None,
    begin_s: float = 0.0,
    named: bool = True,
    **info: Any,
) -> Run:
    """Items of these durations on a pool of workers, in order, without pauses."""
    names = items or [f"item {i}" for i in range(len(seconds))]
    free = [(begin_s, w) for w in range(workers)]
    heapq.heapify(free)
    rows = []
    for i, (item, length) in enumerate(zip(names, seconds, strict=True)):
        start, worker = heapq.heappop(free)
        heapq.heappush(free, (start + float(length), worker))
        rows.append((i, item, start, start + float(length)))
    table = pd.DataFrame(rows, columns=["trial", "name", "s", "e"])
    columns: dict[str, Any] = {
        "study": "batch",
        "trial": table["trial"],
        "state": list(states) if states is not None else "COMPLETE",
        "start": T0 + pd.to_timedelta(table["s"].round(6), unit="s"),
        "end": T0 + pd.to_timedelta(table["e"].round(6), unit="s"),
    }
    columns |= {"name": table["name"]} if named else {}
    columns |= {f"params.{key}": value for key, value in (params or {}).items()}
    settings = Settings(parallel=workers, **info.pop("settings", {}))
    about = RunInfo(name=name, settings=settings, dataloader=info.pop("dataloader", DataLoader()), **info)
    return Run(trials=conform(pd.DataFrame(columns), TRIALS), info=about)


def with_telemetry(
    run: Run,
    util: float | Sequence[float],
    *,
    period_s: float = 5.0,
    lead_s: float = 0.0,
    lag_s: float = 0.0,
    gpu_model: str = "NVIDIA GeForce RTX 4090",
    limit_w: float = 450.0,
) -> Run:
    """The run with a GPU at this utilization from ``lead_s`` before its first start to ``lag_s`` after its last end."""
    first, last = run.trials["start"].min(), run.trials["end"].max()
    span = (last - first).total_seconds()
    ticks = np.arange(-lead_s + period_s / 2, span + lag_s, period_s)
    values = np.resize(np.asarray(util, float), len(ticks))
    frame = pd.DataFrame(
        {
            "time": first + pd.to_timedelta(ticks, unit="s"),
            "gpu": "0",
            "util_pct": values,
            "mem_used_mib": 4000.0,
            "power_w": 100 + 3 * values,
            "power_limit_w": limit_w,
        }
    )
    gpus = pd.DataFrame({"gpu": ["0"], "name": [gpu_model], "mem_total_mib": [24564.0]})
    return replace(run, gpu=conform(frame, GPU), gpus=conform(gpus, GPUS))


def moved(run: Run, seconds: float) -> Run:
    """The run with the timestamps of its trials moved; its telemetry stays."""
    by = pd.Timedelta(seconds=seconds)
    return replace(run, trials=run.trials.assign(start=run.trials["start"] + by, end=run.trials["end"] + by))


def unjoined(run: Run) -> Run:
    return replace(run, info=replace(run.info, clock=ClockRecord(joined=False)))


def without_params(run: Run) -> Run:
    return replace(run, trials=run.trials[[c for c in run.trials.columns if not c.startswith("params.")]])
