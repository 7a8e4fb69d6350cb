"""The column text of ``nvidia-smi dmon`` and ``pmon`` and of ``dcgmi dmon``: headers, rows and timestamps.

nvidia-smi prints ``# gpu ...`` and ``# Idx ...`` (names, then units), repeats them, and may change columns inside a
file; ``-o D``/``-o T`` put date and time before them; ``--format csv`` puts commas between; ``-`` is a missing
value. No public file of ``--format csv`` was found: its form is taken from programs that parse it. dcgmi prints
``#Entity ...`` and ``ID``, and rows ``GPU 0 ...``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from gpudiag.readers._delimited.grid import split_lines
from gpudiag.readers._io.lines import plain
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import LineBlock, Source
from gpudiag.readers._shape.smi_table import is_table
from gpudiag.readers._shape.ticks import MIDNIGHT_NOTE, relative_note, relative_time, since_midnight

NOT_A_ROW = "line that is no sample"
TORN = "torn row"
BAD_CELL = "cell that is no number"
MISSING = ("-", "N/A", "")
_UNITS = ("#idx", "#yyyymmdd", "#hh:mm:ss", "id")
_TEXTS = ("entity", "gpu", "date", "time", "pid", "command")
_UNIT_LINE = r"^#|^ID$|^ID "
_METRICS = {"pwr", "temp", "gtemp", "sm", "mem", "enc", "mclk", "pclk", "pviol", "fb", "bar1", "sbecc", "pci", "rxpci"}


@dataclass(frozen=True)
class ColumnHeader:
    """Names of the columns of the rows that follow, in lower case."""

    names: tuple[str, ...]
    comma: bool

    @property
    def tool(self) -> str:
        return "dcgmi" if self.names[0] == "entity" else "pmon" if "pid" in self.names else "dmon"

    @property
    def separator(self) -> str:
        return "," if self.comma else " "


def read_header(line: str) -> ColumnHeader | None:
    """The header that a line is, or None. The line of units below it is no header."""
    if not line.startswith("#"):
        return None
    text = line[1:].lower()
    names = tuple(name.strip() for name in text.split(",")) if "," in text else tuple(text.split())
    while names and not names[-1]:
        names = names[:-1]
    if names[:1] == ("entity",):
        names = ("entity", "gpu", *names[1:])
        return ColumnHeader(names, False) if len(set(names)) == len(names) > 2 else None
    timestamps = [name for name in names[:2] if name in ("date", "time")]
    known = len(names) > len(timestamps) + 1 and names[len(timestamps)] == "gpu" and not _METRICS.isdisjoint(names)
    return ColumnHeader(names, "," in text) if known and len(set(names)) == len(names) else None


def holds(source: Source, tool: str) -> bool:
    """True if the file is of this tool. With headers of several, dcgmi goes before dmon and dmon before pmon.

    A transcript that shows tables of nvidia-smi as well belongs to them: only they carry their own date.
    """
    headers = (read_header(line.strip()) for line in source.lines if "gpu" in line[:40] or "#Entity" in line[:20])
    tools = {header.tool for header in headers if header}
    return bool(tools) and tool == min(tools) and not is_table(source)


def read_rows(source: Source, log: ProblemLog, tool: str, numbers: Sequence[str]) -> pl.DataFrame:
    """The rows of one tool: ``line``, ``gpu``, timestamps, ``entity``, ``pid``, ``command`` as text, ``numbers`` as
    floats.

    Columns that no header names are absent. Rows of the other tool and torn rows are counted and dropped.
    """
    parts: list[pl.DataFrame] = []
    header: ColumnHeader | None = None
    for block in source.blocks():
        log.add("run of NUL bytes", int(block.nul_bytes > 0), line=block.first_line)
        lines = _lines(block)
        for part, own in _parts(lines, header, log):
            header = own
            if header is None or header.tool != tool:
                _count(part, part, log)
            elif len(part):
                parts.append(_typed(part, header, numbers, log))
    return pl.concat(parts, how="diagonal") if parts else pl.DataFrame()


def _lines(block: LineBlock) -> pl.DataFrame:
    """Number and text of the lines that are not blank, blanks and tabs squeezed to one blank."""
    data = block.data.replace(b"\t", b" ")
    if b"\x1b" in data:
        data = plain(data.decode()).encode()
    while b"  " in data:
        data = data.replace(b"  ", b" ")
    text = split_lines(data).str.strip_chars(" ")
    table = pl.DataFrame({"line": np.arange(block.first_line, block.first_line + len(text)), "text": text})
    return table.filter((pl.col("text") != "").fill_null(False))


def _parts(
    lines: pl.DataFrame, header: ColumnHeader | None, log: ProblemLog
) -> Iterator[tuple[pl.DataFrame, ColumnHeader | None]]:
    """The rows of a block in pieces of one header each, in order."""
    marked = lines.with_row_index("at").filter(pl.col("text").str.contains(_UNIT_LINE))
    rows = lines.with_columns(keep=~pl.col("text").str.contains(_UNIT_LINE))
    meaning = {text: read_header(text) for text in marked["text"].unique().to_list()}
    low = 0
    for at, line, text in marked.iter_rows():
        found = meaning[text]
        if found is not None and found != header:
            yield _kept(rows, low, at), header
            low, header = at, found
        elif found is None and not text.lower().replace("# ", "#").startswith(_UNITS):
            log.add(NOT_A_ROW, line=line, example=text)
    yield _kept(rows, low, len(rows)), header


def _kept(rows: pl.DataFrame, low: int, high: int) -> pl.DataFrame:
    return rows.slice(low, high - low).filter("keep").drop("keep")


def _typed(part: pl.DataFrame, header: ColumnHeader, numbers: Sequence[str], log: ProblemLog) -> pl.DataFrame:
    """Cells of the rows that have as many as the header, by name."""
    size, spare = len(header.names), header.names[-1] != "command"
    cells = part["text"].str.splitn(header.separator, size + spare).struct.unnest()
    if header.comma:
        cells = cells.select(pl.all().str.strip_chars())
    whole = cells[f"field_{size - 1}"].is_not_null()
    if spare:
        whole &= cells[f"field_{size}"].is_null() | (cells[f"field_{size}"] == "")
    gpu = cells[f"field_{header.names.index('gpu')}"]
    whole &= gpu.cast(pl.UInt16, strict=False).is_not_null()
    if not whole.all():
        _count(part.filter(~whole), cells.filter(~whole).select(text="field_0"), log)
        part, cells = part.filter(whole), cells.filter(whole)
    out = {"line": part["line"]}
    for name in header.names:
        cell = cells[f"field_{header.names.index(name)}"]
        if name in _TEXTS:
            out[name] = cell
        elif name in numbers:
            out[name] = _number(cell, part, header.comma, log)
    return pl.DataFrame(out)


def _number(cell: pl.Series, part: pl.DataFrame, unit: bool, log: ProblemLog) -> pl.Series:
    """Cells as floats; CSV may put a unit behind them."""
    bare = cell.str.extract(r"^(\S+)") if unit else cell
    value = bare.cast(pl.Float64, strict=False)
    if value.null_count():
        bad = value.is_null() & ~cell.is_in(MISSING).fill_null(True)
        if bad.any():
            first = bad.arg_max() or 0
            log.add(BAD_CELL, int(bad.sum()), line=part["line"][first], example=cell[first])
    return value


def _count(part: pl.DataFrame, first_cells: pl.DataFrame, log: ProblemLog) -> None:
    """Lines that are no rows: torn if they begin like one, otherwise prose."""
    if not len(part):
        return
    begins = first_cells["text"].str.contains(r"^(\d+|GPU)$").fill_null(False)
    for kind, which in ((TORN, begins), (NOT_A_ROW, ~begins)):
        lines = part.filter(which)
        if len(lines):
            log.add(kind, len(lines), line=lines["line"][0], example=lines["text"][0], lost=kind == TORN)


def gpu_ticks(rows: pl.DataFrame) -> np.ndarray:
    """Number of the tick of each row: GPUs come in ascending order, so one begins where the index does not grow."""
    gpu = rows["gpu"].cast(pl.Int64).to_numpy()
    return np.cumsum(gpu <= np.concatenate(([-1], gpu[:-1])))


def timestamp_rows(rows: pl.DataFrame, tick: np.ndarray, period_s: float | None) -> tuple[np.ndarray, list[str]]:
    """Timestamps of the rows as datetime64, and a sentence on what they stand for if they are no full timestamps."""
    day, clock = _part_us(rows, "date"), _part_us(rows, "time")
    if np.isfinite(day + clock).any():
        return _microseconds(day + clock).astype("datetime64[us]"), []
    if np.isfinite(clock).any():
        return since_midnight(_microseconds(clock).astype("timedelta64[us]")), [MIDNIGHT_NOTE]
    return relative_time(tick, period_s), [relative_note(period_s)]


def _part_us(rows: pl.DataFrame, name: str) -> np.ndarray:
    """The date as microseconds since 1970, or the time as microseconds since midnight; NaN where there is none."""
    if name not in rows.columns:
        return np.full(len(rows), np.nan)
    if name == "date":
        day = rows["date"].str.to_date("%Y%m%d", strict=False, cache=True)
        return day.cast(pl.Int32).cast(pl.Float64).fill_null(float("nan")).to_numpy() * 86_400_000_000
    clock = rows["time"].str.to_time("%H:%M:%S", strict=False, cache=True)
    return clock.cast(pl.Int64).cast(pl.Float64).fill_null(float("nan")).to_numpy() / 1000


def _microseconds(values: np.ndarray) -> np.ndarray:
    """float64 to int64 where NaN becomes the integer that numpy takes for NaT."""
    missing = np.isnan(values)
    return np.where(missing, np.iinfo("int64").min, np.where(missing, 0, values).astype("int64"))
