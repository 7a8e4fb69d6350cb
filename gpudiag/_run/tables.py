"""The tables of a run, and what is known about where they came from: data alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from gpudiag.manifest import DataLoader, GpuOverride, Settings, Training
from gpudiag.plain_data import TIME
from gpudiag.readers._io.problems import Problem
from gpudiag.readers._io.url import shown, without_passwords, without_secrets
from gpudiag.readers.base import no_rows
from gpudiag.shown import Shown
from gpudiag.statement import NOTHING, Statement

if TYPE_CHECKING:
    import pandas as pd


InputKind = Literal["telemetry", "trials", "artifacts", "unknown"]
Whole = Literal["study", "outcomes", "workers", "gpus", "sharing"]
"""What some questions need all trials of: those of a study; none chosen by what became of it; those from the first to
the last, of workers; those of the GPUs; those that ran beside another."""
Confidence = Literal["strong", "weak", "assumed", "undetermined"]


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

    ``clock`` says how the timestamps of telemetry and of logs on steps are meant: ``utc`` (they carry a zone) or
    ``local`` (``mixed``: of both kinds; ``unknown``); without a date ``day`` (times of day) or ``count`` (no time, or
    one since an unknown start). Whatever a record is made from, its texts hold no password of a storage URL.
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
        error = self.error
        if path != self.path and error is not None:
            error = without_secrets(error.replace(self.path, path), self.path)
        studies = (replace(study, name=without_passwords(study.name)) for study in self.studies)
        hidden = {
            "path": path,
            "error": error and without_passwords(error),
            "gpus": tuple(map(without_passwords, self.gpus)),
            "columns": tuple(map(without_passwords, self.columns)),
            "studies": tuple(studies),
            "notes": tuple(map(without_passwords, self.notes)),
        }
        for name, value in hidden.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class ClockStep:
    """The trials' clock was set forward by ``size_s`` within the study (negative: back), near ``at_s`` of its own time.

    ``at_s`` (seconds since 1970) lies between the last start or end before a step forward and the first after it.
    ``moved``: ``size_s`` was taken off all times from then on.
    """

    at_s: float
    size_s: float
    moved: bool


@dataclass(frozen=True)
class ClockRecord:
    """The offset between the trials' clock and the telemetry's: trials + offset_s = telemetry.

    ``confidence``: ``strong`` (shown by the data), ``weak`` (the data lean that way),
    ``assumed`` (nothing contradicts equal clocks), ``undetermined`` (the data cannot tell).
    ``applied_s`` is what was added to the timestamps of ``trials``: 0 unless confidence is strong or
    the offset was given; seconds beside whole quarters of an hour are part of it where work
    between trials shows them. ``candidates`` holds offset_s against correlation for the figure.
    ``joined`` is False where trials and telemetry share no time, so that nothing may be read off one
    about the other. ``parts`` lists (study, first trial, offset_s) where a study changes its clock in
    the middle; that offset stands in place of ``applied_s`` from that trial on. ``step``: the clock was set within the
    study, as the telemetry shows. ``evidence`` says what the
    offset rests on, ``notes`` other oddities: a clock change within the study, ends before starts.
    ``apart_s``: trials and telemetry seem to lie up to so many seconds apart even so; 0 where nothing shows it.
    """

    offset_s: float = 0.0
    confidence: Confidence = "assumed"
    method: str = "not examined"
    evidence: Statement = NOTHING
    applied_s: float = 0.0
    candidates: tuple[tuple[float, float], ...] = ()
    joined: bool = True
    parts: tuple[tuple[str, int, float], ...] = ()
    step: ClockStep | None = None
    notes: tuple[Statement, ...] = ()
    apart_s: float = 0.0

    @property
    def doubt_s(self) -> float:
        """How far from where they are the starts and ends of trials may lie, infinite if nobody knows."""
        if self.confidence == "undetermined":
            return math.inf
        leans_s = abs(self.offset_s - self.applied_s) if self.confidence == "weak" else 0.0
        return max(self.apart_s, leans_s)

    @property
    def exact(self) -> bool:
        """Whether what depends on the seconds of starts and ends may be read off the telemetry."""
        return self.joined and self.doubt_s == 0


@dataclass(frozen=True)
class RunInfo:
    """What is known about a run beside its tables.

    ``thresholds`` are run.toml's, by rule id; ``gpu_overrides`` its data-sheet values, by GPU index;
    ``given_offset_s`` its statement that trials + offset = telemetry, None where it says nothing; ``rule_modules`` its
    modules with rules of somebody's own, by import path. ``folder``: where the run lies, None for single inputs.
    ``logs_clock``: the same as ``clock`` between logs of trainings and telemetry, where there are no trials.
    ``between`` and ``left_out_gpus`` say what was selected: first and last moment that count (UTC), GPUs that do not.
    ``gpus_chosen``: somebody named the GPUs that count, so that they are of one job.
    ``incomplete``: what trials that were selected away leave in part; ``n_unselected``: how many there were before
    anything was selected, 0 where none was left out.
    ``others_us``: when trials of studies that were not chosen may have run, by GPU, "" where nothing names it
    (microseconds); ``others_at_least_us``: when they are known to have run. ``placed_gpus``: by study and trial the
    GPUs that the telemetry showed of trials that were chosen, beside all others.
    ``not_recognized``: files of the folder of which no reader knows the content.
    ``user``, ``project`` and ``host`` are run.toml's. ``timezone_assumed``: nobody stated the zone, so that it is that
    of the machine that read the run. ``taking_turns``: GPUs of several logs whose samples lie between each other.
    """

    name: str = "run"
    timezone: str = "UTC"
    timezone_assumed: bool = False
    settings: Settings = field(default_factory=Settings)
    dataloader: DataLoader = field(default_factory=DataLoader)
    training: Training = field(default_factory=Training)
    inputs: tuple[InputRecord, ...] = ()
    clock: ClockRecord = field(default_factory=ClockRecord)
    logs_clock: ClockRecord = field(default_factory=ClockRecord)
    stated: Mapping[str, float] = field(default_factory=dict)
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    show_attrs: tuple[str, ...] = ()
    gpu_overrides: Mapping[str, GpuOverride] = field(default_factory=dict)
    given_offset_s: float | None = None
    rule_modules: tuple[str, ...] = ()
    folder: Path | None = None
    notes: tuple[str, ...] = ()
    between: tuple[pd.Timestamp | None, pd.Timestamp | None] = (None, None)
    left_out_gpus: tuple[str, ...] = ()
    gpus_chosen: bool = False
    incomplete: tuple[Whole, ...] = ()
    n_unselected: int = 0
    others_us: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    others_at_least_us: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    placed_gpus: Mapping[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)
    not_recognized: tuple[str, ...] = ()
    taking_turns: tuple[str, ...] = ()
    user: str = ""
    project: str = ""
    host: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class RunTables(Shown):
    """The tables of :mod:`gpudiag.schema` on one clock. An absent table is an empty frame."""

    gpu: pd.DataFrame = field(default_factory=no_rows("gpu"))
    gpus: pd.DataFrame = field(default_factory=no_rows("gpus"))
    processes: pd.DataFrame = field(default_factory=no_rows("processes"))
    host: pd.DataFrame = field(default_factory=no_rows("host"))
    trials: pd.DataFrame = field(default_factory=no_rows("trials"))
    reports: pd.DataFrame = field(default_factory=no_rows("reports"))
    studies: pd.DataFrame = field(default_factory=no_rows("studies"))
    events: pd.DataFrame = field(default_factory=no_rows("events"))
    steps: pd.DataFrame = field(default_factory=no_rows("steps"))
    profiled: pd.DataFrame = field(default_factory=no_rows("profiled"))
    collectives: pd.DataFrame = field(default_factory=no_rows("collectives"))
    info: RunInfo = field(default_factory=RunInfo)


R = TypeVar("R", bound=RunTables)
"""A run, whatever its class: what is made of it is one again."""
