"""What one trial will do if nothing stops it, drawn from the seed and its number alone.

Because a plan does not depend on the other trials, two runs of the same seed with different numbers of
workers run the same trials: the truth of a what-if is one more simulation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpudiag.plain_data import JsonObject
from gpudiag.simulation.spec import Curve, Faults, ModelSpec, Range, Spec, Trial

RAMP_STEPS = 16


@dataclass(frozen=True)
class TrialPlan:
    """``segments``: (solo GPU seconds, dip seconds) in order, ``per_epoch`` of them an epoch; ``values``
    one an epoch; ``fault`` ('' none) strikes ``fault_at_s`` after the start.
    """

    params: JsonObject
    startup_s: float
    segments: tuple[tuple[float, float], ...]
    per_epoch: int
    tail_s: float
    gap_s: float
    restart_s: float
    share: float
    peak_mib: float
    values: tuple[float, ...]
    fault: str
    fault_at_s: float
    lottery: float


def draw_plan(spec: Spec, seed: int, number: int) -> TrialPlan:
    """The plan of trial ``number``; the same for every spec that differs only in workers or telemetry."""
    rng = np.random.default_rng([seed, 1, number])
    trial = spec.trial
    epochs = _epochs(trial, seed, number)
    count = epochs * trial.segments
    draws = iter(rng.random(12 + count).tolist())
    model = _pick(trial.models, next(draws))
    batch = trial.batch_sizes[int(next(draws) * len(trial.batch_sizes))]
    epoch_s = _between(trial.epoch_s, next(draws)) * model.work * _pace(trial, seed, number)
    startup_s = _between(trial.startup_s, next(draws))
    lr = round(10.0 ** (-5.0 + 3.0 * next(draws)), 8)
    tail_s, gap_s = _between(trial.tail_s, next(draws)), _between(trial.gap_s, next(draws))
    restart_s = _between(spec.faults.restart_s, next(draws))
    share = _between(trial.gpu_share_pct, next(draws)) / 100.0
    kind, at, lottery = next(draws), next(draws), next(draws)
    segments = tuple((epoch_s / trial.segments, _between(trial.dip_s, next(draws))) for _ in range(count))
    nominal_s = startup_s + sum(work + dip for work, dip in segments)
    return TrialPlan(
        params={"model": model.name, "batch_size": batch, "lr": lr},
        startup_s=startup_s,
        segments=segments,
        per_epoch=trial.segments,
        tail_s=tail_s,
        gap_s=gap_s,
        restart_s=restart_s,
        share=share,
        peak_mib=max(trial.context_mib + model.fixed_mib + model.per_sample_mib * batch, trial.reserved_mib),
        values=_learning_curve(spec.curve, epochs, rng),
        fault=_fault(spec.faults, kind),
        fault_at_s=at * nominal_s,
        lottery=lottery,
    )


def _epochs(trial: Trial, seed: int, number: int) -> int:
    """How many this trial trains; drawn apart from all else, so that one number for all changes nothing beside it."""
    low, high = trial.epochs_range
    return low if low == high else int(np.random.default_rng([seed, 3, number]).integers(low, high + 1))


def _pace(trial: Trial, seed: int, number: int) -> float:
    """How much longer than usual everything takes while this trial runs: stationary over the trials in order."""
    if not trial.pace_sd:
        return 1.0
    alike = trial.pace_correlation
    noise = np.random.default_rng([seed, 2]).standard_normal(number + 1)
    state = float(noise[0])
    for step in noise[1:].tolist():
        state = alike * state + (1 - alike * alike) ** 0.5 * step
    return float(np.exp(trial.pace_sd * state))


def memory_ramp(trial: Trial, peak_mib: float) -> list[tuple[float, float]]:
    """Levels (seconds after loading begins, MiB) from the CUDA context to the plateau, in equal steps; or what is
    reserved, at once.
    """
    if trial.reserved_mib:
        return [(0.0, peak_mib)]
    rise = trial.plateau * peak_mib - trial.context_mib
    return [
        (trial.ramp_s * step / RAMP_STEPS, trial.context_mib + rise * step / RAMP_STEPS)
        for step in range(1, RAMP_STEPS + 1)
    ]


def _between(limits: Range, draw: float) -> float:
    return limits[0] + (limits[1] - limits[0]) * draw


def _pick(models: tuple[ModelSpec, ...], draw: float) -> ModelSpec:
    left = draw * sum(model.weight for model in models)
    for model in models:
        left -= model.weight
        if left < 0:
            return model
    return models[-1]


def _fault(faults: Faults, draw: float) -> str:
    for kind, rate in (
        ("assert", faults.assert_rate),
        ("abandoned", faults.abandoned_rate),
        ("fail", faults.fail_rate),
    ):
        if draw < rate:
            return kind
        draw -= rate
    return ""


def _learning_curve(curve: Curve, epochs: int, rng: np.random.Generator) -> tuple[float, ...]:
    """Values of epochs 1, 2, ...; a good floor goes with a high start in the measure of ``crossing``."""
    floor_draw, rate_draw = rng.random(2).tolist()
    floor = _between(curve.floor, floor_draw)
    middle = sum(curve.floor) / 2.0
    height = curve.height + curve.crossing * 1.5 * (middle - floor)
    rate = _between(curve.rate, 0.5 + curve.crossing * (rate_draw - 0.5))
    steps = np.arange(1, epochs + 1, dtype=float)
    values = floor + height * steps**-rate + curve.noise * rng.standard_normal(epochs)
    if curve.direction == "maximize":
        values = 1.0 - values
    return tuple(np.round(values, 6).tolist())
