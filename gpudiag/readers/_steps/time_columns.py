"""Columns of a training's rows that are times: of what, by their names, where their numbers and the others agree."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from statistics import median
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from gpudiag.patterns import late
from gpudiag.readers._steps.other_work import moment_of
from gpudiag.readers._steps.step_line import StepLine
from gpudiag.readers._steps.step_object import (
    RANKS,
    STEPS,
    WAIT,
    evaluates,
    is_of_evaluation,
    runtime_of_object,
    stamp_of_object,
)
from gpudiag.readers._steps.time_names import (
    ELAPSED,
    OF_EPOCH,
    OF_ROW,
    OF_STEP,
    OPEN,
    TimeName,
    is_about_time,
    is_rate,
    time_name,
)
from gpudiag.readers._steps.written_numbers import duration_s, each_s, is_clock
from gpudiag.values import is_number

Row: TypeAlias = Mapping[str, Any]
EPOCH = "epoch"
_STAMP, _ELAPSED, _STEP_TIME, _RUNTIME = "timestamp", "elapsed", "step_time", "_runtime"
"""Names by which an object on a step tells of times."""
_MOMENT = "moment"
_TRAINING = late("(?i)train(?:ing)?")
_EVALUATION = late("(?i)val(?:id(?:ation)?)?|eval(?:uation)?|test")
_RISES = 0.9
"""Part of the rows whose time is more than before: it may be the time since the training began."""
_HALF_AS_MUCH = 1.5
"""As far apart are numbers that do not agree."""
_FAR = 100
"""Rows: a first one may hold a compilation or the caching of data, but no more."""
_NEAR = 2
"""Rows, where more would make a clock one of the day, or a length of time one since the start."""
_FEW = 3
_DAY_S = 86_400.0
_MOST = 1e15
"""No time and no count is beyond it, in milliseconds either; an infinite one is none."""
_SHOWN = 3

_ROWS = "{} may be of one {of} or of all since the row before: rename it to {of}_time or row_time."
_FAR_OFF = "{} rises, but begins far from 0: rename it to elapsed or {of}_time."
_GROWS = "{} grows as a time since the start does: rename it to elapsed if it is one."
_LONGER = "{} is longer than the time between the rows, so it is not used."
_ANEW = "{} begins anew at some of the places where {of}s are counted anew and not at others, so it is not used."
_STILL = "{} never changes, so it is taken for no measured time."
_COUNTED = "{} is not of what the rows count: add {of}_time, elapsed or timestamp."
_NAMES = "{} may be times, but the names do not say of what: rename one to {of}_time or elapsed, or add timestamp."


class _Column(NamedTuple):
    name: str
    of: str
    unit_s: float


class TimeColumns:
    """The columns of rows that are times. ``told`` is each row with them as an object on a step tells of them; rows are
    given to it in their order.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        """``rows``: all of a table, or the first of a log."""
        self.by_step = any(name in row for row in rows for name in STEPS)
        self._of = OF_STEP if self.by_step else OF_EPOCH
        self._rank = next((rank for row in rows if (rank := _rank(row)) is not None), None)
        self._rows = list(self._of_one(rows))
        names = list(dict.fromkeys(chain.from_iterable(rows)))
        known = {name: found for name in names if (found := time_name(name))}
        self._unclear: list[tuple[str, str]] = []
        self._waits = any(name in WAIT for name in names)
        self._since_s = self._between(stamp_of_object) or self._between(runtime_of_object)
        self._columns: dict[str, _Column] = {}
        for _ in range(2):  # what is a length of time is held against moments and times since the start
            self._unclear = []
            self._columns = {of: self._columns[of] for of in (_MOMENT, ELAPSED) if of in self._columns}
            for name, said in sorted(known.items(), key=lambda one: one[1].of == OPEN):  # train_time beside epoch_time
                if of := self._meaning(name, said):
                    self._columns.setdefault(of, _Column(name, of, said.unit_s))
        self._evaluation = self._evaluation_beside(names)
        self._taken = {name for name, said in known.items() if not self._is_stamp(name)}
        self._others = [name for name in names if name not in known and name not in WAIT and is_about_time(name)]
        self._before: dict[object, float] = {}
        self._is_of_log = self._goes_on(self._rows)

    @property
    def any(self) -> bool:
        """Whether a column is a time, or may be one that nobody knows."""
        return bool(self._columns or self._unclear)

    @property
    def is_open(self) -> bool:
        """Whether the time since the start may be that of an epoch, since none of the rows begins another."""
        return self.by_step and ELAPSED in self._columns and not self._is_of_log

    def look_on(self, rows: Iterable[Row]) -> None:
        """Look at all rows of a log, of which the first were given, for whether the time since the start goes on."""
        self._is_of_log = self._goes_on(self._of_one(rows))

    def _of_one(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Those of the training on one rank."""
        return (row for row in map(_with_times, rows) if _rank(row) in (None, self._rank) and not evaluates(row))

    def told(self, row: Row) -> Row:
        """The row with its times as ``timestamp``, ``elapsed`` and ``step_time``, in seconds, and no other; an elapsed
        that goes on where steps are counted anew as W&B's ``_runtime``, since it is that of no epoch.
        """
        row = _with_times(row)
        out = {name: value for name, value in row.items() if name not in self._taken}
        for of, key in ((_MOMENT, _STAMP), (ELAPSED, _ELAPSED), (self._of, _STEP_TIME)):
            column = self._columns.get(of)
            if column and column.name in row and not (key == _STAMP and stamp_of_object(out)):
                value = row[column.name]
                out[key] = value if of == _MOMENT else _seconds(value) * column.unit_s
                evaluated = _seconds(row.get(self._evaluation)) if key == _STEP_TIME and self._evaluation else math.nan
                out[key] = out[key] if math.isnan(evaluated) else out[key] + evaluated * column.unit_s
        if self._is_of_log and _ELAPSED in out and not self._since_s:
            out[_RUNTIME] = out.pop(_ELAPSED)
        of_row = self._columns.get(OF_ROW)
        if of_row:
            rank, place = _rank(row), self._place(row)
            ahead = place - self._before.get(rank, math.nan)
            if of_row.name in row and ahead > 0:
                out.setdefault(_STEP_TIME, _seconds(row[of_row.name]) * of_row.unit_s / ahead)
            if not math.isnan(place):
                self._before[rank] = place
        return out

    def meant(self, said: StepLine) -> StepLine:
        """What a row says, with what its time of a step is the mean of."""
        return said._replace(meant="window") if OF_ROW in self._columns and self._of not in self._columns else said

    def note(self, *, timed: bool) -> str:
        """What would tell the times of rows that have none, and which of others are not used; '' for nothing."""
        said = [(name, why) for name, why in self._unclear if not timed or why == _LONGER]
        if not said and not timed and self._others:
            return _NAMES.format(_quoted(self._others), of=self._of)
        return " ".join(why.format(_quoted([name]), of=self._of) for name, why in said[:_SHOWN])

    def _goes_on(self, rows: Iterable[Row]) -> bool:
        """Whether the time since the start goes on wherever steps are counted anew. Where it does in some of these
        places, it is left.
        """
        elapsed = self._columns.get(ELAPSED)
        if not elapsed:
            return False
        timed = (row for row in rows if not math.isnan(_seconds(row.get(elapsed.name))))
        ahead = [
            _seconds(row[elapsed.name]) > _seconds(before[elapsed.name])
            for before, row in pairwise(timed)
            if self._place(row) < self._place(before) or (self.by_step and self._begins_epoch(before, row))
        ]
        if any(ahead) and not all(ahead):
            del self._columns[ELAPSED]
            self._leave(elapsed.name, _ANEW)
        return bool(ahead) and all(ahead)

    def _begins_epoch(self, before: Row, row: Row) -> bool:
        """Whether a row tells of the same step as the one before it, in another epoch."""
        epochs = before.get(EPOCH), row.get(EPOCH)
        return self._place(row) == self._place(before) and all(map(_is_number, epochs)) and epochs[0] != epochs[1]

    def _is_stamp(self, name: str) -> bool:
        """Whether it tells the moment by a name that an object's timestamp has."""
        return any(stamp_of_object({name: row[name]}) for row in self._rows[:_FEW] if name in row)

    def _meaning(self, name: str, said: TimeName) -> str:
        """What the column holds; '' where that is unclear."""
        if self._is_stamp(name):
            return ""
        held = self._held(name)
        if any(stamp_of_object({_STAMP: value}) for _, value in held[:_FEW]):
            return _MOMENT
        at = [(place, said.unit_s * seconds) for place, value in held if not math.isnan(seconds := _seconds(value))]
        times = [time for _, time in at]
        if len(times) < 2:
            return "" if said.of == OPEN else self._of_stated(name, said.of, times)
        is_of_clock = any(isinstance(value, str) and is_clock(value) for _, value in held[:_FEW])
        moved = [time for before, time in pairwise([math.nan, *times]) if time != before]
        steps = _steps(at, over_midnight=is_of_clock and said.of == OPEN)
        rises = bool(steps) and sum(step > 0 for step in steps) >= _RISES * len(steps)
        usual_s = median(steps) if steps else math.nan
        if said.of in (OF_STEP, OF_EPOCH, OF_ROW):
            if rises and max(moved) >= _HALF_AS_MUCH * moved[0] and moved[0] <= _NEAR * usual_s and len(moved) > _FEW:
                return self._leave(name, _GROWS)
            return self._of_stated(name, said.of, times)
        if said.of == ELAPSED and (rises or (len(moved) == 1 and len(times) < _FEW)):
            return ELAPSED
        if not rises:
            return self._of_length(name, times)
        if max(moved) < _HALF_AS_MUCH * moved[0]:
            is_of_day = is_of_clock and len(moved) > _FEW
            return self._leave(name, _FAR_OFF) if is_of_day or self._begins_late() else self._of_length(name, times)
        near = _NEAR if is_of_clock else _FAR
        return ELAPSED if moved[0] <= near * usual_s else self._leave(name, _FAR_OFF)

    def _evaluation_beside(self, names: Iterable[str]) -> str:
        """The evaluation's part of an epoch, as val_time beside train_time; '' without one, or where the rows are only
        as far apart as the training's part is long.
        """
        own = self._columns.get(OF_EPOCH)
        if self.by_step or own is None or not _TRAINING.search(own.name):
            return ""
        whole = _TRAINING.sub("", own.name, 1)
        found = next((one for one in names if is_of_evaluation(one) and _EVALUATION.sub("", one, 1) == whole), "")
        parts = [
            [s for value in self._given(name) if not math.isnan(s := _seconds(value))] for name in (own.name, found)
        ]
        if not all(parts):
            return ""
        training_s, evaluation_s = (median(part) * own.unit_s for part in parts)
        return "" if self._ahead_s() < training_s + evaluation_s / 2 else found

    def _leave(self, name: str, why: str) -> str:
        self._unclear.append((name, why))
        return ""

    def _of_stated(self, name: str, of: str, times: Sequence[float]) -> str:
        """What a length of time is whose name says of what."""
        if of == OF_EPOCH and self.by_step:
            epochs = [row[EPOCH] for row in self._rows if name in row and _is_number(row.get(EPOCH))]
            ahead = [after - before for before, after in pairwise(epochs)]
            return OF_ROW if ahead and set(ahead) == {1} else self._leave(name, _COUNTED)
        if of == OF_STEP and not self.by_step:
            return self._leave(name, _COUNTED)
        ahead_s = median(times) * (1 if of == OF_ROW else self._stride()) if times else math.nan
        return self._leave(name, _LONGER) if ahead_s > _HALF_AS_MUCH * self._ahead_s() else of

    def _of_length(self, name: str, times: Sequence[float]) -> str:
        """What a length of time is whose name says no more: of what is counted where each row counts one further, else
        as the times between the rows have it. mmengine's and detectron2's stand beside a wait for data.
        """
        if len(times) >= _FEW and len(set(times)) == 1 and times[0] % 1 and not self._waits:
            return self._leave(name, _STILL)
        stride, ahead_s, usual_s = self._stride(), self._ahead_s(), median(times)
        if self._waits or not stride > 1:
            return self._leave(name, _LONGER) if usual_s * stride > _HALF_AS_MUCH * ahead_s else self._of
        of_one, of_all = (_agree(usual_s * n, ahead_s) for n in (stride, 1))
        if of_one == of_all:
            return self._leave(name, _ROWS)
        return self._of if of_one else OF_ROW

    def _between(self, stamp_of: Any) -> float:
        """The usual seconds between rows by their timestamps; 0 without."""
        moments = [moment for row in self._rows if not math.isnan(moment := moment_of(stamp_of(row)))]
        return _usual(moments)

    def _ahead_s(self) -> float:
        """The usual seconds between rows by what is known of them; NaN for nothing."""
        if self._since_s:
            return self._since_s
        if moments := self._columns.get(_MOMENT):
            return (
                _usual(moment_of(stamp_of_object({_STAMP: value})) for value in self._given(moments.name)) or math.nan
            )
        if elapsed := self._columns.get(ELAPSED):
            return _usual(_seconds(value) * elapsed.unit_s for value in self._given(elapsed.name)) or math.nan
        return math.nan

    def _stride(self) -> float:
        """The usual number of steps or epochs between rows; 1 where that is unknown."""
        return _usual(self._places()) or 1.0

    def _places(self) -> list[float]:
        return [place for row in self._rows if not math.isnan(place := self._place(row))]

    def _place(self, row: Row) -> float:
        """How far the training is by a row; NaN where it does not say."""
        names = STEPS if self.by_step else (EPOCH,)
        return next((float(row[name]) for name in names if _is_number(row.get(name))), math.nan)

    def _given(self, name: str) -> list[Any]:
        return [value for _, value in self._held(name)]

    def _held(self, name: str) -> list[tuple[float, Any]]:
        """What the first of the rows on each step or epoch has in a column, by how far the training was."""
        held = [(self._place(row), row[name]) for row in self._rows if name in row]
        return [
            (place, value)
            for before, (place, value) in zip([math.nan, *(at for at, _ in held)], held, strict=False)
            if place != before
        ]

    def _begins_late(self) -> bool:
        """Whether the first row is more than two of the usual strides from the beginning."""
        places = self._places()
        return bool(_usual(places)) and places[0] > _NEAR * _usual(places)


def _with_times(row: Row) -> Row:
    """The row with seconds of a step where it has steps a second."""
    if not any(map(is_rate, row)):
        return row
    return {name: each_s(_seconds(value)) if is_rate(name) else value for name, value in row.items()}


def _steps(at: Sequence[tuple[float, float]], *, over_midnight: bool) -> list[float]:
    """How much a time is more than the one before it that differs, but where what is counted begins again.
    ``over_midnight``: it may be a time of day, which falls by a day.
    """
    out = []
    for (before, time_before), (place, time) in pairwise(at):
        step = time - time_before
        if step and not place < before:
            out.append(step + _DAY_S if over_midnight and step < -_DAY_S / 2 else step)
    return out


def _usual(numbers: Iterable[float]) -> float:
    """The median of how far each is beyond the one before it; 0 where none is."""
    ahead = [after - before for before, after in pairwise(numbers) if after > before]
    return median(ahead) if ahead else 0.0


def _agree(one_s: float, other_s: float) -> bool:
    return other_s / _HALF_AS_MUCH <= one_s <= other_s * _HALF_AS_MUCH


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:_SHOWN])


def _seconds(value: Any) -> float:
    """A number, or the seconds of a text that is a length of time; NaN for another."""
    return float(value) if _is_number(value) else duration_s(value) if isinstance(value, str) else math.nan


def _rank(row: Row) -> object:
    return next((row[name] for name in RANKS if _is_number(row.get(name))), None)


def _is_number(value: Any) -> TypeGuard[float]:
    return is_number(value) and abs(value) <= _MOST
