"""Zone offsets in logs of minutes: tens of trials of seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from other_world import short_run

from gpudiag.alignment import establish_clock
from gpudiag.run import Run
from gpudiag.simulation import Gpu, simulate

BORDERS_S = (0, 120, 300, 600, 7200)
OFFSETS_H = (-8.0, -5.0, -0.5, 1.0, 2.0, 5.5, 8.0)


def our_short_result(seed: int) -> dict[str, Any]:
    """What was found in a simulated run."""
    rng = np.random.default_rng([67, seed])
    pace_s, offset_s = float(np.exp(rng.uniform(np.log(0.3), np.log(3)))), _offset_s(seed)
    made = simulate(
        seed=seed,
        gpus=(Gpu(),),
        workers=int(rng.choice([1, 1, 2, 3, 4])),
        n_trials=int(rng.integers(10, 80)),
        epochs=int(rng.integers(4, 14)),
        epoch_s=(0.7 * pace_s, 1.5 * pace_s),
        period_s=float(rng.choice([0.5, 1.0, 2.0])),
        startup_s=(pace_s, 1.5 * pace_s),
        tail_s=(0.1, 1.0),
        gap_s=(0.1, 1.0),
        lead_s=float(rng.uniform(2, 30)),
        lag_s=float(rng.uniform(2, 30)),
        offset_s=offset_s,
    )
    return _result("ours", made.run, offset_s)


def other_short_result(seed: int) -> dict[str, Any]:
    """The same in the other world."""
    run = short_run(seed, _offset_s(seed))
    if run is None:
        return {}
    found = run.info.clock
    return _graded("world_b", run, found.confidence == "strong", found.applied_s, _offset_s(seed))


def _offset_s(seed: int) -> float:
    """What to add to the trials; 0 in every other run."""
    return 3600 * OFFSETS_H[seed // 2 % len(OFFSETS_H)] if seed % 2 else 0.0


def _result(world: str, run: Run, offset_s: float) -> dict[str, Any]:
    clock = establish_clock(run)
    return _graded(world, run, clock.confidence == "strong", clock.applied_s, offset_s)


def _graded(world: str, run: Run, strong: bool, applied_s: float, offset_s: float) -> dict[str, Any]:
    length_s = (run.gpu["time"].max() - run.gpu["time"].min()).total_seconds()
    return {
        "world": world,
        "length_s": length_s,
        "differ": offset_s != 0,
        "found": strong and abs(applied_s - offset_s) < 60,
        "wrong": applied_s != 0 and abs(applied_s - offset_s) >= 60,
    }


def short_section(rows: pd.DataFrame) -> str:
    """A row for each world and length of the log."""
    rows = rows.assign(log=pd.cut(rows["length_s"], BORDERS_S))
    lines = [
        f"{len(rows)} runs of 10 to 80 trials of about 3 s to a minute, sampled every 0.5 to 2 s, 1 to 4 at once on "
        "one GPU; half of the clocks differ by -8 h to +8 h, the run's zone is UTC.",
        "",
        "| world | length of the log | clocks differ: runs | found | clocks agree: runs | shown | moved wrongly |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for (world, log), part in rows.groupby(["world", "log"], observed=True, sort=True):
        differ, agree = part[part["differ"].astype(bool)], part[~part["differ"].astype(bool)]
        name = f"{log.left / 60:.0f} to {log.right / 60:.0f} min"
        lines.append(
            f"| {world} | {name} | {len(differ)} | {_share(differ)} | {len(agree)} | {_share(agree)} | "
            f"{int(part['wrong'].sum())} |"
        )
    return "\n".join(lines)


def _share(part: pd.DataFrame) -> str:
    return f"{100 * part['found'].mean():.0f} %" if len(part) else "-"
