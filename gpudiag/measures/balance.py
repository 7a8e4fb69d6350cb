"""How evenly the work is spread over the GPUs, and whether one of them is slow."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._gpu.gpu_rows import slices
from gpudiag.measures._gpu.peers import of_peers
from gpudiag.measures._steps.at_once import trainings_at_once
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.weighted import known_median
from gpudiag.measures.base import Profile
from gpudiag.measures.utilization import measure_utilization
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import BUSY_PCT


class GpuBalance(Row):
    """A GPU. Ratios are to the median of the other GPUs with the same board, NaN without one."""

    mean_pct: Column[float] = column("mean utilization, while trials ran where that is known")
    observed_s: Column[float] = column("observed time that this is of")
    model: Column[str] = column("the GPU's name, '' unknown")
    busy_s: Column[float] = column("observed time at utilization >= 50")
    busy_clock_mhz: Column[float] = column("median clock of it, NaN unknown", label="clock while busy")
    busy_power_w: Column[float] = column("median power of it, NaN unknown")
    clock_ratio: Column[float] = column("clock to the peers'", label="clock to the peers'")
    power_ratio: Column[float] = column("power to the peers'")


class BalanceProfile(Profile, topic="balance"):
    """How evenly the GPUs were used."""

    per_gpu: Rows = table_of(GpuBalance)
    n_gpus: Fact[int] = fact("GPUs")
    jain: Fact[float] = fact(
        "(sum x)^2 / (n sum x^2) of mean_pct, from 1/n (all on one) to 1 (even)", label="Jain's index (1 is even)"
    )
    jain_least: Fact[float] = fact(
        "the same of two, the least used GPU and the median of the others, which more GPUs do not hide",
        label="Jain's index, least used GPU against the others",
    )
    gini: Fact[float] = fact("Gini coefficient of mean_pct", label="Gini coefficient (0 is even)")
    n_tasks: Fact[float] = fact("trials that began, NaN without trials")
    n_at_once: Fact[int] = fact("trainings at once, by logs that are not said to be those of its ranks; 0 without logs")
    chance_pct: Fact[float] = fact("probability that so many tasks, placed at random, all land on one GPU")
    coverage_pct: Fact[float] = fact("observed part of the run, the least of all GPUs")


@memoized
def measure_balance(run: Run) -> BalanceProfile:
    """Evenness over all GPUs with utilization. Needs gpu.util_pct."""
    use = measure_utilization(run)
    table = use.per_gpu
    in_trials = bool((table["trial_s"] > 0).any())
    name = gpu_boards(run)["name"].reindex(table.index)
    per_gpu = pd.DataFrame(
        {
            "mean_pct": table["trial_mean_pct" if in_trials else "mean_pct"],
            "observed_s": table["trial_s" if in_trials else "observed_s"],
            "model": name.fillna(""),
        }
    )
    per_gpu = per_gpu.join(_while_busy(run))
    for what, ratio in (("busy_clock_mhz", "clock_ratio"), ("busy_power_w", "power_ratio")):
        per_gpu[ratio] = per_gpu[what] / of_peers(per_gpu[what], name)
    mean = np.sort(per_gpu["mean_pct"].dropna().to_numpy())
    began = float(run.trials["start"].notna().sum()) if len(run.trials) else math.nan
    return BalanceProfile(
        per_gpu=per_gpu,
        n_gpus=len(per_gpu),
        jain=_jain(mean),
        jain_least=_jain(np.array([mean[0], np.median(mean[1:])])) if len(mean) > 1 else math.nan,
        gini=_gini(mean),
        n_tasks=began,
        n_at_once=trainings_at_once(run),
        chance_pct=100 * float(len(mean)) ** (1 - began) if began >= 1 and len(mean) else math.nan,
        coverage_pct=use.coverage_pct,
    )


def _while_busy(run: Run) -> pd.DataFrame:
    names = {"sm_clock_mhz": "busy_clock_mhz", "power_w": "busy_power_w"}
    have = [name for name in names if name in run.gpu]
    samples = cells(run, "util_pct", *have)
    columns = {name: samples[name].to_numpy(float) for name in ("util_pct", "weight_s", *have)}
    rows = {gpu: _busy({name: values[own] for name, values in columns.items()}) for gpu, own in slices(samples)}
    out = pd.DataFrame.from_dict(rows, orient="index", columns=["busy_s", *have]).rename_axis("gpu")
    return out.reindex(columns=["busy_s", *names]).rename(columns=names)


def _busy(samples: dict[str, np.ndarray]) -> dict[str, float]:
    """Seconds at 50 % or more of one GPU, and the medians of the other columns then."""
    at = samples.pop("util_pct") >= BUSY_PCT
    weight = pd.Series(samples.pop("weight_s")[at])
    busy_s = weight.groupby(np.zeros(len(weight), np.int8)).sum().sum()  # of one group: with compensation
    return {"busy_s": float(busy_s)} | {name: known_median(values[at]) for name, values in samples.items()}


def _jain(values: np.ndarray) -> float:
    if not values.any():
        return math.nan
    parts = values / values.max()  # squares of the smallest numbers would be 0
    return float(parts.sum() ** 2 / (len(parts) * (parts @ parts)))


def _gini(ordered: np.ndarray) -> float:
    n = len(ordered)
    return float(2 * np.arange(1, n + 1) @ ordered / (n * ordered.sum()) - (n + 1) / n) if ordered.any() else math.nan
