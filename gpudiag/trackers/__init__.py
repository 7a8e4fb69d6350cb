"""Where a report goes beside the run that a tracker of experiments keeps, one file a tracker.

A tracker has ``publish(run, files, document)``: six numbers and the verdict onto the run, the files of the report into
its artifacts. An earlier report of gpudiag there is replaced, and nothing else is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from gpudiag.errors import ConfigError, nearest
from gpudiag.report.document import Document

TRACKERS = ("mlflow",)


def address(given: str) -> tuple[str, str]:
    """Tracker and run of an address such as ``mlflow:RUN_ID``. Raises ConfigError."""
    tracker, colon, run = given.partition(":")
    if not colon or not run:
        raise ConfigError(f"--to takes TRACKER:RUN, such as mlflow:RUN_ID, but got '{given}'.")
    if tracker not in TRACKERS:
        raise ConfigError(f"there is no tracker '{tracker}'; {nearest(tracker, TRACKERS)}")
    return tracker, run


def publish(to: str, files: Sequence[Path], document: Document) -> str:
    """Put a report, files and folders of them, onto the run at the address ``to``. Returns where it is now.

    Raises ConfigError: no such tracker or run, its package is missing, or it does not answer.
    """
    tracker, run = address(to)
    where: str = import_module(f"gpudiag.trackers.{tracker}").publish(run, files, document)
    return where
