"""A run: tidy tables on one clock, and what is known about where they came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gpudiag.display.blocks import Block
from gpudiag.display.shown import Shown
from gpudiag.manifest import DataLoader, GpuOverride, Settings
from gpudiag.readers._io.problems import Problem
from gpudiag.readers._io.url import shown, without_secrets
from gpudiag.readers.base import no_rows

if TYPE_CHECKING:
    import pandas as pd


InputKind = Literal["telemetry", "trials", "artifacts", "unknown"]
Confidence = Literal["strong", "weak", "assumed", "undetermined"]
TIME = {"json_schema_extra": {"format": "date-time"}}


@dataclass(frozen=True)
class StudyRecord:
    """What an input says of one study: trials by state, intermediate values, and the most trials at one instant."""

    name: str
    directions: tuple[str, ...]
    states: Mapping[str, int]
    reports: int
    start: str | None = field(metadata=TIME)
    end: str | None = field(metadata=TIME)
    max_concurrent: int | None


@dataclass(frozen=True)
class InputRecord:
    """How one input was read. Times are ISO 8601 in UTC; unknown is None or empty.

    ``clock`` says how the stamps of telemetry are meant: ``utc`` (they carry a zone) or ``local``. Whatever a record
    is made from, ``path`` and ``error`` hold no password of a storage URL.
    """

    path: str
    kind: InputKind
    reader: str = ""
    sha256: str = field(default="", metadata={"pattern": "^([0-9a-f]{64})?$"})
    rows: int = 0
    gpus: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    start: str | None = field(default=None, metadata=TIME)
    end: str | None = field(default=None, metadata=TIME)
    median_period_s: float | None = None
    studies: tuple[StudyRecord, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    error: str | None = None
    clock: str = ""

    def __post_init__(self) -> None:
        path = shown(self.path)
        if path != self.path and self.error is not None:
            object.__setattr__(self, "error", without_secrets(self.error.replace(self.path, path), self.path))
        object.__setattr__(self, "path", path)


@dataclass(frozen=True)
class ClockRecord:
    """The offset between the trials' clock and the telemetry's: trials + offset_s = telemetry.

    ``confidence``: ``strong`` (shown by the data), ``weak`` (the data lean that way),
    ``assumed`` (nothing contradicts equal clocks), ``undetermined`` (the data cannot tell).
    ``applied_s`` is what was added to the stamps of ``trials``: 0 unless confidence is strong or
    the offset was given. ``candidates`` holds offset_s against correlation for the figure.
    ``joined`` is False where trials and telemetry share no time, so that nothing may be read off one
    about the other. ``parts`` lists (study, first trial, offset_s) where a study changes its clock in
    the middle; that offset stands in place of ``applied_s`` from that trial on. ``notes`` are sentences
    on other oddities: a clock change within the study, ends before starts.
    """

    offset_s: float = 0.0
    confidence: Confidence = "assumed"
    method: str = "not examined"
    evidence: str = ""
    applied_s: float = 0.0
    candidates: tuple[tuple[float, float], ...] = ()
    joined: bool = True
    parts: tuple[tuple[str, int, float], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunInfo:
    """What is known about a run beside its tables.

    ``thresholds`` are run.toml's, by rule id; ``gpu_overrides`` its data-sheet values, by GPU index;
    ``given_offset_s`` its statement that trials + offset = telemetry, None where it says nothing. ``between`` and
    ``left_out_gpus`` say what was selected: first and last moment that count (UTC), GPUs that do not.
    """

    name: str = "run"
    timezone: str = "UTC"
    settings: Settings = field(default_factory=Settings)
    dataloader: DataLoader = field(default_factory=DataLoader)
    inputs: tuple[InputRecord, ...] = ()
    clock: ClockRecord = field(default_factory=ClockRecord)
    stated: Mapping[str, float] = field(default_factory=dict)
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    show_attrs: tuple[str, ...] = ()
    gpu_overrides: Mapping[str, GpuOverride] = field(default_factory=dict)
    given_offset_s: float | None = None
    notes: tuple[str, ...] = ()
    between: tuple[pd.Timestamp | None, pd.Timestamp | None] = (None, None)
    left_out_gpus: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Run(Shown):
    """The tables of :mod:`gpudiag.schema` on one clock. An absent table is an empty frame.

    Rows of ``gpu`` are sorted by GPU and time without duplicates; rows of ``trials`` by study and
    number. Build one with :func:`gpudiag.load_run` or :meth:`Run.from_files`.
    """

    gpu: pd.DataFrame = field(default_factory=no_rows("gpu"))
    gpus: pd.DataFrame = field(default_factory=no_rows("gpus"))
    processes: pd.DataFrame = field(default_factory=no_rows("processes"))
    host: pd.DataFrame = field(default_factory=no_rows("host"))
    trials: pd.DataFrame = field(default_factory=no_rows("trials"))
    reports: pd.DataFrame = field(default_factory=no_rows("reports"))
    studies: pd.DataFrame = field(default_factory=no_rows("studies"))
    events: pd.DataFrame = field(default_factory=no_rows("events"))
    info: RunInfo = field(default_factory=RunInfo)

    @classmethod
    def from_files(
        cls,
        telemetry: Sequence[str | Path] | str | Path = (),
        trials: object = None,
        *,
        artifacts: Sequence[str | Path] | str | Path = (),
        study: str | None = None,
        timezone: str | tzinfo | None = None,
        name: str | None = None,
    ) -> Run:
        """Load a run from the inputs named, all told from their content.

        Args:
            telemetry: one log of GPU metrics or several, of one run.
            trials: a study's file or storage URL, a trial table, or an ``optuna.Study``.
            artifacts: task logs, training logs and result files.
            study: the one study to keep; default: every study found.
            timezone: IANA name of the zone of stamps that carry none; default: this machine's.
            name: name of the run in reports; default: from the first input.

        Raises:
            InputError: an input cannot be read, or none was given.
            StudyNotFound: the storage has no study of that name.
        """
        from gpudiag.load import from_files

        return from_files(telemetry, trials, artifacts=artifacts, study=study, timezone=timezone, name=name)

    def between(self, start: str | datetime | None, end: str | datetime | None) -> Run:
        """The run from ``start`` (included) to ``end`` (left out); None is the run's own edge.

        A moment is text such as "2026-03-01 10:00" or a datetime; without a zone it is in the run's. Trials that
        overlap the span are kept with their own times; the ledger, the coverage and the concurrency count only what
        lies within it. Raises ConfigError for what is no time, NotMeasurable where nothing lies in the span.
        """
        from gpudiag.selection import between

        return between(self, start, end)

    def gpus_only(self, *gpus: str | int) -> Run:
        """The run on the GPUs named, by index or uuid; trials that say they ran only on others are left out.

        Raises ConfigError for a GPU that the run does not have.
        """
        from gpudiag.selection import gpus_only

        return gpus_only(self, gpus)

    def study(self, name: str) -> Run:
        """The run with the trials of one study. Raises StudyNotFound."""
        from gpudiag.selection import study

        return study(self, name)

    def trials_where(self, test: Callable[[pd.DataFrame], Any] | None = None, /, **equal: Any) -> Run:
        """The run with the trials for which all holds: ``run.trials_where(state="FAIL")``,
        ``run.trials_where(optimizer=["adam", "sgd"])``, ``run.trials_where(lambda t: t["params.lr"] > 0.1)``.

        Args:
            test: a function from the table of trials to one True or False a row.
            equal: a value or a list of them by column; ``params.`` before the name of a parameter may be left out.

        Raises:
            ConfigError: no such column, or the test gives something else.
        """
        from gpudiag.selection import trials_where

        return trials_where(self, test, equal)

    def blocks(self) -> list[Block]:
        """What was read, from when to when, on which GPUs, and what became of the trials."""
        from gpudiag.display.contents import run_blocks

        return run_blocks(self)

    def map_tables(self, change: Callable[[str, pd.DataFrame], pd.DataFrame]) -> Run:
        """A run whose every table is ``change(name, table)``; the rest is unchanged."""
        from gpudiag.schema import TABLES

        return replace(self, **{name: change(name, getattr(self, name)) for name in TABLES})
