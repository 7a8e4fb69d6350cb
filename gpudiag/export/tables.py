"""The tables of a run, and its ledger, as a folder of Parquet or CSV files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag.report._notebook import pages
from gpudiag.schema import TABLES

if TYPE_CHECKING:
    import pandas as pd

    from gpudiag.diagnosis import Diagnosis

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet runs (OWASP, CSV injection)."""
PRIVATE = ("user_attrs.", "system_attrs.")


def frames(diagnosis: Diagnosis) -> Iterator[tuple[str, pd.DataFrame]]:
    """Every table that has rows, by the name of its file; attributes only where run.toml's show_attrs names them."""
    run = diagnosis.run
    for name in TABLES:
        table = getattr(run, name)
        if len(table):
            yield name, table[[column for column in table if _is_public(str(column), run.info.show_attrs)]]
    if diagnosis.ledger is not None:
        yield "ledger_cells", diagnosis.ledger.cells
        yield "ledger_spans", diagnosis.ledger.spans


def write_parquet(diagnosis: Diagnosis, folder: Path) -> list[Path]:
    """One NAME.parquet a table."""
    return [
        _written(folder / f"{name}.parquet", table.to_parquet(None, index=False)) for name, table in frames(diagnosis)
    ]


def write_csv(diagnosis: Diagnosis, folder: Path) -> list[Path]:
    """One NAME.csv a table; times are ISO 8601 in UTC, unknown is empty. No text is a formula to a spreadsheet."""
    timestamps = "%Y-%m-%dT%H:%M:%S.%fZ"
    return [
        _written(folder / f"{name}.csv", _inert(table).to_csv(index=False, date_format=timestamps))
        for name, table in frames(diagnosis)
    ]


def _inert(table: pd.DataFrame) -> pd.DataFrame:
    """With an apostrophe before text that a spreadsheet would run."""
    texts = [name for name in table if table[name].dtype.kind not in "biufmM"]
    quoted = {
        name: table[name].map(lambda cell: f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell)
        for name in texts
    }
    return table.assign(**quoted).rename(columns=lambda name: f"'{name}" if str(name).startswith(FORMULA) else name)


def _is_public(column: str, shown: tuple[str, ...]) -> bool:
    return not column.startswith(PRIVATE) or column in shown or column.partition(".")[2] in shown


def _written(path: Path, content: str | bytes) -> Path:
    pages.write(path, content)
    return path
