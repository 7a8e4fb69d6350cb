"""A run of MLflow: its metrics, tags and artifacts, on the server that ``MLFLOW_TRACKING_URI`` names."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpudiag._load.tracked.mlflow import ARTIFACTS
from gpudiag._load.tracked.mlflow_client import REFUSALS, client, quiet, why
from gpudiag.errors import ConfigError
from gpudiag.report.document import Document
from gpudiag.trackers.summary import labels, summary


def publish(run: str, files: Sequence[Path], document: Document) -> str:
    """The summary as metrics, the verdict as tags, the files as artifacts below ``gpudiag/``."""
    with quiet():
        return _publish(client(), run, files, document)


def _publish(server: Any, run: str, files: Sequence[Path], document: Document) -> str:
    from mlflow.entities import Metric, RunTag  # only here: where MLflow is missing, mlflow_client says it

    now_ms = int(time.time() * 1000)
    metrics = [Metric(name, value, now_ms, 0) for name, value in summary(document).items()]
    tags = [RunTag(name, text) for name, text in labels(document).items()]
    try:
        server.log_batch(run, metrics=metrics, tags=tags)
        for path in files:
            if path.is_dir():
                server.log_artifacts(run, str(path), f"{ARTIFACTS}/{path.name}")
            else:
                server.log_artifact(run, str(path), ARTIFACTS)
    except REFUSALS as error:
        raise ConfigError(f"MLflow did not take the report for run '{run}': {why(error)}") from error
    return f"mlflow:{run}, artifacts in {ARTIFACTS}/"
