"""Accuracy of where trials are placed that do not say on which GPU they ran, in both worlds.

    python benchmarks/accuracy_attribution.py --runs 60        of each world, about 6 minutes of CPU

Every run is judged twice: as it is, and with the GPU of each trial declared. The table is printed and written into
benchmarks/accuracy.md.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from accuracy_killed import gpu_seconds
from accuracy_ledger import write_both_worlds
from other_world import attribution_run

from gpudiag.measures.attribution import measure_attribution
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.ledger import measure_ledger
from gpudiag.run import Run
from gpudiag.simulation import Gpu, simulate

TITLE = "Trials that do not say on which GPU they ran"
FIRST_SEED = 420_000
"""No run that the method was developed on has a seed from here on."""
PERIODS_S = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0)
WAITS = ("idle_no_trial", "startup_only", "tail_only", "stalled")
"""Cells that time of the cell ``waiting`` may belong to."""
BANDS = ((5, "1 to 5 s"), (15, "10 and 15 s"), (60, "30 and 60 s"))

Made = tuple[Run, pd.DataFrame, pd.Series, str]
"""A run that declares GPUs, its trials (trial, state, gpu, start, end), its true cells (s), and its kind."""


def our_run(seed: int) -> Made:
    """A run of our own simulator. Some workers hold no GPU of their own: trials draw one, or GPUs have unlike many."""
    rng = np.random.default_rng([29, seed])
    n_gpus, k = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    workers = n_gpus * k - int(rng.random() < 0.15)
    random = bool(rng.random() < 0.12)
    n_trials = int(np.clip(workers * rng.integers(5, 14), 30, 160))
    begin_s, low = float(rng.uniform(10, 220)), float(rng.uniform(15, 60))
    gap_share = float(rng.choice([0.0, 0.0, 0.1, 0.3]))
    epochs = int(rng.integers(4, 14))
    about_s = n_trials / workers * (begin_s + epochs * 20 * k**0.7)
    cuts = [float(about_s * rng.uniform(i / 3, i / 3 + 0.2)) for i in range(3)]
    made = simulate(
        seed=FIRST_SEED + seed,
        gpus=(Gpu(),) * n_gpus,
        workers=workers,
        assign="random" if random else "by_worker",
        n_trials=n_trials,
        epochs=epochs,
        period_s=float(rng.choice(PERIODS_S)),
        startup_s=(begin_s, begin_s * float(rng.uniform(1.1, 1.6))),
        gap_s=(0.1, float(rng.uniform(0.5, 15))),
        gpu_share_pct=(low, low + 30),
        fail_rate=0.04,
        keeps_memory=bool(rng.random() < 0.12),
        outages_s=tuple((at, at + gap_share * about_s / 3) for at in cuts) if gap_share else (),
        declares=("gpu",),
    )
    true = made.truth.trials
    start, end = ((true[name] - made.truth.window_start).dt.total_seconds() for name in ("start", "end"))
    trials = true[["trial", "state"]].assign(gpu=true["gpu"].astype(str), start=start, end=end)
    cells = made.truth.ledger.groupby("cell")["gpu_s"].sum()
    return made.run, trials.dropna(), cells, "drawn" if random else str(k)


def other_run(seed: int) -> Made | None:
    """The same of world_b."""
    made = attribution_run(20_000 + seed)
    if made is None:
        return None
    run, truth, k = made
    true = pd.DataFrame(truth["trials"])
    trials = true[["state", "start", "end"]].assign(trial=true["number"], gpu=true["gpu"].astype(str))
    cells = pd.DataFrame(truth["cells_obs"]).sum(axis=1)
    cells["unobserved"] = pd.DataFrame(truth["cells"]).sum(axis=1).sum() - cells.sum()
    return run, trials, cells, str(k)


def errors(world: str, made: Made | None) -> dict[str, Any]:
    """What is said of a run without its declarations, and with them."""
    if made is None:
        return {}
    declared, trials, cells, kind = made
    run = replace(declared, trials=declared.trials.drop(columns=["gpu", "user_attrs.gpu"], errors="ignore"))
    found = measure_attribution(run).trials.merge(trials[["trial", "gpu"]], on="trial", suffixes=("", "_true"))
    placed = found["gpu"].notna()
    time_s = run.gpu.groupby("gpu")["time"].diff().median().total_seconds()
    true_s = gpu_seconds(trials)["COMPLETE"]
    out = {
        "world": world,
        "kind": kind,
        "period_s": time_s,
        "trials": len(found),
        "placed": int(placed.sum()),
        "wrong": int((found["gpu"] != found["gpu_true"])[placed].sum()),
    }
    for name, judged in (("", run), ("declared_", declared)):
        ledger = measure_ledger(judged).totals.set_index("cell")["share_pct"]
        costs = measure_costs(judged).outcomes.set_index("outcome")
        out |= {f"{name}cell": worst_cell(ledger, 100 * cells / cells.sum()), f"{name}waiting": ledger["waiting"]}
        out[f"{name}complete"] = 100 * abs(costs.loc["COMPLETE", "gpu_s"] / true_s - 1)
    return out


def worst_cell(said: pd.Series, true: pd.Series) -> float:
    """The most that a cell lies beyond what is said of it, in points; busy and busy_low are one here."""
    off = [abs(said[["busy", "busy_low"]].sum() - true.reindex(["busy", "busy_low"]).sum())]
    for cell in ("unobserved", "foreign", *WAITS):
        above = said["waiting"] if cell in WAITS else 0.0
        off.append(max(said[cell] - true.get(cell, 0.0), true.get(cell, 0.0) - said[cell] - above, 0.0))
    return float(max(off))


def ours(seed: int) -> dict[str, Any]:
    return errors("ours", our_run(seed))


def other(seed: int) -> dict[str, Any]:
    return errors("world_b", other_run(seed))


def section(rows: pd.DataFrame) -> str:
    """A row a world, number of trials on a GPU and band of sampling."""
    lines = [
        "Searches on 2 to 8 GPUs with 1 to 3 trials at once on each (*drawn*: every trial draws its GPU), sampled "
        "every 1 to 60 s with gaps of 0 to 30 %, start-ups of 10 s to 5 min; drawn at random over these ranges. Trials "
        "say nothing of their GPU; beside it the same runs where they do. Cells: the most that a cell of the ledger "
        "lies beyond what is said of it, in points of all time (median, 95 %, worst); waiting: mean share of the time "
        "that is said to fit several cells. COMPLETE: error of the GPU-hours in per cent (median, 95 %, worst); "
        "withheld: runs without it.",
        "",
        "| world | at once on a GPU | sampled every | runs | placed | wrong | cells | declared | waiting | declared | "
        "COMPLETE | declared | withheld |",
        "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    bands = pd.cut(rows["period_s"], [0, *(border + 1 for border, _ in BANDS)], labels=[name for _, name in BANDS])
    for (world, kind, band), part in rows.groupby(["world", "kind", bands], observed=True):
        lines.append(f"| {world} | {kind} | {band} | {_cells(part)} |")
    lines += [f"| {world} | all | all | {_cells(part)} |" for world, part in rows.groupby("world")]
    return "\n".join(lines)


def _cells(part: pd.DataFrame) -> str:
    said = {name: _three(part[name]) for name in ("cell", "declared_cell", "complete", "declared_complete")}
    return (
        f"{len(part)} | {100 * part['placed'].sum() / part['trials'].sum():.0f} % | {int(part['wrong'].sum())} of "
        f"{int(part['placed'].sum())} | {said['cell']} | {said['declared_cell']} | {part['waiting'].mean():.1f} | "
        f"{part['declared_waiting'].mean():.1f} | {said['complete']} | {said['declared_complete']} | "
        f"{int(part['complete'].isna().sum())}"
    )


def _three(values: pd.Series) -> str:
    known = values.dropna()
    return f"{known.median():.1f}, {known.quantile(0.95):.1f}, {known.max():.1f}" if len(known) else "–"


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=60, help="of each world")
    write_both_worlds(TITLE, (ours, other), section, parser.parse_args().runs)


if __name__ == "__main__":
    main()
