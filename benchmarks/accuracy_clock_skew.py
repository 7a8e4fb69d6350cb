"""Clocks that differ by seconds to minutes beside equal zones: what is told of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from other_world import skewed_run

from gpudiag.alignment import establish_clock
from gpudiag.alignment.skew import BEHIND
from gpudiag.run import Run
from gpudiag.simulation import Gpu, simulate
from gpudiag.statement import Statement

PERIODS_S = (1.0, 2.0, 5.0, 10.0)


def drawn_skew(seed: int) -> float:
    """By how much the trials' clock is ahead (s): 5 s to 3 min, behind as often, none in every other run."""
    rng = np.random.default_rng([47, seed])
    size = round(float(np.exp(rng.uniform(np.log(5), np.log(180)))), 2)
    return float(rng.choice([-size, size])) if seed % 2 else 0.0


def skewed(run: Run, ahead_s: float) -> Run:
    """The run with trials whose clock is ahead by so much."""
    step = pd.Timedelta(round(ahead_s * 1e6), unit="us")
    moved = {name: (run.trials[name] + step).astype(run.trials[name].dtype) for name in ("start", "end")}
    return replace(run, trials=run.trials.assign(**moved))


def our_skew_result(seed: int) -> dict[str, Any]:
    """What is told of a simulated run of one or two GPUs with 1 to 3 workers."""
    rng = np.random.default_rng([53, seed])
    startup_s = float(np.exp(rng.uniform(0, np.log(60))))
    made = simulate(
        seed=seed,
        gpus=(Gpu(),) * int(rng.choice([1, 1, 2])),
        workers=int(rng.integers(1, 4)),
        n_trials=int(rng.integers(20, 100)),
        epochs=int(rng.integers(4, 14)),
        period_s=float(rng.choice(PERIODS_S)),
        startup_s=(startup_s, 1.3 * startup_s),
        gap_s=(0.0, float(rng.choice([0.5, 5, 30]))),
        tail_s=(0.5, float(rng.uniform(1, 8))),
    )
    return _result("ours", made.run, seed)


def other_skew_result(seed: int) -> dict[str, Any]:
    """The same in the other world."""
    run = skewed_run(seed)
    return {} if run is None else _result("world_b", run, seed)


def _result(world: str, run: Run, seed: int) -> dict[str, Any]:
    ahead_s = drawn_skew(seed)
    clock = establish_clock(skewed(run, ahead_s))
    bounds = _bounds(clock.evidence)
    told = bounds is not None
    low_s, high_s = bounds or (np.nan, np.nan)
    return {
        "world": world,
        "clock": "equal" if not ahead_s else "ahead" if ahead_s > 0 else "behind",
        "told": told,
        "inside": told and low_s <= ahead_s <= high_s,
        "width_s": high_s - low_s,
        "moved": clock.applied_s != 0,
        "left_s": abs(clock.applied_s + ahead_s) if clock.applied_s else np.nan,
        "wrong": clock.applied_s != 0 and not (told and low_s <= ahead_s <= high_s),
    }


def _bounds(evidence: Statement) -> tuple[float, float] | None:
    """The bounds that a statement, or one within it, states; negative where the trials' clock is behind."""
    values = evidence.values
    if "low_s" in values:
        low_s, high_s = float(values["low_s"]), float(values["high_s"])  # type: ignore[arg-type]
        return (-high_s, -low_s) if evidence.template == BEHIND or values.get("clock") == "behind" else (low_s, high_s)
    found = (_bounds(value) for value in values.values() if isinstance(value, Statement))
    return next((bounds for bounds in found if bounds), None)


def skew_section(rows: pd.DataFrame) -> str:
    """A row for each world and kind of clock."""
    lines = [
        f"{len(rows)} runs in both worlds: 1 to 4 trials at once on each of 1 or 2 GPUs, start-ups of 1 s to 90 s, "
        "gaps between trials from nothing to 40 s, sampling every 1 to 10 s; half have clocks 5 s to 3 min apart.",
        "",
        "| world | trials' clock | runs | told | bounds hold the truth | bounds apart by, median | moved | wrongly | "
        "left, median and most |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for (world, clock), part in rows.groupby(["world", "clock"], sort=False):
        left = part["left_s"].dropna()
        lines.append(
            f"| {world} | {clock} | {len(part)} | {int(part['told'].sum())} | {int(part['inside'].sum())} | "
            f"{_seconds(part['width_s'].median())} | {int(part['moved'].sum())} | {int(part['wrong'].sum())} | "
            f"{f'{left.median():.1f}, {left.max():.1f} s' if len(left) else '-'} |"
        )
    return "\n".join(lines)


def _seconds(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.0f} s"
