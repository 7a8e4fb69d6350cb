"""How right comparisons are: false alarms of A against A, coverage and power of A against B with a known ratio.

    python benchmarks/accuracy_comparison.py            # about five minutes on two cores
    python benchmarks/accuracy_comparison.py --same 40 --other 8

Searches are simulated runs with telemetry; every time of an experiment is the baseline's stretched by a known factor,
so that its true ratio is that factor whatever the trials do to each other. Named items are drawn here: a size of the
item that both runs share, and noise of each run. Writes the section "Comparisons" of accuracy.md.
"""

from __future__ import annotations

import argparse
import heapq
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from accuracy_ledger import gather, write_section

from gpudiag.comparison.compare import Comparison, compare
from gpudiag.manifest import Settings
from gpudiag.run import Run, RunInfo
from gpudiag.schema import TRIALS, conform
from gpudiag.simulation import simulate

RATIOS = (0.7, 0.8, 0.9, 1.1, 1.25, 1.5)
SAID = ("faster", "slower", "higher", "lower")
TIMES = ("duration", "mean_duration", "time_per_item", "time_per_complete", "gpu_time_per_item", "energy_per_item")
SIZES = (12, 24, 48)
BEGIN = pd.Timestamp("2025-06-03 09:00:00", tz="UTC")
TITLES = {
    "duration": "duration (geometric mean; Hodges-Lehmann with outliers)",
    "mean_duration": "duration (arithmetic mean)",
    "time_per_item": "wall time per finished item",
    "time_per_complete": "wall time per COMPLETE item",
    "gpu_time_per_item": "GPU time per finished item",
    "energy_per_item": "energy per finished item",
}


def search_pair(seed: int, ratio: float) -> Comparison:
    """Two simulated searches; size, workers, pruner, failures and sampling vary with the seed."""
    rng = np.random.default_rng(seed)
    choice: dict[str, Any] = {
        "n_trials": SIZES[seed % 3],
        "workers": int(rng.choice([1, 2, 4])),
        "period_s": float(rng.choice([5.0, 10.0])),
        "fail_rate": float(rng.choice([0.0, 0.1])),
        "pruner": [None, "median(n_startup_trials=5)"][int(rng.integers(2))],
        "gpu_share_pct": (30.0, 60.0),
    }
    sides = [simulate(seed=10_000 + 2 * seed + i, **choice, **_times(f)).run for i, f in enumerate((1.0, ratio))]
    pair = compare(*sides)
    assert isinstance(pair, Comparison)
    return pair


def _times(factor: float) -> dict[str, Any]:
    base = {"startup_s": (25, 40), "epoch_s": (12, 24), "dip_s": (1, 2), "tail_s": (2, 4), "gap_s": (0.2, 1.0)}
    return {name: (low * factor, high * factor) for name, (low, high) in base.items()} | {"ramp_s": 8 * factor}


def named_pair(seed: int, ratio: float) -> Comparison:
    """Two batches of the same named items on a pool of workers, with noise of each run and a few outliers."""
    rng = np.random.default_rng(50_000 + seed)
    n, workers = SIZES[seed % 3], int(rng.choice([1, 4]))
    size = rng.lognormal(3.0, 0.6, n)
    runs = []
    for i, factor in enumerate((1.0, ratio)):
        seconds = factor * size * rng.lognormal(0, 0.25, n)
        seconds[rng.random(n) < 0.02] *= 4 if seed % 2 else 1
        runs.append(_batch(f"run {i}", seconds, workers))
    pair = compare(*runs)
    assert isinstance(pair, Comparison)
    return pair


def _batch(name: str, seconds: np.ndarray, workers: int) -> Run:
    free = [(0.01 * i, i) for i in range(workers)]
    rows = []
    for item, length in enumerate(seconds):
        start, worker = heapq.heappop(free)
        heapq.heappush(free, (start + length + 0.05, worker))
        rows.append((item, start, start + length))
    table = pd.DataFrame(rows, columns=["trial", "s", "e"])
    frame = pd.DataFrame(
        {
            "study": name,
            "trial": table["trial"],
            "name": "item " + table["trial"].astype(str),
            "state": "COMPLETE",
            "start": BEGIN + pd.to_timedelta(table["s"].round(6), unit="s"),
            "end": BEGIN + pd.to_timedelta(table["e"].round(6), unit="s"),
        }
    )
    return Run(trials=conform(frame, TRIALS), info=RunInfo(name=name, settings=Settings(parallel=workers)))


