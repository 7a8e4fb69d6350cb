"""The files that lines on steps stand in, and what each tells of the training that it belongs to."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import PurePath
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from gpudiag.measures._steps.clocks import in_order
from gpudiag.measures._steps.lines import floats, since_of, standing
from gpudiag.measures._steps.places import advanced, redrawn

Writer: TypeAlias = tuple[float | None, float | None]
"""Rank and trial that lines name; None without."""
_OWN_NUMBER = re.compile(r"(?i)(trial|fold|seed|rank|split|replica)s?[_\-=. ]{0,2}(\d{1,9})(?!\d)")
_STREAM = re.compile(r"(?i)(?:std)?(?:out|err)(?![a-z])|\.(?:log|txt)$")
_ROTATED = re.compile(r"(?i)(?:[._-](?:\d{1,9}|\d{4}-\d\d-\d\d[\d_.:T-]*|gz|xz|bz2|zst))+$")
MOST_NAMES = 16_384
"""So many names of files are kept apart at once; a search may have thousands of logs."""
_DIGITS = re.compile(r"\d+")


class Place(NamedTuple):
    """Where a line says that a training is; NaN unknown."""

    step: float
    total: float
    epoch: float


@dataclass(frozen=True, eq=False)
class WrittenSteps:
    """Lines of one kind, of one rank and trial in one file: of the kinds in it the one that spans most time."""

    writer: Writer
    lines: pd.DataFrame

    @cached_property
    def first(self) -> Place:
        return Place(*(float(floats(self.lines[:1], name)[0]) for name in Place._fields))

    @cached_property
    def last(self) -> Place:
        return Place(*(float(floats(self.lines[-1:], name)[0]) for name in Place._fields))

    @cached_property
    def first_line(self) -> int:
        return int(self.lines["line"].iloc[0])

    @cached_property
    def kind(self) -> str:
        """The kind of its lines; bars with another number of steps are of one kind."""
        return str(self.lines["series"].iloc[0]).partition("|")[0]

    @cached_property
    def moment(self) -> np.ndarray:
        """By line, datetime64[us]; NaT where no timestamp is one."""
        return in_order(self.lines["time"].to_numpy("datetime64[us]"))

    @cached_property
    def is_dated(self) -> bool:
        return not np.isnat(self.moment).all()

    @cached_property
    def stride(self) -> float:
        """Median number of steps from one line to the next; NaN unknown."""
        ahead = np.diff(floats(self.lines, "step"))
        return float(np.median(ahead[ahead > 0])) if (ahead > 0).any() else math.nan

    @cached_property
    def between_s(self) -> float:
        """Median time from one dated line to the next; NaN unknown."""
        apart_s = np.diff(self.moment[~np.isnat(self.moment)]).astype(float) / 1e6
        return float(np.median(apart_s)) if len(apart_s) else math.nan


@dataclass(frozen=True, eq=False)
class LogFile:
    """One file in the order of its lines."""

    path: str
    lines: pd.DataFrame

    @cached_property
    def written(self) -> dict[Writer, WrittenSteps]:
        """Its steps by who wrote them, in the order of their first lines."""
        rank, trial = floats(self.lines, "rank"), floats(self.lines, "trial")
        if np.isnan(rank).all() and np.isnan(trial).all():
            return {(None, None): WrittenSteps((None, None), max(_kinds(self.lines), key=_extent))}
        found = {}
        for (of_rank, of_trial), part in self.lines.groupby([rank, trial], sort=False, dropna=False):
            writer = known_or_none(of_rank), known_or_none(of_trial)
            found[writer] = WrittenSteps(writer, max(_kinds(part), key=_extent))
        return found

    @cached_property
    def _moments(self) -> np.ndarray:
        moments = in_order(self.lines["time"].to_numpy("datetime64[us]"))
        return moments[~np.isnat(moments)]

    @cached_property
    def is_dated(self) -> bool:
        return len(self._moments) > 0

    @cached_property
    def opened(self) -> np.datetime64:
        """Its first timestamp; NaT without any."""
        if not self.is_dated:
            return np.datetime64("NaT", "us")
        before_s = float(np.nan_to_num(floats(self.lines, "begun_s")[0]))
        return self._moments[0] - np.timedelta64(round(before_s * 1e6), "us")

    @cached_property
    def last(self) -> np.datetime64:
        """The moment of its last step; NaT without any."""
        return self._moments[-1] if self.is_dated else np.datetime64("NaT", "us")

    @cached_property
    def closed(self) -> np.datetime64:
        """The last moment of which it tells; NaT without any."""
        then_s = np.nan_to_num(floats(self.lines, "then_s"))[-1]
        return self.last + np.timedelta64(round(float(then_s) * 1e6), "us")

    @cached_property
    def behind(self) -> set[str]:
        """What it tells of behind its last step."""
        then = self.lines["then"].dropna().astype(str).tolist() if "then" in self.lines else []
        return {work for text in then for work in text.split(", ") if work}

    @cached_property
    def told(self) -> set[str]:
        """What it tells of at all."""
        return self.behind | words_of(self.lines)

    @cached_property
    def begins_with(self) -> set[str]:
        """What it tells of before the first line of a kind that counts."""
        line = min(steps.first_line for steps in self.written.values())
        return words_of(self.lines[self.lines["line"] <= line])


def words_of(lines: pd.DataFrame) -> set[str]:
    """The other work that lines on steps tell of before them."""
    return {work for text in set(since_of(lines)) for work in text.split(", ") if work}


def as_told(words: set[str]) -> str | None:
    """Words in the order in which a reader gives them; None without any."""
    return ", ".join(sorted(words, reverse=True)) or None


def may_be_one(first: str, second: str) -> bool:
    """False for paths that name another trial, fold, seed or rank each."""
    return _own_numbers(first) == _own_numbers(second)


def may_be_one_training(first: str, second: str) -> bool:
    """False for paths that name another trial, fold or seed each; each rank of one training may have its own."""
    one, other = ({name: n for name, n in _own_numbers(path).items() if name != "rank"} for path in (first, second))
    return one == other


def likeness(first: str, second: str) -> int:
    """2 for files of one name in two folders, or of one rotated log; 1 for those in one folder with one name but for
    numbers, as those of jobs in a row; else 0.
    """
    if PurePath(first).name == PurePath(second).name or is_rotated(first, second):
        return 2
    return int(_name(_DIGITS, first) == _name(_DIGITS, second))


def of_one_process(first: str, second: str) -> bool:
    """Whether two files have one name but for the stream, as what a job writes to stdout and stderr has."""
    return _name(_STREAM, first) == _name(_STREAM, second)


def of_one_folder(first: str, second: str) -> bool:
    """Whether two files lie in one folder, one in a folder of the other's, or in two folders side by side."""
    one, other = PurePath(first).parent, PurePath(second).parent
    return one == other or one.parent == other.parent or one in other.parents or other in one.parents


