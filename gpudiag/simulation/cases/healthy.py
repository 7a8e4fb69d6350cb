"""healthy: the control. A well-fed GPU shared by two workers, and nothing to find."""

from __future__ import annotations

from gpudiag.manifest import DataLoader, Settings
from gpudiag.simulation.cases.case import Case, later
from gpudiag.simulation.simulator import simulate
from gpudiag.simulation.spec import Curve, Gpu, ModelSpec, Spec, TelemetrySpec, Trial

NAME = "healthy"
SEED = 6

STORY = """
The control: two workers share one 24 GB GPU, which they keep busy 93-99 % of the time; trials take about as long as
each other, all of them complete, none is pruned, nothing fails, and memory is about two thirds full. A report on it
should find nothing above information, and should say "not assessed" wherever the run holds no data to judge by (it
has no host metrics, no logs and no steps).

All of it comes from the event loop: trials, GPU, telemetry and study are simulated, nothing is scripted.
"""

SPEC = Spec(
    name=NAME,
    study=NAME,
    start="2025-11-03T09:00:00",
    n_trials=24,
    workers=2,
    stagger_s=3.0,
    declares=(),
    gpus=(Gpu(sharing="saturating", ceiling_pct=97.0, overhead_pct=1.0, full_w=410.0),),
    trial=Trial(
        startup_s=(8.0, 11.0),
        epochs=12,
        epoch_s=(44.0, 47.0),
        dip_s=(0.4, 0.8),
        tail_s=(1.0, 2.0),
        gap_s=(0.3, 0.8),
        gpu_share_pct=(62.0, 66.0),
        models=(ModelSpec("base", 1, 1.0, 5200.0, 16.0),),
        batch_sizes=(96, 128),
    ),
    curve=Curve(direction="maximize", crossing=0.5),
    telemetry=TelemetrySpec(util_noise_pct=2.5, power_noise_w=4.0),
    settings=Settings(parallel=2, cpu_cores=16, sampler="RandomSampler"),
    dataloader=DataLoader(
        num_workers=6, prefetch_factor=4, persistent_workers=True, pin_memory=True, batch_size=None, val_batch_size=None
    ),
)


def make(seed: int | None = None) -> Case:
    """Simulate the case; with another seed it begins that many days later."""
    drawn = SEED if seed is None else seed
    return Case(NAME, drawn, STORY, {"": simulate(later(SPEC, seed), seed=drawn)}, seeded=seed is not None)
