"""What may be given as a run, which of it is one run, and what a run is called that was given no name."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from gpudiag.errors import ConfigError
from gpudiag.readers._io.paths import without_kind
from gpudiag.readers._io.url import is_url, name_of_url, scheme_of, shown, sqlite_path

UNNAMED = "run"


def is_whole(given: object) -> bool:
    """Whether this names a run as a whole: a folder or a run.toml, not one of its files."""
    if not isinstance(given, str | Path) or given == "" or is_url(given):
        return False
    return Path(given).is_dir() or Path(given).suffix == ".toml"


def as_runs(given: Sequence[object]) -> list[list[object]]:
    """What was given, by run: folders and run.toml files are a run each, files and URLs together are one.

    Raises ConfigError for a mixture, which could mean either.
    """
    whole = [one for one in given if is_whole(one)]
    if not whole:
        return [list(given)] if given else []
    if len(whole) < len(given):
        part = next(one for one in given if not is_whole(one))
        raise ConfigError(
            f"got the run {whole[0]} and the single input {shown(part)}; "
            "give folders (a run each), or files and URLs (one run together)."
        )
    return [[one] for one in whole]


def name_of(inputs: Sequence[object], study: str | None = None) -> str:
    """The name of a run of these inputs: a folder's own, one file's stem, the folder that holds several files.

    A storage without files is called by its database, else by the study asked for, else by its kind and host; a study
    in memory by its own name. No part of it is ever a user or a password.
    """
    urls = [str(given) for given in inputs if is_url(given) and not _is_file(given)]
    paths = [
        sqlite_path(str(given)) if is_url(given) else Path(given)
        for given in inputs
        if isinstance(given, str | Path) and (_is_file(given) or not is_url(given))
    ]
    if paths:
        return _of_paths(paths) or UNNAMED
    if urls:
        return name_of_url(urls[0], study or "") or UNNAMED
    names = (getattr(given, "study_name", "") for given in inputs)  # a column, of a table that has one
    return next((name for name in names if isinstance(name, str) and name), UNNAMED)


def _is_file(given: object) -> bool:
    """Whether this is the URL of an SQLite file."""
    return is_url(given) and scheme_of(str(given)) == "sqlite" and re.search(r":///.*\w", str(given)) is not None


def _of_paths(paths: list[Path]) -> str:
    whole = [path.resolve() for path in paths]
    if len(whole) == 1:
        return whole[0].name if whole[0].is_dir() else without_kind(paths[0])
    try:
        return Path(os.path.commonpath([path if path.is_dir() else path.parent for path in whole])).name
    except ValueError:  # on two drives
        return without_kind(paths[0])
