"""Paths of others: names that are not UTF-8, folders that one may not look into."""

from __future__ import annotations

import os
import re
from pathlib import Path

PACKED = (".gz", ".zst", ".zstd", ".xz", ".bz2", ".zip")
_KIND = re.compile(r"(?<=.)\.[A-Za-z]\w*(\.\d[\d_-]*)?$")
"""The kind in a name, with the number or day that a rotation of logs appends."""


def as_text(path: Path | str) -> str:
    """The path as text that a table can hold: a byte that is not UTF-8 is shown as an escape."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def without_kind(path: Path) -> str:
    """The name of a file without its kind, as text: ``a.b`` of ``a.b.csv`` and ``a.b.csv.gz``, ``search`` of
    ``search.log.1``; what begins with a digit is none, such as that of ``lr0.001``.
    """
    packed = path.suffix.lower() in PACKED
    return _KIND.sub("", as_text(path.stem if packed else path.name))


def has_file(folder: Path, name: str) -> bool:
    """Whether the folder has a file of that name; False also where one may not look into it (Path.is_file raises)."""
    return os.path.isfile(folder / name)  # noqa: PTH113


def has_folder(folder: Path, name: str) -> bool:
    """Whether the folder has a folder of that name; False also where one may not look into it."""
    return os.path.isdir(folder / name)  # noqa: PTH112
