"""Two real trainings on one H200 against what they wrote down themselves (data/samples/real-h200)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import gpudiag as gd
from gpudiag.measures.loader import measure_loader


def steps_of(samples: Path, name: str) -> np.ndarray:
    """Wait, time of the GPU and whole time, in seconds, a row a step."""
    return np.array(json.loads((samples / "real-h200" / name / "truth.json").read_text())["steps"])


def test_the_recorded_wait_is_the_true_one_but_for_the_start_of_workers(samples: Path) -> None:
    truth = steps_of(samples, "eight-loaders")
    loader = measure_loader(gd.load_run(samples / "real-h200" / "eight-loaders"))
    started_s = 2 * 0.15  # of the workers, an epoch: this recording does not hold it
    low_ms, high_ms = 1000 * (truth[:, 0].sum() - started_s) / len(truth), 1000 * truth[:, 0].mean()
    assert low_ms <= loader.avg_ms <= high_ms
    assert loader.of_step_pct == pytest.approx(100 * truth[:, 0].sum() / truth[:, 2].sum(), abs=3)


@pytest.mark.slow
def test_steps_that_do_not_wait_are_not_said_to(samples: Path) -> None:
    diagnosis = gd.diagnose(samples / "real-h200" / "batch-of-eight")
    assert "loader-slow" not in {one.rule for one in diagnosis.findings}
    changed = {change.what for one in diagnosis.recommendations for change in one.changes}
    assert not changed & {"num_workers", "prefetch_factor", "persistent_workers"}


@pytest.mark.slow
def test_no_bound_of_a_larger_batch_is_below_what_it_really_brought(samples: Path) -> None:
    """Batches of 32 in place of 8: by the GPU's own time for a step."""
    small, large = (np.median(steps_of(samples, name)[:, 1]) for name in ("batch-of-eight", "eight-loaders"))
    brought = (32 / large) / (8 / small)
    assert brought == pytest.approx(3.07, abs=0.01)
    advised = gd.diagnose(samples / "real-h200" / "batch-of-eight").recommendations
    bounds = [one.gain.high for one in advised if one.id == "batch-size" and one.gain is not None]
    assert all(bound >= brought for bound in bounds)
