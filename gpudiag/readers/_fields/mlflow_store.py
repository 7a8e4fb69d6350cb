"""Where a file store of MLflow keeps what a training logged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpudiag.readers._io import plain_yaml

FOLDER, SYSTEM, _RUN = "metrics", "system", "meta.yaml"
_IDS = ("run_id", "run_uuid")
"""What names a run; versions before 1.0 wrote the latter alone. A logged model beside the runs has another."""
_MOST_CHARACTERS = 65_536


def is_metric_file(path: Path) -> bool:
    """Whether it holds the values of one metric of a run, as lines of milliseconds, value and step, which no table of a
    GPU has. A metric such as train/loss lies in a folder below.
    """
    above = path.absolute().parents
    of_system = len(above) > 1 and above[0].name == SYSTEM and above[1].name == FOLDER
    return of_system or any(folder.name == FOLDER and (folder.parent / _RUN).is_file() for folder in above)


def is_run(folder: Path) -> bool:
    """Whether it is the folder of a run."""
    return any(name in description(folder) for name in _IDS)


def description(folder: Path) -> dict[str, Any]:
    """What a store says of a run; empty where it says nothing."""
    import yaml

    try:
        with (folder / _RUN).open(encoding="utf-8", errors="replace") as file:
            found = plain_yaml.load(file.read(_MOST_CHARACTERS))
    except (OSError, yaml.YAMLError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
