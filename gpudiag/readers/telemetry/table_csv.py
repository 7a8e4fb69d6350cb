"""Home-made tables of GPU metrics: any delimiter, any names that can be understood, long or one column per GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from gpudiag.errors import ConfigError, InputError
from gpudiag.readers._delimited.gpu_columns import unused
from gpudiag.readers._delimited.grid import Layout, is_missing
from gpudiag.readers._delimited.number_rows import NAME_THEM, alike, clock_apart, in_one_unit, number_rows
from gpudiag.readers._delimited.ranges import names_by_ranges
from gpudiag.readers._delimited.sweep import TORN, Sweep
from gpudiag.readers._delimited.sweep_tables import assemble
from gpudiag.readers._delimited.table_layout import (
    BLANKS,
    TableHeader,
    find_header,
    headless,
    layout_of,
    names_columns,
    rows_under,
    split,
    unitless,
)
from gpudiag.readers._delimited.table_text import Prepare, join_decimals, quoting, squeeze, tiles_as_gpus, unquote_lines
from gpudiag.readers._delimited.unnamed_cells import left_out
from gpudiag.readers._fields.aliases import meaning_of, words_of
from gpudiag.readers._fields.mlflow_store import is_metric_file
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.moments import read_moment
from gpudiag.readers._shape.timestamp_forms import decided, steps_back, swapped
from gpudiag.readers._shape.wide import is_wide, long, with_bare_columns
from gpudiag.readers.base import Reader, ReadOptions, Telemetry
from gpudiag.readers.telemetry.nvidia_smi_dmon import COLUMNS as OF_DMON

NAME = "table-csv"
_SNIFFED_LINES = 60
_SAMPLE_LINES = 100


@dataclass(frozen=True)
class _TableFormat:
    """How a table is to be read."""

    header: TableHeader
    layout: Layout
    prepare: Prepare | None
    notes: tuple[str, ...] = ()


def recognises(source: Source) -> bool:
    """A header whose names are understood, or a table of numbers without one."""
    if source.is_dir or source.is_binary or is_metric_file(source.path):
        return False
    lines = _top(source)[:_SNIFFED_LINES]
    return find_header(lines) is not None or headless(lines) is not None


def takes_named(source: Source, columns: Sequence[str]) -> bool:
    """Whether it holds rows that can be read once their columns are named, though nothing in it tells of GPUs."""
    return bool(columns) and not source.is_dir and not source.is_binary and number_rows(_top(source)) is not None


def _top(source: Source) -> list[str]:
    """The first lines, without quotes."""
    text = "\n".join(source.top[: _SNIFFED_LINES + _SAMPLE_LINES])
    prepare = quoting(text)
    return (prepare(text.encode()).decode() if prepare else text).split("\n")


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Read every row; see :func:`gpudiag.readers.telemetry.read_telemetry`."""
    table = _table(source, options)
    if "time" not in table.layout.targets and not options.period_s:
        _check_times(source, table.header)
    sweep = _swept(source, table, table.layout)
    notes = list(table.notes)
    if table.layout.timestamp.ambiguous:
        sweep, note = _day_or_month(source, table, sweep)
        notes.append(note)
    if is_wide(table.layout):
        sweep.pieces = [long(piece) for piece in sweep.pieces]
    return assemble(source, NAME, options, sweep, notes, unitless=unitless(table.layout))


def _table(source: Source, options: ReadOptions) -> _TableFormat:
    lines = _top(source)
    header = find_header(lines)
    if options.columns:
        found = None if header else number_rows(lines)
        if found and found[1] != len(options.columns) and headless(lines[:_SNIFFED_LINES]) is None:
            raise ConfigError(
                f"{source.path}: {len(options.columns)} columns were named ({', '.join(options.columns)}), and its "
                f"rows have {found[1]}; {NAME_THEM}."
            )
        separator = header.separator if header else headless(lines[:_SNIFFED_LINES]) or (found[0] if found else ",")
        own = tuple(OF_DMON.get(name, name) for name in options.columns)
        of_dmon = {"sm", "mem"} <= set(options.columns)  # where mem is the time with accesses
        header = TableHeader(header.line if header else 0, separator, own if of_dmon else options.columns)
        if not any(meaning_of(name).metric for name in options.columns):
            raise ConfigError(
                f"{source.path}: none of the columns given ({', '.join(options.columns)}) is a measurement; expected "
                "names such as timestamp,gpu,util_pct,mem_used_mib,power_w."
            )
    if header is not None:
        return _laid_out(source, header, lines[header.line :])
    separator = headless(lines[:_SNIFFED_LINES]) or ","
    cells = [split(line, separator) for line in lines if line.strip() and not read_moment(line)]
    width = len(cells[0])
    rows = [row for row in cells if len(row) == width]
    if names := names_by_ranges(rows):
        table = _laid_out(source, TableHeader(0, separator, tuple(names)), lines)
        said = f"It has no header; its columns were taken by their ranges as {', '.join(names)}."
        return replace(table, notes=(said, *table.notes))
    raise InputError(
        f"{source.path}: has no header, and its {width} columns of numbers cannot be told apart; name them in "
        "order with --columns, or as columns in run.toml: timestamp,util_pct,mem_used_mib,power_w "
        "('-' for one to skip)."
    )


