"""A run of trackio: an artifact that the run has as its output, where trackio keeps the run.

Its metrics are left alone: trackio can only add to them, and the first that is logged after a run was taken up again
replaces the run's configuration.
"""

from __future__ import annotations

import io
import re
import sqlite3
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from gpudiag.errors import ConfigError, PackageMissing
from gpudiag.readers._io.url import first_line
from gpudiag.report.document import Document
from gpudiag.trackers.summary import labels, summary

try:
    import trackio
except ModuleNotFoundError:
    raise PackageMissing("--to trackio:PROJECT/RUN needs trackio: pip install 'gpudiag[trackio]'.") from None

TYPE = "gpudiag-report"


def publish(run: str, files: Sequence[Path], document: Document) -> str:
    """The files as artifact ``gpudiag-ID``, ID being the run's own, with numbers and verdict as its metadata; of
    several runs of one name the newest gets it.
    """
    project, _, name = run.partition("/")
    try:
        with redirect_stdout(io.StringIO()):  # trackio reports what it does
            held = trackio.init(project, name, resume="must", auto_log_gpu=False, auto_log_cpu=False, embed=False)
            try:
                artifact = trackio.Artifact(
                    "gpudiag-" + re.sub(r"[^\w.-]+", "-", held.id, flags=re.ASCII),
                    TYPE,
                    metadata=summary(document) | labels(document),
                )
                for path in files:
                    if path.is_dir():
                        artifact.add_dir(path, name=path.name)
                    else:
                        artifact.add_file(path)
                trackio.log_artifact(artifact, overwrite=True)
            finally:
                trackio.finish()
    except (ValueError, RuntimeError, OSError, sqlite3.Error) as error:
        raise ConfigError(f"trackio did not take the report for run '{run}': {first_line(error)}") from error
    return f"trackio:{run}, artifact {artifact.name}"
