"""Accuracy of the hours and rates that a pruner replay forecasts, in both worlds: the truth is a run of the candidate.

    python benchmarks/accuracy_replay_hours.py --runs 60        of each world, about 3 minutes of CPU

The table is printed and written into benchmarks/accuracy.md.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd
from accuracy_ledger import write_both_worlds
from other_world import pruned_pair

import gpudiag as gd
from gpudiag.forecast.estimate import Estimate
from gpudiag.run import Run
from gpudiag.simulation import simulate

TITLE = "Pruner replay: hours"
FIRST_SEED = 61_000
"""No run that the method was developed on has a seed from here on."""
PAIRS = (
    ("nop()", "median()"),
    ("nop()", "percentile(25)"),
    ("nop()", "hyperband(max_resource=20)"),
    ("nop()", "sha()"),
    ("median()", "nop()"),
    ("sha()", "nop()"),
)
Sums = dict[str, float]


def our_pair(seed: int, logger: str, candidate: str) -> tuple[Run, Sums, Sums]:
    """A run of our own simulator, its sums and those of the same trials under the candidate."""
    rng = np.random.default_rng([37, seed])
    begin_s = float(rng.uniform(5, 60))
    made = [
        simulate(
            seed=FIRST_SEED + seed,
            pruner=pruner.replace("sha", "successive_halving"),
            workers=workers,
            n_trials=n_trials,
            epochs=epochs,
            epoch_s=(6.0, 14.0),
            startup_s=(begin_s, begin_s * stretch),
            gpu_share_pct=(30.0, 70.0),
            period_s=period_s,
            noise=noise,
            crossing=crossing,
            fail_rate=fail_rate,
        )
        for workers, n_trials, epochs, stretch, period_s, noise, crossing, fail_rate in [
            (
                int(rng.integers(1, 4)),
                int(rng.integers(50, 110)),
                int(rng.choice([12, 20])),
                float(rng.uniform(1.2, 4.0)),
                float(rng.choice([1.0, 2.0, 5.0, 10.0])),
                float(rng.uniform(0.003, 0.04)),
                float(rng.uniform(0.0, 0.8)),
                float(rng.choice([0.0, 0.04])),
            )
        ]
        for pruner in (logger, candidate)
    ]
    log, other = (_sums(m.truth.trials, len(m.run.reports)) for m in made)
    return made[0].run, log, other


def _sums(trials: pd.DataFrame, steps: int) -> Sums:
    hours = (trials["end"] - trials["start"]).dt.total_seconds().sum() / 3600
    return {"hours": float(hours), "steps": steps, **_rate(trials["state"])}


def _rate(state: pd.Series) -> Sums:
    n = (state == "PRUNED").sum(), (state == "COMPLETE").sum()
    return {"rate": float(100 * n[0] / max(sum(n), 1))}


def other_pair(seed: int, logger: str, candidate: str) -> tuple[Run, Sums, Sums] | None:
    """The same of world_b."""
    made = pruned_pair(seed, logger, candidate)
    if made is None:
        return None
    log, other = (
        {
            "hours": sum(t["end"] - t["start"] for t in truth["trials"]) / 3600,
            "steps": truth["steps"],
            **_rate(pd.Series([t["state"] for t in truth["trials"]])),
        }
        for truth in made[1:]
    )
    return made[0], log, other


def replayed(world: str, seed: int) -> dict[str, Any]:
    """What was said of worker time saved against the truth; empty without the world."""
    logger, candidate = PAIRS[seed % len(PAIRS)]
    made = (our_pair if world == "ours" else other_pair)(seed, logger, candidate)
    if made is None:
        return {}
    run, log, other = made
    found = gd.replay_pruner(run, candidate, direction="minimize")
    hours, true = found.saved_worker_h, log["hours"] - other["hours"]
    return {
        "world": world,
        "kind": "pruned less" if candidate == "nop()" else found.level,
        "error": 100 * abs(hours.value / true - 1),
        "width": 50 * (hours.high - hours.low) / abs(true),
        "hours": _holds(hours, true),
        "rate": _holds(found.pruned_pct, other["rate"]),
        "steps": _holds(found.saved_steps, log["steps"] - other["steps"]),
    }


def _holds(said: Estimate, true: float) -> bool:
    return said.low - 1e-6 <= true <= said.high + 1e-6


def ours(seed: int) -> dict[str, Any]:
    return replayed("ours", seed)


def other(seed: int) -> dict[str, Any]:
    return replayed("world_b", seed)


def section(rows: pd.DataFrame) -> str:
    """A row a world and level."""
    lines = [
        "Searches with 1 to 3 trials at once on one GPU, start-ups from 5 to 240 s, samples every 1 to 10 s, with and "
        "without 4 % failures, logged without pruning and replayed with median, percentile, Hyperband and successive "
        "halving, or logged under median and successive halving and replayed without pruning (*pruned less*: bounds "
        "only). Reports carry no times. Errors of the worker time saved in per cent of the truth: median, 95 %, worst.",
        "",
        "| world | level | pairs | worker time saved | half of the interval | hours in it | rate in it | steps in it |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for (world, kind), part in rows.groupby(["world", "kind"]):
        given = part["error"].dropna()
        said = f"{given.median():.1f}, {given.quantile(0.95):.1f}, {given.max():.1f}" if len(given) else "–"
        held = " | ".join(f"{100 * part[name].mean():.0f} %" for name in ("hours", "rate", "steps"))
        lines.append(f"| {world} | {kind} | {len(part)} | {said} | {part['width'].median():.0f} % | {held} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=60, help="of each world")
    parser.add_argument("--first", type=int, default=0, help="first seed: another block for each committed table")
    options = parser.parse_args()
    write_both_worlds(TITLE, (ours, other), section, options.runs, options.first)


if __name__ == "__main__":
    main()
