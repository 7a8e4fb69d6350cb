"""Home-made and exported tables with a reading a row: time, GPU, metric and value.

As ``pandas.melt``, Grafana's tables of Prometheus, and InfluxDB write them (annotated CSV:
https://docs.influxdata.com/influxdb/v2/reference/syntax/annotated-csv/). Read as the same table with a column for each
metric is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gpudiag.errors import InputError
from gpudiag.readers._delimited.gpu_columns import NUMBER
from gpudiag.readers._delimited.grid import is_missing
from gpudiag.readers._delimited.long_rows import LongColumns, WideRows, columns_of, find_long
from gpudiag.readers._delimited.unnamed_cells import is_quantity
from gpudiag.readers._fields.aliases import meaning_of
from gpudiag.readers._io.csv_records import number_of, records
from gpudiag.readers._io.held_file import held_file
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.finish import nothing_usable
from gpudiag.readers.base import Reader, ReadOptions, Telemetry
from gpudiag.readers.telemetry import table_csv

NAME = "table-long"
TORN = "torn row"
OTHER = "line that is no sample"
GARBLED = "value that is no number"
INSTANCE = "reading of a MIG instance"
_NAMED = 5


def recognises(source: Source) -> bool:
    """A header with one column of metrics and one of values, and names of metrics of GPUs below it."""
    return not source.is_dir and not source.is_binary and find_long(source.lines) is not None


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Read every row; see :func:`gpudiag.readers.telemetry.read_telemetry`."""
    log, wide, unread = ProblemLog(), WideRows(), set[str]()
    columns = find_long(source.lines)
    assert columns is not None
    for number, cells in records(source.read_text(), columns.separator, log):
        if cells[0].startswith("#"):  # annotations of Influx
            continue
        if columns.names[columns.value] in map(str.strip, cells):
            columns = columns_of(cells, columns.separator) or columns
        elif len(cells) != len(columns.names):
            torn = columns.separator.join(cells)
            log.add(TORN if len(cells) > 1 else OTHER, line=number, example=torn, lost=len(cells) > 1)
        else:
            unread |= _take(wide, columns, cells, number, log)
    if not len(wide):
        raise nothing_usable(source, NAME, log)
    if name := wide.apart_by():
        raise InputError(
            f"{source.path}: rows of one time and metric differ in column {name!r}: they may be of several GPUs or "
            f"runs; expected one value of each. Keep the rows of one {name} in a file, or call the column gpu or "
            "host if it is that."
        )
    with held_file(source.path, partial(_write, wide, len(columns.when))) as text:
        found = table_csv.read(text, options)
    for problem in found.problems:
        log.add(problem.kind, problem.count, example=problem.example, lost=problem.lost)
    return replace(found, reader=NAME, problems=log.all, notes=(*found.notes, *_told(sorted(unread))))


def _take(wide: WideRows, columns: LongColumns, cells: Sequence[str], number: int, log: ProblemLog) -> set[str]:
    """Take a reading; the name of a metric that is none of a GPU."""
    name, factor = columns.named(cells)
    value, meaning = cells[columns.value].strip(), meaning_of(name)
    bare = NUMBER.fullmatch(value) is not None
    if not name:
        log.add(INSTANCE, line=number)
    elif not meaning.metric and (columns.whose or not meaning.target.startswith("host.")):
        return {cells[columns.metric].strip()}
    elif not bare and not is_missing(value) and (factor != 1 or not is_quantity(meaning.target, value)):
        log.add(GARBLED, line=number, example=value, lost=True)
    else:
        if bare and factor != 1:
            value = str(number_of(value.replace(",", ".")) * factor)
        when = tuple([(one, cells[at].strip()) for one, at in columns.when])
        whose = tuple([(one, cells[at].strip()) for one, at in columns.whose])
        wide.add(when, whose, name, value, tuple([(one, cells[at].strip()) for one, at in columns.rest]))
    return set()


def _told(unread: Sequence[str]) -> list[str]:
    names = ", ".join(name[:40] for name in unread[:_NAMED])
    more = f" and {len(unread) - _NAMED:,} more" if len(unread) > _NAMED else ""
    return [f"Metrics that are not known as those of a GPU were not read: {names}{more}."] if unread else []


def _write(wide: WideRows, times: int, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(wide.lines(times))


READER = Reader(NAME, recognises, read)
