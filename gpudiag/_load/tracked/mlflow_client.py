"""The server of MLflow that ``MLFLOW_TRACKING_URI`` names: its client, without what MLflow says and makes beside it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from gpudiag.errors import ConfigError, PackageMissing
from gpudiag.readers._io.url import first_line, scheme_of, shown, sqlite_place

try:
    import mlflow
    from mlflow.exceptions import MlflowException
except ModuleNotFoundError:
    raise PackageMissing("mlflow:RUN_ID needs MLflow: pip install 'gpudiag[mlflow]'.") from None

REFUSALS = (MlflowException, OSError)
"""What MLflow raises where a server refuses or does not answer."""
LOCAL = ("mlflow.db", "mlruns")
"""What MLflow takes, and would make, in the working folder where it was told of no server."""
HOSTED = ("databricks", "databricks-uc", "uc")
"""Addresses of MLflow that are words."""
SETTINGS = {"MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2"}
"""In place of MLflow's bars, and of minutes until it says that no server answers; what the environment says, stays."""


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
    scheme, colon, _ = place.partition(":")
    if scheme_of(place) == "sqlite":
        path = sqlite_place(place)
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
