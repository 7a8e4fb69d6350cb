"""How often failures are said to come with the number of trials at once, where they do and where they do not.

    python benchmarks/accuracy_failures.py --runs 200     # of each kind, about four minutes on two cores

Searches of 60 to 300 trials whose number of workers changes once or twice at random times. The other generator has one
number of workers a search. Writes "Failures and trials at once" of accuracy.md.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from accuracy_ledger import gather, write_section
from other_world import WORLD, failing_run

import gpudiag as gd
from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures._trials.placed import worker_counts
from gpudiag.rules.failure_rates import failures_by_number_at_once
from gpudiag.run import Run
from gpudiag.simulation import simulate

TITLE = "Failures and trials at once"
FIRST_SEED = 9_700_000
"""No run that the method was developed on has a seed from here on."""
KINDS = {
    "always": "each trial fails with the same chance",
    "poisoned": "asserts that poison their process",
    "bad hours": "one to three stretches in which nearly every trial fails",
    "rarer": "the chance to fail falls with time, to nothing at the end",
    "one more": "**with the most workers 15 to 40 % fail, else 1 %**",
    "memory": "**out of memory wherever trials overflow the GPU**",
}


def search(seed: int, kind: str) -> Run:
    """One search of that kind."""
    rng = np.random.default_rng(seed)
    n, changes = int(rng.integers(60, 300)), int(rng.integers(1, 3))
    numbers = rng.permutation([1, 2, 3, 4, 6])[: changes + 1]
    if rng.random() < 0.6:
        numbers = np.sort(numbers)[::-1]
    long_s = n * 150.0 / float(numbers.mean())
    at = [0.0, *np.sort(rng.uniform(0.15, 0.85, changes)) * long_s]
    made: dict[str, Any] = {
        "n_trials": n, "workers": tuple((float(t), int(k)) for t, k in zip(at, numbers, strict=True)),
        "period_s": 60.0, "epochs": 6, "epoch_s": (8.0, 20.0), "stagger_s": 5.0,
    }  # fmt: skip
    if kind == "always":
        made |= {"fail_rate": float(rng.uniform(0.03, 0.3)), "restart_s": (60.0, 600.0), "oom": False}
    elif kind == "poisoned":
        made |= {"assert_rate": float(rng.uniform(0.02, 0.1)), "poisoned": 2, "restart_s": (60.0, 600.0), "oom": False}
    elif kind == "memory":
        made |= {"context_mib": float(rng.uniform(4500, 7000)), "oom_kills": bool(rng.random() < 0.5)}
    else:
        made |= {"oom": False}
    run = simulate(seed=seed, **made).run
    return run if kind in ("always", "poisoned", "memory") else _failing(run, rng, kind)


def _failing(run: Run, rng: np.random.Generator, kind: str) -> Run:
    """The same search, of whose trials some failed."""
    trials = run.trials.copy()
    end = microseconds(trials["end"])
    part = (end - end.min()) / max(np.ptp(end), 1)
    if kind == "rarer":
        chance = rng.uniform(0.1, 0.5) * (1 - part)
    elif kind == "bad hours":
        chance = np.full(len(trials), 0.02)
        for _ in range(int(rng.integers(1, 4))):
            left = rng.uniform(0, 1)
            chance[(part > left) & (part < left + rng.uniform(0.03, 0.12))] = 0.9
    else:
        times, number = worker_counts(run)
        held = number[np.clip(np.searchsorted(times, end - 1, "right") - 1, 0, None)]
        chance = np.where(held == number.max(), rng.uniform(0.15, 0.4), 0.01)
    hit = (rng.random(len(trials)) < chance) & trials["state"].eq("COMPLETE").to_numpy()
    trials.loc[hit, "state"] = "FAIL"
    return replace(run, trials=trials)


def ours(seed: int, kind: str) -> dict[str, Any]:
    return {"world": "ours", "kind": kind, "said": _said(search(FIRST_SEED + seed, kind))}


def other(seed: int) -> dict[str, Any]:
    run = failing_run(seed)
    assert run is not None
    return {"world": "world_b", "kind": "always", "said": _said(run)}


def _said(run: Run) -> bool:
    return bool(gd.diagnose(run, rules=(failures_by_number_at_once,)).findings)


def section(rows: pd.DataFrame) -> str:
    """A row a world and kind."""
    lines = ["Said of searches whose number of workers changes once or twice (world_b: never). Bold: it is so.", ""]
    lines += ["| world | failures | runs | said |", "|---|---|--:|--:|"]
    for (world, kind), part in rows.groupby(["world", "kind"], sort=False):
        lines.append(f"| {world} | {KINDS[kind]} | {len(part)} | {100 * part['said'].mean():.1f} % |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, and write the section."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=200, help="of each kind")
    parser.add_argument("--first", type=int, default=0, help="first seed: another block for each committed table")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.runs)
    rows = [gather(partial(ours, kind=kind), seeds) for kind in KINDS]
    if WORLD.is_file():
        rows.append(gather(other, seeds))
    body = section(pd.concat(rows, ignore_index=True))
    print(body)
    write_section(TITLE, body)


if __name__ == "__main__":
    main()
