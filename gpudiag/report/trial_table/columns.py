"""The columns of the table, one cell a trial: texts, numbers, durations and times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.measures._time.trial_intervals import intervals_of, is_open, trial_names
from gpudiag.measures._trials.outcomes import outcomes_of
from gpudiag.measures.failures import FailuresProfile
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.report.format import digits_of, safe
from gpudiag.report.timeline.trials import MOST_CHARS, Texts, endings, is_unknown, text_of
from gpudiag.run import Run
from gpudiag.schema import family, has_values
from gpudiag.spans import seconds

NO_END = "no end recorded"
FIXED = ("trial", "study", "name", "state", "duration", "start", "worker", "gpu", "ended")
"""Names that a parameter does not take: it keeps its ``params.`` then."""
PARAMETER_DIGITS = 7
"""Significant digits of a parameter, as many as single precision has; a value keeps all of its own."""


@dataclass(frozen=True, eq=False)
class TextColumn:
    """``number``: each text is one, but for "" and ``inf``."""

    cells: Texts
    number: bool = False


@dataclass(frozen=True, eq=False)
class SecondsColumn:
    """``kind`` is duration (s) or start (s since 1970); NaN is unknown."""

    kind: str
    seconds: np.ndarray


Column = TextColumn | SecondsColumn


def columns_of(
    run: Run, parallelism: ParallelismProfile | None, failures: FailuresProfile | None, most_parameters: int
) -> list[Column]:
    """What is known of each trial, in the order of the run's table. What no trial has is left out."""
    return [one for one in _all(run, parallelism, failures, most_parameters) if _says_something(one)]


def _all(
    run: Run, parallelism: ParallelismProfile | None, failures: FailuresProfile | None, most_parameters: int
) -> Iterator[Column]:
    trials, intervals = run.trials.reset_index(drop=True), intervals_of(run)
    yield _texts("trial", trial_names(trials), _short)
    if "name" in trials:
        yield _texts("name", trials["name"], text_of)
    yield _texts("state", outcomes_of(run), _short)
    for name in value_columns(trials):
        yield numbers(name, trials[name])
    yield SecondsColumn("duration", intervals["duration_s"].to_numpy(float))
    yield SecondsColumn("start", seconds(intervals["start"]))
    yield _texts("worker", _workers(trials, parallelism), text_of)
    if "gpu" in trials and trials["gpu"].nunique() > 1:
        yield _texts("gpu", trials["gpu"], text_of)
    taken = {*FIXED, *value_columns(trials)}
    for column in family(trials.columns, ("params.",))[:most_parameters]:
        bare = column.removeprefix("params.")
        yield numbers(_short(column if bare.lower() in taken else bare), trials[column], PARAMETER_DIGITS)
    ended = intervals[["study", "trial", "state"]].assign(open=is_open(intervals))
    yield _texts("ended", endings(run, ended, trials, failures, NO_END), str)


def value_columns(trials: pd.DataFrame) -> list[str]:
    """The objectives: one, or one each."""
    return family(trials.columns, ("value_",)) or [name for name in ("value",) if name in trials]


def numbers(name: str, cells: pd.Series, digits: int = 0) -> TextColumn:
    """A column of numbers in so many digits, 0 for all of them; of texts where one of its cells is no number."""
    known = [cell for cell in cells if not is_unknown(cell)]
    if all(isinstance(cell, int | float | np.integer | np.floating) and not isinstance(cell, bool) for cell in known):
        return TextColumn(Texts.of(name, [_digits(cell, digits) for cell in cells]), number=True)
    return _texts(name, cells, text_of)


def _digits(cell: object, digits: int) -> str:
    if is_unknown(cell):
        return ""
    if isinstance(cell, int | np.integer):
        return str(int(cell))
    return digits_of(float(cell), digits)  # type: ignore[arg-type]


def _texts(name: str, cells: Iterable[object], said: Callable[[object], str]) -> TextColumn:
    return TextColumn(Texts.of(name, map(said, cells)))


def _short(cell: object) -> str:
    return safe(cell)[:MOST_CHARS]


def _workers(trials: pd.DataFrame, parallelism: ParallelismProfile | None) -> pd.Series:
    """The worker of each trial as it is named, else the row that it has on the timeline."""
    if has_values(trials, "worker"):
        return trials["worker"]
    if parallelism is None:
        return pd.Series(None, trials.index, dtype=object)
    placed = parallelism.placed[["study", "trial", "worker"]]
    found = trials[["study", "trial"]].merge(placed, on=["study", "trial"], how="left", validate="m:1")
    return found["worker"].astype("Int64")


def _says_something(column: Column) -> bool:
    if isinstance(column, TextColumn):
        return column.cells.texts != [""]
    return bool(np.isfinite(column.seconds).any())
