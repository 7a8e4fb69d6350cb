"""Means of telemetry over the time of the job, with errors that know that neighbours in time are alike."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag.comparison.intervals import Mean, series_mean
from gpudiag.comparison.side import Side
from gpudiag.measures._gpu.gpu_rows import of_its_gpu
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.weighted import weighted_mean
from gpudiag.measures.power import power_cells


def time_series(side: Side, column: str) -> pd.DataFrame:
    """gpu, time, value, weight_s of one column of telemetry within the job, implausible power left out."""
    return side.memo.once(f"course of {column}", lambda: _course(side, column))


def _course(side: Side, column: str) -> pd.DataFrame:
    run = side.run
    if column not in run.gpu or not run.gpu[column].notna().any():
        return pd.DataFrame({"gpu": [], "time": [], "value": [], "weight_s": [], "start_us": []})
    samples = power_cells(run) if column == "power_w" else cells(run, column)
    if column == "power_w" and (power := side.get("power")) is not None:
        limit = of_its_gpu(samples, power.per_gpu["plausible_w"])
        samples = samples[~(samples[column] > limit)]
    if windows := _windows_us(side):
        parts = [samples["end_us"].clip(upper=high) - samples["start_us"].clip(lower=low) for low, high in windows]
        samples = samples.assign(weight_s=sum(part.clip(lower=0) for part in parts) / SECOND_US)
        samples = samples[samples["weight_s"] > 0]
    return samples.rename(columns={column: "value"})[["gpu", "time", "value", "weight_s", "start_us"]]


def _windows_us(side: Side) -> list[tuple[int, int]]:
    """The time of each study, or that of a training, as the ledger has it; nothing where trials and telemetry share no
    clock.
    """
    ledger = side.get("ledger")
    if ledger is None or not (side.run.trials.empty or (side.window is not None and ledger.has_trials)):
        return [] if side.window is None else [side.window]
    return list(zip(*(microseconds(ledger.windows[end]) for end in ("start", "end")), strict=True))


def mean_over_time(side: Side, column: str) -> Mean:
    """Mean over time and GPUs; the series behind its error is the mean of all GPUs at each tick of the sampler."""
    samples = time_series(side, column)
    if len(samples) < 2:
        return Mean(float("nan"))
    mean = weighted_mean(samples["value"], samples["weight_s"])
    own = samples["start_us"].to_numpy()[samples["gpu"].to_numpy() == samples["gpu"].iloc[0]]
    period = max(int(np.median(np.diff(own))) if len(own) > 1 else 0, 1)
    tick = (samples["start_us"] - samples["start_us"].min()) // period
    return series_mean(samples.groupby(tick)["value"].mean().to_numpy(float), mean)
