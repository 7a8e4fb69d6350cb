"""Runs of a generator that shares nothing with gpudiag (world_b), drawn over its range, with their truth.

It lies outside the repository: ``GPUDIAG_WORLDS`` names its folder (default ../shared/worlds).
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import gpudiag as gd
from gpudiag.run import Run

ROOT = Path(__file__).resolve().parent.parent
WORLD = Path(os.environ.get("GPUDIAG_WORLDS", ROOT.parent / "shared" / "worlds")) / "world_b.py"
FIRST_SEED = 7_000_000
"""No run that a method was developed on has a seed from here on."""


def drawn_run(seed: int) -> tuple[Run, dict[str, Any], int] | None:
    """A run, its truth and how many trials it ran at once; None where the generator is not there."""
    if not WORLD.is_file():
        return None
    spec = importlib.util.spec_from_file_location("world_b", WORLD)
    assert spec is not None and spec.loader is not None
    world = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(world)
    rng = np.random.default_rng([11, seed])
    begin_s, steps = float(rng.uniform(10, 200)), int(rng.integers(4, 20))
    low, k = float(rng.uniform(0.25, 0.6)), int(rng.integers(1, 5))
    with tempfile.TemporaryDirectory() as folder:
        truth = world.run(
            folder,
            seed=FIRST_SEED + seed,
            k=k,
            n_trials=int(rng.integers(40, 90)),
            hours=999,
            period=float(rng.choice([1.0, 2.0, 5.0])),
            startup=(begin_s, begin_s * float(rng.uniform(1.1, 1.6))),
            steps=(steps, 2 * steps),
            step_s=(5, 12),
            u=(low, low + 0.3),
            memload=str(rng.choice(["late", "early", "prealloc", "ramp"])),
            declare="gpu",
        )
        return gd.load_run(folder), truth, k
