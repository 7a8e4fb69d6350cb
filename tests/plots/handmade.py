"""Profiles put together by hand, in any size: what the figures are tested on.

A toy search: ``workers`` workers take trials one after the other, GPUs are busy while trials run. What several tests
ask for is made once: they look, and change nothing.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Declared
from gpudiag.measures.causes import measure_causes
from gpudiag.measures.clock import ClockProfile
from gpudiag.measures.costs import CostsProfile, measure_costs
from gpudiag.measures.ledger import measure_ledger
from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.measures.power import PowerProfile
from gpudiag.measures.profiled import ProfiledProfile, ProfiledRank
from gpudiag.measures.pruning import PruningProfile
from gpudiag.measures.steps import StepsProfile
from gpudiag.measures.trials import TrialsProfile
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.memo import MemoRun
from gpudiag.run import Run
from gpudiag.schema import GPU, STATES, STUDIES, TRIALS, conform

START = pd.Timestamp("2026-11-20 18:07:13", tz="UTC")
NAN = float("nan")


@dataclass(frozen=True)
class Size:
    """How big a toy is, and what is wrong with it."""

    trials: int = 200
    workers: int = 4
    gpus: int = 1
    samples: int = 2000
    open_trials: int = 2
    fail_share: float = 0.07
    gap: bool = True
    period_s: float = 0.0
    total_mib: float = 24564.0


def timestamps(seconds: np.ndarray) -> pd.Series:
    return pd.Series(START + pd.to_timedelta(seconds, unit="s")).dt.as_unit("us")


def build(kind: type[Declared], **known: Any) -> Any:
    """A profile with the fields given; every other scalar is 0, and every other column of a table unknown."""
    tables = {name: (known.pop(name, pd.DataFrame()), row) for name, row in kind.tables().items()}
    full = {
        name: frame.reindex(columns=list(dict.fromkeys((*frame, *row.declared()))))
        for name, (frame, row) in tables.items()
    }
    return kind(**{**dict.fromkeys(kind.facts(), 0), **known, **full})


def toy_workers(size: Size, rng: np.random.Generator) -> pd.DataFrame:
    """The trials in their workers, in order of start."""
    free = np.full(size.workers, 0.0)
    rows = []
    for trial in range(size.trials):
        worker = int(np.argmin(free))
        state = rng.choice(["COMPLETE", "PRUNED", "FAIL"], p=[0.13, 0.87 - size.fail_share, size.fail_share])
        life = {"COMPLETE": rng.normal(540, 40), "PRUNED": rng.lognormal(4.9, 0.5), "FAIL": rng.exponential(20)}[state]
        start = free[worker] + rng.exponential(3)
        free[worker] = start + max(life, 0.4)
        rows.append((trial, state, start, free[worker], worker, False))
    frame = pd.DataFrame(rows, columns=["trial", "state", "start_s", "end_s", "worker", "open"])
    last = frame.groupby("worker")["trial"].idxmax().sort_values().index[: size.open_trials]
    for worker in last:
        at = frame.index[frame["worker"] == worker][-1]
        frame.loc[at, ["state", "open"]] = ["RUNNING", True]
        frame.loc[at, "end_s"] = frame["end_s"].max() + 60
    return frame


@cache
def toy_parallelism(size: Size = Size()) -> ParallelismProfile:
    frame = toy_workers(size, np.random.default_rng(1))
    moves = pd.concat(
        [
            pd.DataFrame({"t": frame["start_s"], "all": 1, "closed": (~frame["open"]).astype(int)}),
            pd.DataFrame({"t": frame["end_s"], "all": -1, "closed": -(~frame["open"]).astype(int)}),
        ]
    )
    steps = moves.groupby("t")[["all", "closed"]].sum().cumsum()
    held = np.diff(steps.index, append=steps.index[-1])
    levels = pd.Series(held).groupby(steps["all"].to_numpy()).sum()
    levels = levels[levels.index > 0]
    gaps = frame.sort_values("start_s").copy()
    gaps["before"] = gaps.groupby("worker")["end_s"].shift()
    gaps["before_trial"] = gaps.groupby("worker")["trial"].shift()
    gaps = gaps[gaps["before"].notna()]
    seconds = (gaps["start_s"] - gaps["before"]).to_numpy()
    workers = frame.assign(study="toy", start=timestamps(frame["start_s"]), end=timestamps(frame["end_s"]))
    return build(
        ParallelismProfile,
        concurrency=pd.DataFrame(
            {
                "time": timestamps(steps.index.to_numpy()),
                "n_closed": steps["closed"].to_numpy(),
                "n_all": steps["all"].to_numpy(),
            }
        ),
        levels=pd.DataFrame(
            {"level": levels.index, "time_s": levels.to_numpy(), "share_pct": 100 * levels.to_numpy() / levels.sum()}
        ),
        placed=workers[["study", "trial", "state", "start", "end", "worker", "open"]],
        gaps=pd.DataFrame(
            {
                "worker": gaps["worker"].to_numpy(), "start": timestamps(gaps["before"].to_numpy()),
                "end": timestamps(gaps["start_s"].to_numpy()), "gap_s": seconds,
                "before_trial": gaps["before_trial"].to_numpy(), "after_trial": gaps["trial"].to_numpy(),
            }
        ),
        open_trials=workers.loc[workers["open"], ["study", "trial", "start"]],
        configured=float(size.workers),
        effective=float((steps["all"] * held).sum() / levels.sum()),
        effective_closed=float((steps["closed"] * held).sum() / levels.sum()),
        peak=int(steps["all"].max()),
        n_workers=int(frame["worker"].nunique()),
        n_open=int(frame["open"].sum()),
        n_timed=size.trials,
        median_gap_s=float(np.median(seconds)) if len(seconds) else NAN,
        gap_worker_h=float(seconds.sum() / 3600),
        window_s=float(steps.index[-1]),
    )  # fmt: skip


def toy_trials(size: Size = Size()) -> TrialsProfile:
    workers = toy_parallelism(size).placed
    known = workers[~workers["open"]].assign(duration_s=lambda f: (f["end"] - f["start"]).dt.total_seconds())
    by_state = pd.DataFrame(index=pd.Index(STATES, name="state"))
    by_state["n"] = workers["state"].value_counts().reindex(STATES, fill_value=0)
    by_state["n_timed"] = known["state"].value_counts().reindex(STATES, fill_value=0)
    grouped = known.groupby("state")["duration_s"]
    for name, share in (("min_s", 0), ("p25_s", 0.25), ("median_s", 0.5), ("p75_s", 0.75), ("max_s", 1)):
        by_state[name] = grouped.quantile(share).reindex(STATES)
    durations = known[["study", "trial", "state", "start", "end", "duration_s"]].reset_index(drop=True)
    return build(TrialsProfile, by_state=by_state, durations=durations, best=pd.DataFrame(), n=len(workers))


def toy_series(size: Size, value: str, mean: str, span_s: float, seed: int) -> pd.DataFrame:
    """A telemetry series a GPU, with a row without value inside the gap at 40-55 % of the time."""
    rng = np.random.default_rng(seed)
    parts = []
    for gpu in range(size.gpus):
        seconds = np.linspace(0, span_s, size.samples) if size.samples > 1 else np.array([span_s / 2])
        if value == "util_pct":
            level = 92 if gpu % 8 != 5 else 6
            values = np.clip(rng.normal(level, 6, len(seconds)), 0, 100)
            values[rng.random(len(seconds)) < 0.08] = rng.uniform(0, 30)
        else:
            phase = np.floor(seconds / (span_s / 23 + 1)) * 1.7 + gpu
            values = size.total_mib * (0.5 + 0.18 * np.sin(phase)) + rng.normal(0, 60, len(seconds))
        smooth = pd.Series(values).rolling(9, center=True, min_periods=1).mean().to_numpy()
        frame = pd.DataFrame(
            {"gpu": str(gpu), "time": timestamps(seconds), value: values, mean: smooth, "weight_s": 1.0}
        )
        if size.gap and size.samples > 10:
            inside = (seconds > 0.4 * span_s) & (seconds < 0.55 * span_s)
            frame.loc[inside.nonzero()[0][0], [value, mean]] = NAN
            inside[inside.nonzero()[0][0]] = False
            frame = frame[~inside]
        parts.append(frame)
    return pd.concat(parts, ignore_index=True)


def span_of(size: Size) -> float:
    return toy_parallelism(size).window_s if size.trials else 3600.0


def toy_utilization(size: Size = Size()) -> UtilizationProfile:
    series = toy_series(size, "util_pct", "mean_pct", span_of(size), 2)
    by_gpu = series.dropna().groupby("gpu")["util_pct"]
    per_gpu = pd.DataFrame({"mean_pct": by_gpu.mean()})
    for name, share in (("p5_pct", 0.05), ("p50_pct", 0.5), ("p95_pct", 0.95), ("max_pct", 1)):
        per_gpu[name] = by_gpu.quantile(share)
    per_gpu["idle_pct"] = by_gpu.agg(lambda v: 100 * (v <= 10).mean())
    per_gpu["busy_pct"] = by_gpu.agg(lambda v: 100 * (v >= 50).mean())
    return build(
        UtilizationProfile, per_gpu=per_gpu, series=series, mean_pct=float(per_gpu["mean_pct"].mean()),
        idle_pct=float(per_gpu["idle_pct"].mean()), n_gpus=size.gpus,
    )  # fmt: skip


def toy_memory(size: Size = Size()) -> MemoryProfile:
    series = toy_series(size, "mem_used_mib", "mean_mib", span_of(size), 3)
    by_gpu = series.dropna().groupby("gpu")["mem_used_mib"]
    per_gpu = pd.DataFrame({"mean_mib": by_gpu.mean(), "max_mib": by_gpu.max(), "min_mib": by_gpu.min()})
    per_gpu["p99_mib"] = by_gpu.quantile(0.99)
    per_gpu["total_mib"] = size.total_mib
    return build(
        MemoryProfile, per_gpu=per_gpu, series=series.drop(columns="weight_s"),
        max_used_pct=float(100 * per_gpu["max_mib"].max() / size.total_mib),
    )  # fmt: skip


def toy_power(size: Size = Size(), rejected: int = 3) -> PowerProfile:
    rng = np.random.default_rng(4)
    gpus = [str(i) for i in range(size.gpus)]
    per_gpu = pd.DataFrame({"mean_w": rng.uniform(20, 60, size.gpus)}, index=pd.Index(gpus, name="gpu"))
    per_gpu["max_w"] = per_gpu["mean_w"] + 15
    per_gpu["limit_w"] = 95.0
    readings = pd.DataFrame(
        {
            "gpu": gpus[0],
            "time": timestamps(np.arange(rejected)),
            "power_w": 590.0 - np.arange(rejected),
            "limit_w": 95.0,
        }
    )
    return build(PowerProfile, per_gpu=per_gpu, rejected=readings, n_rejected=rejected, load=toy_load(gpus))


def toy_steps() -> StepsProfile:
    """A thousand steps of half a second twice as long from the middle on, with pauses of 90 s and 5 s there."""
    done = np.arange(10, 1001, 10.0)
    course = pd.DataFrame({"done": done, "each_s": np.where(done > 500, 1.0, 0.5), "paused_s": 0.0})
    course.loc[50, "paused_s"] = 90.0
    trainings = pd.DataFrame({"training": ["a.log", "b.log"], "logged_s": [845.0, 20.0]})
    pauses = pd.DataFrame({"training": ["a.log", "b.log", "a.log"], "after_step": [510, 5, 505],
                           "paused_s": [90.0, 8.0, 5.0]})  # fmt: skip
    numbers = {"step_s": 0.75, "late_ratio": 2.0, "n_pauses": 3, "pauses_s": 103.0, "pauses_pct": 10.7}
    return build(StepsProfile, course=course, trainings=trainings, pauses=pauses, unit="step", **numbers)


def toy_profiled(ranks: int, late: int = 0) -> ProfiledProfile:
    """Traces of so many ranks: one computes 92 % of the time and communicates least, the others compute 70 %."""
    names = [str(rank) for rank in range(ranks)]
    by_rank = pd.DataFrame({"compute_pct": 70.0, "communication_pct": 28.0, "launch_pct": 2.0, "data_pct": 0.0},
                           index=pd.Index(names, name="rank"))  # fmt: skip
    by_rank.loc[names[late], ["compute_pct", "communication_pct", "launch_pct"]] = [92.0, 6.0, 2.0]
    by_rank = by_rank.reindex(columns=[*ProfiledRank.declared()])
    talks = {"communication_low_pct": 6.0, "communication_high_pct": 28.0}
    return build(ProfiledProfile, by_rank=by_rank, late_rank=float(late) if ranks > 1 else NAN, **talks)


def toy_load(gpus: list[str]) -> pd.DataFrame:
    """An hour a GPU: a quarter idle at 7.5 % of the limit, half at 97.5 % utilization and 32.5, a quarter at 82.5."""
    rows = [(gpu, *bin) for gpu in gpus for bin in ((2.5, 7.5, 900.0), (97.5, 32.5, 1800.0), (97.5, 82.5, 900.0))]
    return pd.DataFrame(rows, columns=["gpu", "util_pct", "load_pct", "observed_s"])


def toy_pruning(n: int = 170, longest: int = 60, earliest: float = 4.0) -> PruningProfile:
    rng = np.random.default_rng(5)
    steps = np.minimum(1 + rng.geometric(0.35, n), longest)
    frame = pd.DataFrame({"study": "toy", "trial": np.arange(n), "last_step": steps.astype(float), "n_reports": steps})
    return build(
        PruningProfile, steps=frame, curves=toy_curves(steps), n_pruned=n,
        median_step=float(np.median(steps)) if n else NAN,
        first_step=float(steps.min()) if n else NAN,
        at_first_pct=100 * float((steps == steps.min()).mean()) if n else NAN,
        config_first_report=earliest,
    )  # fmt: skip


def toy_curves(steps: np.ndarray, complete: int = 5) -> pd.DataFrame:
    """A curve a trial: the pruned ones up to their last step, and a few COMPLETE ones twice as far as the longest."""
    ends = [*steps.tolist(), *[2 * int(max(steps, default=5))] * complete]
    parts = []
    for trial, last in enumerate(ends):
        step = np.arange(1, last + 1)
        frame = pd.DataFrame({"study": "toy", "trial": trial, "step": step, "value": 1 / step + trial % 7 / 20})
        parts.append(frame.assign(state="PRUNED" if trial < len(steps) else "COMPLETE"))
    return pd.concat(parts, ignore_index=True)[["study", "trial", "state", "step", "value"]]


def toy_run(size: Size = Size(), seed: int = 1) -> Run:
    """The same toy as tables: trials by worker on the GPUs in turn, and telemetry that follows them loosely."""
    rng = np.random.default_rng(seed)
    frame = toy_workers(size, rng)
    span = float(frame["end_s"].max())
    seconds = np.linspace(-5, span, size.samples) if size.samples > 1 else np.zeros(1)
    kept = (seconds < 0.4 * span) | (seconds > 0.5 * span) if size.gap else seconds == seconds
    logs = []
    for gpu in range(size.gpus):
        level = np.repeat(rng.choice([0.0, 30.0, 85.0, 95.0], len(seconds) // 7 + 1), 7)[: len(seconds)]
        logs.append(pd.DataFrame({"time": timestamps(seconds), "gpu": str(gpu), "util_pct": level})[kept])
    trials = pd.DataFrame(
        {
            "study": "toy", "trial": frame["trial"], "state": frame["state"], "start": timestamps(frame["start_s"]),
            "end": timestamps(frame["end_s"].where(~frame["open"])), "gpu": (frame["worker"] % size.gpus).astype(str),
            "value": rng.uniform(0, 1, len(frame)), "params.lr": 10.0 ** rng.uniform(-5, -2, len(frame)),
            "params.model": rng.choice(["small", "base", "large"], len(frame)),
        }
    )  # fmt: skip
    studies = pd.DataFrame({"study": ["toy"], "directions": ["MINIMIZE"]})
    return Run(
        gpu=conform(pd.concat(logs, ignore_index=True), GPU),
        trials=conform(trials, TRIALS),
        studies=conform(studies, STUDIES),
    )


def measured(measure: Any, run: Run) -> Any | None:
    """The profile, or None where the toy is too small for it."""
    try:
        return measure(run)
    except NotMeasurable:
        return None


def toy_costs(run: Run) -> CostsProfile | None:
    """The costs of a run, where every third trial's memory is not known."""
    costs = measured(measure_costs, run)
    if costs is None:
        return None
    number = costs.trials["trial"].to_numpy(float)
    return dataclasses.replace(costs, trials=costs.trials.assign(freed_mib=np.where(number % 3, 3000.0 + number, NAN)))


def toy_clock() -> ClockProfile:
    offsets = np.arange(-57, 58) * 900.0
    fit = np.where(offsets == 28800, 0.61, 0.08 * np.abs(np.sin(offsets)))
    return build(
        ClockProfile, candidates=pd.DataFrame({"offset_s": offsets, "fit": fit}), offset_s=28800.0, confidence="strong"
    )


@cache
def toy_profiles(size: Size = Size()) -> dict[str, Any]:
    """All topics of one toy."""
    run = MemoRun.of(toy_run(size))
    return {
        "ledger": measured(measure_ledger, run),
        "causes": measured(measure_causes, run),
        "costs": toy_costs(run),
        "clock": toy_clock(),
        "parallelism": toy_parallelism(size),
        "trials": toy_trials(size),
        "utilization": toy_utilization(size),
        "memory": toy_memory(size),
        "power": toy_power(size),
        "pruning": toy_pruning(),
        "steps": toy_steps(),
        "profiled": toy_profiled(size.gpus),
    }
