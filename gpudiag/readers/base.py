"""What every reader is: a name, a test on the head of a file, and a function from file to tables."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from gpudiag.errors import ConfigError, InputError, UnknownInput, expected
from gpudiag.patterns import late
from gpudiag.readers._io.problems import INCOMPLETE, Problem
from gpudiag.readers._io.source import Source
from gpudiag.shown import Shown
from gpudiag.values import is_number

if TYPE_CHECKING:
    import pandas as pd


WITHOUT_DATE = ("day", "count")
"""How the timestamps of telemetry are meant that carry no date."""


def no_rows(name: str) -> Callable[[], pd.DataFrame]:
    def make() -> pd.DataFrame:
        from gpudiag.schema import TABLES, empty

        return empty(TABLES[name])

    return make


def check_columns(given: object) -> None:
    """Raise ConfigError for what is no list of names of columns."""
    for one in given if isinstance(given, list | tuple) else (None,):
        if not isinstance(one, str):
            raise expected("columns as a list of names", given if one is None else one)


@dataclass(frozen=True)
class ReadOptions:
    """What a reader may need to be told.

    ``timezone``: zone of timestamps that carry none. ``columns``: names for a file without a header.
    ``period_s``: sampling period of a file without timestamps. ``study``: the one study to read; ``beside``: with
    those of its storage that may have run at the same time. ``parallel``: trials that ran at once, as stated.
    """

    timezone: tzinfo
    columns: tuple[str, ...] = ()
    period_s: float | None = None
    study: str | None = None
    beside: bool = False
    parallel: int | None = None

    def __post_init__(self) -> None:
        """Raise ConfigError for an option of a wrong type, and for a period that is none."""
        check_columns(self.columns)
        if not isinstance(self.study, str | None):
            raise expected("the name of a study", self.study)
        given = self.period_s
        if given is not None and not (is_number(given) and math.isfinite(given) and given > 0):
            raise ConfigError(f"period_s (--period) must be a number of seconds above 0, but got {given!r}.")


@dataclass(frozen=True, eq=False, repr=False)
class Telemetry(Shown):
    """GPU metrics of one input as the tables of :mod:`gpudiag.schema`; absent tables are empty.

    ``clock``: ``utc`` if its timestamps carried a zone or were epochs, ``local`` if they were read in the run's zone;
    without a date ``day`` (times of day) or ``count`` (no time, or one since an unknown start), held as of 1970.
    ``taking_turns``: GPUs of several logs whose samples lie between each other, so that steps are those of no recorder.
    """

    gpu: pd.DataFrame = field(default_factory=no_rows("gpu"))
    gpus: pd.DataFrame = field(default_factory=no_rows("gpus"))
    processes: pd.DataFrame = field(default_factory=no_rows("processes"))
    host: pd.DataFrame = field(default_factory=no_rows("host"))
    events: pd.DataFrame = field(default_factory=no_rows("events"))
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    reader: str = ""
    clock: str = ""
    taking_turns: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Samples read: of GPUs, or of processes or the host where the input has no GPU rows."""
        return len(self.gpu) or len(self.processes) or len(self.host) or len(self.events)

    def to_frame(self) -> pd.DataFrame:
        """``gpu``."""
        return self.gpu


@dataclass(frozen=True, eq=False, repr=False)
class Trials(Shown):
    """Trials or tasks of one input as the tables of :mod:`gpudiag.schema`; ``beside``: those of its storage that are of
    no study that was asked for.

    ``clock``: how the timestamps of lines on steps are meant, as in telemetry. ``otherwise``: where nothing in a log
    tells the day of its dates from the month, and its times are unknown for it: the log read with the day first (True)
    or the month first.
    """

    trials: pd.DataFrame = field(default_factory=no_rows("trials"))
    reports: pd.DataFrame = field(default_factory=no_rows("reports"))
    studies: pd.DataFrame = field(default_factory=no_rows("studies"))
    events: pd.DataFrame = field(default_factory=no_rows("events"))
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    reader: str = ""
    steps: pd.DataFrame = field(default_factory=no_rows("steps"))
    profiled: pd.DataFrame = field(default_factory=no_rows("profiled"))
    collectives: pd.DataFrame = field(default_factory=no_rows("collectives"))
    clock: str = ""
    otherwise: Callable[[bool], Trials] | None = None
    beside: tuple[Trials, ...] = ()

    @property
    def rows(self) -> int:
        """Trials read; of a log the events and the lines on steps, of a trace its GPUs, of a dump its collectives."""
        logged = (self.events, self.steps, self.profiled, self.collectives)
        return len(self.trials) or sum(len(table) for table in logged)

    def to_frame(self) -> pd.DataFrame:
        """``trials``."""
        return self.trials


_LOOKED_AT = 60
_ABOVE_NAMES = late(r'\s*(?:"?sep=.?"?)?\s*')
"""An empty line, and what tells Excel how cells are parted."""

Result = TypeVar("Result", Telemetry, Trials)