def is_rotated(first: str, second: str) -> bool:
    """Whether two files have one name but for what rotated logs have behind, as ``train.log.1`` and ``train.log``."""
    return _name(_ROTATED, first) == _name(_ROTATED, second)


@lru_cache(MOST_NAMES)
def _own_numbers(path: str) -> dict[str, str]:
    return dict(_OWN_NUMBER.findall(path.lower()))


@lru_cache(MOST_NAMES)
def _name(without: re.Pattern[str], path: str) -> tuple[PurePath, str]:
    place = PurePath(path)
    return place.parent, without.sub("", place.name).strip("._-")


def _kinds(lines: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Its lines by kind, without bars that are drawn before they stand where the training does."""
    one = lines["series"].nunique() == 1
    for kind in [lines] if one else [kind for _, kind in lines.groupby("series", sort=False)]:
        drawn = kind[~redrawn(kind)]
        yield drawn[~advanced(drawn)]


def _extent(kind: pd.DataFrame) -> tuple[tuple[bool, bool, bool], float, int]:
    """How it stands, the time that it spans, and how many lines it has."""
    clock = kind["time"].to_numpy("datetime64[us]").astype(float) / 1e6
    clock[np.isnat(kind["time"].to_numpy("datetime64[us]"))] = np.nan
    clock = floats(kind, "elapsed_s") if np.isnan(clock).all() else clock
    ahead_s = np.diff(clock[~np.isnan(clock)])
    series, unit = (str(kind[name].iloc[0]) if len(kind) else "" for name in ("series", "unit"))
    return standing(series, unit, len(kind)), float(ahead_s[ahead_s > 0].sum()), len(kind)


def known_or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