def result(seed: int, *, kind: str, ratios: tuple[float, ...]) -> dict[str, Any]:
    """One row: what was said of each quantity, and whether its interval holds the truth."""
    ratio = ratios[(seed // len(SIZES)) % len(ratios)]
    pair = (search_pair if kind == "search" else named_pair)(seed, ratio)
    row: dict[str, Any] = {"kind": kind, "ratio": ratio, "size": SIZES[seed % 3], "verdict": pair.verdict}
    for quantity in pair.quantities:
        if not np.isnan(quantity.p):
            row[f"said.{quantity.name}"] = quantity.verdict in SAID
            row[f"p.{quantity.name}"] = quantity.p < 0.05
        if quantity.name in TIMES and not np.isnan(quantity.low):
            row[f"holds.{quantity.name}"] = quantity.low <= ratio <= quantity.high
    return row


def same_section(rows: pd.DataFrame) -> str:
    """False alarms by quantity."""
    lines = []
    for column in [c for c in rows.columns if c.startswith("said.")]:
        name = column.removeprefix("said.")
        for kind, part in rows.groupby("kind", sort=False):
            told = part[column].dropna().astype(bool)
            if len(told):
                alone = part[f"p.{name}"].dropna().astype(bool)
                lines.append(
                    f"| {name} | {kind} | {len(told)} | {100 * alone.mean():.1f} % | {100 * told.mean():.1f} % |"
                )
    wrong = rows["verdict"].isin(SAID)
    return (
        f"**The same against the same**, {len(rows)} pairs: called faster or slower as a whole in "
        f"{100 * wrong.mean():.1f} %, invalid in {100 * (rows['verdict'] == 'invalid').mean():.1f} %.\n\n"
        "| quantity | runs | pairs | p < 0.05 alone | called different after control |\n|---|---|--:|--:|--:|\n"
        + "\n".join(lines)
    )


def other_section(rows: pd.DataFrame) -> str:
    """Coverage by quantity, and power by ratio and size."""
    cover = []
    for name in TIMES:
        cells = []
        for kind in ("search", "named items"):
            column = rows.loc[rows["kind"] == kind].get(f"holds.{name}", pd.Series(dtype=object)).dropna().astype(bool)
            cells.append(f"{100 * column.mean():.1f} % of {len(column)}" if len(column) else "–")
        cover.append(f"| {TITLES[name]} | {' | '.join(cells)} |")
    power = []
    for ratio, part in rows.groupby("ratio"):
        cells = []
        for kind in ("search", "named items"):
            for size in SIZES:
                said = part.loc[(part["kind"] == kind) & (part["size"] == size), "verdict"]
                right = said == ("faster" if ratio < 1 else "slower")
                cells.append(f"{100 * right.mean():.0f} %" if len(said) else "–")
        power.append(f"| {ratio:g} | {' | '.join(cells)} |")
    wrong = rows["verdict"] == np.where(rows["ratio"] < 1, "slower", "faster")
    heads = " | ".join(f"{kind}, n = {size}" for kind in ("search", "named") for size in SIZES)
    return (
        f"**Against a known ratio**, {len(rows)} pairs with ratios of {', '.join(f'{r:g}' for r in RATIOS)}. Called "
        f"the wrong way round: {int(wrong.sum())}. The 95 % interval holds the true ratio:\n\n"
        "| quantity | search | named items |\n|---|--:|--:|\n"
        + "\n".join(cover)
        + "\n\nPower: called faster (below 1) or "
        "slower (above 1) as a whole, by true ratio of time and number of items a side:\n\n"
        f"| ratio | {heads} |\n|--:|{'--:|' * 6}\n" + "\n".join(power)
    )


def main() -> None:
    """Measure, print, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--same", type=int, default=255, help="pairs of the same, of each kind")
    parser.add_argument("--other", type=int, default=24, help="pairs of each ratio and kind")
    options = parser.parse_args()
    same, other = [], []
    for kind in ("search", "named items"):
        same.append(gather(partial(result, kind=kind, ratios=(1.0,)), range(options.same)))
        pairs = range(options.other * len(RATIOS))
        print(f"{kind}: {len(same[-1])} pairs of the same", flush=True)
        other.append(gather(partial(result, kind=kind, ratios=RATIOS), pairs))
    body = (
        "Searches are simulated with 1 to 4 workers, with and without a pruner and failures; named items are paired. "
        "Sizes are 12, 24 and 48 items a side.\n\n"
        + same_section(pd.concat(same, ignore_index=True))
        + "\n\n"
        + other_section(pd.concat(other, ignore_index=True))
    )
    print(f"## Comparisons\n\n{body}\n")
    write_section("Comparisons", body)


if __name__ == "__main__":
    main()
