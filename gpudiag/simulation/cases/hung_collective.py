"""hung-collective: one training on four GPUs that ends in an all-reduce to which one rank does not come."""

from __future__ import annotations

from gpudiag.simulation.cases.case import Case, later
from gpudiag.simulation.spec import Gpu, TelemetrySpec
from gpudiag.simulation.trainings.spec import Between, Hang, LoaderSpec, StepSpec, TrainingSpec
from gpudiag.simulation.trainings.training import simulate_training

NAME = "hung-collective"
SEED = 13

STORY = """
One training in lock-step on four GPUs. After 500 steps rank 2 waits for its next batch and never gets it. The other
three wait for it in the all-reduce of step 501: their GPUs are busy at 100 %, with a kernel that only waits. After ten
minutes the watchdog of PyTorch gives up, every rank dumps its flight recorder of the last 20 collectives, and the
training ends.

All of it comes from the simulation of steps: host, kernels, log and dumps tell of the same events.
"""

SPEC = TrainingSpec(
    name=NAME,
    start="2026-02-03T09:00:00",
    epochs=4,
    steps_per_epoch=400,
    pace=(1.0, 1.0, 1.0, 1.0),
    step=StepSpec(gpu_s=0.25, launch_s=0.02, communication_s=0.015, host_s=0.008),
    loader=LoaderSpec(workers=4, batch_s=0.5),
    between=Between(startup_s=40.0, first_step_s=15.0, hang=Hang(step=500, rank=2)),
    gpu=Gpu(name="NVIDIA A100-SXM4-40GB", mem_total_mib=40960, power_limit_w=400.0, full_w=370.0),
    mem_mib=30_000.0,
    telemetry=TelemetrySpec(period_s=5.0, util_noise_pct=1.0),
)


def make(seed: int | None = None) -> Case:
    """Simulate the case; with another seed it begins that many days later."""
    drawn = SEED if seed is None else seed
    return Case(NAME, drawn, STORY, {"": simulate_training(later(SPEC, seed), seed=drawn)}, seeded=seed is not None)
