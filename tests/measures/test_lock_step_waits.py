"""Ranks that do their steps together wait for the one whose data come last: JSON Lines of each, written here."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import gpudiag as gd
from gpudiag.measures.loader import measure_loader
from gpudiag.measures.steps import measure_steps
from gpudiag.rules.loader import loader_slow
from tests.rules.small_profiles import verdict

STEP_S, N = 1.5, 60


def logged(folder: Path, waits_s: np.ndarray, *, named: bool = True) -> gd.Run:
    """A file a rank, of which each step takes the same time on all; ``waits_s`` by rank and step."""
    for rank, own in enumerate(waits_s):
        name = {"rank": rank} if named else {}
        lines = [
            {
                "timestamp": 1772359200.0 + STEP_S * step,
                **name,
                "step": step,
                "loss": 2.3,
                "step_time": STEP_S,
                "data_time": wait_s,
            }
            for step, wait_s in enumerate(own.tolist(), 1)
        ]
        path = folder / (f"rank{rank}.jsonl" if named else f"{'abc'[rank]}.jsonl")
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return gd.load_run(folder)


@pytest.mark.slow
@pytest.mark.parametrize("slow", [0, 3])
def test_one_slow_rank_is_what_all_wait_for_and_is_named(tmp_path: Path, slow: int) -> None:
    waits = np.full((4, N), 0.01)
    waits[slow] = 0.9
    run = logged(tmp_path, waits)
    loader, steps = measure_loader(run), measure_steps(run)
    assert (loader.avg_ms, loader.of_step_pct, loader.slow_rank) == (pytest.approx(900), pytest.approx(60), slow)
    assert loader.n_lines == 4 * N and loader.worst_ms == pytest.approx(900)
    assert steps.loader_pct == pytest.approx(60)
    said = verdict(loader_slow, loader).summary
    assert said.startswith(f"Each step waits 900 ms for the data loader of rank {slow}, 60 % of its 1.5 s; the worst")


@pytest.mark.slow
def test_now_one_now_another_is_late(tmp_path: Path) -> None:
    waits = np.random.default_rng(0).choice([0.0, 0.6], size=(8, N), p=[0.9, 0.1]).round(3)
    loader = measure_loader(logged(tmp_path, waits))
    assert loader.avg_ms == pytest.approx(1000 * waits.max(axis=0).mean())
    assert loader.avg_ms > 3 * 1000 * waits.mean() and math.isnan(loader.slow_rank)


def test_logs_that_name_no_rank_are_trainings_of_their_own(tmp_path: Path) -> None:
    waits = np.array([[0.01] * N, [0.9] * N])
    loader = measure_loader(logged(tmp_path, waits, named=False))
    assert loader.avg_ms == pytest.approx(1000 * waits.mean()) and math.isnan(loader.slow_rank)
