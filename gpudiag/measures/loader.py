"""The input pipeline: what the training printed about its waits, and how many workers were asked for."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Fact, fact
from gpudiag.measures._steps.intervals import step_intervals
from gpudiag.measures._steps.ranks import longest_waits
from gpudiag.measures._time.weighted import weighted_mean, weighted_quantiles
from gpudiag.measures._time.work import work_by_gpu
from gpudiag.measures.base import Profile
from gpudiag.memo import memoized
from gpudiag.run import Run

_AVERAGE = r"(?i)\bdata\s?loader\b.*?\bavg\b\D{0,3}(\d+(?:\.\d+)?)\s*ms"
_RATE = r"(?i)(\d+(?:\.\d+)?)\s*batch(?:es)?\s*/\s*s"
_OVER = r"(?i)\bdata\s?loader\b.*?\bover (\d+) batches\b"
_AGAIN = r"(?i)\bdata\s?loader\b.*?\bbatch/s, ([\d.]+) s for the first"
"""What a recording says of waits (``rec.timed``): how long loops that were begun again waited for their first batch."""
LEAST = 0.05
_CREATED = r"DataLoader will create (\d+) worker processes"
_SUGGESTED = r"suggested max number of worker in current system is (\d+)"
"""PyTorch warns so where a loader has more workers than the cores that its process may use (torch/utils/data)."""


class LoaderProfile(Profile, topic="loader"):
    """What the training printed about its waits for data, and how many workers were asked for. NaN is unknown."""

    n_lines: Fact[int] = fact("log lines that state a mean wait of the loader", label="log lines that say so")
    avg_ms: Fact[float] = fact(
        "mean wait for a batch: each line counts by its batches or steps where these are told, else all alike",
        label="wait for the loader",
    )
    least_ms: Fact[float] = fact("what 95 % of these lines state at least", label="least wait")
    line_batches: Fact[float] = fact("batches or steps that such a line tells of, in the mean; NaN unknown")
    worst_ms: Fact[float] = fact("the most that one of them states", label="longest wait")
    slow_rank: Fact[float] = fact(
        "of ranks in lock step the one that waits longest in half of the steps or more; NaN without one",
        label="rank that waits longest",
    )
    step_ms: Fact[float] = fact("mean time of a step, by the same lines where they state one", label="time of a step")
    of_step_pct: Fact[float] = fact("the wait over the step", label="wait in a step")
    starts_pct: Fact[float] = fact(
        "of the time of loops, what those begun again waited for their first batch",
        label="waits at the start of epochs",
    )
    workers_per_trial: Fact[float] = fact("loader workers of a trial")
    parallel: Fact[float] = fact("trials at once")
    n_workers: Fact[float] = fact("loader workers times trials at once", label="loader workers in all")
    cores: Fact[float] = fact("CPU cores, as stated or as PyTorch's warning counts them", label="CPU cores")
    n_warned: Fact[int] = fact("log lines in which PyTorch warns of more loader workers than cores")
    of_cores_pct: Fact[float] = fact("workers over cores, as configured and not measured", label="workers to cores")
    held_gpu_h: Fact[float] = fact(
        "GPU time of the work that waits hold at most, but for those at the start of epochs",
        label="GPU time in waits at most",
    )
    waited_gpu_h: Fact[float] = fact(
        "no more of it than was without a kernel", label="GPU time without a kernel in waits at most"
    )


@memoized
def measure_loader(run: Run) -> LoaderProfile:
    """Waits and workers of the loader. Needs log lines about the loader, or [dataloader] in run.toml."""
    told = _told(run.events)
    waits, starts_pct = _waits(run, told), _starts_pct(told)
    created, suggested = _numbers(run.events, _CREATED), _numbers(run.events, _SUGGESTED)
    settings, loader = run.info.settings, run.info.dataloader
    workers = float(created.max()) if loader.num_workers is None else float(loader.num_workers)
    if not waits.n_lines and math.isnan(workers):
        raise NotMeasurable(
            "Neither loader times nor loader workers are known.",
            "Put the training log into the run folder (or give it with --artifacts), loop over rec.timed(loader) of "
            "gd.Recorder, or state num_workers under [dataloader] in run.toml.",
        )
    # Without a record of trials one GPU means one training; several may mean one or one a GPU.
    alone = run.trials.empty and run.gpu["gpu"].nunique() <= 1
    parallel = float(settings.parallel or (1 if alone else "nan"))
    cores = float(settings.cpu_cores or suggested.min())
    held_gpu_h, waited_gpu_h = _held_gpu_h(run, waits, starts_pct)
    return LoaderProfile(
        n_lines=waits.n_lines,
        avg_ms=waits.avg_ms,
        least_ms=waits.least_ms,
        line_batches=waits.line_batches,
        worst_ms=waits.worst_ms,
        slow_rank=waits.slow_rank,
        step_ms=waits.step_ms,
        of_step_pct=100 * waits.avg_ms / waits.step_ms,
        starts_pct=starts_pct,
        workers_per_trial=workers,
        parallel=parallel,
        n_workers=workers * parallel,
        cores=cores,
        of_cores_pct=100 * workers * parallel / cores,
        n_warned=len(suggested),
        held_gpu_h=held_gpu_h,
        waited_gpu_h=waited_gpu_h,
    )


class _Waits(NamedTuple):
    """NaN is unknown."""

    n_lines: int
    avg_ms: float
    least_ms: float
    line_batches: float
    worst_ms: float
    step_ms: float
    slow_rank: float = math.nan


def _waits(run: Run, told: pd.DataFrame) -> _Waits:
    """From a recording, which counts the batches of each line; else from lines about steps that state a wait, else from
    those about the loader alone.
    """
    counted = told[told["n"] > 0]
    if counted.empty and (of_steps := _of_steps(step_intervals(run))) is not None:
        return of_steps
    if told.empty:
        return _Waits(0, *[math.nan] * 5)
    lines = told.assign(n=1.0) if counted.empty else counted
    avg_ms, least_ms = _mean_and_least(lines["avg_ms"], lines["n"])
    timed = lines[lines["rate"] > 0]
    if 2 * timed["n"].sum() < lines["n"].sum():  # other lines tell how fast it went
        rates = _numbers(run.events, _RATE)
        timed = pd.DataFrame({"rate": rates[rates > 0], "n": 1.0})
    step_ms = 1000 * float((timed["n"] / timed["rate"]).sum() / timed["n"].sum()) if len(timed) else math.nan
    line_batches = math.nan if counted.empty else float(lines["n"].mean())
    return _Waits(len(lines), avg_ms, least_ms, line_batches, float(lines["avg_ms"].max()), step_ms)


def _told(events: pd.DataFrame) -> pd.DataFrame:
    """Lines about the loader: the mean wait that they state, over how many batches, the batches per second, and for how
    long loops that were begun again waited for their first batch.
    """
    columns = {"avg_ms": _AVERAGE, "n": _OVER, "rate": _RATE, "again_s": _AGAIN}
    details = _details(events)
    found = {name: pd.to_numeric(details.str.extract(pattern)[0]) for name, pattern in columns.items()}
    return pd.DataFrame(found).dropna(subset="avg_ms")


def _of_steps(steps: pd.DataFrame) -> _Waits | None:
    """None where no line on steps states a wait. A step takes what these lines state, else what the clock tells where
    there is no other work in it.
    """
    known = steps[steps["loader_s"].notna() & (steps["n"] > 0) & (steps["unit"] == "step")]
    if known.empty:
        return None
    n_lines, worst_ms = float(known["loader_lines"].sum()), 1000 * float(known["loader_most_s"].max())
    line_batches = float(known["n"].sum()) / n_lines if n_lines else math.nan
    slowest = longest_waits(known)
    rank = _usual_rank(slowest["rank"]) if len(slowest) < len(known) else math.nan
    known = slowest
    n, waited_ms = known["n"], 1000 * known["loader_s"] / known["n"]
    avg_ms, least_ms = _mean_and_least(waited_ms, n)
    took = known["alike_s"].fillna(known["took_s"].where(known["since"] == ""))
    n_timed = float(n[took.notna()].sum())
    step_ms = 1000 * float(took.sum()) / n_timed if 2 * n_timed >= n.sum() else math.nan
    return _Waits(int(n_lines), avg_ms, least_ms, line_batches, worst_ms, step_ms, rank)


def _usual_rank(ranks: pd.Series) -> float:
    """The rank of half of the steps or more."""
    most = ranks.value_counts(normalize=True)
    return float(most.index[0]) if most.iloc[0] >= 0.5 else math.nan


def _mean_and_least(values: pd.Series, n: pd.Series) -> tuple[float, float]:
    (least,) = weighted_quantiles(values, n, (LEAST,))
    return weighted_mean(values.to_numpy(float), n.to_numpy(float)), least


def _starts_pct(told: pd.DataFrame) -> float:
    """NaN where no recording tells it."""
    again = told.dropna()
    if again.empty or not (again["rate"] > 0).all():
        return math.nan
    return 100 * float(again["again_s"].sum() / (again["n"] / again["rate"]).sum())


def _held_gpu_h(run: Run, waits: _Waits, starts_pct: float) -> tuple[float, float]:
    """Of the work, and of its part without a kernel; NaN where the time of a step or the GPUs' work is unknown."""
    works = [] if run.gpu.empty or "util_pct" not in run.gpu else list(work_by_gpu(run).values())
    worked_s = sum(float(work.weight_s[work.at_work].sum()) for work in works)
    if not (worked_s > 0 and waits.step_ms > 0):
        return math.nan, math.nan
    unused_s = sum(float(np.nansum((work.weight_s * (1 - work.util_pct / 100))[work.at_work])) for work in works)
    share = waits.avg_ms / waits.step_ms - (starts_pct / 100 if starts_pct > 0 else 0.0)
    held_s = max(share, 0.0) * worked_s
    return held_s / 3600, min(held_s, unused_s) / 3600


def _details(events: pd.DataFrame) -> pd.Series:
    return events["detail"].astype("object").dropna().astype(str)


def _numbers(events: pd.DataFrame, pattern: str) -> pd.Series:
    """The first number that the pattern finds in the details of events."""
    found = _details(events).str.extract(pattern)[0]
    return pd.to_numeric(found.dropna())
