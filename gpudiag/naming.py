"""What a run is called that was given no name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from gpudiag.readers._io.url import is_url, name_of_url

UNNAMED = "run"


def name_of(inputs: Sequence[object], study: str | None = None) -> str:
    """The name of a run of these inputs: a folder's own, one file's stem, the folder that holds several files.

    A storage without files is called by its database, else by the study asked for, else by its kind and host; a study
    in memory by its own name. No part of it is ever a user or a password.
    """
    urls = [str(given) for given in inputs if is_url(given)]
    paths = [Path(given) for given in inputs if isinstance(given, str | Path) and not is_url(given)]
    if paths:
        return _of_paths(paths) or UNNAMED
    if urls:
        return name_of_url(urls[0], study or "") or UNNAMED
    return next((str(name) for given in inputs if (name := getattr(given, "study_name", ""))), UNNAMED)


def _of_paths(paths: list[Path]) -> str:
    whole = [path.resolve() for path in paths]
    if len(whole) == 1:
        return whole[0].name if whole[0].is_dir() else paths[0].stem
    try:
        return Path(os.path.commonpath([path if path.is_dir() else path.parent for path in whole])).name
    except ValueError:  # on two drives
        return paths[0].stem
