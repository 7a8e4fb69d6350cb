"""A simulated run as the files a real one leaves: gpu.csv, optuna.db or tasks.jsonl, run.toml, truth.json."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from gpudiag.plain_data import Json, JsonObject
from gpudiag.simulation.life import Life
from gpudiag.simulation.spec import Spec
from gpudiag.simulation.tables import origin_of, place_of, settings_of
from gpudiag.simulation.truth import Truth
from gpudiag.simulation.world import History

HEADER = (
    "timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB], "
    "power.draw [W], power.limit [W], temperature.gpu, clocks.current.sm [MHz], clocks_event_reasons.active"
)


def write_folder(
    folder: Path,
    spec: Spec,
    history: History,
    samples: pd.DataFrame,
    truth: Truth,
    artifacts: Sequence[str] = (),
) -> Path:
    """Write all files of a run; existing ones of the same name are replaced.

    ``artifacts`` are files that somebody else writes there and that run.toml shall name.
    """
    from gpudiag.simulation.study_file import write_study  # brings Optuna

    lives = sorted(history.lives, key=lambda life: life.number)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "gpu.csv", csv_lines(spec, samples))
    if spec.record == "optuna":
        write_study(folder / "optuna.db", spec, lives)
    elif spec.record == "tasks":
        write_text(folder / "tasks.jsonl", (json.dumps(row) for row in task_rows(spec, lives)))
    write_text(folder / "run.toml", toml_lines(manifest(spec, artifacts)))
    write_text(folder / "truth.json", json_lines(truth.to_dict()))
    return folder


def write_text(path: Path, lines: Iterable[str]) -> None:
    """Lines as UTF-8 with Unix line ends on every system."""
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")


def json_lines(content: Mapping[str, Json]) -> Iterable[str]:
    """A JSON object with one line a key, and one line a row where the value is a table."""
    yield "{"
    for index, (key, value) in enumerate(content.items(), start=1):
        rows = ",\n  ".join(json.dumps(row) for row in value) if isinstance(value, list) else ""
        text = f"[\n  {rows}\n ]" if rows else json.dumps(value)
        yield f" {json.dumps(key)}: {text}" + ("," if index < len(content) else "")
    yield "}"


def csv_lines(spec: Spec, samples: pd.DataFrame) -> Iterable[str]:
    """The log as ``nvidia-smi --query-gpu=... --format=csv -l`` prints it: zone-less local times, units in cells."""
    yield HEADER
    timestamps = local_timestamps(spec, samples["true_s"] + spec.telemetry.offset_s)
    names = [gpu.name for gpu in spec.gpus]
    columns = ["gpu", "util_pct", "mem_util_pct", "mem_used_mib", "mem_total_mib", "power_w", "power_limit_w", "temp_c"]
    values = [samples[name].tolist() for name in [*columns, "sm_clock_mhz", "throttle_reasons"]]
    for timestamp, gpu, util, busy, used, total, power, limit, temp, clock, reasons in zip(
        timestamps, *values, strict=True
    ):
        yield (
            f"{timestamp}, {gpu}, {names[int(gpu)]}, {util:.0f} %, {busy:.0f} %, {used:.0f} MiB, {total:.0f} MiB, "
            f"{power:.2f} W, {limit:.2f} W, {temp:.0f}, {clock:.0f} MHz, 0x{reasons:016X}"
        )


def local_timestamps(spec: Spec, seconds: pd.Series) -> list[str]:
    """``2025/10/24 19:56:09.123`` in the run's zone, from seconds since the run's start."""
    millis = pd.to_timedelta((seconds * 1000).round().astype("int64"), unit="ms")
    local = (origin_of(spec) + millis).dt.tz_convert(spec.timezone).dt.tz_localize(None)
    text = np.datetime_as_string(local.to_numpy("datetime64[ms]"), unit="ms").tolist()
    return [timestamp.replace("-", "/").replace("T", " ") for timestamp in text]


def task_rows(spec: Spec, lives: Iterable[Life]) -> Iterable[JsonObject]:
    """One JSON object a task, keyed as schema.TRIALS; timestamps carry their offset; unknown is absent."""
    for life in lives:
        row: JsonObject = {"task": life.number, "name": life.name or None, "state": life.state}
        row |= {"start": iso(spec, life.start_s), "end": iso(spec, life.end_s) if life.finished else None}
        row |= {**place_of(spec, life), **life.user_attrs, "params": life.params or None, "detail": life.detail or None}
        yield {key: value for key, value in row.items() if value is not None}


def iso(spec: Spec, seconds: float) -> str | None:
    """ISO 8601 to the millisecond with the zone's offset; None for an unknown time."""
    if np.isnan(seconds):
        return None
    timestamp = origin_of(spec) + pd.Timedelta(milliseconds=round(seconds * 1000))
    return timestamp.tz_convert(spec.timezone).isoformat(timespec="milliseconds")


def log_timestamp(spec: Spec, seconds: float) -> str:
    """``2025-10-24 19:56:09,123``: local time as Python's logging writes it."""
    return local_timestamps(spec, pd.Series([seconds]))[0].replace("/", "-").replace(".", ",")


def manifest(spec: Spec, artifacts: Sequence[str] = ()) -> JsonObject:
    """The content of run.toml; ``artifacts`` are named beside the run's own."""
    out: JsonObject = {"name": spec.name, "timezone": spec.timezone, "telemetry": ["gpu.csv"]}
    if spec.record == "optuna":
        out |= {"trials": "optuna.db", "study": spec.study}
    own = ["tasks.jsonl"] if spec.record == "tasks" else []
    if own or artifacts:
        out["artifacts"] = [*own, *artifacts]
    if spec.notes:
        out["notes"] = list(spec.notes)
    out["settings"] = settings_of(spec).model_dump(exclude_none=True, exclude_defaults=True)
    out["dataloader"] = spec.dataloader.model_dump(exclude_none=True)
    out["stated"] = dict(spec.stated)
    return {key: value for key, value in out.items() if value or not isinstance(value, Mapping)}


def toml_lines(content: Mapping[str, Json]) -> Iterable[str]:
    """TOML of one level of tables; strings, numbers, booleans and lists of strings look as in JSON."""
    for key, value in content.items():
        if not isinstance(value, Mapping):
            yield f"{key} = {json.dumps(value, ensure_ascii=False)}"
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield ""
            yield f"[{key}]"
            yield from (f"{name} = {json.dumps(item, ensure_ascii=False)}" for name, item in value.items())
