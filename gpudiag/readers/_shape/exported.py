"""Tables that ``gpudiag export`` writes for other tools, known by their columns."""

from __future__ import annotations

from collections.abc import Sequence

from gpudiag.readers._io.csv_records import cells_of
from gpudiag.readers._io.parquet_file import schema_of
from gpudiag.readers._io.source import Source
from gpudiag.schema import TABLES

LEDGER = (("gpu", "cell", "gpu_s", "share_pct"), ("gpu", "start", "end", "cell"))


def exported_in(source: Source, *, also_gpu: bool = False) -> str:
    """Which table a CSV or a Parquet file holds; empty for what is none. ``also_gpu``: as CSV too."""
    schema = schema_of(source)
    if schema is not None:
        is_input = any(key.startswith(b"gpudiag") for key in schema.metadata or {})  # a recording, or of convert
        return "" if is_input else exported_table(schema.names, also_gpu=True)
    if source.is_dir or source.is_binary or not source.lines:
        return ""
    return exported_table(cells_of(source.lines[0]), also_gpu=also_gpu)


def exported_table(names: Sequence[str], *, also_gpu: bool = False) -> str:
    """Which table has these columns, all of them and in the order of the schema; empty for none.

    As text, table gpu may be anybody's who calls columns as the schema does, and is read as such.
    """
    if tuple(names) in LEDGER:
        return "ledger"
    for table in TABLES.values():
        place = {name: at for at, name in enumerate(table.names)}
        own = [place[name] for name in names if name in place]
        rest = set(names) - place.keys()
        whole = own == sorted(own) and set(names) >= set(table.required)
        known = whole and len(names) > 1 and all(name.startswith(table.prefixes) for name in rest)
        if known and (also_gpu or table.name != "gpu"):
            return table.name
    return ""
