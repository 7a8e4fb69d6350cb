"""Runs of a generator that shares nothing with gpudiag (world_b), drawn over its range, with their truth.

It lies outside the repository: ``GPUDIAG_WORLDS`` names its folder (default ../shared/worlds).
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gpudiag as gd
from gpudiag.forecast.pruning.pruner import build_pruner
from gpudiag.manifest import Settings
from gpudiag.measures._trials.pruner_spec import parse_pruner
from gpudiag.run import Run, RunInfo
from gpudiag.schema import TRIALS, conform

ROOT = Path(__file__).resolve().parent.parent
WORLD = Path(os.environ.get("GPUDIAG_WORLDS", ROOT.parent / "shared" / "worlds")) / "world_b.py"
ROOMY_MIB = 81559
"""Memory of a GPU that is never short."""
BASE_MIB, CONTEXT_MIB = 450.0, 400.0
"""What world_b counts without trials, and for a context."""
FIRST_SEED = 7_000_000
"""No run that a method was developed on has a seed from here on."""


def drawn_run(seed: int) -> tuple[Run, dict[str, Any], int] | None:
    """A run of one GPU, its truth and how many trials it ran at once; None where the generator is not there."""
    rng = np.random.default_rng([11, seed])
    begin_s, steps = float(rng.uniform(10, 200)), int(rng.integers(4, 20))
    low, k = float(rng.uniform(0.25, 0.6)), int(rng.integers(1, 5))
    made = _made(
        seed,
        k=k,
        n_trials=int(rng.integers(40, 90)),
        period=float(rng.choice([1.0, 2.0, 5.0])),
        startup=(begin_s, begin_s * float(rng.uniform(1.1, 1.6))),
        steps=(steps, 2 * steps),
        step_s=(5, 12),
        u=(low, low + 0.3),
        memload=str(rng.choice(["late", "early", "prealloc", "ramp"])),
        declare="gpu",
    )
    return None if made is None else (*made, k)


def clock_run(seed: int) -> tuple[Run, float] | None:
    """A run whose clocks agree, or (every other one) differ by whole quarters of an hour; and that offset."""
    rng = np.random.default_rng([15, seed])
    begin_s, steps, low = float(rng.uniform(5, 200)), int(rng.integers(4, 20)), float(rng.uniform(0.25, 0.7))
    offset_s = 900.0 * int(rng.integers(-56, 49)) * (seed % 2)
    made = _made(
        2_000_000 + seed,
        k=int(rng.integers(1, 9)),
        gpus=int(rng.choice([1, 1, 2])),
        n_trials=int(rng.integers(20, 120)),
        period=float(rng.choice([1.0, 2.0, 5.0, 15.0, 30.0, 60.0])),
        startup=(begin_s, begin_s * float(rng.uniform(1.1, 1.6))),
        steps=(steps, 2 * steps),
        step_s=(4, 12),
        u=(low, low + 0.3),
        memload=str(rng.choice(["late", "early", "prealloc", "ramp"])),
        gap_share=float(rng.choice([0.0, 0.0, 0.15])),
        offset_s=offset_s,
    )
    return None if made is None else (made[0], -offset_s)


def short_run(seed: int, offset_s: float) -> Run | None:
    """A run of tens of trials of seconds, on a clock behind by so much; the telemetry begins and ends with it."""
    rng = np.random.default_rng([61, seed])
    pace_s = float(np.exp(rng.uniform(np.log(0.3), np.log(3))))
    made = _made(
        6_000_000 + seed,
        k=int(rng.choice([1, 1, 2, 3, 4])),
        n_trials=int(rng.integers(10, 80)),
        period=float(rng.choice([0.5, 1.0, 2.0])),
        startup=(pace_s, 3 * pace_s),
        tail=(0.1, 1.0),
        gap=(0.1, 1.0),
        steps=(4, 14),
        step_s=(0.7 * pace_s, 1.5 * pace_s),
        memload=str(rng.choice(["late", "early", "prealloc", "ramp"])),
        lead=float(rng.uniform(2, 30)),
        trail=float(rng.uniform(2, 30)),
        offset_s=-offset_s,
    )
    return None if made is None else made[0]


def skewed_run(seed: int) -> Run | None:
    """A run whose clocks agree, for skews to be put in; half of the runs declare GPUs."""
    rng = np.random.default_rng([59, seed])
    begin_s = float(np.exp(rng.uniform(0, np.log(60))))
    made = _made(
        3_000_000 + seed,
        k=int(rng.choice([1, 1, 2, 4])),
        gpus=int(rng.choice([1, 1, 2])),
        n_trials=int(rng.integers(20, 100)),
        period=float(rng.choice([1.0, 2.0, 5.0, 10.0])),
        startup=(begin_s, 1.5 * begin_s),
        tail=(0.5, 3) if rng.random() < 0.6 else (3, 12),
        gap=(0.2, float(rng.choice([1.5, 10, 40]))),
        declare=str(rng.choice(["gpu", ""])) or None,
    )
    return None if made is None else made[0]


def killed_run(seed: int) -> tuple[Run, dict[str, Any]] | None:
    """A run of which workers are killed now and then and go on 5 s later; a third of the runs declare no GPU."""
    rng = np.random.default_rng([13, seed])
    begin_s, steps, low = float(rng.uniform(8, 90)), int(rng.integers(4, 20)), float(rng.uniform(0.25, 0.6))
    return _made(
        1_000_000 + seed,
        k=int(rng.integers(1, 5)),
        gpus=int(rng.choice([1, 1, 2, 4])),
        n_trials=int(rng.integers(30, 120)),
        period=float(rng.choice([1.0, 2.0, 5.0, 10.0, 15.0])),
        startup=(begin_s, begin_s * 1.4),
        steps=(steps, 2 * steps),
        step_s=(4, 12),
        u=(low, low + 0.3),
        memload=str(rng.choice(["late", "early", "prealloc", "ramp"])),
        declare=str(rng.choice(["gpu", "gpu", ""])) or None,
        orphan_p=float(rng.choice([0.03, 0.08, 0.15])),
        heavy_tail=bool(rng.random() < 0.3),
        long_gap_p=float(rng.choice([0.0, 0.0, 0.08])),
    )


def failing_run(seed: int) -> Run | None:
    """A run of which trials fail by a chance that has nothing to do with how many run."""
    rng = np.random.default_rng([67, seed])
    made = _made(
        7_000_000 + seed,
        k=int(rng.integers(2, 6)),
        n_trials=int(rng.integers(60, 200)),
        period=30.0,
        fail_p=float(rng.uniform(0.03, 0.3)),
    )
    return None if made is None else made[0]


def attribution_run(seed: int) -> tuple[Run, dict[str, Any], int] | None:
    """A run of several GPUs that trials declare, its truth, and how many trials it ran at once on each."""
    rng = np.random.default_rng([31, seed])
    begin_s, steps, low = float(rng.uniform(10, 220)), int(rng.integers(4, 20)), float(rng.uniform(0.25, 0.6))
    gpus, k = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    made = _made(
        4_000_000 + seed,
        gpus=gpus,
        k=k,
        n_trials=int(np.clip(gpus * k * rng.integers(5, 14), 30, 160)),
        period=float(rng.choice([1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0])),
        startup=(begin_s, begin_s * float(rng.uniform(1.1, 1.4))),
        steps=(steps, 2 * steps),
        step_s=(4, 12),
        u=(low, low + 0.3),
        gap=(0.2, float(rng.choice([1.5, 15.0]))),
        gap_share=float(rng.choice([0.0, 0.0, 0.1, 0.3])),
        memload=str(rng.choice(["late", "early", "prealloc", "ramp"])),
        mem=str(rng.choice(["params", "params", "three"])),
        mem_total=81559,
        heavy_tail=bool(rng.random() < 0.3),
        declare="gpu",
    )
    return None if made is None else (*made, k)


def pair_of_searches(seed: int, ratio: float) -> tuple[Run, Run] | None:
    """Two searches whose start-ups and steps take ``ratio`` times as long in the second; trials draw 6 to 14 steps.

    Half of the pairs prune (MedianPruner), in half of them neighbors take alike long (an AR(1) correlation of 0.6).
    """
    import optuna

    rng = np.random.default_rng([19, seed])
    choice: dict[str, Any] = {
        "k": int(rng.integers(1, 4)),
        "n_trials": int(rng.choice([16, 30, 50])),
        "period": 10.0,
        "startup": (20.0, 40.0),
        "steps": (6, 14),
        "step_s": (8.0, 14.0),
        "fail_p": float(rng.choice([0.0, 0.04])),
        "auto": float(rng.choice([0.0, 0.6])),
    }
    prunes = bool(rng.random() < 0.5)
    made = []
    for side, factor in enumerate((1.0, ratio)):
        pruner = optuna.pruners.MedianPruner() if prunes else None
        slow = {"slow_factor": factor, "startup_slow": factor}
        made.append(_made(2_000_000 + 2 * seed + side, pruner=pruner, **choice, **slow))
    return None if made[0] is None or made[1] is None else (made[0][0], made[1][0])


def bare_search(seed: int, *, n: int, correlation: float, heavy: bool, factor: float, workers: int) -> Run:
    """The trials alone of a search whose steps take alike long from trial to trial (AR(1)), each of six steps."""
    choice = {"startup": (10.0, 12.0), "step_s": (10.0, 12.0), "max_steps": 6, "fail_p": 0.0, "period": 60.0}
    slow = {"auto": correlation, "heavy_tail": heavy, "slow_factor": factor, "startup_slow": factor}
    truth = _world().run("", write=False, hours=999, seed=seed, k=workers, n_trials=n, **choice, **slow)
    rows = pd.DataFrame(truth["trials"])
    times = {
        name: pd.Timestamp("2026-02-02", tz="UTC") + pd.to_timedelta(rows[name].round(6), unit="s")
        for name in ("start", "end")
    }
    frame = pd.DataFrame({"study": "s", "trial": rows["number"], "state": rows["state"], **times})
    return Run(trials=conform(frame, TRIALS), info=RunInfo(name="search", settings=Settings(parallel=workers)))


def gain_run(seed: int) -> tuple[Run, dict[str, Any]] | None:
    """A run of one GPU, and how it was made, for ``rerun_rate`` with another number of trials at once."""
    rng = np.random.default_rng([23, seed])
    begin_s, steps, low = float(rng.uniform(8, 120)), int(rng.integers(4, 25)), float(rng.uniform(0.2, 0.7))
    config: dict[str, Any] = {
        "k": int(rng.integers(1, 4)),
        "n_trials": int(rng.integers(30, 110)),
        "period": float(rng.choice([1.0, 2.0, 5.0])),
        "startup": (begin_s, begin_s * float(rng.uniform(1.1, 1.6))),
        "steps": (steps, 2 * steps),
        "step_s": (5, 12),
        "u": (low, min(low + float(rng.choice([0.05, 0.2, 0.4])), 0.95)),
        "interf": float(rng.choice([0.0, 0.03, 0.08])),
        "law": str(rng.choice(["sat", "independent"])),
        "gap": (0.2, float(rng.choice([1.5, 15.0]))),
        "memload": str(rng.choice(["late", "early", "prealloc", "ramp"])),
        "mem_total": 81559,
        "declare": "gpu",
    }
    made = _made(2_000_000 + seed, **config)
    return None if made is None else (made[0], config | {"seed": FIRST_SEED + 2_000_000 + seed})


def planted_run(seed: int, config: dict[str, Any]) -> tuple[Run, dict[str, Any]] | None:
    """A run made as asked, and its truth."""
    return _made(5_000_000 + seed, **config)


def memory_run(seed: int) -> tuple[Run, dict[str, Any], dict[str, Any]] | None:
    """A run of one GPU whose memory is never short, its truth, and how it was made, for ``rerun``.

    Trials of 1, 2 to 3, or 5 minutes and more; contexts appear 3 to 5 s after the trial before has ended.
    """
    rng = np.random.default_rng([29, seed])
    begin_s, steps, step_s = ((5, 20), (3, 8), (4, 8)), ((15, 45), (8, 20), (4, 10)), ((20, 90), (12, 30), (10, 20))
    startup, (fewest, most), step = (begin_s, steps, step_s)[seed % 3]
    k, low = int(rng.choice([1, 2, 3, 4, 6])), float(rng.uniform(0.15, 0.6))
    slowed = max(1.0, k * (low + 0.1))
    config: dict[str, Any] = {
        "k": k,
        "n_trials": int(rng.integers(60, 140)),
        "period": float(rng.choice([1.0, 2.0, 5.0, 10.0, 15.0])),
        "startup": startup,
        "steps": (max(2, round(fewest / slowed)), max(3, round(most / slowed))),
        "step_s": step,
        "u": (low, low + 0.2),
        "memload": ("late", "early", "prealloc", "ramp")[seed // 3 % 4],
        "mem": str(rng.choice(["params", "params", "three"])),
        "fail_p": float(rng.choice([0.0, 0.04])),
        "mem_total": ROOMY_MIB,
        "declare": "gpu",
    }
    made = _made(4_000_000 + seed, **config)
    return None if made is None else (*made, config | {"seed": FIRST_SEED + 4_000_000 + seed})


def rerun_rate(config: dict[str, Any], **changed: Any) -> float:
    """Trials per hour of a run made again with something changed."""
    return float(rerun(config, **changed)["rate_h"])


def rerun(config: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """The truth of a run made again with something changed."""
    truth: dict[str, Any] = _world().run("", write=False, hours=999, **config | changed)
    return truth


def _world() -> Any:
    spec = importlib.util.spec_from_file_location("world_b", WORLD)
    assert spec is not None and spec.loader is not None
    world = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(world)
    return world


def _made(seed: int, **config: Any) -> tuple[Run, dict[str, Any]] | None:
    """A run that lasts until its trials have ended, and its truth."""
    if not WORLD.is_file():
        return None
    world = _world()
    with tempfile.TemporaryDirectory() as folder:
        truth = world.run(folder, seed=FIRST_SEED + seed, hours=999, **config)
        return gd.load_run(folder), truth


def pruned_pair(seed: int, logger: str, candidate: str) -> tuple[Run, dict[str, Any], dict[str, Any]] | None:
    """A run of one GPU under one pruner, its truth, and the truth of the same trials under another.

    Pruners are written as in run.toml; trials have 20 steps, or from 10 to 20.
    """
    rng = np.random.default_rng([41, seed])
    begin_s, low = float(rng.uniform(5, 60)), float(rng.uniform(0.25, 0.6))
    config: dict[str, Any] = {
        "k": int(rng.integers(1, 4)),
        "n_trials": int(rng.integers(50, 110)),
        "period": float(rng.choice([1.0, 2.0, 5.0, 10.0])),
        "startup": (begin_s, begin_s * float(rng.uniform(1.2, 4.0))),
        "step_s": ((5, 12), (8, 20))[int(rng.integers(2))],
        "u": (low, low + 0.3),
        "fail_p": float(rng.choice([0.0, 0.04])),
        "declare": str(rng.choice(["gpu", ""])) or None,
        **({"max_steps": 20} if rng.random() < 0.6 else {"steps": (10, 20)}),
    }
    log = _made(3_000_000 + seed, pruner=build_pruner(parse_pruner(logger)), **config)
    other = _made(3_000_000 + seed, pruner=build_pruner(parse_pruner(candidate)), **config)
    return None if log is None or other is None else (*log, other[1])
