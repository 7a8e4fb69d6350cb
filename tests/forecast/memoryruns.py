"""Runs for tests of the memory forecasts: trials whose peaks differ by more than their parameters tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpudiag.simulation import Gpu, ModelSpec, Simulated, simulate

USABLE = 0.98


def mixed_run(seed: int, workers: int, **changes: Any) -> Simulated:
    """120 trials of three models; within a model peaks scatter by 5 %, which no parameter shows."""
    rng = np.random.default_rng(seed)
    models = tuple(
        ModelSpec(name, weight / 5, work, fixed * factor, per_sample * factor)
        for name, weight, work, fixed, per_sample in (
            ("small", 2, 0.8, 1200, 6), ("base", 3, 1.0, 2000, 10), ("large", 1, 1.25, 3000, 20),
        )
        for factor in 1 + 0.05 * rng.standard_normal(5)
    )  # fmt: skip
    options: dict[str, Any] = {
        "n_trials": 120, "models": models, "epochs": 8, "epoch_s": (15.0, 35.0), "startup_s": (20.0, 45.0),
        "gpus": (Gpu(mem_total_mib=81559),), "oom": False,
    }  # fmt: skip
    return simulate(seed=seed, workers=workers, **(options | changes))
