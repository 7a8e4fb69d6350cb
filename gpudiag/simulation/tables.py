"""A simulated history as the tables of a Run, without a file in between."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from gpudiag.manifest import Settings
from gpudiag.run import Run, RunInfo
from gpudiag.schema import GPU, GPUS, REPORTS, STUDIES, TRIALS, conform, empty
from gpudiag.simulation.life import Life
from gpudiag.simulation.spec import Spec


def origin_of(spec: Spec) -> pd.Timestamp:
    """The instant, UTC, from which simulated seconds count."""
    return pd.Timestamp(spec.start).tz_localize(spec.timezone).tz_convert("UTC")


def instants(seconds: Sequence[float], origin: pd.Timestamp) -> pd.Series:
    """UTC timestamps of simulated seconds, to the microsecond; NaN becomes NaT."""
    micro = pd.Series(seconds, dtype="float64").mul(1e6).round()
    return origin.as_unit("us") + pd.to_timedelta(micro, unit="us")


def build_run(spec: Spec, lives: Sequence[Life], samples: pd.DataFrame) -> Run:
    """The run that reading the written files gives: tables on UTC, each source on its own clock."""
    origin = origin_of(spec)
    recorded = sorted(lives, key=lambda life: life.number) if spec.record != "none" else []
    return Run(
        gpu=_gpu(spec, samples, origin),
        gpus=_gpus(spec),
        trials=_trials(spec, recorded, origin),
        reports=_reports(spec, recorded),
        studies=_studies(spec, recorded),
        info=RunInfo(
            name=spec.name,
            timezone=spec.timezone,
            settings=settings_of(spec),
            dataloader=spec.dataloader,
            stated=dict(spec.stated),
            notes=spec.notes,
        ),
    )


def settings_of(spec: Spec) -> Settings:
    """What run.toml states: the spec's settings, completed by what the simulation used."""
    used: dict[str, object] = {}
    if spec.record != "none":
        used["n_trials"] = spec.n_trials
        # One number cannot state what changed on the way.
        used["parallel"] = spec.worker_steps[0][1] if len(spec.worker_steps) == 1 else None
    if spec.record == "optuna":
        used |= {"pruner": spec.pruner, "max_steps": max(spec.trial.epochs_range)}
    missing = {name: value for name, value in used.items() if getattr(spec.settings, name) is None}
    return spec.settings.model_copy(update=missing)


def _gpu(spec: Spec, samples: pd.DataFrame, origin: pd.Timestamp) -> pd.DataFrame:
    timestamps = (samples["true_s"] + spec.telemetry.offset_s).round(3)
    frame = samples.assign(time=instants(timestamps.tolist(), origin)).sort_values(["gpu", "time"], kind="stable")
    return conform(frame, GPU)


def _gpus(spec: Spec) -> pd.DataFrame:
    rows = [
        {
            "gpu": str(index),
            "name": gpu.name,
            "uuid": gpu.uuid or None,
            "mem_total_mib": gpu.mem_total_mib,
            "power_limit_w": gpu.power_limit_w,
        }
        for index, gpu in enumerate(spec.gpus)
    ]
    return conform(pd.DataFrame(rows), GPUS)


def _trials(spec: Spec, lives: Sequence[Life], origin: pd.Timestamp) -> pd.DataFrame:
    if not lives:
        return empty(TRIALS)
    frame = pd.DataFrame(
        {
            "study": spec.study,
            "trial": [life.number for life in lives],
            "name": [life.name or None for life in lives],
            "state": [life.state for life in lives],
            "start": instants([life.start_s for life in lives], origin),
            "end": instants([life.end_s if life.finished else float("nan") for life in lives], origin),
            "value": [life.value if life.state in ("COMPLETE", "PRUNED") else float("nan") for life in lives],
            "detail": [life.detail or None for life in lives],
        }
    )
    places = [place_of(spec, life) for life in lives]
    for name in spec.declares:
        frame[name] = [place.get(name) for place in places]
    for prefix, field in (("params.", "params"), ("user_attrs.", "user_attrs")):
        family = pd.DataFrame([getattr(life, field) for life in lives], index=frame.index)
        frame = frame.join(family.add_prefix(prefix))
    return conform(frame, TRIALS)


def place_of(spec: Spec, life: Life) -> dict[str, str]:
    """What the record says of where a trial ran: worker, GPU, neither; nothing for one that never started."""
    known = {"worker": f"w{life.worker}", "gpu": str(life.gpu)} if life.state != "WAITING" else {}
    return {name: place for name, place in known.items() if name in spec.declares}


def _reports(spec: Spec, lives: Sequence[Life]) -> pd.DataFrame:
    rows = [(spec.study, life.number, step, value) for life in lives for step, value, _ in life.reports]
    if not rows or spec.record != "optuna":
        return empty(REPORTS)
    return conform(pd.DataFrame(rows, columns=["study", "trial", "step", "value"]), REPORTS)


def _studies(spec: Spec, lives: Sequence[Life]) -> pd.DataFrame:
    if not lives:
        return empty(STUDIES)
    directions = spec.curve.direction.upper() if spec.record == "optuna" else ""
    return conform(
        pd.DataFrame({"study": [spec.study], "directions": [directions], "source": [""], "clock": ["utc"]}), STUDIES
    )
