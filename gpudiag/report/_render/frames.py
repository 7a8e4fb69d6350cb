"""The head of a DataFrame as a table: units from the column names, unknown as a dash."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING

from gpudiag.report._render.blocks import Block, Number, TableBlock, TableCell, Tiles
from gpudiag.report.format import UNKNOWN, clock_time, label, named, plural, safe
from gpudiag.units import unit_of
from gpudiag.values import Values

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS = 8
TILE_CHARS = 14
"""What is longer does not fit a tile."""


def table(frame: pd.DataFrame) -> TableBlock:
    """The first rows of a frame; the caption says how many more there are."""
    head = frame.head(MAX_ROWS)
    names = [str(name) for name in frame.columns]
    rows = tuple(
        tuple(_cell(name, value) for name, value in zip(names, row, strict=True))
        for row in head.itertuples(index=False, name=None)
    )
    more = len(frame) - len(head)
    return TableBlock(labels(names), rows, f"... and {plural(more, 'more row')}" if more else "")


def pairs(values: Values) -> tuple[tuple[str, str], ...]:
    """What is known of these values as (label, value); the unit is in the name."""
    known = {name: value for name, value in values.items() if value is not None and value != ""}
    return tuple(
        zip(labels(list(known)), (named(name, value, exact=True) for name, value in known.items()), strict=True)
    )


def summary(items: Sequence[tuple[str, str]]) -> list[Block]:
    """Short values as tiles, and those that need room as a table of two columns."""
    short = tuple(item for item in items if len(item[1]) <= TILE_CHARS)
    long = tuple(item for item in items if len(item[1]) > TILE_CHARS)
    blocks: list[Block] = [TableBlock(("What", "Value"), long)] if long else []
    return [*blocks, Tiles(short)] if short else blocks


def labels(names: Sequence[str]) -> tuple[str, ...]:
    """Names in words; where two would read the same, the unit tells them apart."""
    words = [label(name) or name for name in names]
    return tuple(
        f"{word} ({unit_of(name)})" if words.count(word) > 1 else word for word, name in zip(words, names, strict=True)
    )


def _cell(name: str, value: object) -> TableCell:
    import numpy as np
    import pandas as pd

    if value is None or value is pd.NaT or value is pd.NA:
        return Number(UNKNOWN)
    if isinstance(value, pd.Timestamp):
        return clock_time(value, value.tzinfo or UTC)
    if isinstance(value, pd.Timedelta):
        return Number(named("_s", value.total_seconds(), exact=True))
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return Number(named(name, value, exact=True))
    return safe(value)
