"""A run without the passwords of URLs in its names and texts: whatever shows them later holds none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd

from gpudiag.readers._io.url import without_passwords
from gpudiag.run import Run
from gpudiag.schema import TABLES

Rename = Callable[[str], str]


def passwords_hidden(run: Run) -> Run:
    """The run without passwords in names of studies, parameters and GPUs, in cells of text and in what run.toml says.

    Names that differ by a password alone stay apart: a number follows the second.
    """
    rename = _Names()
    gpus = _hidden(run.gpus, rename)
    # The table of samples, by far the longest, has no text but the names of the GPUs.
    tables = {name: _hidden(getattr(run, name), rename) for name in TABLES if name != "gpu" or gpus is not run.gpus}
    info = run.info
    settings = {name: without_passwords(value) for name, value in info.settings if isinstance(value, str)}
    return replace(
        run,
        **tables,
        info=replace(
            info,
            name=without_passwords(info.name),
            settings=info.settings.model_copy(update=settings),
            show_attrs=tuple(map(rename, info.show_attrs)),
            notes=tuple(map(without_passwords, info.notes)),
        ),
    )


class _Names:
    """What names are called instead: the same name the same everywhere, two names never alike."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        made = without_passwords(name)
        if made == name:
            return name
        if name not in self._given:
            alike = sum(without_passwords(other) == made for other in self._given)
            self._given[name] = f"{made} ({alike + 1})" if alike else made
        return self._given[name]


def _hidden(table: pd.DataFrame, rename: Rename) -> pd.DataFrame:
    """The table itself where there is nothing to hide."""
    changed: dict[str, pd.Series] = {}
    for name, cells in table.items():
        if isinstance(cells.dtype, pd.StringDtype) or cells.dtype == object:
            hide = rename if name in ("study", "gpu") else without_passwords
            texts = cells.unique() if isinstance(cells.dtype, pd.StringDtype) else cells
            swaps = {text: hidden for text in texts if isinstance(text, str) and (hidden := hide(text)) != text}
            if swaps:
                changed[str(name)] = _swapped(cells, swaps)
    names = {name: rename(name) for name in table.columns}
    if not changed and all(name == new for name, new in names.items()):
        return table
    return table.assign(**changed).rename(columns=names)


def _swapped(cells: pd.Series, swaps: dict[str, str]) -> pd.Series:
    return cells.map(lambda cell: swaps.get(cell, cell) if isinstance(cell, str) else cell).astype(cells.dtype)
