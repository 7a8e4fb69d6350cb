"""What lies in a folder that may belong to somebody else."""

from __future__ import annotations

import os
from pathlib import Path


def has_file(folder: Path, name: str) -> bool:
    """Whether the folder has a file of that name; False also where one may not look into it (Path.is_file raises)."""
    return os.path.isfile(folder / name)  # noqa: PTH113


def has_folder(folder: Path, name: str) -> bool:
    """Whether the folder has a folder of that name; False also where one may not look into it."""
    return os.path.isdir(folder / name)  # noqa: PTH112
