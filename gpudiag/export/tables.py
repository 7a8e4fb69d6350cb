"""The tables of a run, and its ledger, as a folder of Parquet or CSV files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag.errors import ConfigError
from gpudiag.files import write_all
from gpudiag.report.format import FORMULA
from gpudiag.schema import TABLES

if TYPE_CHECKING:
    import pandas as pd

    from gpudiag.diagnosis import Diagnosis

LEDGER = ("ledger_cells", "ledger_spans")
PRIVATE = ("user_attrs.", "system_attrs.")


def frames(diagnosis: Diagnosis) -> Iterator[tuple[str, pd.DataFrame]]:
    """Every table that has rows, by the name of its file; attributes only where run.toml's show_attrs names them."""
    run = diagnosis.run
    for name in TABLES:
        table = getattr(run, name)
        if len(table):
            yield name, table[[column for column in table if _is_public(str(column), run.info.show_attrs)]]
    if diagnosis.ledger is not None:
        yield from zip(LEDGER, (diagnosis.ledger.cells, diagnosis.ledger.spans), strict=True)


def write_parquet(diagnosis: Diagnosis, folder: Path) -> list[Path]:
    """One NAME.parquet a table."""
    return _write(folder, ".parquet", diagnosis, lambda table: table.to_parquet(None, index=False))


def write_csv(diagnosis: Diagnosis, folder: Path) -> list[Path]:
    """One NAME.csv a table; times are ISO 8601 in UTC, unknown is empty. No text is a formula to a spreadsheet."""
    timestamps = "%Y-%m-%dT%H:%M:%S.%fZ"
    return _write(folder, ".csv", diagnosis, lambda table: _inert(table).to_csv(index=False, date_format=timestamps))


def _write(
    folder: Path, suffix: str, diagnosis: Diagnosis, content: Callable[[pd.DataFrame], str | bytes]
) -> list[Path]:
    """A file for each table. Nothing is written over an input, or beside a table that is not of this run."""
    held = dict(frames(diagnosis))
    files = {name: folder / f"{name}{suffix}" for name in (*TABLES, *LEDGER)}
    other = [path.name for name, path in files.items() if name not in held and path.exists()]
    if other:
        raise ConfigError(
            f"{folder}: holds {', '.join(other)}, and this run has no such table; choose another -o, or remove what an "
            "earlier export left."
        )
    write_all(folder, ((files[name], content(table)) for name, table in held.items()))
    return [files[name] for name in held]


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
