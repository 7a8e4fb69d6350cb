"""How evenly the work is spread over the GPUs, and whether one of them is slow."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures.base import Profile
from gpudiag.measures.sampling import by_gpu, cells
from gpudiag.measures.utilization import measure_utilization
from gpudiag.run import Run
from gpudiag.schema import BUSY_PCT


class GpuBalance(Row):
    """A GPU. Ratios are to the median of the other GPUs with the same board, NaN without one."""

    mean_pct: Column[float] = column("mean utilization, while trials ran where that is known")
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
    chance_pct: Fact[float] = fact("probability that so many tasks, placed at random, all land on one GPU")
    coverage_pct: Fact[float] = fact("observed part of the run, the least of all GPUs")


def measure_balance(run: Run) -> BalanceProfile:
    """Evenness over all GPUs with utilization. Needs gpu.util_pct."""
    use = measure_utilization(run)
    table = use.per_gpu
    in_trials = bool((table["trial_s"] > 0).any())
    per_gpu = pd.DataFrame({"mean_pct": table["trial_mean_pct" if in_trials else "mean_pct"]})
    per_gpu = per_gpu.join(_while_busy(run))
    name = gpu_boards(run)["name"].reindex(per_gpu.index)
    for what, ratio in (("busy_clock_mhz", "clock_ratio"), ("busy_power_w", "power_ratio")):
        per_gpu[ratio] = _to_peers(per_gpu[what], name)
    mean = np.sort(per_gpu["mean_pct"].dropna().to_numpy())
    began = float(run.trials["start"].notna().sum()) if len(run.trials) else math.nan
    return BalanceProfile(
        per_gpu=per_gpu,
        n_gpus=len(per_gpu),
        jain=_jain(mean),
        jain_least=_jain(np.array([mean[0], np.median(mean[1:])])) if len(mean) > 1 else math.nan,
        gini=_gini(mean),
        n_tasks=began,
        chance_pct=100 * float(len(mean)) ** (1 - began) if began >= 1 and len(mean) else math.nan,
        coverage_pct=use.coverage_pct,
    )


def _while_busy(run: Run) -> pd.DataFrame:
    names = {"sm_clock_mhz": "busy_clock_mhz", "power_w": "busy_power_w"}
    have = [name for name in names if name in run.gpu]
    rows = {}
    for gpu, part in by_gpu(cells(run, "util_pct", *have)):
        busy = part[part["util_pct"] >= BUSY_PCT]
        medians = {names[name]: float(busy[name].median()) for name in have}
        rows[gpu] = {"busy_s": float(busy["weight_s"].sum()), **dict.fromkeys(names.values(), math.nan), **medians}
    return pd.DataFrame.from_dict(rows, orient="index")


def _to_peers(values: pd.Series, names: pd.Series) -> pd.Series:
    """Each value over the median of the others of the same name."""
    out = pd.Series(math.nan, values.index)
    for gpu in values.index:
        peers = values[(names == names[gpu]) & (values.index != gpu)].dropna()
        if len(peers):
            out[gpu] = values[gpu] / float(peers.median())
    return out


def _jain(values: np.ndarray) -> float:
    return float(values.sum() ** 2 / (len(values) * (values @ values))) if values.any() else math.nan


def _gini(ordered: np.ndarray) -> float:
    n = len(ordered)
    return float(2 * np.arange(1, n + 1) @ ordered / (n * ordered.sum()) - (n + 1) / n) if ordered.any() else math.nan
