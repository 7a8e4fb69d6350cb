"""Real searches on one H100 whose truth was written down beside them (data/samples/real-h100).

    python benchmarks/accuracy_gpu.py

writes its section of benchmarks/accuracy.md. benchmarks/gpu_search.py made the runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_ledger import write_section

import gpudiag as gd
from gpudiag.forecast.memory.peaks import trial_peaks
from gpudiag.measures.costs import measure_costs
from gpudiag.measures.ledger import measure_ledger
from gpudiag.run import Run

RUNS = Path(__file__).resolve().parent.parent / "data" / "samples" / "real-h100"
BY_WORKERS = {1: "one-worker", 2: "two-workers", 3: "three-workers", 4: "four-workers", 6: "six-workers"}
OTHERS = ("process-per-trial", "killed-worker", "three-workers-again", "process-per-trial-again")
STEP_S = 0.05


def true_cells(trials: list[dict[str, Any]]) -> dict[str, float]:
    """Percent of the time from the first start to the last end, by what the live trials did."""
    ended = [trial for trial in trials if "end" in trial]
    cells = {"startup_only": 0, "stalled": 0, "idle_no_trial": 0, "work": 0}
    times = np.arange(min(t["start"] for t in trials), max(t["end"] for t in ended), STEP_S)
    for time in times:
        live = [trial for trial in ended if trial["start"] <= time < trial["end"]]
        waits = [any(low <= time < high for low, high in trial["pauses"]) for trial in live]
        begun = [time >= trial["training_start"] for trial in live]
        if not live:
            cells["idle_no_trial"] += 1
        elif not any(begun):
            cells["startup_only"] += 1
        elif any(work and not wait for work, wait in zip(begun, waits, strict=True)):
            cells["work"] += 1
        else:
            cells["stalled"] += 1
    return {name: 100 * n / len(times) for name, n in cells.items()}


def ledger_lines() -> Iterator[str]:
    """Found against true, by run."""
    yield "| run | trials | start-up only, % | stalled, % | fits both, % | typical start-up, s |"
    yield "|:--|--:|--:|--:|--:|--:|"
    for name in (*BY_WORKERS.values(), *OTHERS):
        run, trials = gd.load_run(RUNS / name), truth_of(name)
        found = measure_ledger(run).totals.set_index("cell")["share_pct"]
        true = true_cells(trials)
        said = measure_costs(run).startup_median_s
        startup = float(np.median([t["training_start"] - t["start"] for t in trials if "training_start" in t]))
        cells = [f"{found[cell]:.1f} / {true[cell]:.1f}" for cell in ("startup_only", "stalled")]
        told = f"{said:.1f} / {startup:.1f}" if np.isfinite(said) else f"withheld / {startup:.1f}"
        yield f"| {name} | {len(trials)} | {' | '.join(cells)} | {found['waiting']:.1f} | {told} |"


def forecast_lines() -> Iterator[str]:
    """From the log of so many workers: forecast, and what the log of more workers shows."""
    yield "| from | to | trials/h: queueing model | bounds said | measured there |"
    yield "|--:|--:|--:|--:|--:|"
    counts = sorted(BY_WORKERS)
    forecasts = {k: gd.what_if(gd.load_run(RUNS / BY_WORKERS[k]), counts) for k in counts}
    for now, k in [(1, 2), (2, 3), (3, 4), (4, 6), (2, 1), (3, 2), (4, 3)]:
        scenario, measured = forecasts[now].at(k), forecasts[k].rate.value
        rate = scenario.throughput
        yield f"| {now} | {k} | {scenario.queueing:.0f} | {rate.low:.0f} to {rate.high:.0f} | {measured:.0f} |"


def memory_lines() -> Iterator[str]:
    """Peak of a trial as told apart from the sum, against what NVML counted for its process."""
    yield "| run | told apart | error: median, worst | 95 % intervals that hold |"
    yield "|:--|--:|--:|--:|"
    for name in (*BY_WORKERS.values(), *OTHERS):
        told = told_apart(gd.load_run(RUNS / name), {t["number"]: t.get("process_mib") for t in truth_of(name)})
        if len(told):
            error = 100 * np.abs(told[:, 0] / told[:, 3] - 1)
            held = (told[:, 1] <= told[:, 3]) & (told[:, 3] <= told[:, 2])
            yield f"| {name} | {len(told)} | {np.median(error):.1f} %, {error.max():.1f} % | {held.sum()} |"
        else:
            yield f"| {name} | 0 | - | - |"


def told_apart(run: Run, true: dict[int, float | None]) -> np.ndarray:
    """Peak, its interval and the true one (MiB), a row a trial of which both are known."""
    trials = trial_peaks(run, np.random.default_rng(0)).trials
    rows = [(r.peak_mib, r.low_mib, r.high_mib, true.get(int(r.trial)) or np.nan) for r in trials.itertuples()]
    table = np.array(rows, dtype=float).reshape(-1, 4)
    return table[np.isfinite(table).all(axis=1)]


def truth_of(name: str) -> list[dict[str, Any]]:
    trials: list[dict[str, Any]] = json.loads((RUNS / name / "truth.json").read_text())["trials"]
    return trials


def main() -> None:
    body = "\n".join(
        [
            "Nine searches of one to three minutes by PyTorch, found / true. The first four were known when the method "
            "of shared start-ups was last changed, the first seven when that of memory was: the last two are fresh.",
            "",
            *ledger_lines(),
            "",
            *forecast_lines(),
            "",
            *memory_lines(),
        ]
    )
    print(body)
    write_section("Real searches on one H100", body)


if __name__ == "__main__":
    main()
