"""A CSV of a training's metrics, a row a step or an epoch: Ultralytics' ``results.csv``, W&B's exported history, a
scalar that TensorBoard exports, or Keras' CSVLogger.

Its times are columns such as ``timestamp``, ``elapsed``, ``step_time`` and ``epoch_time``, with units such as ``_ms``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise

from gpudiag.errors import InputError
from gpudiag.readers._io.csv_records import cells_of, header_and_rows
from gpudiag.readers._io.lines import delimiter_of
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.scalar_events import Scalar
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.ticks import is_epoch
from gpudiag.readers._steps import metric_rows, scalar_steps
from gpudiag.readers._steps.event_folders import EVALUATIONS
from gpudiag.readers._steps.metric_kinds import CSV
from gpudiag.readers._steps.step_log import StepLog
from gpudiag.readers._steps.step_object import STEPS, is_of_evaluation, is_of_training
from gpudiag.readers._steps.time_columns import EPOCH, TimeColumns
from gpudiag.readers.base import Reader, ReadOptions, Trials

NAME = "metrics-csv"
Cells = dict[str, float | str]
_OF_TENSORBOARD = {"wall time", "step", "value"}
_TAG = re.compile(r"(?i)^run[-_](?P<run>.*?)-tag-(?P<tag>.+)$")
_COUNTS = frozenset((*STEPS, EPOCH))
_TIMES = frozenset(("timestamp", "datetime", "date", "created_at", "rank", "time"))
_SHOWN = 256
_LEAST = 3
"""Fewer numbers of steps or epochs show no course."""
_RISES, _FEW = 0.5, 1
"""Least part of the rows whose number is above that of the row before, and how many others are few. An evaluation has
a row of its own, and a training that resumes or a fold begins again."""
_MOST_COLUMNS = 4096
_MOST = 2**53


def is_header(source: Source) -> bool:
    """A header with a step or an epoch and a loss or a learning rate of a training, above rows that count up; or what
    TensorBoard exports.
    """
    if source.is_dir or source.is_binary or len(source.lines) < 2:
        return False
    delimiter = delimiter_of(source.lines[0])
    names = _names(cells_of(source.lines[0], delimiter))
    if not 2 <= len(names) <= _MOST_COLUMNS or len(set(names)) < len(names):
        return False
    count = next((name for name in (*STEPS, EPOCH) if name in names), "")
    exported = set(names) == _OF_TENSORBOARD
    if not count or not (exported or any(map(is_of_training, names))):
        return False
    rows = [cells_of(line, delimiter) for line in source.lines[1:_SHOWN]]
    counts = [_number(row[names.index(count)]) for row in rows if len(row) == len(names)]
    counts = [number for number in counts if math.isfinite(number)]
    return bool(counts) if exported else _counts_up(counts, of_epochs=count == EPOCH)


def _counts_up(counts: Sequence[float], *, of_epochs: bool) -> bool:
    """Whether numbers are those of steps or epochs one behind the other: whole, no moments, and rising in nearly all
    rows. A table of measurements has one number all along, or none that counts.
    """
    if any(number < 0 or number != int(number) or (of_epochs and is_epoch(number)) for number in counts):
        return False
    n_still = sum(before >= after for before, after in pairwise(counts))
    return len(set(counts)) >= _LEAST and n_still <= max(_FEW, (1 - _RISES) * len(counts))


def read(source: Source, options: ReadOptions) -> Trials:
    """The steps or the epochs of its rows as table ``steps``; without any time, they tell what the loss was.

    Raises InputError if no row counts.
    """
    problems, name = ProblemLog(), as_text(source.path.name)
    names, rows = _table(source, problems)
    if set(names) == _OF_TENSORBOARD:
        return _exported(source, rows, options, problems)
    times = TimeColumns(rows)
    told = [times.told(row) for row in rows]
    dated = metric_rows.is_dated(told)
    log = StepLog(source.path, dated=dated)
    metric_rows.take(told, times, log, CSV, dated=dated, first_row=2)
    if not len(log):
        raise InputError(f"{source.path}: holds no row with a step or an epoch and a loss or a learning rate.")
    frame, clock = log.frame(options.timezone)
    notes = [f"{name}: {log.note()}."]
    timed = any(frame[column].notna().any() for column in ("time", "elapsed_s", "step_s") if column in frame)
    if not timed:
        notes = [f"{name}: its rows have no times; how long steps took is not known from it."]
    if looked_at := times.note(timed=timed):
        notes.append(f"{name}: {looked_at}")
    if metric_rows.counts_only_calls(rows, frame):
        notes.append(f"{name}: {metric_rows.OF_CALLS}")
    if clock in ("local", "mixed"):
        notes.append(f"{name}: timestamps without a zone read as local time of {options.timezone}.")
    return Trials(steps=frame, problems=problems.all, notes=tuple(notes), reader=NAME, clock=clock)


def _table(source: Source, problems: ProblemLog) -> tuple[list[str], list[Cells]]:
    """The names of the columns, and the cells of each row that are not empty, by them."""
    delimiter = delimiter_of(source.lines[0])
    header, records = header_and_rows(source.read_text(), delimiter, problems, source.path, numbers=True)
    names, rows = _names(header), []
    for line, cells in records:
        if len(cells) != len(names):
            problems.add("row of another width", line=line, example=",".join(cells), lost=True)
            continue
        given = {name: cell.strip() for name, cell in zip(names, cells, strict=True) if name and cell.strip()}
        rows.append({name: _number(cell) if _is_number(cell) else cell for name, cell in given.items()})
    return names, rows


def _names(cells: Sequence[str]) -> list[str]:
    """Names without the blanks that older versions of Ultralytics pad them with; those of counts and times as others
    write them.
    """
    names = [cell.strip() for cell in cells]
    known = _COUNTS | _TIMES | _OF_TENSORBOARD
    return [name.lower() if name.lower() in known else name for name in names]


def _exported(source: Source, rows: Sequence[Cells], options: ReadOptions, problems: ProblemLog) -> Trials:
    """One scalar that TensorBoard exported: only the file's name says which."""
    name, log = as_text(source.path.name), StepLog(source.path)
    found = _TAG.match(as_text(source.path.stem))
    tag = found["tag"] if found else as_text(source.path.stem)
    of_folder = as_text(source.path.parent.name).lower() in EVALUATIONS
    evaluates = of_folder or is_of_evaluation(tag) or (found is not None and is_of_evaluation(found["run"]))
    tag = f"eval/{tag}" if evaluates else tag
    known = [
        Scalar(float(row["wall time"]), int(float(row["step"])), tag, float(row["value"]))
        for row in rows
        if all(isinstance(row.get(column), float) for column in _OF_TENSORBOARD) and abs(float(row["step"])) < _MOST
    ]
    scalar_steps.take(known, log)
    if not len(log):
        what = (
            "are of an evaluation, not of steps" if evaluates else "are of no loss and no learning rate of a training"
        )
        note = f"{name}: its {len(rows)} values {what}."
        return Trials(problems=problems.all, notes=(note,), reader=NAME)
    frame, clock = log.frame(options.timezone)
    return Trials(steps=frame, problems=problems.all, notes=(f"{name}: {log.note()}.",), reader=NAME, clock=clock)


def _is_number(cell: str) -> bool:
    return math.isfinite(_number(cell)) or cell.lower().lstrip("+-") in ("nan", "inf", "infinity")


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


READER: Reader[Trials] = Reader(NAME, is_header, read)
