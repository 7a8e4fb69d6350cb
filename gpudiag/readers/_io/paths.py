"""Paths of others: names that are not UTF-8, folders that one may not look into."""

from __future__ import annotations

import os
from pathlib import Path


def as_text(path: Path | str) -> str:
    """The path as text that a table can hold: a byte that is not UTF-8 is shown as an escape."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def has_file(folder: Path, name: str) -> bool:
    """Whether the folder has a file of that name; False also where one may not look into it (Path.is_file raises)."""
    return os.path.isfile(folder / name)  # noqa: PTH113


def has_folder(folder: Path, name: str) -> bool:
    """Whether the folder has a folder of that name; False also where one may not look into it."""
    return os.path.isdir(folder / name)  # noqa: PTH112
