"""Where a file store of MLflow keeps what a training logged."""

from __future__ import annotations

from pathlib import Path

_FOLDER, _RUN = "metrics", "meta.yaml"


def is_metric_file(path: Path) -> bool:
    """Whether it holds the values of one metric of a run, as lines of milliseconds, value and step: of a loss, not of a
    GPU. A metric such as train/loss lies in a folder below.
    """
    above = path.absolute().parents
    return any(folder.name == _FOLDER and (folder.parent / _RUN).is_file() for folder in above)
