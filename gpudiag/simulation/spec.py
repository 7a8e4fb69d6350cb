"""What is to be simulated: workers, trials, GPUs, telemetry and faults, as frozen values with units in their names."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gpudiag.errors import ConfigError, nearest
from gpudiag.manifest import DataLoader, Settings

Range = tuple[float, float]
"""Lowest and highest value of a uniform draw; equal ends make a constant."""


@dataclass(frozen=True)
class ModelSpec:
    """One choice of the parameter ``model``: how much work and memory it needs.

    A trial's peak memory = context + ``fixed_mib`` + ``per_sample_mib`` x batch size; ``work`` scales
    the duration of its epochs.
    """

    name: str = "base"
    weight: float = 1.0
    work: float = 1.0
    fixed_mib: float = 1500.0
    per_sample_mib: float = 8.0


@dataclass(frozen=True)
class Trial:
    """The life of one trial: start-up on the CPU, epochs on the GPU with CPU dips between, tail on the CPU.

    ``epoch_s`` is the duration of an epoch's GPU phases when the trial is alone on its GPU, which it
    then keeps busy for ``gpu_share_pct`` of the time; each epoch has ``segments`` GPU phases, each
    followed by a dip of ``dip_s``. The CUDA context appears at ``context_at`` of the start-up. From ``memory_at`` of it
    (1: when training begins) memory grows over ``ramp_s`` to ``plateau`` of its peak and reaches the peak when the
    first epoch after that ends; or ``reserved_mib`` is taken there at once, as by frameworks that allocate in advance.
    """

    startup_s: Range = (25.0, 40.0)
    epochs: int | tuple[int, int] = 10  # or the fewest and the most, drawn for each trial
    epoch_s: Range = (12.0, 24.0)
    pace_sd: float = 0.0  # of the logarithm of a factor on all epochs of a trial, which goes from trial to trial as ...
    pace_correlation: float = 0.0  # ... an AR(1) process
    segments: int = 1
    dip_s: Range = (1.0, 2.0)
    tail_s: Range = (2.0, 4.0)
    gap_s: Range = (0.2, 1.0)
    gpu_share_pct: Range = (45.0, 45.0)
    models: tuple[ModelSpec, ...] = (
        ModelSpec("small", 1, 0.7, 900),
        ModelSpec("base", 2, 1.0, 1500),
        ModelSpec("large", 1, 1.5, 2600),
    )
    batch_sizes: tuple[int, ...] = (32, 64, 128)
    context_mib: float = 420.0
    context_at: float = 0.6
    memory_at: float = 1.0
    reserved_mib: float = 0.0
    ramp_s: float = 8.0
    plateau: float = 0.965
    keeps_memory: bool = False  # one caching process per worker: memory never shrinks between trials

    @property
    def epochs_range(self) -> tuple[int, int]:
        """The fewest and the most epochs of a trial."""
        return (self.epochs, self.epochs) if isinstance(self.epochs, int) else self.epochs


@dataclass(frozen=True)
class Curve:
    """Learning curves: value at epoch e (from 1) = floor + height x e^-rate + noise; 1 - that where maximised.

    ``crossing`` is the share of a poor start that a good end goes with: at 0 curves are parallel but for
    the noise, at 1 the order of the first epoch is the reverse of the last.
    """

    direction: Literal["minimize", "maximize"] = "minimize"
    floor: Range = (0.10, 0.40)
    height: float = 0.6
    rate: Range = (0.5, 0.9)
    noise: float = 0.01
    crossing: float = 0.0


@dataclass(frozen=True)
class Gpu:
    """One board. ``sharing`` is the law of U(k), the busy share with k training trials of share u each.

    ``saturating``: min(ceiling, k u); ``overlapping``: 1 - (1 - u)^k. Each trial then runs at
    s(k) = U(k) / (k U(1)) of its solo speed (METHODS 10), less ``overhead_pct`` for every trial beside it.
    """

    name: str = "NVIDIA GeForce RTX 4090"
    uuid: str = ""
    mem_total_mib: int = 24564
    base_mib: int = 350
    sharing: Literal["saturating", "overlapping"] = "overlapping"
    ceiling_pct: float = 100.0
    overhead_pct: float = 0.0
    power_limit_w: float = 450.0
    idle_w: float = 22.0
    context_w: float = 33.0
    full_w: float = 395.0
    ambient_c: float = 32.0
    c_per_w: float = 0.088
    lag_s: float = 40.0
    idle_clock_mhz: int = 210
    max_clock_mhz: int = 2745
    mem_util_ratio: float = 0.5


@dataclass(frozen=True)
class Foreign:
    """A load on one GPU that is no trial: times in seconds since the run's start."""

    gpu: int = 0
    start_s: float = 0.0
    end_s: float = 600.0
    share_pct: float = 60.0
    mem_mib: float = 1000.0


