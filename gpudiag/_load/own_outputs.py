"""What gpudiag itself leaves in a folder: reports, plans, exports and lists of known findings; no inputs of a run."""

from __future__ import annotations

import re
from pathlib import Path

from gpudiag.errors import ConfigError, InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.exported import exported_in
from gpudiag.schema import TABLES

DOCUMENT = re.compile(rb'\s*\{\s*"schema":\s*"gpudiag\.')
PAGE = re.compile(rb'<meta (name="generator" content="gpudiag |content="gpudiag [^"]*" name="generator")')
NAMES = ("gpudiag.toml", "report.failed.ipynb")
BESIDE = (".md", ".ipynb")
"""Files that a page has beside it under its own name, as it has the folder ``NAME_files``."""


EXPORTED = (*TABLES, "ledger_cells", "ledger_spans")
"""Tables of an export, by the names of their files."""


def is_own_output(source: Source) -> bool:
    """Whether gpudiag wrote this file or folder, as its content says or that of the page beside it."""
    path = source.path
    if path.is_dir():
        return path.name.endswith("_files") and _is_page(path.with_name(path.name.removesuffix("_files") + ".html"))
    if path.name in NAMES or DOCUMENT.match(source.head) or PAGE.search(source.head):
        return True
    return (path.suffix in BESIDE and _is_page(path.with_suffix(".html"))) or is_exported(source)


def is_exported(source: Source) -> bool:
    """Whether this is a table of an export, in which the ledger of the same run lies beside it."""
    path = source.path
    if path.stem not in EXPORTED or path.suffix not in (".csv", ".parquet") or not exported_in(source, also_gpu=True):
        return False
    ledger = path.with_name(f"ledger_cells{path.suffix}")
    try:
        return ledger.is_file() and exported_in(Source.open(ledger)) == "ledger"
    except (InputError, OSError):
        return False


def is_own(path: Path) -> bool:
    """Whether a file is there, and gpudiag wrote it."""
    return path.is_file() and is_own_output(Source.open(path))


def check_own(path: Path) -> None:
    """Raise ConfigError where something lies under a name that gpudiag writes, and gpudiag did not write it."""
    if path.is_file() and not is_own(path):
        raise ConfigError(f"{path}: was not written by gpudiag and would be overwritten; choose another output.")


def _is_page(path: Path) -> bool:
    try:
        return path.is_file() and PAGE.search(Source.open(path).head) is not None
    except InputError:
        return False
