"""starved-input-pipeline: one training before and after its input side was changed, in figures that contradict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gpudiag.manifest import DataLoader, Settings
from gpudiag.simulation.cases.case import Case
from gpudiag.simulation.files import log_timestamp
from gpudiag.simulation.life import Life
from gpudiag.simulation.script import live, replay
from gpudiag.simulation.simulator import Simulated, observe
from gpudiag.simulation.spec import Gpu, Spec, TelemetrySpec, Trial

NAME = "starved-input-pipeline"
SEED = 2
VALIDATION_S = 9.0
RAM_TOTAL_GB = 64.0

STORY = """
One long training on a GPU with 24 GB. `before/`: batch 5632, 4 loader workers, prefetch 8; 30 batches/s, an epoch
takes 11.5 min, the GPU is 11 % busy and 8 GB of its memory are used: it waits for input. `after/`: batch 8192, 8
workers, prefetch 16; 50 batches/s, 7.5 min an epoch, 77 % busy, 17 GB used.

`after/` holds what an investigation stated, where that can be measured, and the figures cannot all be true. If the
work of an epoch had stayed the same, 35 % less time would make the GPU 17 % busy, not 77 %: the GPU does 4.6 times
the busy seconds an epoch. 45 % larger batches at 67 % more batches per second are 2.42 times the samples per second,
which would take more than 35 % off an epoch. A comparison of the two should say so, and should not call it a gain.

The driver is made to report `NVIDIA GeForce RTX 5090`, as the situation named it, with 24 GB and a limit of 175 W:
only the laptop part of that name has 24 GB.

Epochs are scripted, one task each; GPU and telemetry follow from the model that all simulated runs use. train.log is
what the training printed: loader timing every epoch, a monitor line every tenth of an epoch, and a warning below 30 %
utilization.
"""


@dataclass(frozen=True)
class _Side:
    """What differs between the two runs; ``loader_ms`` is the mean wait for a batch."""

    name: str
    start: str
    epochs: int
    epoch_s: float
    share_pct: float
    peak_mib: float
    batches_per_s: float
    loader_ms: float
    cpu_pct: float
    ram_gb: float
    loader: DataLoader


BEFORE = _Side(
    name="before",
    start="2025-11-05T10:12:30",
    epochs=7,
    epoch_s=690.0,
    share_pct=11.4,
    peak_mib=7750.0,
    batches_per_s=30.0,
    loader_ms=25.3,
    cpu_pct=45.2,
    ram_gb=18.4,
    loader=DataLoader(num_workers=4, prefetch_factor=8, batch_size=5632, val_batch_size=2048),
)
AFTER = _Side(
    name="after",
    start="2025-11-06T09:40:00",
    epochs=9,
    epoch_s=450.0,
    share_pct=78.6,
    peak_mib=17000.0,
    batches_per_s=50.0,
    loader_ms=3.4,
    cpu_pct=71.8,
    ram_gb=27.9,
    loader=DataLoader(num_workers=8, prefetch_factor=16, batch_size=8192, val_batch_size=4096),
)

SPEC = Spec(
    record="tasks",
    workers=1,
    declares=(),
    timezone="Asia/Taipei",
    study="training",
    gpus=(
        Gpu(
            name="NVIDIA GeForce RTX 5090",
            mem_total_mib=24463,
            base_mib=330,
            power_limit_w=175.0,
            idle_w=14.0,
            context_w=16.0,
            full_w=170.0,
            ambient_c=36.0,
            c_per_w=0.24,
            max_clock_mhz=2520,
        ),
    ),
    trial=Trial(context_mib=520.0),
    telemetry=TelemetrySpec(util_noise_pct=1.0),
    settings=Settings(parallel=1, cpu_cores=24, ram_gib=64),
)


def make() -> Case:
    """Script both trainings."""
    runs = {side.name: _train(side) for side in (BEFORE, AFTER)}
    logs = {side.name: list(_log(side, runs[side.name])) for side in (BEFORE, AFTER)}
    return Case(NAME, SEED, STORY, runs, logs, made_by="make samples")


def _train(side: _Side) -> Simulated:
    """Epochs back to back; one process holds the memory from the first to the last."""
    rng = np.random.default_rng([SEED, 7, side.epochs])
    spec = replace(SPEC, name=f"{NAME} {side.name}", start=side.start, dataloader=side.loader, n_trials=side.epochs)
    lives, at = [], 0.0
    for epoch in range(side.epochs):
        end = at + side.epoch_s * float(rng.uniform(0.985, 1.015))
        life = Life(
            epoch, 0, 0, at, share=side.share_pct / 100.0, name=f"epoch {epoch + 1}", state="COMPLETE", end_s=end
        )
        life.params = side.loader.model_dump(exclude_none=True)
        live(
            life, spec.trial, until_s=end, startup_s=14.0 if epoch == 0 else 0.0, epochs=1, dip_s=VALIDATION_S,
            tail_s=0.0, values=[], peak_mib=side.peak_mib,
        )  # fmt: skip
        life.memory = life.memory[:-1] if epoch == 0 else []
        lives.append(life)
        at = end
    lives[0].memory.append((at, 0.0))
    return observe(spec, replay(spec, lives), SEED)


def _log(side: _Side, simulated: Simulated) -> Iterator[str]:
    """Lines of the training's own log."""
    rng = np.random.default_rng([SEED, 8, side.epochs])
    spec, samples = simulated.spec, simulated.samples
    total_gb = spec.gpus[0].mem_total_mib / 1024.0
    times = samples["true_s"].to_numpy()
    for life in simulated.history.lives:
        for tenth in range(1, 11):
            at = life.start_s + (life.end_s - VALIDATION_S - life.start_s) * tenth / 10.0
            row = samples.iloc[int(np.searchsorted(times, at)) - 1]
            vram_gb, ram_gb = row["mem_used_mib"] / 1024.0, side.ram_gb + float(rng.normal(0, 0.2))
            cpu_pct = side.cpu_pct + float(rng.normal(0, 1.5))
            yield (
                f"{log_timestamp(spec, at)} INFO GPU: {row['util_pct']:.0f}% | VRAM:{vram_gb:.1f}/{total_gb:.1f}GB"
                f"({100 * vram_gb / total_gb:.1f}%) | CPU: {cpu_pct:.1f}% | "
                f"RAM:{ram_gb:.1f}/{RAM_TOTAL_GB:.1f}GB({100 * ram_gb / RAM_TOTAL_GB:.1f}%)"
            )
        yield from _summary(side, simulated, life, rng)


