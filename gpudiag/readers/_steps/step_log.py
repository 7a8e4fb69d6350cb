"""The steps that the lines of one log tell of, as rows of table ``steps``."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

import pandas as pd

from gpudiag.readers._batches.log_lines import trial_of
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._steps.bars import begins_table, evaluation_s, table_row_of
from gpudiag.readers._steps.batch_size import StatedBatch
from gpudiag.readers._steps.dialects import FROM_EITHER
from gpudiag.readers._steps.other_work import OtherWork, may_tell, moment_of
from gpudiag.readers._steps.own_times import with_own_times
from gpudiag.readers._steps.stated_loss import not_finite_of_trainer
from gpudiag.readers._steps.step_line import EVALUATIONS, StepLine, of_bar, step_of
from gpudiag.readers._steps.trainer_line import trainer_line
from gpudiag.readers._studies.timestamps import to_utc
from gpudiag.schema import LASTING, STEPS, conform, empty

_EPOCH_LINE = re.compile(r"(?i)^\W{0,10}epoch\s{0,2}[:#]?\s{0,2}(\d{1,6})\s?(?:/|of)\s?\d{1,6}\W{0,10}$")
CLEAR = 10
"""Times what a clock is rounded by, which it tells to a tenth."""
QUIET_S = 600.0
"""A log that was silent for so long did not go on: what comes then may be of the way down. PyTorch ends a collective of
NCCL after 10 min."""
_WRAPPED = " " * 20
"""What begins so goes on with the columns of the bar above."""
_FIELDS = tuple(name for name in StepLine._fields if name != "step")
_WHOLE = ("total", "epoch", "rank", "trial", "batch", "not_finite")
_RANK_NAME = re.compile(r"(?i)(?:^|[^a-z])rank[_\-]?(\d{1,5})(?!\d)")


class StepLog:
    """Takes the lines of one file in their order; ``frame`` is what they say. ``dated``: their timestamps are moments;
    of others only the time between them counts. ``named``: what may name the rank, where that is not the file's name.
    """

    def __init__(self, path: Path, *, dated: bool = True, named: str = "") -> None:
        self._path, self._dated = path, dated
        self._rows: list[StepLine] = []
        self._stamps: list[str] = []
        self._lines: list[int] = []
        self._since: list[str | None] = []
        self._work: defaultdict[int | None, OtherWork] = defaultdict(OtherWork)  # by the trial that lines name
        self._told: dict[str, float] = {}  # since the file began, and the seconds stated since a line on a step
        self._told_to: dict[tuple[object, ...], dict[str, float]] = {}  # since the last line of each kind and writer
        self._told_stamp, self._worked_stamp = "", ""  # of the last line that tells of anything, and of lasting work
        self._undated_work = set[str]()  # of which lines without a timestamp tell behind the last that has one
        self._behind = "", math.nan  # timestamp and moment up to which the log goes on behind the last line on a step
        self._lasted: list[dict[str, float]] = []
        self._since_s: list[float] = []
        self._evaluated_s, self._evaluating_s = 0.0, 0.0  # by bars that ended, and by the one that stands
        self._printed = math.nan, dict[tuple[object, ...], dict[str, float]](), dict[str, float]()
        self._batch = StatedBatch()
        self._epoch: int | None = None
        self._in_table = False
        self._first_stamp = ""
        of_rank = _RANK_NAME.search(named or path.stem)
        self._rank = int(of_rank[1]) if of_rank else None

    def take(self, number: int, line: str, stamp: str) -> bool:
        """Look at one line; True if it tells of a step."""
        self._first_stamp = self._first_stamp or stamp
        if header := _EPOCH_LINE.match(line):
            self._epoch = int(header[1])
            return False
        if begins_table(line):
            self._in_table = True
            return False
        said = self._row_of_table(line) if self._in_table else None
        said = said or step_of(line, stamped=bool(stamp))
        if said is None:
            if not line.startswith(_WRAPPED):
                self.tell(line, stamp)
                self._take_loss(line)
            if (seconds := evaluation_s(line)) >= 0:
                self._evaluated_s += self._evaluating_s if seconds < self._evaluating_s else 0.0
                self._evaluating_s = seconds
            return False
        if said.epoch is None and said.unit == "step" and self._epoch is not None:
            said = said._replace(epoch=self._epoch)
        if (trial := trial_of(line)) is not None:
            said = said._replace(trial=trial)
        if said.series == EVALUATIONS:
            self.tell(line, stamp)
        before = self._rows[-1] if self._rows else said
        blur_s = max(before.blur_s, said.blur_s) if _goes_on(before, said) and not stamp else 0.0
        if blur_s > 0 and said.elapsed_s - before.elapsed_s < CLEAR * blur_s:
            if said.blur_s > 0:
                return True
            self._take_back()  # the last line of an epoch tells its time exactly
        self.add(number, said, stamp, line)
        return True

    def _take_loss(self, line: str) -> None:
        """Hugging Face's Trainer prints the loss behind the bar that counts the step."""
        told = trainer_line(line) if self._rows else None
        if told is not None and told.kind == "step":
            self._rows[-1] = self._rows[-1]._replace(not_finite=not_finite_of_trainer(told.said))

    def _take_back(self) -> None:
        """Forget the last line on a step but for what others told before it."""
        row, told = self._rows.pop(), self._lasted.pop()
        for kept in (self._stamps, self._lines, self._since, self._since_s):
            kept.pop()
        _add_up(self._told_to[row.series, row.rank, row.trial], told)

    def tell(self, line: str, stamp: str) -> None:
        """Take a line that tells of no step for what it tells of other work."""
        self._first_stamp = self._first_stamp or stamp
        self._batch.take(line)
        moment_s = moment_of(stamp)
        if 0 <= moment_s - self._behind[1] <= QUIET_S:
            self._behind = stamp, moment_s
        if not may_tell(line) or (not stamp and (printed := trainer_line(line)) and self._stands_late(printed.epoch)):
            return
        trial = trial_of(line)
        told = self._work[trial].told_by(line, moment_s)
        if not told:
            return
        for (_, _, of), before in self._told_to.items():
            if trial is None or of in (None, trial):
                _add_up(before, told)
        _add_up(self._told, told)
        # A line without a timestamp goes on with the last that has one.
        latest = self._behind[0] if self._stamps and self._behind[0] != self._stamps[-1] else ""
        self._undated_work = set() if stamp else self._undated_work | told.keys()
        self._told_stamp = stamp or _later(self._told_stamp, latest)
        if not told.keys().isdisjoint(LASTING):
            self._worked_stamp = stamp or _later(self._worked_stamp, latest)

    def _stands_late(self, epoch: float) -> bool:
        """Whether a buffer held back what the Trainer printed: lines on several epochs follow each other, and none of
        the bar, which it draws again behind each. What they tell of was long before.
        """
        first, told_to, told = self._printed
        if math.isnan(first):
            self._printed = epoch, {writer: dict(own) for writer, own in self._told_to.items()}, dict(self._told)
        elif epoch != first:
            self._told_to, self._told, self._printed = told_to, told, (math.inf, told_to, told)
        return not math.isnan(first) and epoch != first

    def add(self, number: int, said: StepLine, stamp: str, line: str = "") -> None:
        """Take what a line says of a step."""
        self._first_stamp = self._first_stamp or stamp
        batch = self._batch.of_step(line)
        whose = "all" if batch.of_all else None
        self._rows.append(said._replace(batch=batch.n, batch_of=whose) if batch.n else said)
        self._stamps.append(stamp)
        self._behind = stamp, moment_of(stamp)
        self._lines.append(number)
        writer = (said.series, said.rank, said.trial)
        told = self._told_to.get(writer, self._told)
        self._since.append(", ".join(sorted(told, reverse=True)) or None)
        self._lasted.append(told)
        self._told_to[writer] = {}
        self._printed = math.nan, {}, {}
        if said.series == EVALUATIONS:
            self._since_s.append(math.nan)
            return
        self._since_s.append(self._evaluated_s + self._evaluating_s or math.nan)
        self._evaluated_s = self._evaluating_s = 0.0
        self._told = dict.fromkeys(self._told, 0.0)
        for trial in {None, said.trial}:
            self._work[trial].step()

    def __len__(self) -> int:
        return len(self._rows)

    def _row_of_table(self, line: str) -> StepLine | None:
        row = table_row_of(line)
        self._in_table = row is not None or not line.strip()
        return of_bar(row) if row else None

    def frame(self, zone: tzinfo) -> tuple[pd.DataFrame, str]:
        """Table ``steps`` in the order of the lines, and how its timestamps are meant (utc, local, mixed, unknown)."""
        if not self._rows:
            return empty(STEPS), "unknown"
        self._rows, since_start = with_own_times(self._rows, self._stamps)
        if any(since_start) and not self._first_stamp:
            self._stamps, self._dated = since_start, False
            self._first_stamp = next(filter(None, since_start))
        zone = zone if self._dated else UTC
        times = to_utc([stamp or None for stamp in self._stamps], zone)
        others = (self._first_stamp, self._behind[0], self._worked_stamp, self._told_stamp)
        begun, behind, worked, told = to_utc([stamp or None for stamp in others], zone).time
        columns = self._columns()
        columns |= {"time": times.time, "line": self._lines, "since_s": self._since_s}
        since_begun = (times.time - begun).dt.total_seconds()
        columns["begun_s"] = since_begun.where(since_begun >= 0)
        columns["since"] = self._since
        columns |= {f"{work}_s": [_or_nan(told.get(work, 0.0)) for told in self._lasted] for work in LASTING}
        for at in self._last_lines():
            for name, value in self._what_follows(at, times.time.iloc[at], worked, told).items():
                columns.setdefault(name, [None] * len(self._rows))[at] = value
        last_s = max((behind - times.time.iloc[-1]).total_seconds(), 0.0)
        columns["last_s"] = [math.nan] * (len(self._rows) - 1) + [last_s]
        columns["path"] = [as_text(self._path)] * len(self._rows)
        if not self._dated:
            elapsed = pd.Series(columns.get("elapsed_s", math.nan), times.time.index, dtype=float)
            columns["elapsed_s"] = columns["begun_s"].fillna(elapsed)
            columns["time"] = pd.Series(pd.NaT, times.time.index, dtype=times.time.dtype)
        return conform(pd.DataFrame(columns), STEPS), times.clock if self._dated else "unknown"

    def _columns(self) -> dict[str, Any]:
        """What the lines say, by column, without those of which none says anything."""
        too_many = self._too_many()
        out: dict[str, Any] = {"step": [row.step - too_many[row.series] for row in self._rows]}
        for name in _FIELDS:
            values = [getattr(row, name) for row in self._rows]
            if name == "rank" and self._rank is not None:
                values = [self._rank if rank is None else rank for rank in values]
            if any(value is not None and value == value for value in values):
                out[name] = pd.array(values, dtype="Int64") if name in _WHOLE else values
        return out

    def _last_lines(self) -> list[int]:
        """The last line of all, and of the steps that go on up to it: one for each rank that came as far, if only whole
        epochs and evaluations are named behind them.
        """
        found, met = [len(self._rows) - 1], set[int | None]()
        course: StepLine | None = None
        for at, row in reversed(list(enumerate(self._rows))):
            if row.unit == "epoch" or row.series == EVALUATIONS:
                continue
            course = course or row
            if (row.series, row.trial, row.epoch, row.step) != (course.series, course.trial, course.epoch, course.step):
                break
            if row.rank not in met:
                met.add(row.rank)
                found.append(at)
        return sorted(set(found))

    def _what_follows(
        self, at: int, time: pd.Timestamp, worked: pd.Timestamp, told_last: pd.Timestamp
    ) -> dict[str, str | float]:
        """What the lines behind the last line of its kind and writer tell of; ``worked``: when the last line was that
        tells of lasting work, ``told_last`` of anything.
        """
        row = self._rows[at]
        told = self._told_to[row.series, row.rank, row.trial]
        if not told:
            return {}
        # A failure hours later is no part of lasting work.
        by_time = ((told_last if told.keys().isdisjoint(LASTING) else worked) - time).total_seconds()
        least_s = max((told.get(work, 0.0) for work in self._undated_work), default=0.0)
        return {
            "then": ", ".join(sorted(told, reverse=True)),
            "then_s": max(by_time, least_s) if by_time == by_time else sum(told.values()),
            **{f"then_{work}_s": _or_nan(told.get(work, 0.0)) for work in LASTING},
        }

    def _too_many(self) -> dict[str, int]:
        """By kind of line how many steps more than are done it states: one where it may begin at 0 and never does."""
        least: dict[str, int] = {}
        for row in self._rows:
            least[row.series] = min(row.step, least.get(row.series, row.step))
        return {series: int(series in FROM_EITHER and step > 1) for series, step in least.items()}

    def note(self) -> str:
        """Which lines these are, as a sentence without the file's name."""
        kinds = Counter(row.series.partition("|")[0] or "progress bar" for row in self._rows)
        (name, count), *others = kinds.most_common()
        rest = f" and {sum(n for _, n in others)} of other kinds" if others else ""
        return f"{count} lines on steps of training ({name}){rest}"


def _goes_on(before: StepLine, said: StepLine) -> bool:
    """Whether a line is a later one of the same bar."""
    return before.series == said.series and before.epoch == said.epoch and before.step < said.step


def _add_up(before: dict[str, float], told: dict[str, float]) -> None:
    for work, seconds in told.items():
        before[work] = before.get(work, 0.0) + seconds


def _later(one: str, other: str) -> str:
    """The later of two timestamps, each of which may be ''."""
    return one if not other or moment_of(one) >= moment_of(other) else other


def _or_nan(seconds: float) -> float:
    return seconds if seconds > 0 else math.nan
