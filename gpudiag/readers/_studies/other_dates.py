"""Dates that begin with the day or the month, as spreadsheets save them, in columns of starts and ends."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpudiag.patterns import late

Cells = Sequence[object]

_OTHER = re.compile(r"\s*\d{1,2}[-/.]\d{1,2}[-/.]\d{4}[ T]")
_WHOLE_MINUTE = late(r"\s*\d{4}[-/.]\d{1,2}[-/.]\d{1,2}[ T]\d{1,2}:\d\d\s*")
MINUTES = "Starts and ends are written in whole minutes, so what they tell of lengths may be a minute off."


def in_iso(columns: Sequence[Cells]) -> tuple[list[Cells], list[str]]:
    """The columns with such dates as ISO 8601, all read one way, and notes on how. What is of another form stays.

    polars is needed only here, and seldom.
    """
    texts = [[cell if isinstance(cell, str) and _OTHER.match(cell) else None for cell in cells] for cells in columns]
    if not any(cell for cells in texts for cell in cells):
        given = [cell for cells in columns for cell in cells if cell]
        minutes = bool(given) and all(isinstance(cell, str) and _WHOLE_MINUTE.fullmatch(cell) for cell in given)
        return list(columns), [MINUTES] if minutes else []
    import polars as pl

    from gpudiag.readers._shape.given_times import form_of_texts

    series = [pl.Series("", cells, dtype=pl.String).str.strip_chars() for cells in texts]
    form, notes = form_of_texts({str(at): one for at, one in enumerate(series)})
    if form is None or form.kind != "text":
        return list(columns), []
    zone = "+00:00" if form.zoned else ""
    read = [form.read(one).dt.strftime(f"%Y-%m-%dT%H:%M:%S%.6f{zone}").to_list() for one in series]
    out: list[Cells] = [
        [given if new is None else new for given, new in zip(cells, iso, strict=True)]
        for cells, iso in zip(columns, read, strict=True)
    ]
    return out, notes if "%S" in form.format else [*notes, MINUTES]
