"""What a small training truly does, and what gpudiag says of the folder that its callback wrote."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gpudiag import load_run
from gpudiag.measures.loader import measure_loader
from gpudiag.measures.steps import StepsProfile, measure_steps

N_STEPS, WAIT_S, WORK_S, EVALUATION_S = 24, 0.04, 0.06, 2.5
TOLERANCE_POINTS = 8.0
"""Beside what it sleeps, a step of a framework takes some milliseconds of its own, on a shared machine more."""


class Slow:
    """A data set of so many batches of one item, each of which takes WAIT_S; ``waits`` says what it really took."""

    def __init__(self, n: int = N_STEPS) -> None:
        self.n = n
        self.waits_s: list[float] = []

    def __len__(self) -> int:
        return self.n

    def wait(self) -> None:
        began = time.perf_counter()
        time.sleep(WAIT_S)
        self.waits_s.append(time.perf_counter() - began)


def judged(folder: Path, data: Slow, *, n_epochs: int, n_evaluations: int) -> StepsProfile:
    """Compare what gpudiag reads from the folder with what the training did; returns the profile of its steps."""
    run = load_run(folder)
    steps, loader = measure_steps(run), measure_loader(run)
    assert list(run.steps["step"].diff().dropna().unique()) == [1] and run.steps["step"].iloc[-1] == n_epochs * data.n
    assert set(run.steps["epoch"]) == set(range(n_epochs))
    true_wait_ms = 1000 * sum(data.waits_s) / len(data.waits_s)
    assert loader.avg_ms == pytest.approx(true_wait_ms, rel=0.3)
    assert loader.of_step_pct == pytest.approx(100 * WAIT_S / (WAIT_S + WORK_S), abs=TOLERANCE_POINTS)
    assert steps.evaluations_s == pytest.approx(n_evaluations * EVALUATION_S, rel=0.25)
    assert len(run.host) > 3, "the recorder ran beside it"
    return steps
