"""Accuracy of the GPU-time ledger and of the clock, on simulated runs whose truth is known.

    python benchmarks/accuracy_ledger.py                         all of it, about half an hour of CPU
    python benchmarks/accuracy_ledger.py --clocks 0              the ledgers only, in both worlds

The tables are printed and written into benchmarks/accuracy.md.

Every run differs in GPUs, workers, sampling period, durations, gaps, abandoned and foreign load, all drawn from
its seed. The ledger's error is the difference of a cell's share from the truth, in points of all GPU time.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from accuracy_clock_noise import noise_result, noise_section
from accuracy_clock_short import other_short_result, our_short_result, short_section
from accuracy_clock_skew import other_skew_result, our_skew_result, skew_section
from other_world import WORLD, clock_run, drawn_run

from gpudiag.alignment import establish_clock
from gpudiag.measures._time.timeline import CELLS
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.ledger import UNCLEAR, measure_ledger
from gpudiag.simulation import Foreign, Gpu, Simulated, simulate

PAGE = Path(__file__).with_name("accuracy.md")
PERIODS_S = (1.0, 2.0, 5.0, 10.0, 30.0)
COVERAGES = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0)


def varied_run(seed: int) -> Simulated:
    """One simulated run for the ledger."""
    rng = np.random.default_rng(seed)
    n_gpus = int(rng.choice([1, 1, 2, 4, 8]))
    workers = max(n_gpus, int(rng.integers(1, 9)))
    outage_s = float(rng.uniform(60, 500))
    longest_s = float(np.exp(rng.uniform(np.log(10), np.log(300))))
    epochs = int(rng.integers(2, 12))
    low_load = rng.random() < 0.1
    return simulate(
        seed=seed,
        gpus=(Gpu(),) * n_gpus,
        workers=workers,
        n_trials=workers * int(rng.integers(6, 20)),
        epochs=epochs if rng.random() < 0.5 else (max(2, epochs // 2), 2 * epochs),
        period_s=float(rng.choice(PERIODS_S)),
        startup_s=(longest_s * float(rng.uniform(0.3, 0.9)), longest_s),
        memory_at=float(rng.choice([0.1, 0.5, 1.0])),
        reserved_mib=float(rng.choice([0.0, 0.0, 9000.0])),
        oom=False,
        pace_sd=0.3 * (rng.random() < 0.3),
        pace_correlation=0.7,
        gap_s=(0.1, float(rng.uniform(0.5, 15))),
        tail_s=(0.5, float(rng.uniform(1, 8))),
        gpu_share_pct=(4.0, 9.0) if low_load else (float(rng.uniform(15, 50)), float(rng.uniform(50, 99))),
        slow_down=0.8 * (rng.random() < 0.2),
        abandoned_rate=0.03 * (rng.random() < 0.3),
        outages_s=((outage_s, outage_s + float(rng.uniform(60, 300))),) * (rng.random() < 0.4),
        foreign=(Foreign(int(rng.integers(n_gpus)), 0.0, float(rng.uniform(400, 900))),) * (rng.random() < 0.3),
    )


def ledger_errors(seed: int) -> dict[str, Any]:
    """Error of each cell in points, and of start-up in seconds."""
    made = varied_run(seed)
    found = measure_ledger(made.run)
    truth = made.truth.ledger.groupby("cell")["gpu_s"].sum().reindex(CELLS, fill_value=0.0)
    measured = found.cells.groupby("cell", observed=False)["gpu_s"].sum().reindex(CELLS)
    by_gpu = found.cells.groupby("gpu")["gpu_s"].sum()
    costs = measure_costs(made.run)
    startup = costs.startup_median_s - made.truth.trials["startup_s"].median() if costs.n_startups >= 3 else np.nan
    error = 100 * (measured / measured.sum() - truth / truth.sum())
    either = 100 * measured["waiting"] / measured.sum()
    beyond = {f"beyond.{cell}": max(error[cell], -error[cell] - either, 0.0) for cell in UNCLEAR}
    return beyond | {
        "period_s": made.spec.telemetry.period_s,
        "lost_s": float((by_gpu - made.truth.window_s).abs().max()),
        "startup": startup,
        **error.to_dict(),
    }


def other_ledger_errors(seed: int) -> dict[str, Any]:
    """The same in the other world: errors in points, whether ``waiting`` covers them, and the clock's shift."""
    made = drawn_run(seed)
    if made is None:
        return {}
    run, truth, k = made
    found = measure_ledger(run).totals.set_index("cell")["share_pct"]
    cells = pd.DataFrame(truth["cells"]).sum(axis=1)
    error = (found - 100 * cells / cells.sum()).reindex(["startup_only", "tail_only", "stalled"]).to_dict()
    costs = measure_costs(run)
    return {
        **error,
        "k": k,
        "waiting": float(found["waiting"]),
        "startup": costs.startup_median_s / truth["startup_median"] - 1,
        "shift_s": run.info.clock.applied_s,
    }


