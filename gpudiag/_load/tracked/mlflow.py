"""A run of MLflow, from the server that ``MLFLOW_TRACKING_URI`` names, by calls that read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from gpudiag._load.tracked.mlflow_client import REFUSALS, client, quiet, why
from gpudiag._load.tracked.mlflow_samples import SYSTEM, system_metrics
from gpudiag._load.tracked.tracked_run import Point, TrackedRun
from gpudiag.errors import InputError
from gpudiag.readers._io.url import without_passwords

ARTIFACTS = "gpudiag"
"""Below it lies what gpudiag put there itself."""
PARENT = "mlflow.parentRunId"
OF_OPTUNA = "param_directions"
"""A tag that each trial has which ``mlflow.optuna.MlflowStorage`` keeps as a run."""
MOST_BYTES, MOST_BYTES_EACH = 256 * 2**20, 64 * 2**20
MOST_ARTIFACTS = 2000


def fetch(run: str, folder: Path) -> TrackedRun:
    """The run with its metrics, parameters and tags; its artifacts and system metrics lie in ``folder``.

    The runs that were started within it are its trials. Raises InputError where there is no such run, or where the
    server does not answer.
    """
    try:
        with quiet():
            return _fetch(client(), run, folder)
    except REFUSALS as error:
        raise InputError(f"mlflow:{without_passwords(run)}: MLflow does not give the run: {why(error)}") from error


def _fetch(server: Any, run: str, folder: Path) -> TrackedRun:
    found = server.get_run(run)
    experiment = server.get_experiment(found.info.experiment_id).name
    children = list(_children(server, found))
    notes = [*system_metrics(server, [found, *children], folder), *_artifacts(server, found.info.run_id, folder)]
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
