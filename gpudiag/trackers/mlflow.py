"""A run of MLflow: its metrics, tags and artifacts, on the server that ``MLFLOW_TRACKING_URI`` names."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from gpudiag.errors import ConfigError, PackageMissing
from gpudiag.readers._io.url import without_passwords
from gpudiag.report.document import Document
from gpudiag.trackers.summary import labels, summary

try:
    import mlflow
    from mlflow.entities import Metric, RunTag
    from mlflow.exceptions import MlflowException
except ModuleNotFoundError:
    raise PackageMissing("--to mlflow:RUN_ID needs MLflow: pip install 'gpudiag[mlflow]'.") from None

ARTIFACTS = "gpudiag"
LOCAL = ("mlflow.db", "mlruns")
"""What MLflow takes, and would make, in the working folder where it was told of no server."""


def publish(run: str, files: Sequence[Path], document: Document) -> str:
    """The summary as metrics, the verdict as tags, the files as artifacts below ``gpudiag/``."""
    if not mlflow.tracking.is_tracking_uri_set() and not any(Path(name).exists() for name in LOCAL):
        raise ConfigError("no server of MLflow is known; set MLFLOW_TRACKING_URI to the address that it has.")
    client = mlflow.MlflowClient()
    now_ms = int(time.time() * 1000)
    metrics = [Metric(name, value, now_ms, 0) for name, value in summary(document).items()]
    tags = [RunTag(name, text) for name, text in labels(document).items()]
    try:
        client.log_batch(run, metrics=metrics, tags=tags)
        for path in files:
            if path.is_dir():
                client.log_artifacts(run, str(path), f"{ARTIFACTS}/{path.name}")
            else:
                client.log_artifact(run, str(path), ARTIFACTS)
    except (MlflowException, OSError) as error:
        said = without_passwords(str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__)
        raise ConfigError(f"MLflow did not take the report for run '{run}': {said}") from error
    return f"mlflow:{run}, artifacts in {ARTIFACTS}/"
