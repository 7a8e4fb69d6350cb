"""Where a report goes beside the run that a tracker of experiments keeps, one file a tracker.

A tracker has ``publish(run, files, document)``: six numbers and the verdict onto the run, and the files of the report.
An earlier report of gpudiag there is replaced, and nothing else is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

from gpudiag.errors import ConfigError, nearest
from gpudiag.report.document import Document

TRACKERS = {"mlflow": "RUN_ID", "wandb": "ENTITY/PROJECT/RUN_ID", "trackio": "PROJECT/RUN"}
"""By name, how each calls a run."""
Publish = Callable[[Sequence[Path], Document], str]


def publisher(to: str) -> Publish:
    """What puts a report, files and folders of them, onto the run at an address such as ``mlflow:RUN_ID``, and says
    where it is now.

    Raises ConfigError: no such tracker, or its package is missing. So does what it returns: there is no such run, or
    the tracker does not answer.
    """
    tracker, colon, run = to.partition(":")
    if not colon or not run:
        raise ConfigError(f"--to takes TRACKER:RUN, such as mlflow:RUN_ID, but got '{to}'.")
    if tracker not in TRACKERS:
        raise ConfigError(f"there is no tracker '{tracker}'; {nearest(tracker, TRACKERS)}")
    form = TRACKERS[tracker]
    if not all(run.split("/")) or run.count("/") < form.count("/"):
        raise ConfigError(f"--to takes {tracker}:{form}, but got '{to}'.")
    return partial(import_module(f"gpudiag.trackers.{tracker}").publish, run)
