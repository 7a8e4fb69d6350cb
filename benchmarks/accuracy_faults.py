"""Faults planted in a world that is not ours, and runs of it without any: what is found, and what it is said to cost.

    python benchmarks/accuracy_faults.py [--runs 6] [--healthy 100]

writes its section of benchmarks/accuracy.md. The generator is outside the repository (benchmarks/other_world.py).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from accuracy_ledger import gather, write_section
from other_world import WORLD, planted_run

import gpudiag as gd
from gpudiag.rules._engine.verdict import Severity

Truth = dict[str, Any]
FIRST_SEED = 32_000
"""Another block for each committed table."""


@dataclass(frozen=True)
class Fault:
    """How a fault is drawn, the rules of which one must find it, and what it truly cost in GPU-hours."""

    drawn: Callable[[np.random.Generator], dict[str, Any]]
    rules: tuple[str, ...]
    cost_gpu_h: Callable[[Truth], float] | None = None


def _cell(*names: str) -> Callable[[Truth], float]:
    return lambda truth: sum(cells[name] for cells in truth["cells_obs"].values() for name in names) / 3600


def _unused(truth: Truth) -> float:
    """Time in which no kernel ran while a trial did."""
    busy = sum(truth["busy_util_s"].values())
    return (sum(sum(c.values()) - c["idle_no_trial"] for c in truth["cells_obs"].values()) - busy) / 3600


def _stalled(truth: Truth) -> float:
    """The pauses fall on work: their share of the time that would have been at 10 % or more."""
    length_s, every_s = truth["stall"][1], truth["stall"][0]
    return _cell("busy", "busy_low")(truth) * length_s / every_s


def _night(rng: np.random.Generator) -> dict[str, Any]:
    begin = float(rng.uniform(0.2, 0.5))
    return {"night": (begin, begin + float(rng.uniform(2.0, 6.0)))}


def _guest(rng: np.random.Generator) -> dict[str, Any]:
    night = _night(rng)["night"]
    begin_s, end_s = 3600 * night[0] + 900.0, 3600 * night[1] - 900.0
    return {"night": night, "foreign": [(0, begin_s, end_s, float(rng.uniform(0.4, 0.95)), 5000)]}


FAULTS: dict[str, Fault] = {
    "a night without trials": Fault(_night, ("idle-without-trial",), _cell("idle_no_trial")),
    "another job in such a night": Fault(_guest, ("foreign-load",), _cell("foreign")),
    "gaps of 1 to 3 min": Fault(
        lambda rng: {"k": 1, "gap": (60.0, float(rng.uniform(90, 180)))},
        ("trial-gaps", "idle-without-trial"),
        _cell("idle_no_trial"),
    ),
    "long start-ups": Fault(
        lambda rng: {"k": int(rng.integers(1, 3)), "startup": (90.0, float(rng.uniform(100, 200))), "steps": (4, 10)},
        ("startup-dominated",),
        _cell("startup_only"),
    ),
    "utilization of 8 to 23 %, one at once": Fault(
        lambda rng: {"k": 1, "u": (0.12, float(rng.uniform(0.13, 0.23)))}, ("gpu-low-utilization",), _unused
    ),
    "stalls of a third of each minute": Fault(
        lambda rng: {"stall": (60.0, float(rng.uniform(15, 25))), "period": float(rng.choice([1.0, 2.0]))},
        ("stalls-periodic", "stalls-aperiodic"),
        _stalled,
    ),
    "a fifth of the trials fail": Fault(lambda rng: {"fail_p": float(rng.uniform(0.15, 0.3))}, ("failure-rate-high",)),
    "killed workers": Fault(lambda rng: {"orphan_p": float(rng.uniform(0.05, 0.15))}, ("trials-abandoned",)),
    "memory full to the brim": Fault(
        lambda rng: {"k": 4, "mem_total": 12288, "memload": "early"}, ("memory-near-limit",)
    ),
    "one trial twenty times as long": Fault(
        lambda rng: {"outlier": (int(rng.integers(5, 20)), float(rng.uniform(15, 25)))}, ("trial-duration-outliers",)
    ),
    "trials that grow to 2.5 times": Fault(
        lambda rng: {"work_drift": 5.0, "n_trials": 60, "steps": (15, 18)}, ("trial-duration-drift",)
    ),
    "a third of the record is missing": Fault(
        lambda rng: {"gap_share": float(rng.uniform(0.3, 0.45))}, ("sampling-coverage", "sampling-gaps")
    ),
    "half an hour before and after": Fault(
        lambda rng: {"lead": 1800.0, "trail": 1800.0}, ("idle-before-work", "idle-after-work")
    ),
}


def healthy(rng: np.random.Generator) -> dict[str, Any]:
    """A search with nothing to find: short start-ups, a busy GPU, no failure."""
    low, begin_s, steps = float(rng.uniform(0.55, 0.8)), float(rng.uniform(4, 20)), int(rng.integers(20, 50))
    return {
        "k": int(rng.integers(1, 4)),
        "gpus": int(rng.choice([1, 1, 2])),
        "n_trials": int(rng.integers(30, 60)),
        "period": float(rng.choice([1.0, 2.0, 5.0, 10.0])),
        "startup": (begin_s, 1.3 * begin_s),
        "steps": (steps, 2 * steps),
        "step_s": (5, 12),
        "u": (low, min(0.95, low + 0.2)),
        "memload": str(rng.choice(["late", "early", "prealloc", "ramp"])),
        "declare": "gpu",
        "fail_p": 0.0,
    }


def faulty_result(number: int) -> dict[str, Any]:
    """One planted run: the fault of that number, drawn with that number."""
    name = list(FAULTS)[number % len(FAULTS)]
    fault, rng = FAULTS[name], np.random.default_rng([47, FIRST_SEED + number])
    config = healthy(rng) | {"gpus": 1} | fault.drawn(rng)
    made = planted_run(number, config)
    if made is None:
        return {}
    verdicts = [one for one in gd.diagnose(made[0]).findings if one.rule in fault.rules]
    said = max((one.lost_gpu_h for one in verdicts if one.lost_gpu_h is not None), default=np.nan)
    true = fault.cost_gpu_h(made[1] | config) if fault.cost_gpu_h else np.nan
    return {"fault": name, "found": bool(verdicts), "said": said, "true": true}


def healthy_result(number: int) -> dict[str, Any]:
    """One run without a fault: rules that found something above a note."""
    made = planted_run(50_000 + number, healthy(np.random.default_rng([53, FIRST_SEED + number])))
    if made is None:
        return {}
    loud = [one.rule for one in gd.diagnose(made[0]).findings if one.severity is not Severity.NOTE]
    return {"loud": ", ".join(loud)}


def section(faulty: pd.DataFrame, clean: pd.DataFrame) -> str:
    """A row for each fault, and what was said of runs without one."""
    lines = ["| planted | rules | found | cost said / true: median | least | most |", "|---|---|--:|--:|--:|--:|"]
    for name, part in faulty.groupby("fault", sort=False):
        ratio = (part["said"] / part["true"])[part["found"]].dropna()
        told = [f"{value:.2f}" for value in (ratio.median(), ratio.min(), ratio.max())] if len(ratio) else ["-"] * 3
        rules = ", ".join(f"`{rule}`" for rule in FAULTS[str(name)].rules)
        lines.append(f"| {name} | {rules} | {int(part['found'].sum())} of {len(part)} | {' | '.join(told)} |")
    loud = clean.loc[clean["loud"] != "", "loud"]
    named = f" ({'; '.join(sorted(set(loud)))})" if len(loud) else ""
    return (
        f"{len(clean)} runs of world_b without a fault: {len(loud)} had a finding above a note{named}. Faults are "
        "planted in runs drawn from the same range; a cost is compared where the finding states one.\n\n"
        + "\n".join(lines)
    )


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=6, help="runs of each fault")
    parser.add_argument("--healthy", type=int, default=100, help="runs without one")
    options = parser.parse_args()
    if not WORLD.is_file():
        return
    faulty_result(0)  # what a world prepares once, before several processes ask for it
    faulty = gather(faulty_result, range(options.runs * len(FAULTS)))
    body = section(faulty, gather(healthy_result, range(options.healthy)))
    print(body)
    write_section("Faults in a world that is not ours", body)


if __name__ == "__main__":
    main()
