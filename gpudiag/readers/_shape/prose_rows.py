"""Bare rows of numbers between sentences of a log, and what their columns are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from gpudiag.readers._fields.aliases import meaning_of

_ROW = re.compile(r"\s*-?\d+(?:\.\d+)?(?:\s*,\s*-?\d+(?:\.\d+)?){1,11}\s*")
TEMPERATURES_C = (10, 120)
"""What a column of temperatures holds."""
MOST_INDEX = 15
"""What a column of GPU indices holds at most."""


def bare_row(line: str) -> list[float] | None:
    """The numbers of a line that holds nothing else but commas."""
    return [float(cell.strip()) for cell in line.split(",")] if _ROW.fullmatch(line) else None


def columns_of(
    rows: Sequence[Sequence[float]], given: Sequence[str], totals: Collection[float]
) -> tuple[list[str] | None, str]:
    """A target for each column (empty for one to skip) and a note; None if neither names nor numbers tell.

    The numbers tell if a column is constantly the memory size that sentences of the same log state: used memory
    then stays below it, utilization spans 0-100, and what is left in the range of temperatures is one.
    """
    if given:
        targets = [meaning_of(name).target for name in given]
        return targets, f"Rows of numbers were read as {', '.join(given)}."
    width = Counter(map(len, rows)).most_common(1)[0][0]
    columns = list(zip(*(row for row in rows if len(row) == width), strict=True))
    names = _names_by_values(columns, totals)
    if names is None:
        return None, "Its rows of numbers have no names; give them in order with --columns, or as columns in run.toml."
    shown = ", ".join(name or "-" for name in names)
    return names, f"Its rows of numbers have no names; by their values they were read as {shown}."


def _names_by_values(columns: Sequence[Sequence[float]], totals: Collection[float]) -> list[str] | None:
    names = [""] * len(columns)
    sizes = [k for k, values in enumerate(columns) if set(values) <= set(totals)]
    if len(sizes) != 1:
        return None
    names[sizes[0]] = "mem_total_mib"
    size = columns[sizes[0]][0]
    for k, values in enumerate(columns):
        low, high = min(values), max(values)
        if names[k]:
            continue
        if k == 0 and high <= MOST_INDEX and low == int(low):
            name = "index"
        elif 100 < high <= size:
            name = "mem_used_mib"
        elif TEMPERATURES_C[0] <= low and high <= TEMPERATURES_C[1]:
            name = "temp_c"
        elif low >= 0 and high <= 100:
            name = "util_pct"
        else:
            continue
        if name in names:
            return None
        names[k] = name
    return names if {"util_pct", "mem_used_mib"} <= set(names) else None