@dataclass(frozen=True)
class TelemetrySpec:
    """The sampler: one row per GPU and tick.

    ``window_s`` is the driver's averaging window of utilization; ``slow_down`` stretches the period by
    that share while any GPU is over half busy; ``outages_s`` are (start, end) without samples;
    ``spikes`` are (tick, GPU, watts) of single faulty power readings; ``offset_s`` is what the
    telemetry clock is ahead of the trials' clock (trials + offset = telemetry).
    """

    period_s: float = 5.0
    jitter_s: float = 0.02
    window_s: float = 1.0
    lead_s: float = 30.0
    lag_s: float = 30.0
    slow_down: float = 0.0
    outages_s: tuple[Range, ...] = ()
    spikes: tuple[tuple[int, int, float], ...] = ()
    offset_s: float = 0.0
    util_noise_pct: float = 3.0
    power_noise_w: float = 2.0


@dataclass(frozen=True)
class Faults:
    """What goes wrong. Rates are probabilities per trial.

    A trial whose growth overflows the GPU's memory FAILs (``oom``). A device-side assert FAILs its trial
    and the next ``poisoned`` trials of the same worker, after which the worker restarts in ``restart_s``.
    An abandoned trial's worker is killed: the trial stays RUNNING for ever and the worker restarts.
    ``oom_kills``: an overflow ends the worker's process too, which then restarts.
    """

    fail_rate: float = 0.0
    assert_rate: float = 0.0
    abandoned_rate: float = 0.0
    poisoned: int = 0
    oom: bool = True
    oom_kills: bool = False
    restart_s: Range = (20.0, 60.0)


@dataclass(frozen=True)
class Spec:
    """One simulated run.

    ``workers`` is a number, or steps ``((from_s, number), ...)`` of it. ``assign`` says which GPU a trial
    uses: the worker's (``by_worker``), by its number (``by_trial``), ``random``, or one fixed index.
    ``declares`` is what the trial record says of where a trial ran. ``record`` is what the run leaves behind
    about its trials. ``clock``: Optuna 4 stores naive local time, Optuna 5 naive UTC.
    """

    name: str = "simulated"
    study: str = "simulated"
    start: str = "2025-10-24T17:00:00"
    timezone: str = "Asia/Taipei"
    n_trials: int = 40
    waiting: int = 0
    workers: int | tuple[tuple[float, int], ...] = 4
    assign: Literal["by_worker", "by_trial", "random"] | int = "by_worker"
    declares: tuple[Literal["worker", "gpu"], ...] = ("worker", "gpu")
    stagger_s: float = 0.5
    record: Literal["optuna", "tasks", "none"] = "optuna"
    clock: Literal["optuna4", "optuna5"] = "optuna4"
    pruner: str | None = None
    gpus: tuple[Gpu, ...] = (Gpu(),)
    foreign: tuple[Foreign, ...] = ()
    trial: Trial = field(default_factory=Trial)
    curve: Curve = field(default_factory=Curve)
    telemetry: TelemetrySpec = field(default_factory=TelemetrySpec)
    faults: Faults = field(default_factory=Faults)
    settings: Settings = field(default_factory=Settings)
    dataloader: DataLoader = field(default_factory=DataLoader)
    stated: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def worker_steps(self) -> tuple[tuple[float, int], ...]:
        """``workers`` as steps (from_s, number)."""
        return ((0.0, self.workers),) if isinstance(self.workers, int) else self.workers


def check(spec: Spec) -> Spec:
    """``spec`` if it can be simulated. Raises ConfigError that names the first field that cannot."""
    gpus = range(len(spec.gpus))
    named = [load.gpu for load in spec.foreign] + ([spec.assign] if isinstance(spec.assign, int) else [])
    conditions = {
        "gpus must name at least one GPU": len(gpus) > 0,
        "n_trials must be at least 1": spec.n_trials >= 1,
        "workers must be at least 1": bool(spec.worker_steps) and spec.worker_steps[0][1] >= 1,
        "epochs and segments must be at least 1": min(*spec.trial.epochs_range, spec.trial.segments) >= 1,
        "gpu_share_pct must be above 0 and at most 100": 0
        < min(spec.trial.gpu_share_pct)
        <= max(spec.trial.gpu_share_pct)
        <= 100,
        "period_s and window_s must be above 0": min(spec.telemetry.period_s, spec.telemetry.window_s) > 0,
        f"assign and foreign loads must name one of the {len(gpus)} GPUs": all(gpu in gpus for gpu in named),
    }
    for condition, holds in conditions.items():
        if not holds:
            raise ConfigError(f"a simulated run cannot be made: {condition}.")
    return spec


_PARTS = ("trial", "curve", "telemetry", "faults")


def override(spec: Spec, changes: dict[str, Any]) -> Spec:
    """``spec`` with fields replaced by name, in the spec itself or in its parts.

    ``startup_s=(5, 9)`` reaches ``spec.trial.startup_s``. Raises ConfigError for an unknown name.
    """
    home = {f.name: part for part in _PARTS for f in dataclasses.fields(getattr(spec, part))}
    home |= {f.name: "" for f in dataclasses.fields(spec)}
    grouped: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        if name not in home:
            raise ConfigError(f"a simulated run has no '{name}'; {nearest(name, home)}")
        grouped.setdefault(home[name], {})[name] = value
    direct = grouped.pop("", {})
    for part, values in grouped.items():
        direct[part] = dataclasses.replace(direct.get(part, getattr(spec, part)), **values)
    return dataclasses.replace(spec, **direct)
