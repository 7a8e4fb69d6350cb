"""How often a fleet without a change shows one, and which changes are found: fleets of four projects, drawn here.

    python benchmarks/fleet_changes.py [FLEETS]

Each project has two runs a week; utilization, GPU time per completed trial and failures are AR(1) from week to week.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

import numpy as np

from gpudiag.fleets.changes import changes_of
from gpudiag.fleets.weeks import week_of
from gpudiag.report.fleet.changes import ALIKE
from gpudiag.report.fleet.document import RunRow

WEEKS = [(datetime(2026, 1, 5, tzinfo=UTC) + timedelta(weeks=k)).isoformat() for k in range(52)]
PROJECTS, RUNS, TRIALS = 4, 2, 20


def course(rng: np.random.Generator, n: int, correlation: float) -> np.ndarray:
    """A stationary AR(1) series of variance 1."""
    out = rng.standard_normal(n)
    for at in range(1, n):
        out[at] = correlation * out[at - 1] + np.sqrt(1 - correlation**2) * out[at]
    return out


def fleet(rng: np.random.Generator, n: int, correlation: float, drop_pct: float = 0.0) -> list[RunRow]:
    """Runs of ``n`` weeks; utilization falls by ``drop_pct`` from the middle on."""
    rows = []
    for project in range(PROJECTS):
        util, cost, failed = (course(rng, n, correlation) for _ in range(3))
        for week in range(n):
            for run in range(RUNS):
                pct = 60 + 6 * util[week] + 3 * rng.standard_normal() - drop_pct * (week >= n // 2)
                n_failed = int(rng.binomial(TRIALS, np.clip(0.1 + 0.04 * failed[week], 0, 1)))
                gpu_s = float(np.exp(6 + 0.2 * cost[week] + 0.1 * rng.standard_normal())) * (TRIALS - n_failed)
                rows.append(
                    RunRow(
                        f"{project}/{week}/{run}", "", "diagnosed", project=f"p{project}", start=WEEKS[week],
                        driver="550",
                        gpu_s=gpu_s, unobserved_gpu_s=0.0, util_pct=float(np.clip(pct, 1, 99)),
                        n_trials=TRIALS, n_completed=TRIALS - n_failed, n_failed=n_failed,
                    )
                )  # fmt: skip
    return rows


def main(fleets: int) -> None:
    rng = np.random.default_rng(11)
    for correlation in (0.0, 0.3, 0.5, 0.8):
        made = [changes_of(fleet(rng, int(rng.integers(10, 53)), correlation), week_of) for _ in range(fleets)]
        held = [one.found for one in made]
        whole = sum(any(not one.project for one in found) for found in held)
        print(f"correlation {correlation}: any {sum(map(bool, held)) / fleets:.1%}, whole fleet {whole / fleets:.1%}")
        said = sum(one.correlation >= ALIKE for one in made if one.found)
        print(f"  of {sum(map(bool, held))} with a change, {said} say that weeks resemble each other")
    for n in (12, 20, 40):
        for drop_pct in (6.0, 12.0, 20.0):
            held = [changes_of(fleet(rng, n, 0.0, drop_pct), week_of).found for _ in range(max(fleets // 8, 1))]
            hit = sum(any(one.quantity == "util_pct" and not one.project for one in found) for found in held)
            print(f"{n} weeks, utilization falls by {drop_pct:.0f} points: found in {hit / len(held):.0%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
