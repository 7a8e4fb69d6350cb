"""Accuracy of throughput forecasts: simulated runs, whose truth is one more simulation, and pairs on a real GPU.

    python benchmarks/accuracy_parallelism.py               120 runs, about 10 minutes of CPU
    python benchmarks/accuracy_parallelism.py --runs 20     a glance
    python benchmarks/accuracy_parallelism.py --pairs DIR   also the laws on DIR's colocate_info.csv and single_data.csv

The tables are printed and written into benchmarks/accuracy.md.

Runs differ in trials (150-300), workers (2 or 4, on one GPU or two), the law by which trials share a GPU, the share
that one uses (30-60 %), overhead per further trial (0 or 3 %), start-up, length, sampling period and failures, all
drawn from the seed. The truth of another number of workers is a simulation with that number: the mean rate of 1,200
other trials for the error, one future of as many trials as the log for the coverage of the interval.
"""

from __future__ import annotations

import argparse
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from accuracy_ledger import gather, seeds, write_section

import gpudiag as gd
from gpudiag.forecast.parallelism.colocation import BUSY_LAWS, SPEED_LAWS
from gpudiag.simulation.simulator import simulate
from gpudiag.simulation.spec import Gpu, Spec, override
from gpudiag.simulation.world import World

RATIOS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
TRIALS_OF_TRUTH = 1200
PAIRS = Path(os.environ.get("GPUDIAG_CORPUS", "../shared/corpus")) / "traces"


def varied_spec(seed: int) -> Spec:
    """One run to be forecast."""
    rng = np.random.default_rng([seed, 3])
    share = float(rng.uniform(30, 60))
    gpu = Gpu(sharing=("saturating", "overlapping")[seed % 2], overhead_pct=float(rng.choice([0.0, 3.0])))
    startup = float(rng.uniform(10, 60))
    return override(
        Spec(),
        {
            "n_trials": int(rng.integers(150, 301)),
            "workers": int(rng.choice([2, 4, 4])),
            "gpus": (gpu,) * int(rng.choice([1, 1, 1, 2])),
            "startup_s": (0.75 * startup, 1.25 * startup),
            "epochs": int(rng.integers(4, 12)),
            "epoch_s": (6.0, float(rng.uniform(10, 24))),
            "gpu_share_pct": (share, share),
            "gap_s": (0.2, float(rng.uniform(1, 10))),
            "fail_rate": 0.05 * (rng.random() < 0.3),
            "period_s": float(rng.choice([2.0, 5.0, 5.0, 10.0])),
        },
    )


def true_rate(spec: Spec, workers: int, trials: int, seed: int) -> float:
    """Trials per hour of so many workers: their number over the mean time from start to start on a worker."""
    intervals = World(override(spec, {"workers": workers, "n_trials": trials}), seed).run().lives
    starts: dict[int, list[float]] = {}
    for life in intervals:
        starts.setdefault(life.worker, []).append(life.start_s)
    cycles = [after - before for times in starts.values() for before, after in pairwise(sorted(times))]
    return 3600.0 * workers / float(np.mean(cycles))


def forecast_errors(seed: int) -> dict[str, Any]:
    """Errors and coverage of one run's forecasts, by ratio of the numbers of workers."""
    spec = varied_spec(seed)
    now = spec.worker_steps[0][1]
    wanted = {ratio: round(ratio * now) for ratio in RATIOS if (ratio * now).is_integer()}
    if len(spec.gpus) > 1:
        wanted = {ratio: k for ratio, k in wanted.items() if k % len(spec.gpus) == 0}
    forecast = gd.what_if(simulate(spec, seed=seed).run, sorted(wanted.values()))
    row: dict[str, Any] = {"passed": bool(forecast.backtest and forecast.backtest.passed), "now": forecast.now == now}
    for ratio, k in wanted.items():
        scenario = forecast.at(k)
        truth = true_rate(spec, k, TRIALS_OF_TRUTH, seed + 100_000)
        future = true_rate(spec, k, spec.n_trials, seed + 200_000)
        rate = scenario.throughput
        row |= {
            f"sharing {ratio}": 100 * (rate.value / truth - 1),
            f"queueing {ratio}": 100 * (scenario.queueing / truth - 1),
            f"linear {ratio}": 100 * (forecast.rate.value * ratio / truth - 1),
            f"inside {ratio}": float(rate.low <= future <= rate.high),
            f"half {ratio}": 50 * (rate.high - rate.low) / truth,
            f"known {ratio}": float(rate.known),
        }
    return row