@dataclass(frozen=True)
class Reader(Generic[Result]):
    """One dialect. ``recognises`` looks at the head only; ``read`` never changes the input.

    ``recognises`` must be true for exactly one reader of all registries; ``read`` keeps good rows
    beside bad ones and raises InputError with one sentence where nothing can be kept. A reader that
    ``refuses`` knows such files only to say why they cannot be read. One that ``descends`` takes a folder as a
    whole and leaves what lies below it to the readers of other formats; of others only telemetry is read as well.
    """

    name: str
    recognises: Callable[[Source], bool]
    read: Callable[[Source, ReadOptions], Result]
    refuses: bool = False
    descends: bool = False


def read_by(reader: Reader[Result], source: Source, options: ReadOptions) -> Result:
    """What the reader makes of it. Compressed data that are cut or damaged are told: what follows is in no number."""
    data: Result = reader.read(source, options)
    if not source.damage:
        return data
    cut = Problem(f"{INCOMPLETE} {source.damage[0]}, and only what comes before was read", 1, lost=True)
    return replace(data, problems=(*data.problems, cut))


def choose(readers: Sequence[Reader[Result]], source: Source) -> Reader[Result] | None:
    """The reader that recognises the source, or None. Two claims are a bug in a reader."""
    if source.archive:
        return None
    claims = [reader for reader in readers if reader.recognises(source)]
    if len(claims) > 1:
        names = ", ".join(reader.name for reader in claims)
        raise InputError(f"{source.path}: claimed by several readers ({names}); please report this file's first lines.")
    return claims[0] if claims else None


def refuse(source: Source, expected: str, known: Callable[[Source], object]) -> UnknownInput:
    """The error for a source that no reader recognizes, with what it looks like. ``known``: what reads a source, None
    for none.
    """
    path = source.path
    if source.is_dir:
        return UnknownInput(f"{path}: is a folder; expected {expected}. Pass the file itself.")
    if not source.head:
        return UnknownInput(f"{path}: is empty (0 bytes); expected {expected}.")
    if what := _of_other_tools(source):
        return UnknownInput(
            f"{path}: is {what}; save its table as CSV or Parquet, or give the DataFrame or the study in Python."
        )
    if source.archive:
        return UnknownInput(f"{path}: is {source.archive}; unpack it first and give what is in it.")
    if source.is_sqlite:
        return UnknownInput(
            f"{path}: is an SQLite database without Optuna's tables trials and studies; expected {expected}."
        )
    if columns := _parquet_columns(source):
        return _without_trials(path, columns) or UnknownInput(
            f"{path}: is a Parquet file, but none that a reader knows (its columns: {_listed(columns, 8)}); expected "
            f"{expected}."
        )
    if source.is_binary:
        return UnknownInput(f"{path}: is a binary file of no known kind; expected {expected}.")
    lines = list(dropwhile(_ABOVE_NAMES.fullmatch, source.lines))
    first = lines[0].strip() if lines else ""
    names = _header(first)
    if names and len(lines) < len(source.lines) and known(replace(source, head="\n".join(lines).encode())):
        above = repr(source.lines[0].strip()) if source.lines[0].strip() else "an empty line"
        return UnknownInput(f"{path}: begins with {above}; remove it, so that its first line names the columns.")
    if names:
        return _without_trials(path, names) or UnknownInput(
            f"{path}: none of its columns is known ({_listed(names, 12)}); expected {expected}."
        )
    shown = first if len(first) <= 100 else first[:97] + "..."
    from gpudiag.readers._delimited.number_rows import NAME_THEM, number_rows  # and with it polars

    if rows := number_rows(source.top[:_LOOKED_AT]):
        return UnknownInput(
            f"{path}: its rows hold {'a number' if rows[1] == 1 else f'{rows[1]} numbers'} that nothing names; if they "
            f"are of a GPU, {NAME_THEM}. Otherwise expected {expected}; its first line is {shown!r}."
        )
    return UnknownInput(f"{path}: no reader recognizes it; expected {expected}; its first line is {shown!r}.")


def _of_other_tools(source: Source) -> str:
    """What holds a table in a form that is not read here; empty for what is none."""
    if source.is_pickle:
        return "a pickle, which is never opened, since one can run code"
    if source.head.startswith((b"ARROW1", b"FEA1")):
        return "an Arrow file (Feather)"
    return "an Excel workbook" if source.archive and b"[Content_Types].xml" in source.head else ""


def _without_trials(path: Path, names: Sequence[str]) -> UnknownInput | None:
    """The error for a table that numbers trials and lacks what else it needs."""
    from gpudiag.readers._studies.trial_columns import NEEDED, numbers_trials  # which needs what is here

    if not numbers_trials(names):
        return None
    return UnknownInput(f"{path}: {NEEDED}; its columns are {_listed(names, 12)}.")


def _parquet_columns(source: Source) -> list[str]:
    """The names of the columns of a Parquet file; none for what is none."""
    if not source.head.startswith(b"PAR1"):
        return []
    from gpudiag.readers._io.parquet_file import schema_of

    schema = schema_of(source)
    return [] if schema is None else [str(name) for name in schema.names]


def _header(line: str) -> list[str]:
    """The names in a line that can only be the header of a table; none for any other line."""
    names = [cell.strip(' "') for cell in line.split(max(",;\t", key=line.count))]
    fits = len(names) > 1 and all(re.fullmatch(r"[^\W\d][\w .%()\[\]/°-]{0,39}", name) for name in names)
    return names if fits else []


def _listed(names: Sequence[str], most: int) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
