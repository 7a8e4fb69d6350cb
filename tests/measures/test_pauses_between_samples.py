"""Pauses in a log that are shorter than samples are apart: those that samples meet stand for those that they miss."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudiag.load import load_run
from gpudiag.measures.steps import measure_steps
from gpudiag.simulation.spec import TelemetrySpec
from gpudiag.simulation.trainings.spec import Between, TrainingSpec
from gpudiag.simulation.trainings.training import simulate_training


@pytest.mark.parametrize("period_s", [1.0, 10.0, 30.0])
@pytest.mark.slow
def test_short_pauses_cost_what_they_do_however_far_samples_are_apart(tmp_path: Path, period_s: float) -> None:
    between = Between(evaluate_s=40.0, checkpoint_every=150, checkpoint_s=20.0)
    telemetry = TelemetrySpec(period_s=period_s, util_noise_pct=1.0)
    spec = TrainingSpec(
        epochs=5, steps_per_epoch=800, between=between, telemetry=telemetry, log="mmengine", host_metrics=False
    )
    made = simulate_training(spec, seed=11)
    run = load_run(made.write(tmp_path))
    true_s = sum(made.idle_s()[cause] for cause in ("evaluation", "checkpoint"))
    assert measure_steps(run).idle_paused_gpu_h * 3600 == pytest.approx(true_s, rel=0.15)
