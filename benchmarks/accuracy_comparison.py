"""How right comparisons are: false alarms of A against A, coverage and power of A against B with a known ratio.

    python benchmarks/accuracy_comparison.py            # about five minutes on two cores
    python benchmarks/accuracy_comparison.py --same 40 --other 6 --elsewhere 80 --elsewhere-other 6

Searches are simulated runs with telemetry; every time of an experiment is the baseline's stretched by a known factor,
so that its true ratio is that factor whatever the trials do to each other. Named items are drawn here: a size of the
item that both runs share, and noise of each run. Searches of world_b (other_world.py), a generator that shares nothing
with gpudiag, are stretched but for gaps and ends of trials, 5 % of the time. Writes the sections "Comparisons" and
"Comparisons in a world that is not ours" of accuracy.md.
"""

from __future__ import annotations

import argparse
import heapq
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from accuracy_ledger import gather, write_section
from other_world import WORLD, pair_of_searches

from gpudiag.comparison.compare import Comparison, compare
from gpudiag.manifest import Settings
from gpudiag.run import Run, RunInfo
from gpudiag.schema import TRIALS, conform
from gpudiag.simulation import simulate

RATIOS = (0.7, 0.8, 0.9, 1.1, 1.25, 1.5)
SAID = ("faster", "slower", "higher", "lower")
TIMES = (
    "duration",
    "mean_duration",
    "duration_at_same_steps",
    "time_per_item",
    "time_per_complete",
    "gpu_time_per_item",
    "energy_per_item",
)
SIZES = (12, 24, 48)
FIRST_SEED = 700_000
"""No pair that the method was developed on has a seed from here on."""
BEGIN = pd.Timestamp("2025-06-03 09:00:00", tz="UTC")
TITLES = {
    "duration": "duration (geometric mean; Hodges-Lehmann with outliers)",
    "mean_duration": "duration (arithmetic mean)",
    "duration_at_same_steps": "duration of COMPLETE and PRUNED trials at the same number of steps",
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
    sides = [simulate(seed=FIRST_SEED + 2 * seed + i, **choice, **_times(f)).run for i, f in enumerate((1.0, ratio))]
    pair = compare(*sides)
    assert isinstance(pair, Comparison)
    return pair


def _times(factor: float) -> dict[str, Any]:
    base = {"startup_s": (25, 40), "epoch_s": (12, 24), "dip_s": (1, 2), "tail_s": (2, 4), "gap_s": (0.2, 1.0)}
    return {name: (low * factor, high * factor) for name, (low, high) in base.items()} | {"ramp_s": 8 * factor}


def named_pair(seed: int, ratio: float) -> Comparison:
    """Two batches of the same named items on a pool of workers, with noise of each run and a few outliers."""
    rng = np.random.default_rng(FIRST_SEED + 50_000 + seed)
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


def other_pair(seed: int, ratio: float) -> Comparison:
    """Two searches of world_b."""
    runs = pair_of_searches(seed, ratio)
    assert runs is not None
    pair = compare(*runs)
    assert isinstance(pair, Comparison)
    return pair


PAIRS = {"search": search_pair, "named items": named_pair, "world_b": other_pair}


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
    pair = PAIRS[kind](seed, ratio)
    row: dict[str, Any] = {"kind": kind, "ratio": ratio, "size": SIZES[seed % 3], "verdict": pair.verdict}
    row |= {"detectable": pair.leader.detectable if pair.leader else np.nan, "why": [c.check for c in pair.reasons]}
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


def shown_line(rows: pd.DataFrame) -> str:
    """Whether four of five pairs show what they were said to show."""
    beyond = rows[np.exp(np.abs(np.log(rows["ratio"]))) >= rows["detectable"]]
    said, tested = beyond["verdict"].isin(SAID), rows["detectable"].notna()
    held = f"{100 * said.mean():.0f} % of {len(said)}" if len(said) else "none"
    return (
        f"{100 * tested.mean():.0f} % of the pairs can be tested and say what they could show (median "
        f"{rows['detectable'].median():.2f}×). Where the true ratio lies beyond that, called different: {held} (80 % "
        "is promised)."
    )


def elsewhere_section(same: pd.DataFrame, other: pd.DataFrame) -> str:
    """World_b: false calls, invalid pairs, power."""
    invalid = same["verdict"] == "invalid"
    why = sorted({check for checks in same.loc[invalid, "why"] for check in checks})
    lines = []
    for name in TIMES:
        alone, held = (
            part.get(f"{of}.{name}", pd.Series(dtype=object)).dropna().astype(bool)
            for part, of in ((same, "p"), (other, "holds"))
        )
        if len(alone) and len(held):
            cover = f"{100 * held.mean():.1f} % of {len(held)}"
            lines.append(f"| {TITLES[name]} | {len(alone)} | {100 * alone.mean():.1f} % | {cover} |")
    wrong = other["verdict"] == np.where(other["ratio"] < 1, "slower", "faster")
    right = other["verdict"] == np.where(other["ratio"] < 1, "faster", "slower")
    power = [
        f"| {ratio:g} | {len(part)} | {100 * right[part.index].mean():.0f} % | "
        f"{100 * (part['verdict'] == 'invalid').mean():.0f} % |"
        for ratio, part in other.groupby("ratio")
    ]
    return (
        "Searches of world_b with 1 to 3 workers and 16, 30 or 50 trials of 6 to 14 steps, drawn anew in each run; "
        "half of the pairs prune, in half of them neighbors take alike long (AR(1), 0.6).\n\n"
        f"**The same against the same**, {len(same)} pairs: called faster or slower as a whole in "
        f"{100 * same['verdict'].isin(SAID).mean():.1f} %, invalid in {100 * invalid.mean():.1f} %"
        f"{' (' + ', '.join(why) + ')' if why else ''}.\n\n"
        "| quantity | tested pairs | p < 0.05 alone | interval holds the other ratios below |\n|---|--:|--:|--:|\n"
        + "\n".join(lines)
        + "\n\n"
        f"**Against a known ratio**, {len(other)} pairs. Called the wrong way round: {int(wrong.sum())}. "
        f"{shown_line(other)}\n\n"
        "| ratio | pairs | called right | invalid |\n|--:|--:|--:|--:|\n" + "\n".join(power)
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
                cells.append(f"{right.sum()} of {len(said)}" if len(said) else "–")
        power.append(f"| {ratio:g} | {' | '.join(cells)} |")
    wrong = rows["verdict"] == np.where(rows["ratio"] < 1, "slower", "faster")
    heads = " | ".join(f"{kind}, n = {size}" for kind in ("search", "named") for size in SIZES)
    return (
        f"**Against a known ratio**, {len(rows)} pairs with ratios of {', '.join(f'{r:g}' for r in RATIOS)}. Called "
        f"the wrong way round: {int(wrong.sum())}. The 95 % interval holds the true ratio:\n\n"
        "| quantity | search | named items |\n|---|--:|--:|\n"
        + "\n".join(cover)
        + f"\n\n{shown_line(rows)}"
        + "\n\nPower: called faster (below 1) or "
        "slower (above 1) as a whole, by true ratio of time and number of items a side:\n\n"
        f"| ratio | {heads} |\n|--:|{'--:|' * 6}\n" + "\n".join(power)
    )


def main() -> None:
    """Measure, print, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--same", type=int, default=255, help="pairs of the same, of each kind")
    parser.add_argument("--other", type=int, default=24, help="pairs of each ratio and kind")
    parser.add_argument("--elsewhere", type=int, default=200, help="pairs of the same in world_b; 0 leaves it out")
    parser.add_argument("--elsewhere-other", type=int, default=12, help="pairs of each ratio in world_b")
    parser.add_argument("--first", type=int, default=0, help="first seed: another block for each committed table")
    options = parser.parse_args()
    first = options.first
    if options.elsewhere and WORLD.is_file():
        _elsewhere(first, options.elsewhere, options.elsewhere_other)
    same, other = [], []
    for kind in ("search", "named items"):
        same.append(gather(partial(result, kind=kind, ratios=(1.0,)), range(first, first + options.same)))
        pairs = range(first, first + options.other * len(RATIOS))
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


def _elsewhere(first: int, n_same: int, n_other: int) -> None:
    other_pair(0, 1.0)  # what world_b prepares once, before several processes ask for it
    same = gather(partial(result, kind="world_b", ratios=(1.0,)), range(first, first + n_same))
    other = gather(
        partial(result, kind="world_b", ratios=RATIOS), range(first + 1000, first + 1000 + n_other * len(RATIOS))
    )
    title, body = "Comparisons in a world that is not ours", elsewhere_section(same, other)
    print(f"## {title}\n\n{body}\n", flush=True)
    write_section(title, body)


if __name__ == "__main__":
    main()
