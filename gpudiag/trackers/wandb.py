"""A run of W&B: its summary and its files, by the public API.

``wandb.init(resume=...)`` could log a versioned artifact, but it makes this process part of the run: the run's state,
console log and description of the machine become those of the report.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from gpudiag.errors import ConfigError, PackageMissing
from gpudiag.readers._io.url import first_line
from gpudiag.report.document import Document
from gpudiag.scratch import scratch
from gpudiag.trackers.summary import PREFIX, labels, summary

try:
    import wandb
except ModuleNotFoundError:
    raise PackageMissing("--to wandb:ENTITY/PROJECT/RUN_ID needs W&B: pip install 'gpudiag[wandb]'.") from None

FOLDER = "gpudiag"


def publish(run: str, files: Sequence[Path], document: Document) -> str:
    """Numbers and verdict as ``gpudiag`` of the summary, which W&B shows as ``gpudiag.gpu_h`` and so on; the files in
    ``gpudiag/`` among those of the run.
    """
    values = {name.removeprefix(PREFIX): value for name, value in (summary(document) | labels(document)).items()}
    try:
        with scratch() as above:
            held = wandb.Api().run(run)
            held.summary.update({FOLDER: values})
            for path in _copied(files, above / FOLDER):
                held.upload_file(str(path), root=str(above))
    except (wandb.errors.Error, ValueError, OSError) as error:
        raise ConfigError(f"W&B did not take the report for run '{run}': {first_line(error)}") from error
    return f"wandb:{run}, files in {FOLDER}/"


def _copied(files: Sequence[Path], folder: Path) -> list[Path]:
    """The files in a folder that is called as W&B is to call it: it takes the names from the paths."""
    folder.mkdir()
    for path in files:
        if path.is_dir():
            shutil.copytree(path, folder / path.name)
        else:
            shutil.copy(path, folder)
    return sorted(path for path in folder.rglob("*") if path.is_file())