def forecast_section(rows: pd.DataFrame) -> str:
    """The table over all runs."""
    lines = [
        f"{len(rows)} runs. The back-test passed in {100 * rows['passed'].mean():.0f} %; where it did not there are "
        "bounds only, which count for coverage alone. Errors are in percent of the true rate.",
        "",
        "| workers, times those of the log | runs | linear | queueing (MVA) | processor sharing: bias | median error "
        "| 90 % within | interval holds the future | bounds hold it | half-width |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for ratio in RATIOS:
        known = rows[rows[f"known {ratio}"] == 1]
        bounded = rows[rows[f"known {ratio}"] == 0]
        error = known[f"sharing {ratio}"]
        held = f"{100 * bounded[f'inside {ratio}'].mean():.0f} % of {len(bounded)}" if len(bounded) else "-"
        lines.append(
            f"| {ratio:g} | {len(known)} | {known[f'linear {ratio}'].mean():+.0f} "
            f"| {known[f'queueing {ratio}'].mean():+.0f} | {error.mean():+.1f} | {error.abs().median():.1f} "
            f"| {error.abs().quantile(0.9):.0f} | {100 * known[f'inside {ratio}'].mean():.0f} % | {held} "
            f"| {known[f'half {ratio}'].mean():.0f} |"
        )
    lines += [
        "",
        "The columns linear and queueing show the mean error. Intervals are those that `gpudiag whatif` prints: the "
        "double bootstrap with its half-width times 2 (2.5 beyond 1.5 times the workers of the log), wide enough for "
        "either law of sharing, clipped by the bounds.",
    ]
    return "\n".join(lines)


def measured_pairs(folder: Path) -> pd.DataFrame:
    """One row a pair: busy share alone of both (u1, u2), speeds beside each other, total busy share."""
    pairs, single = pd.read_csv(folder / "colocate_info.csv"), pd.read_csv(folder / "single_data.csv")
    key = ["model", "dataset", "batchsize", "amp"]
    alone = single.set_index(key)["gpu_util"] / 100
    out = pd.DataFrame({"busy": pairs["gpu_util"] / 100})
    for which in ("1", "2"):
        out[f"u{which}"] = alone.reindex(pd.MultiIndex.from_frame(pairs[[name + which for name in key]])).to_numpy()
        out[f"speed{which}"] = pairs[f"speed{which}"]
    return out.dropna()


def pair_errors(pairs: pd.DataFrame) -> pd.DataFrame:
    """By law: error of the pair's total speed (percent) and of its utilization (points); medians of absolute values."""
    alone = pairs[["u1", "u2"]].to_numpy()
    total = (pairs["speed1"] + pairs["speed2"]).to_numpy()
    crowded = alone.sum(axis=1) > 1
    speeds = {name: 2 * law(alone) for name, law in SPEED_LAWS.items()}
    speeds["sharing of the measured utilization"] = np.minimum(2 * pairs["busy"].to_numpy() / alone.sum(axis=1), 2.0)
    rows = {}
    for name, predicted in speeds.items():
        error = 100 * (predicted / total - 1)
        busy = BUSY_LAWS.get(name)
        points = 100 * (busy(alone) - pairs["busy"].to_numpy()) if busy else np.full(len(alone), np.nan)
        rows[name] = {
            "speed_bias_pct": np.median(error),
            "speed_error_pct": np.median(np.abs(error)),
            "speed_p90_pct": np.quantile(np.abs(error), 0.9),
            "crowded_error_pct": np.median(np.abs(error[crowded])),
            "util_bias_points": points.mean(),
            "util_error_points": np.median(np.abs(points)),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("law")


def pair_section(pairs: pd.DataFrame) -> str:
    """The table of laws against measured pairs."""
    errors = pair_errors(pairs)
    crowded = int((pairs["u1"] + pairs["u2"] > 1).sum())
    work = pairs["speed1"] * pairs["u1"] + pairs["speed2"] * pairs["u2"]
    lines = [
        f"{len(pairs):,} pairs of trainings measured on one GPU, their speeds predicted from the utilization of each "
        f"alone ({crowded} pairs would need more than the whole GPU).",
        "",
        "| law | total speed: bias % | median error % | 90 % within % | median error where u1 + u2 > 1 | utilization: "
        "bias, points | median error, points |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for law, row in errors.iterrows():
        util = f"{row['util_bias_points']:+.1f} | {row['util_error_points']:.1f}"
        lines.append(
            f"| {law} | {row['speed_bias_pct']:+.1f} | {row['speed_error_pct']:.1f} | {row['speed_p90_pct']:.0f} "
            f"| {row['crowded_error_pct']:.1f} | {util if np.isfinite(row['util_bias_points']) else '- | -'} |"
        )
    lines += [
        "",
        f"In {100 * (work > 1.05).mean():.0f} % of the pairs both together do more than 1.05 GPUs' worth of busy time "
        f"(in {100 * (work > 1.2).mean():.0f} % more than 1.2): kernels run side by side, and 1/u is no bound there.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=120, help="runs; 0 leaves the section as it is")
    parser.add_argument("--pairs", type=Path, default=PAIRS, help="folder of the measured pairs; skipped where absent")
    parser.add_argument("--first", type=int, default=0, help="first seed: another block for each committed table")
    options = parser.parse_args()
    if options.runs:
        rows = gather(forecast_errors, range(options.first, options.first + options.runs))
        section = forecast_section(rows) + seeds(options.first, options.runs)
        print(section)
        write_section("Throughput at other numbers of trials at once", section)
    if (options.pairs / "colocate_info.csv").exists():
        section = pair_section(measured_pairs(options.pairs))
        print(section)
        write_section("Laws of co-location on measured pairs", section)


if __name__ == "__main__":
    main()