def _summary(side: _Side, simulated: Simulated, life: Life, rng: np.random.Generator) -> Iterator[str]:
    """The lines at the end of an epoch; the first epoch's loader timing is the one of the situation."""
    spec, samples = simulated.spec, simulated.samples
    timestamp = log_timestamp(spec, life.end_s)
    exact = life.number == 0
    average_ms = side.loader_ms + (0.0 if exact else float(rng.normal(0, 0.3)))
    longest_ms = average_ms * (78.1 / 25.3) * (1.0 if exact else float(rng.uniform(0.9, 1.15)))
    yield f"{timestamp} INFO [TRAIN PROFILE] DataLoader avg: {average_ms:.1f}ms, max: {longest_ms:.1f}ms"
    own = samples[(samples["true_s"] >= life.start_s) & (samples["true_s"] < life.end_s)]
    mean_pct, minutes = own["util_pct"].mean(), (life.end_s - life.start_s) / 60.0
    rate = side.batches_per_s + (0.0 if exact else float(rng.normal(0, 0.25)))
    yield (
        f"{timestamp} INFO [EPOCH {life.number + 1}] time: {minutes:.1f}min | {rate:.1f} batch/s | "
        f"GPU avg: {mean_pct:.1f}% max: {own['util_pct'].max():.0f}%"
    )
    if mean_pct < 30.0:
        loader = side.loader
        yield (
            f"{timestamp} WARNING GPU utilization {mean_pct:.1f}% is below 30%: check batch_size={loader.batch_size}, "
            f"num_workers={loader.num_workers}, prefetch_factor={loader.prefetch_factor}, "
            f"DataLoader avg {average_ms:.1f}ms"
        )
