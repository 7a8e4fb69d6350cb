"""Telemetry of any dialect as one Parquet file that is an input like any other: `gpudiag convert`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import tzinfo
from pathlib import Path

import pyarrow.parquet as pq

from gpudiag._load.intake import Intake, take
from gpudiag.alignment.other_zone import in_one_zone
from gpudiag.errors import ConfigError, InputError
from gpudiag.readers._shape.merge_telemetry import merge
from gpudiag.readers.base import ReadOptions, Telemetry
from gpudiag.readers.telemetry.parquet import to_arrow
from gpudiag.run import InputRecord
from gpudiag.timezones import parse_zone

SUFFIX = ".parquet"


def convert(
    paths: Sequence[str | Path],
    output: str | Path,
    *,
    timezone: str | tzinfo | None = None,
    columns: tuple[str, ...] = (),
    period_s: float | None = None,
    progress: Callable[[str], None] = lambda path: None,
) -> Telemetry:
    """Read logs of GPU metrics as one telemetry and write all its tables into one Parquet file.

    Reading that file gives the same tables, with the notes and problems of reading the logs. An older file at
    ``output`` is replaced, once the new one is complete.

    Args:
        paths: the logs, of one run.
        output: the file to write, ``NAME.parquet``.
        timezone: IANA name of the zone of timestamps that carry none; default: this machine's.
        columns: column names for logs that have no header line.
        period_s: sampling period in seconds of logs that have no timestamps.
        progress: called with each path before it is read.

    Returns:
        What was written.

    Raises:
        InputError: an input cannot be read, is no telemetry, or would be overwritten.
        ConfigError: the output is not called ``NAME.parquet`` or lies in no folder.
    """
    output = Path(output)
    _check(paths, output)
    options = ReadOptions(parse_zone(timezone), columns, period_s)
    whole, notes = read_logs(paths, options, progress, given=timezone is not None)
    part = output.with_name(output.name + ".part")
    pq.write_table(to_arrow(whole, notes), part, compression="zstd", write_page_checksum=True)
    part.replace(output)
    return whole


def read_logs(
    paths: Sequence[str | Path], options: ReadOptions, progress: Callable[[str], None], *, given: bool
) -> tuple[Telemetry, tuple[str, ...]]:
    """Logs as one telemetry, and where its rows came from; ``given``: somebody stated the zone of the options.

    Raises InputError, or ConfigError without any.
    """
    if not paths:
        raise ConfigError("convert needs at least one log of GPU metrics.")
    parts: list[Telemetry] = []
    notes: list[str] = []
    for path in paths:
        progress(str(path))
        intake = take(path, options)
        parts.append(_telemetry(intake))
        notes.append(_provenance(intake.record))
    names = [str(path) for path in paths]
    placed = in_one_zone(parts, names, given=given)
    whole = merge(placed.logs, names)
    return replace(whole, notes=(*whole.notes, *placed.notes)) if placed.notes else whole, tuple(notes)


def _check(paths: Sequence[str | Path], output: Path) -> None:
    if output.suffix != SUFFIX:
        raise ConfigError(
            f"{output}: expected a name that ends in {SUFFIX}, which alone holds every table exactly, "
            f"but got '{output.suffix}'."
        )
    if not output.parent.is_dir():
        raise ConfigError(f"{output}: there is no folder {output.parent}; make it first.")
    if output.is_dir():
        raise ConfigError(f"{output}: is a folder; expected a file to write.")
    for path in paths:
        if output.exists() and Path(path).exists() and output.samefile(path):
            raise InputError(f"{output}: is an input, which is never changed; choose another output.")


def _telemetry(intake: Intake) -> Telemetry:
    if not isinstance(intake.data, Telemetry):
        record = intake.record
        raise InputError(f"{record.path}: holds {record.kind} ({record.reader}); convert reads logs of GPU metrics.")
    return intake.data


def _provenance(record: InputRecord) -> str:
    digest = f", sha256 {record.sha256}" if record.sha256 else ""
    return f"Converted from {Path(record.path).name} ({record.reader}, {record.rows} rows{digest})."
