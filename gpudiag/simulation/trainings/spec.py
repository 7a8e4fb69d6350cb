"""What a simulated training does in a step and between steps, as frozen values with units in their names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gpudiag.errors import ConfigError
from gpudiag.simulation.spec import Gpu, TelemetrySpec

LogStyle = Literal["mmengine", "timm", "plain", "none"]


@dataclass(frozen=True)
class LoaderSpec:
    """Workers that make batches ahead: each takes ``batch_s`` for one, and one in ``1 / hiccup_rate`` takes
    ``hiccup_times`` as long. ``waits_for``: what a worker does meanwhile, computing or waiting for storage.
    ``spawn_s``: until the first batch of an epoch is begun.
    """

    workers: int = 4
    prefetch: int = 2
    batch_s: float = 0.3
    batch_cv: float = 0.2
    hiccup_rate: float = 0.0
    hiccup_times: float = 20.0
    spawn_s: float = 0.0
    waits_for: Literal["cpu", "storage"] = "cpu"


@dataclass(frozen=True)
class StepSpec:
    """One step of one rank: a copy to the GPU that blocks, kernels launched in ``pieces``, communication with the other
    ranks, other code of the host. After each ``sync_every`` steps the host waits for the GPU (0: never); it is never
    more than two steps ahead.
    """

    gpu_s: float = 0.15
    gpu_cv: float = 0.03
    launch_s: float = 0.03
    pieces: int = 6
    copy_s: float = 0.0
    communication_s: float = 0.0
    host_s: float = 0.0
    sync_every: int = 1


@dataclass(frozen=True)
class Hang:
    """After ``step`` steps one rank waits for its next batch for ever. The others wait for it in their all-reduce,
    until after ``timeout_s`` the watchdog has every rank dump its flight recorder, of ``buffer`` entries, and ends all.
    """

    step: int
    rank: int = 0
    timeout_s: float = 600.0
    buffer: int = 20


@dataclass(frozen=True)
class Between:
    """What lies between steps. Evaluation keeps the GPU busy for ``evaluate_share`` of its time; a checkpoint does not.

    ``crashes``: numbers of steps at which the training dies, is down for ``down_s`` and goes on from its last
    checkpoint.
    """

    startup_s: float = 30.0
    first_step_s: float = 0.0
    evaluate_s: float = 0.0
    evaluate_share: float = 0.6
    checkpoint_every: int = 0
    checkpoint_s: float = 0.0
    crashes: tuple[int, ...] = ()
    down_s: float = 120.0
    trail_s: float = 20.0
    hang: Hang | None = None


@dataclass(frozen=True)
class ProfilerSpec:
    """Steps that torch.profiler recorded, counted from 0, and how many times as long launching takes under it."""

    first: int = 100
    n_steps: int = 8
    slows: float = 1.0


@dataclass(frozen=True)
class TrainingSpec:
    """One training, on one GPU or in lock-step on several: ``pace`` is the time of each rank's kernels, 1 as stated.

    ``host_metrics``: whether the recorder looked at the host too. ``hot_neighbor``: another program keeps a core busy.
    """

    name: str = "training"
    start: str = "2026-02-03T09:00:00"
    timezone: str = "Europe/Berlin"
    epochs: int = 3
    steps_per_epoch: int = 600
    pace: tuple[float, ...] = (1.0,)
    step: StepSpec = field(default_factory=StepSpec)
    loader: LoaderSpec = field(default_factory=LoaderSpec)
    between: Between = field(default_factory=Between)
    log: LogStyle = "mmengine"
    log_every: int = 50
    profiler: ProfilerSpec | None = None
    host_metrics: bool = True
    hot_neighbor: bool = False
    cores: int = 16
    gpu: Gpu = field(default_factory=Gpu)
    mem_mib: float = 12_000.0
    telemetry: TelemetrySpec = field(default_factory=lambda: TelemetrySpec(period_s=1.0, util_noise_pct=1.0))


def check(spec: TrainingSpec) -> TrainingSpec:
    """``spec`` if it can be simulated. Raises ConfigError that names what cannot."""
    loader, hang = spec.loader, spec.between.hang
    conditions = {
        "epochs, steps_per_epoch, pieces, log_every and workers must be at least 1": min(
            spec.epochs,
            spec.steps_per_epoch,
            spec.step.pieces,
            spec.log_every,
            loader.workers,
            loader.prefetch,
        )
        >= 1,
        "pace must hold a positive number for each rank": bool(spec.pace) and min(spec.pace) > 0,
        "gpu_s must be above 0": spec.step.gpu_s > 0,
        "a training hangs on one of several ranks": not hang
        or (len(spec.pace) > 1 and 0 <= hang.rank < len(spec.pace) and hang.step > 0),
        "a training that crashes needs checkpoints": not spec.between.crashes or spec.between.checkpoint_every > 0,
    }
    for condition, holds in conditions.items():
        if not holds:
            raise ConfigError(f"a training cannot be simulated: {condition}.")
    return spec