def _check_times(source: Source, header: TableHeader) -> None:
    """Raise InputError for a column of times of which none is understood: a period would be made up."""
    places = [at for at, name in enumerate(header.names) if meaning_of(name).target in ("time", "date")]
    rows = rows_under(_top(source)[header.line :], header.separator, len(header.names))
    for at in places:
        if cell := next((row[at] for row in rows if not is_missing(row[at])), ""):
            raise InputError(
                f"{source.path}: column {header.names[at]!r} holds {cell[:40]!r}, no known form of time; expected "
                "such as 2026-02-15 06:12:48 or seconds since 1970. Give the time between rows with --period, "
                "or as period_s in run.toml, to read it without them."
            )


def _anew(lines: Iterable[str], change: Prepare, header: TableHeader) -> list[list[str]]:
    """The rows once their text is changed."""
    return rows_under(change("\n".join(lines).encode()).decode().split("\n"), header.separator, len(header.names))


def _laid_out(source: Source, header: TableHeader, below: Sequence[str]) -> _TableFormat:
    steps: list[Prepare | None] = [quoting("\n".join(source.top[: _SNIFFED_LINES + _SAMPLE_LINES]))]
    rows = rows_under(below, header.separator, len(header.names))
    if not rows and header.separator == ",":
        steps.append(clock_apart)
        rows = _anew(below, clock_apart, header)
    if not header.line:
        rows = alike(rows)
    meanings = [meaning_of(name) for name in header.names]
    if header.separator != BLANKS and (units := in_one_unit(meanings, rows, header.separator)):
        steps.append(units)
        rows = _anew(map(header.separator.join, rows), units, header)
    if header.separator == BLANKS:
        steps.append(squeeze)
    elif header.separator == "," and (numbers := _decimals(header.names, rows)):
        steps.append(join := join_decimals(len(header.names), numbers))
        rows = _anew(map(header.separator.join, rows), join, header)
    if tiles := _tiles(header, rows):
        steps.append(as_gpus := tiles_as_gpus(*tiles, header.separator))
        rows = _anew(map(header.separator.join, rows), as_gpus, header)
    layout = layout_of(header.names, rows, header.separator)
    layout, notes = with_bare_columns(source, header.names, layout, rows)
    notes = (*notes, *left_out(header.names, layout), *unused(header.names, layout))
    if not any(meaning_of(name).gpu for name in header.names):
        notes = (*notes, "No column name says GPU: its measurements were taken as those of a GPU.")
    measured = [name for name, meaning in zip(header.names, meanings, strict=True) if meaning.metric]
    if twice := sorted({name for name in measured if measured.count(name) > 1}):
        notes = (*notes, f"Of columns that stand several times ({', '.join(twice)}) the first was read.")
    if tiles:
        notes = (*notes, "Its tiles were taken as GPUs of their own: 0:1 is tile 1 of device 0.")
    if unquote_lines in steps:
        notes = (*notes, "Some of its cells hold line breaks; of each such cell the first line was read.")
    return _TableFormat(header, layout, _chain([step for step in steps if step]), notes)


def _chain(steps: Sequence[Prepare]) -> Prepare | None:
    def run(data: bytes) -> bytes:
        for step in steps:
            data = step(data)
        return data

    return run if steps else None


def _tiles(header: TableHeader, rows: Sequence[Sequence[str]]) -> tuple[int, int] | None:
    """The columns of device and tile, as of ``xpu-smi dump -t``, where there are several tiles."""
    device = [place for place, name in enumerate(header.names) if meaning_of(name).target == "index"]
    tile = [place for place, name in enumerate(header.names) if words_of(name) in (["tile"], ["tile", "id"])]
    if len(device) != 1 or len(tile) != 1 or len({row[tile[0]] for row in rows}) < 2:
        return None
    return device[0], tile[0]


def _decimals(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """The columns of measurements, if rows are longer than the header by a decimal comma in each of them."""
    numbers = [place for place, name in enumerate(names) if meaning_of(name).metric]
    if not rows or not numbers or len(rows[0]) != len(names) + len(numbers):
        return []
    texts = [row[place + shift + 1] for row in rows for shift, place in enumerate(numbers)]
    return (
        numbers
        if all(text.isdigit() for text in texts) and any(len(text) != 1 or text != "0" for text in texts)
        else []
    )


def _swept(source: Source, table: _TableFormat, layout: Layout) -> Sweep:
    header = table.header

    def announces(text: str, below: Callable[[], list[str]]) -> Layout | None:
        names = split(text, header.separator)
        if tuple(names) == header.names:
            return layout
        if header.separator == BLANKS or not names_columns(names):
            return None
        return layout_of(names, rows_under(below(), header.separator, len(names)), header.separator)

    sweep = Sweep(layout, announces, ProblemLog(), header.levels)
    blocks = source.blocks()
    if table.prepare:
        blocks = (replace(block, data=table.prepare(block.data)) for block in blocks)
    sweep.run(blocks, header.line)
    return sweep


def _day_or_month(source: Source, table: _TableFormat, sweep: Sweep) -> tuple[Sweep, str]:
    """The better of the two readings of dates such as 04-03-2021: fewer rows lost, then time that runs on."""
    form = table.layout.timestamp
    other = _swept(source, table, replace(table.layout, timestamp=swapped(form)))
    best, note = decided(form, [(_lost(one), _steps_back(one)) for one in (sweep, other)])
    return (sweep if best == form else other), note


def _lost(sweep: Sweep) -> int:
    return sum(problem.count for problem in sweep.log.all if problem.kind == TORN)


def _steps_back(sweep: Sweep) -> tuple[int, int]:
    return steps_back(piece.columns["time"].astype("int64") for piece in sweep.pieces if len(piece))


READER = Reader(NAME, recognises, read)
