"""A run of MLflow, from the server that ``MLFLOW_TRACKING_URI`` names, by calls that read."""

from __future__ import annotations

import logging
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from gpudiag._load.tracked.machines import machines
from gpudiag._load.tracked.tracked_run import Point, TrackedRun
from gpudiag.errors import ConfigError, InputError, PackageMissing
from gpudiag.readers._io.url import first_line, scheme_of, shown, without_passwords
from gpudiag.readers.telemetry.mlflow import FOLDER, gpu_metric, is_system_metric

try:
    import mlflow
    from mlflow.exceptions import MlflowException
except ModuleNotFoundError:
    raise PackageMissing("mlflow:RUN_ID needs MLflow: pip install 'gpudiag[mlflow]'.") from None

ARTIFACTS = "gpudiag"
"""Below it lies what gpudiag put there itself."""
LOCAL = ("mlflow.db", "mlruns")
"""What MLflow takes, and would make, in the working folder where it was told of no server."""
HOSTED = ("databricks", "databricks-uc", "uc")
"""Addresses of MLflow that are words."""
SETTINGS = {"MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}
"""In place of MLflow's bars, and of minutes until it says that no server answers; what the environment says, stays."""
SYSTEM = "system/"
PARENT = "mlflow.parentRunId"
OF_OPTUNA = "param_directions"
"""A tag that each trial has which ``mlflow.optuna.MlflowStorage`` keeps as a run."""
MOST_BYTES, MOST_BYTES_EACH = 256 * 2**20, 64 * 2**20
MOST_ARTIFACTS = 2000
_NODE = re.compile(r"(?:([^/]+)/)?(\w+)")


def client() -> Any:
    """MLflow's client. Raises ConfigError where it was told of no server, or of a file that is not there."""
    if not mlflow.tracking.is_tracking_uri_set() and not any(Path(name).exists() for name in LOCAL):
        raise ConfigError("no server of MLflow is known; set MLFLOW_TRACKING_URI to the address that it has.")
    place = mlflow.get_tracking_uri()
    if _is_missing(place):
        raise ConfigError(
            f"{shown(place)}: MLflow has nothing there, and would make it; set MLFLOW_TRACKING_URI to the address "
            "that your runs have."
        )
    return mlflow.MlflowClient()


def _is_missing(place: str) -> bool:
    """Whether an address of MLflow names a file or a folder that is not there."""
    scheme, colon, rest = place.partition(":")
    if scheme_of(place) == "sqlite":
        path = rest.removeprefix("//").partition("?")[0].removeprefix("/")
    elif scheme == "file":
        path = urlsplit(place).path
    else:
        path = "" if colon or place in HOSTED else place
    return not (Path(path).exists() or Path(unquote(path)).exists())


@contextmanager
def quiet() -> Iterator[None]:
    """Without MLflow's progress bars, long waits and what it says on the way; its warnings stay."""
    loggers = [logging.getLogger(name) for name in ("mlflow", "alembic")]
    levels = [one.level for one in loggers]
    own = [name for name in SETTINGS if name not in os.environ]
    os.environ.update({name: SETTINGS[name] for name in own})
    for one in loggers:
        one.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for one, level in zip(loggers, levels, strict=True):
            one.setLevel(level)
        for name in own:
            os.environ.pop(name, None)


def why(error: Exception) -> str:
    """What an error of MLflow says, in one line and without passwords."""
    said = first_line(error)
    is_refused = "Max retries exceeded" in said and "ResponseError" not in said
    if is_refused or "failed with timeout exception" in said:
        return f"no server of MLflow answers at {shown(mlflow.get_tracking_uri())}; check MLFLOW_TRACKING_URI."
    return said


def fetch(run: str, folder: Path) -> TrackedRun:
    """The run with its metrics, parameters and tags; its artifacts and system metrics lie in ``folder``.

    The runs that were started within it are its trials. Raises InputError where there is no such run, or where the
    server does not answer.
    """
    try:
        with quiet():
            return _fetch(client(), run, folder)
    except (MlflowException, OSError) as error:
        raise InputError(f"mlflow:{without_passwords(run)}: MLflow does not give the run: {why(error)}") from error


def _fetch(server: Any, run: str, folder: Path) -> TrackedRun:
    found = server.get_run(run)
    experiment = server.get_experiment(found.info.experiment_id).name
    children = list(_children(server, found))
    notes = [*_system_metrics(server, [found, *children], folder), *_artifacts(server, found.info.run_id, folder)]
    tags = found.data.tags
    commit = tags.get("mlflow.source.git.commit")
    return TrackedRun(
        found.info.run_name or run,
        [_task(one, found.info.run_name or run) for one in children] or [_task(found, experiment)],
        {name: _history(server, found, name) for name in _own(found)},
        {
            "user": tags.get("mlflow.user", ""),
            "project": experiment,
            **({"settings": {"commit": commit}} if commit else {}),
        },
        tuple(notes),
        len(children),
    )


def _children(server: Any, run: Any) -> Iterator[Any]:
    """Runs within the run, in the order of their starts."""
    token = None
    while True:
        page = server.search_runs(
            [run.info.experiment_id],
            f"tags.`{PARENT}` = '{run.info.run_id}'",
            order_by=["attributes.start_time ASC"],
            page_token=token,
        )
        yield from page
        token = page.token
        if not token:
            return


def _task(run: Any, study: str) -> Mapping[str, Any]:
    times = {"start": run.info.start_time, "end": run.info.end_time}
    tags = {name: text for name, text in run.data.tags.items() if not name.startswith(("mlflow.", f"{ARTIFACTS}."))}
    metrics = {name: run.data.metrics[name] for name in _own(run)}
    return {
        "name": run.info.run_name or run.info.run_id,
        "experiment": study,
        "status": _status(run),
        **{name: at / 1000 for name, at in times.items() if at},
        "parameters": {name: _number(text) for name, text in run.data.params.items()},
        "metrics": {name: value for name, value in metrics.items() if math.isfinite(value)},
        "tags": tags,
        "run_id": run.info.run_id,
    }


def _status(run: Any) -> str:
    """How the run ended. KILLED is what somebody stopped, and how MLflow's storage for Optuna keeps a pruned trial."""
    if run.info.status != "KILLED":
        return str(run.info.status)
    return "pruned" if OF_OPTUNA in run.data.tags else "canceled"


def _own(run: Any) -> list[str]:
    """Names of the metrics that the training logged."""
    return [name for name in run.data.metrics if not name.startswith((SYSTEM, f"{ARTIFACTS}."))]


def _number(text: str) -> float | str:
    """A parameter, which MLflow keeps as text."""
    try:
        value = float(text)
    except ValueError:
        return text
    if not math.isfinite(value):
        return text
    return int(value) if text.lstrip("-").isdigit() else value


def _history(server: Any, run: Any, name: str) -> Sequence[Point]:
    return [(one.timestamp / 1000, one.value, one.step) for one in server.get_metric_history(run.info.run_id, name)]


def _system_metrics(server: Any, runs: Sequence[Any], folder: Path) -> Iterator[str]:
    """System metrics as files of a file store: those of the first run if it has some, else of all, since each logs
    every GPU of its machine. Yields what is to be said of them.

    Where names begin with a node's id, or runs were on several machines, the GPUs are numbered one after the other.
    """
    logged = [(run.info.run_id, node, name) for run in runs for node, name in _system_names(run)]
    taken = [one for one in logged if one[0] == runs[0].info.run_id] or logged
    if not taken:
        return
    values = {
        (run, node, name): _values(server, run, f"{SYSTEM}{node}/{name}" if node else SYSTEM + name)
        for run, node, name in taken
    }
    machine_of, is_certain = _machines(values)
    nodes = {(run, node, name): node or machine_of[run] for run, node, name in values}
    first, total = {}, 0
    for node in sorted({*nodes.values()}, key=_natural):
        indices = [gpu[0] for one, of in nodes.items() if of == node and (gpu := gpu_metric(one[2]))]
        first[node], total = total, total + max(indices, default=-1) + 1
    (folder / "system" / FOLDER).mkdir(parents=True)
    for one, points in values.items():
        gpu = gpu_metric(one[2])
        if gpu is None and len(first) > 1:
            continue  # of one host among several
        called = one[2] if gpu is None else f"gpu_{first[nodes[one]] + gpu[0]}_{gpu[1]}"
        with (folder / "system" / FOLDER / called).open("a", encoding="utf-8") as file:
            file.writelines(f"{int(at)} {value!r} {int(step)}\n" for at, value, step in points.tolist())
    if len(first) > 1:
        numbered = ", ".join(f"{node or 'no node'} from {number}" for node, number in first.items())
        yield f"GPUs are numbered one node after the other ({numbered}); CPU and RAM of several nodes are not read."
    if any(machine_of.values()):
        yield "Runs within the run were on several machines: GPUs of the same index differ in the time that they share."
    if not is_certain:
        yield "Runs within the run overlap and do not name their node; readings agree, so it is taken for one machine."


def _values(server: Any, run: str, name: str) -> np.ndarray:
    """Milliseconds since 1970, value and step, a row each, in the order of time."""
    points = [(one.timestamp, one.value, one.step) for one in server.get_metric_history(run, name)]
    return np.array(sorted(points), dtype=np.float64).reshape(-1, 3)


def _machines(values: Mapping[tuple[str, str, str], np.ndarray]) -> tuple[dict[str, str], bool]:
    """A name of the machine for each run, '' where there is one, and whether it was certain which."""
    by_run: dict[str, dict[str, np.ndarray]] = {}
    for (run, node, name), points in values.items():
        held = by_run.setdefault(run, {})
        if not node:
            held[name] = points
    found, is_certain = machines(by_run.values())
    several = max(found) > 0
    return {run: f"machine {at + 1}" if several else "" for run, at in zip(by_run, found, strict=True)}, is_certain


def _natural(name: str) -> list[str | int]:
    """To sort node-2 before node-10."""
    return [int(part) if at % 2 else part for at, part in enumerate(re.split(r"(\d{1,18})", name))]


def _system_names(run: Any) -> list[tuple[str, str]]:
    """Node, '' for none, and name of each system metric that is read."""
    found = (_NODE.fullmatch(name.removeprefix(SYSTEM)) for name in run.data.metrics if name.startswith(SYSTEM))
    return sorted((match[1] or "", match[2]) for match in found if match and is_system_metric(match[2]))


def _artifacts(server: Any, run: str, folder: Path) -> Iterator[str]:
    """The run's files, smallest first, but for models, gpudiag's own and large ones; yields what was left."""
    listed = sorted(_listed(server, run), key=lambda one: (one.file_size or 0, one.path))
    room, left = MOST_BYTES, []
    for one in listed:
        if one.file_size is None or one.file_size > min(room, MOST_BYTES_EACH):
            left.append(one.path)
            continue
        room -= one.file_size
        into = folder / "artifacts"
        into.mkdir(exist_ok=True)
        server.download_artifacts(run, one.path, str(into))
    if len(listed) >= MOST_ARTIFACTS:
        yield f"The run has more artifacts than the {MOST_ARTIFACTS:,} that are looked at."
    if left:
        named = ", ".join(left[:3]) + (", ..." if len(left) > 3 else "")
        yield f"Artifacts that are large, or of unknown size, were not read: {named}."


def _listed(server: Any, run: str) -> list[Any]:
    found: list[Any] = []
    pending: list[str | None] = [None]
    while pending and len(found) < MOST_ARTIFACTS:
        here = [one for one in server.list_artifacts(run, pending.pop(0)) if _is_within(one.path)]
        if any(PurePosixPath(one.path).name == "MLmodel" for one in here):
            continue
        found += [one for one in here if not one.is_dir]
        pending += [one.path for one in here if one.is_dir and one.path != ARTIFACTS]
    return found[:MOST_ARTIFACTS]


def _is_within(path: str) -> bool:
    """Whether a path that a server states leads nowhere else."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and not {"..", "\\"} & {*parts, *path}
