"""A finished recording as Parquet. While it runs it is the CSV journal beside it, which a kill cannot hurt."""

from __future__ import annotations

import json
from pathlib import Path

from gpudiag.readers._io.record_format import PARQUET_KEY

JOURNAL = ".journal.csv"


def journal_of(path: Path) -> Path:
    """Where the rows of a Parquet recording are while it runs."""
    return path.with_name(path.stem + JOURNAL)


def convert(journal: Path, path: Path) -> Path:
    """Write the journal's sessions as Parquet and remove it; an older recording at ``path`` is kept.

    Returns:
        Where it was written: ``path``, or ``NAME.002.parquet`` and so on beside it.
    """
    # Heavy, and only now: the training is over.
    import polars as pl
    import pyarrow.parquet as pq

    from gpudiag.readers._io.problems import ProblemLog
    from gpudiag.readers._io.source import Source
    from gpudiag.readers.telemetry.gpudiag_csv import frames_of, sessions

    found = sessions(Source.open(journal), ProblemLog())
    frames = [frame.with_columns(session=pl.lit(at)) for at, frame in enumerate(frames_of(found)) if len(frame)]
    table = pl.concat(frames, how="diagonal").to_arrow()
    about = [{"about": session.about, "gpus": session.gpus} for session in found]
    target = _free(path)
    part = target.with_name(target.name + ".part")
    pq.write_table(table.replace_schema_metadata({PARQUET_KEY: json.dumps(about).encode()}), part, compression="zstd")
    part.replace(target)
    journal.unlink()
    return target


def _free(path: Path) -> Path:
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}.{number:03d}{path.suffix}")
    return free
