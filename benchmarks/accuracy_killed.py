"""Accuracy of what is said of searches with killed workers, in both worlds.

    python benchmarks/accuracy_killed.py --runs 150        of each world, about 5 minutes of CPU

The table is printed and written into benchmarks/accuracy.md.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from accuracy_ledger import write_both_worlds
from other_world import killed_run

from gpudiag.measures.costs import measure_costs
from gpudiag.measures.parallelism import effective_parallelism, measure_parallelism
from gpudiag.run import Run
from gpudiag.simulation import Gpu, simulate

TITLE = "Killed workers"
FIRST_SEED = 42_000
"""No run that the method was developed on has a seed from here on."""


def our_run(seed: int) -> tuple[Run, pd.DataFrame]:
    """A run of our own simulator and its trials: state, gpu, start, end (seconds)."""
    rng = np.random.default_rng([17, seed])
    n_gpus = int(rng.choice([1, 1, 2, 4]))
    workers = n_gpus * int(rng.integers(1, 5))
    made = simulate(
        seed=FIRST_SEED + seed,
        gpus=(Gpu(),) * n_gpus,
        workers=workers,
        n_trials=workers * int(rng.integers(8, 20)),
        epochs=int(rng.integers(3, 14)),
        period_s=float(rng.choice([1.0, 2.0, 5.0, 10.0, 15.0])),
        startup_s=(5.0, float(rng.uniform(10, 60))),
        gap_s=(0.1, float(rng.uniform(0.5, 15))),
        gpu_share_pct=(float(rng.uniform(15, 50)), float(rng.uniform(50, 99))),
        abandoned_rate=float(rng.choice([0.03, 0.08, 0.15])),
        declares=(("gpu",), ("gpu",), ())[int(rng.integers(3))],
    )
    true = made.truth.trials
    start, end = ((true[name] - made.truth.window_start).dt.total_seconds() for name in ("start", "end"))
    trials = pd.DataFrame({"state": true["state"], "gpu": true["gpu"].astype(str), "start": start, "end": end})
    last_s = (made.truth.window_end - made.truth.window_start).total_seconds()
    return made.run, trials.fillna({"end": last_s}).dropna()


def other_run(seed: int) -> tuple[Run, pd.DataFrame] | None:
    """The same of world_b."""
    made = killed_run(FIRST_SEED + seed)
    if made is None:
        return None
    true = pd.DataFrame(made[1]["trials"])
    return made[0], true[["state", "gpu", "start", "end"]].assign(gpu=true["gpu"].astype(str))


def gpu_seconds(trials: pd.DataFrame) -> pd.Series:
    """GPU-seconds by state, each moment split evenly among the trials on a GPU."""
    out = pd.Series(0.0, ["COMPLETE", "RUNNING"])
    for _, part in trials.groupby("gpu"):
        start, end = part["start"].to_numpy(), part["end"].to_numpy()
        cuts = np.unique(np.concatenate([start, end]))
        on = (start[:, None] <= cuts[:-1]) & (end[:, None] >= cuts[1:])
        each = on * np.diff(cuts) / np.maximum(on.sum(axis=0), 1)
        out = out.add(pd.Series(each.sum(axis=1)).groupby(part["state"].to_numpy()).sum(), fill_value=0.0)
    return out


def errors(world: str, seed: int) -> dict[str, Any]:
    """Relative errors in per cent, and whether the bounds hold; empty without killed trials or without the world."""
    made = our_run(seed) if world == "ours" else other_run(seed)
    if made is None or not (made[1]["state"] == "RUNNING").any():
        return {}
    run, trials = made
    true_s = gpu_seconds(trials)
    start, end = ((trials[name].to_numpy() * 1e6).astype(np.int64) for name in ("start", "end"))
    true = effective_parallelism(start, end)
    found = measure_parallelism(run)
    said = measure_costs(run).outcomes.set_index("outcome")["gpu_s"]
    one = trials["gpu"].nunique() == 1
    declared = "user_attrs.gpu" in run.trials or ("gpu" in run.trials and run.trials["gpu"].notna().all())
    return {
        "world": world,
        "gpu": "one or declared" if one or declared else "several, not declared",
        "complete": 100 * abs(said["COMPLETE"] / true_s["COMPLETE"] - 1),
        "effective": 100 * abs(found.effective / true - 1),
        "peak": found.peak - int(_peak(start, end)),
        "held": found.effective_low - 1e-6 <= true <= found.effective_high + 1e-6,
    }


def _peak(start: np.ndarray, end: np.ndarray) -> int:
    return int(max(np.sum((start <= at) & (end > at)) for at in start))


def ours(seed: int) -> dict[str, Any]:
    return errors("ours", seed)


def other(seed: int) -> dict[str, Any]:
    return errors("world_b", seed)


def section(rows: pd.DataFrame) -> str:
    """A row a world and way of knowing the GPU."""
    lines = [
        "Searches of which 3, 8 or 15 % of the trials are killed and stay RUNNING while their worker goes on, with 1 "
        "to 4 trials at once on each of 1 to 4 GPUs, sampled every 1 to 15 s; drawn at random over these ranges. "
        "Errors in per cent of the truth: median, 95 %, worst.",
        "",
        "| world | GPU of a trial | runs | GPU-hours of COMPLETE trials | trials at once | peak right | bounds hold |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for (world, gpu), part in rows.groupby(["world", "gpu"]):
        said = [
            f"{part[name].median():.1f}, {part[name].quantile(0.95):.1f}, {part[name].max():.1f}"
            for name in ("complete", "effective")
        ]
        lines.append(
            f"| {world} | {gpu} | {len(part)} | {' | '.join(said)} | {100 * (part['peak'] == 0).mean():.0f} % | "
            f"{100 * part['held'].mean():.0f} % |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=150, help="of each world")
    parser.add_argument("--first", type=int, default=0, help="first seed: another block for each committed table")
    options = parser.parse_args()
    write_both_worlds(TITLE, (ours, other), section, options.runs, options.first)


if __name__ == "__main__":
    main()