def other_ledger_section(rows: pd.DataFrame) -> str:
    """Tables by the number of trials at once."""
    table = [
        f"{len(rows)} runs of world_b with one GPU, whose clocks agree: start-ups of 10 s to 5 min, four ways to take "
        "memory, sampling every 1 to 5 s, trials of one to ten minutes; drawn at random over these ranges.",
        "",
        "| trials at once | runs | start-up only: median error, 95 %, worst | stalled | fits both, mean | start-up, "
        "median error, 95 % | withheld | clock moved |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for k, part in rows.groupby("k"):
        error = {name: part[name].abs() for name in ("startup_only", "stalled")}
        cells = [f"{e.median():.1f}, {e.quantile(0.95):.1f}, {e.max():.1f}" for e in error.values()]
        startup = 100 * part["startup"].abs().dropna()
        said = f"{startup.median():.0f} %, {startup.quantile(0.95):.0f} %" if len(startup) else "-"
        table.append(
            f"| {k:.0f} | {len(part)} | {' | '.join(cells)} | {part['waiting'].mean():.2f} | {said} | "
            f"{int(part['startup'].isna().sum())} | {int((part['shift_s'] != 0).sum())} |"
        )
    return "\n".join(table)


def clock_result(seed: int) -> dict[str, Any]:
    """What was found for a run whose telemetry is ahead by known quarters of an hour and covers a part of it."""
    rng = np.random.default_rng([7, seed])
    offset_s, coverage = 900.0 * int(rng.integers(-48, 57)), float(rng.choice(COVERAGES))
    made = simulate(
        seed=seed,
        gpus=(Gpu(),) * int(rng.choice([1, 1, 2, 4])),
        workers=int(rng.integers(1, 9)),
        n_trials=int(rng.integers(40, 160)),
        epochs=int(rng.integers(4, 14)),
        period_s=float(rng.choice(PERIODS_S)),
        startup_s=(5.0, float(rng.uniform(10, 60))),
        gap_s=(0.0, float(rng.uniform(0.5, 20))),
        gpu_share_pct=(float(rng.uniform(10, 50)), float(rng.uniform(50, 99))),
        keeps_memory=bool(rng.random() < 0.2),
        offset_s=offset_s,
    )
    begin = made.truth.window_start.timestamp() + offset_s
    skipped_s = float(rng.uniform(0, 1 - coverage)) * made.truth.window_s
    time = made.run.gpu["time"].astype("int64") / 1e6 - begin
    kept = (time >= skipped_s) & (time <= skipped_s + coverage * made.truth.window_s) | (coverage == 1)
    run = replace(made.run, gpu=made.run.gpu[kept].reset_index(drop=True))
    clock = establish_clock(run)
    best = max(clock.candidates, key=lambda pair: pair[1])[0] if clock.candidates else np.nan
    strong = clock.confidence == "strong"
    return {
        "coverage": coverage,
        "strong": strong,
        "wrong": strong and abs(clock.applied_s - offset_s) > 60,
        "best_right": best == offset_s,
        "skewed": strong and clock.applied_s != offset_s,
    }


def ledger_section(rows: pd.DataFrame) -> str:
    """Tables of errors by sampling period."""
    parts = [f"{len(rows)} runs. Every GPU's cells add up to its window within {rows['lost_s'].max():.0e} s."]
    bands = (
        ("sampling every 1-5 s", rows["period_s"] <= 5),
        ("every 10 s", rows["period_s"] == 10),
        ("every 30 s", rows["period_s"] == 30),
    )
    for title, chosen in bands:
        error = rows.loc[chosen, list(CELLS)]
        size = error.abs()
        lines = [
            f"| {cell} | {error[cell].median():+.2f} | {size[cell].median():.2f} | {size[cell].quantile(0.95):.2f} "
            f"| {size[cell].max():.1f} | {_beyond(rows[chosen], cell)} |"
            for cell in CELLS
        ]
        startup = rows.loc[chosen, "startup"].dropna()
        parts += [
            f"\n{title} ({len(error)} runs), points:\n\n| cell | bias (median) | median error | 95 % | worst "
            "| beyond its bounds: 95 %, worst |\n|---|--:|--:|--:|--:|--:|\n" + "\n".join(lines),
            f"\nMedian start-up, where it is told ({len(startup)} runs): "
            f"bias {startup.median():+.1f} s, 95 % within {startup.abs().quantile(0.95):.1f} s.",
        ]
    return "\n".join(parts) + (
        "\n\nThe worst cases are trials as short as a few samples, abandoned ones whose end nothing shows, and loads "
        "of 4 to 9 %, which cross the 10 % that part idle from busy. "
        "busy and busy_low trade places where a load is near 50 %, within the noise of the readings."
    )


def _beyond(rows: pd.DataFrame, cell: str) -> str:
    """How far the truth lies outside a cell's own time and that plus ``waiting``."""
    if cell not in UNCLEAR:
        return "–"
    far = rows[f"beyond.{cell}"]
    return f"{far.quantile(0.95):.2f}, {far.max():.1f}"


def clock_section(rows: pd.DataFrame) -> str:
    """Table of what was found by coverage."""
    lines = [
        f"| {100 * coverage:.0f} % | {len(part)} | {100 * part['strong'].mean():.0f} % | {int(part['wrong'].sum())} "
        f"| {100 * part['best_right'].mean():.1f} % | {int(part['skewed'].sum())} |"
        for coverage, part in rows.groupby("coverage")
    ]
    most = rows[rows["coverage"] > 1 / 3]
    return (
        f"{len(rows)} runs with offsets from -12 h to +14 h in steps of 15 min, sampled every 1 to 30 s.\n\n"
        "| telemetry covers | runs | called strong | strong and wrong | best fit is right | shifted by seconds |\n"
        "|--:|--:|--:|--:|--:|--:|\n"
        + "\n".join(lines)
        + "\n\nWhere telemetry covers a third or more, the best fit is "
        f"right in {100 * most['best_right'].mean():.1f} % and strong in {100 * most['strong'].mean():.0f} % of the "
        "runs; only strong offsets are applied. Below a third, only the zone's own offset may be strong, and most of "
        "these are not."
    )


def other_clock_result(seed: int) -> dict[str, Any]:
    """What was found in the other world, for clocks that agree or differ by known quarters of an hour."""
    made = clock_run(seed)
    if made is None:
        return {}
    clock, offset_s = made[0].info.clock, made[1]
    strong = clock.confidence == "strong"
    return {
        "agree": offset_s == 0,
        "strong": strong,
        "wrong": strong and clock.offset_s != offset_s,
        "moved": (clock.applied_s or 0.0) not in (0.0, offset_s),
    }


def other_clock_section(rows: pd.DataFrame) -> str:
    """A row for clocks that agree, and one for those that do not."""
    lines = [
        f"{len(rows)} runs of world_b: 1 to 8 trials at once on each of 1 or 2 GPUs, start-ups of 5 s to 5 min, "
        "sampling every 1 to 60 s, some with gaps of 15 %; drawn at random over these ranges.",
        "",
        "| clocks | runs | called strong | strong and wrong | moved by something else |",
        "|---|--:|--:|--:|--:|",
    ]
    for agree, part in rows.groupby("agree"):
        name = "agree" if agree else "differ by -12 h to +14 h"
        lines.append(
            f"| {name} | {len(part)} | {100 * part['strong'].mean():.0f} % | {int(part['wrong'].sum())} | "
            f"{int(part['moved'].sum())} |"
        )
    return "\n".join(lines)


def gather(work: Callable[[Any], dict[str, Any]], seeds: Iterable[Any]) -> pd.DataFrame:
    """One row a seed, on all cores."""
    with ProcessPoolExecutor() as pool:
        return pd.DataFrame(list(pool.map(work, seeds, chunksize=8)))


def write_section(title: str, body: str) -> None:
    """Put a section of that title into the page, in place of the one it has."""
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else "# Accuracy against known truth\n"
    section = f"## {title}\n\n{body}\n"
    pattern = re.compile(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    known = pattern.search(page) is not None
    page = pattern.sub(lambda _: section + "\n", page) if known else page.rstrip() + "\n\n" + section
    PAGE.write_text(page.rstrip() + "\n", encoding="utf-8")


def seeds(first: int, runs: int) -> str:
    """A last line of a section."""
    return f"\n\nSeeds {first} to {first + runs - 1}."


def write_both_worlds(
    title: str,
    works: tuple[Callable[[int], dict[str, Any]], Callable[[int], dict[str, Any]]],
    section: Callable[[pd.DataFrame], str],
    runs: int,
    first: int = 0,
) -> None:
    """Measure so many runs of our world and, where it is there, of the other; print the table, keep it on the page."""
    worlds = works if WORLD.is_file() else works[:1]
    for work in worlds:
        work(0)  # what a world prepares once, before several processes ask for it
    rows = pd.concat([gather(work, range(first, first + runs)) for work in worlds]).dropna(how="all")
    body = section(rows) + seeds(first, runs)
    print(f"## {title}\n\n{body}\n")
    write_section(title, body)


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--first", type=int, default=80_000, help="first seed: another block for each committed table")
    parser.add_argument("--ledgers", type=int, default=240, help="runs; 0 leaves the section as it is")
    parser.add_argument("--other-ledgers", type=int, default=80, help="runs of world_b; 0 leaves the section as it is")
    parser.add_argument("--clocks", type=int, default=2000, help="runs; 0 leaves the section as it is")
    parser.add_argument("--other-clocks", type=int, default=600, help="runs of world_b; 0 leaves the section as it is")
    parser.add_argument("--noise-clocks", type=int, default=3000, help="runs; 0 leaves the section as it is")
    parser.add_argument("--skews", type=int, default=300, help="runs in each world; 0 leaves the section as it is")
    parser.add_argument(
        "--short-clocks", type=int, default=300, help="runs in each world; 0 leaves the section as it is"
    )
    options = parser.parse_args()
    other, clocks = (options.other_ledgers, options.other_clocks) if WORLD.is_file() else (0, 0)
    parts = (
        ("GPU-time ledger", ledger_errors, ledger_section, options.ledgers),
        ("GPU-time ledger in a world that is not ours", other_ledger_errors, other_ledger_section, other),
        ("Clock between trials and telemetry", clock_result, clock_section, options.clocks),
        ("Clock where the load has nothing to do with the trials", noise_result, noise_section, options.noise_clocks),
        ("Clock in a world that is not ours", other_clock_result, other_clock_section, clocks),
    )
    for title, work, section, runs in parts:
        if not runs:
            continue
        work(0)  # what a world prepares once, before several processes ask for it
        body = section(gather(work, range(options.first, options.first + runs))) + seeds(options.first, runs)
        print(f"## {title}\n\n{body}\n")
        write_section(title, body)
    if options.short_clocks:
        works = (our_short_result, other_short_result)
        write_both_worlds("Clock in logs of minutes", works, short_section, options.short_clocks, options.first)
    if options.skews:
        works = (our_skew_result, other_skew_result)
        write_both_worlds("Clocks apart by seconds to minutes", works, skew_section, options.skews, options.first)


if __name__ == "__main__":
    main()
