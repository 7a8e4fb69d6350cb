"""``nvidia-smi --query-gpu=... --format=csv`` in all its forms, whole or torn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpudiag.errors import ConfigError, InputError
from gpudiag.readers._delimited.grid import Layout
from gpudiag.readers._delimited.guess import TIMESTAMP, guess_names, has_units, is_documented, rows_like
from gpudiag.readers._delimited.ranges import names_by_ranges
from gpudiag.readers._delimited.sweep import Sweep
from gpudiag.readers._delimited.sweep_tables import assemble
from gpudiag.readers._delimited.table_layout import names_columns
from gpudiag.readers._delimited.unnamed_cells import left_out
from gpudiag.readers._fields.nvidia_fields import announces, layout_of, legal, own_name, split_header
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.record_format import MAGIC
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.moments import read_moment
from gpudiag.readers._shape.timestamp_forms import tell_form
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "nvidia-smi-query-csv"
_SNIFFED_LINES = 100
_SAMPLE_LINES = 40


def recognises(source: Source) -> bool:
    """A header of --query-gpu fields near the top, or rows in the majority that only nvidia-smi writes."""
    if source.is_dir or source.is_binary:
        return False
    lines = _top(source)
    header = next((at for at, line in enumerate(lines, 1) if legal(split_header(line))), 0)
    if header:
        return not _dated_otherwise(split_header(lines[header - 1]), lines[header:])
    rows = rows_like(lines)
    if not rows:
        return False
    filled = [line for line in lines if line.strip() and not line.startswith(MAGIC) and not read_moment(line)]
    if 2 * len(rows) < len(filled):
        return False
    first = split_header(filled[0])  # a header in other words is another dialect's
    return first in rows or len(first) == 1 or (len(first) != len(rows[0]) and not names_columns(first))


def _dated_otherwise(names: Sequence[str], below: Sequence[str]) -> bool:
    """True if its times are no nvidia-smi's: somebody wrote its names above a table of his own."""
    if "timestamp" not in names or any(map(TIMESTAMP.fullmatch, _times(names, below))):
        return False
    form = tell_form([*_times(names, below)])
    return form is not None and form.kind in ("text", "epoch")


def _times(names: Sequence[str], below: Sequence[str]) -> Iterator[str]:
    place = names.index("timestamp")
    return (row[place] for line in below if len(row := split_header(line)) == len(names))


def _top(source: Source) -> list[str]:
    return source.top[:_SNIFFED_LINES]


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Read every row; see :func:`gpudiag.readers.telemetry.read_telemetry`."""
    lines = _top(source)
    notes: list[str] = []
    guessed = False
    header = next((at for at, line in enumerate(lines, 1) if legal(split_header(line))), 0)
    if options.columns:
        sweep = Sweep(_named(source, options.columns, lines), lambda line, below: None, ProblemLog())
    elif header:
        rows = source.lines[header : header + _SAMPLE_LINES]
        names = split_header(lines[header - 1])
        sweep = Sweep(layout_of(names, rows), announces, ProblemLog())
        notes += left_out(names, sweep.layout)
    else:
        layout = _guessed(source, lines, notes)
        guessed = not is_documented([field.name for field in layout.fields])
        sweep = Sweep(layout, announces, ProblemLog())
    sweep.run(source.blocks(), header)
    return assemble(source, NAME, options, sweep, notes, guessed=guessed)


def _named(source: Source, names: Sequence[str], lines: Sequence[str]) -> Layout:
    layout = layout_of([own_name(name) for name in names], lines)
    if not set(layout.targets) - {"time", "index", "name", "host"}:
        raise ConfigError(
            f"{source.path}: none of the columns given ({', '.join(names)}) is a measurement; expected names of "
            "nvidia-smi --help-query-gpu such as timestamp,index,utilization.gpu,memory.used."
        )
    return layout


def _guessed(source: Source, lines: Sequence[str], notes: list[str]) -> Layout:
    rows = rows_like(lines)
    names, told = (guess_names(rows), "units") if has_units(rows) else (names_by_ranges(rows), "ranges")
    if set(names) <= {"unknown"}:
        raise InputError(
            f"{source.path}: has no header and no units, so that its {len(rows[0])} columns cannot be told apart; "
            "name them in order with --columns, or as columns in run.toml: timestamp,index,utilization.gpu,... "
            "(unknown for one to skip)."
        )
    notes.append(f"It has no header; its columns were taken by their {told} as {', '.join(names)}.")
    return layout_of(names, [", ".join(row) for row in rows])


READER = Reader(NAME, recognises, read)
