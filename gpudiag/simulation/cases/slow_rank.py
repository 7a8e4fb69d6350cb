"""slow-rank: one training on four GPUs, of which one is slower, with a log and profiled steps."""

from __future__ import annotations

from gpudiag.simulation.cases.case import Case, later
from gpudiag.simulation.spec import Gpu, TelemetrySpec
from gpudiag.simulation.trainings.spec import Between, LoaderSpec, ProfilerSpec, StepSpec, TrainingSpec
from gpudiag.simulation.trainings.training import simulate_training

NAME = "slow-rank"
SEED = 11

STORY = """
One training in lock-step on four GPUs. The kernels of rank 2 take 1.25 times as long as those of the others, which wait
for it in the all-reduce of every step: their GPUs are busy, and utilization shows nothing of it. Steps end for an
evaluation after each epoch and for a checkpoint every 200 steps; at step 900 the training dies, is down for 90 s and
repeats what came after its last checkpoint. torch.profiler recorded eight steps of each rank.

All of it comes from the simulation of steps: host, kernels, log and traces tell of the same events.
"""

SPEC = TrainingSpec(
    name=NAME,
    start="2026-02-03T09:00:00",
    epochs=4,
    steps_per_epoch=400,
    pace=(1.0, 1.0, 1.25, 1.0),
    step=StepSpec(gpu_s=0.25, launch_s=0.02, communication_s=0.015, host_s=0.008),
    loader=LoaderSpec(workers=4, batch_s=0.5),
    between=Between(
        startup_s=40.0,
        first_step_s=15.0,
        evaluate_s=25.0,
        checkpoint_every=200,
        checkpoint_s=8.0,
        crashes=(900,),
        down_s=90.0,
    ),
    profiler=ProfilerSpec(first=100, n_steps=8),
    gpu=Gpu(name="NVIDIA A100-SXM4-40GB", mem_total_mib=40960, power_limit_w=400.0, full_w=370.0),
    mem_mib=30_000.0,
    telemetry=TelemetrySpec(period_s=2.0, util_noise_pct=1.0),
)


def make(seed: int | None = None) -> Case:
    """Simulate the case; with another seed it begins that many days later."""
    drawn = SEED if seed is None else seed
    return Case(NAME, drawn, STORY, {"": simulate_training(later(SPEC, seed), seed=drawn)}, seeded=seed is not None)
