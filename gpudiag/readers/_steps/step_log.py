"""The steps that the lines of one log tell of, as rows of table ``steps``."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import numpy as np
import pandas as pd

from gpudiag.readers._batches.log_lines import trial_of
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._steps.bars import begins_table, evaluation_s, table_row_of
from gpudiag.readers._steps.dialects import FROM_EITHER
from gpudiag.readers._steps.step_line import StepLine, of_bar, step_of
from gpudiag.readers._studies.timestamps import to_utc
from gpudiag.schema import STEPS, conform, empty, text_dtype

_MONTH_DAY = re.compile(r"^\[?(\d\d)/(\d\d) (\d\d):(\d\d):(\d\d)\b")
"""The timestamp of detectron2 and of mmengine's console, without a year."""
_EPOCH_LINE = re.compile(r"(?i)^\W{0,10}epoch\s{0,2}[:#]?\s{0,2}(\d{1,6})\s?(?:/|of)\s?\d{1,6}\W{0,10}$")
_OTHER_WORK = {
    "evaluation": re.compile(r"(?i)\b(?:eval|evaluat|valid|val\b|val_|test(?:ing|_|[\s/.-]?(?:loss|acc)))"),
    "checkpoint": re.compile(r"(?i)\bcheckpoint|\bsav(?:e|ed|ing)\b.{0,40}\b(?:model|weights|state|to)\b"),
    "resumption": re.compile(
        r"(?i)\b(?:auto.?)?resum(?:e|ed|ing)\b|\bcontinuing training from\b|\brestor(?:ed|ing)\b.{0,60}\bcheckpoint"
        r"|\bload(?:ed|ing) (?:the )?checkpoint\b.{0,200}\b(?:iteration|epoch|step)\b"
        r"|\brestart(?:ed|ing)?\b.{0,30}\b(?:workers?|worker group|training|job)\b"
    ),
    "failure": re.compile(
        r"Traceback \(most recent call last\)|\bWatchdog caught\b|\bOutOfMemoryError\b"
        r"|\bCUDA (?:out of memory|error)\b|\bNCCL error\b"
        r"|\bChildFailedError\b|\bSegmentation fault\b|\bDUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE)\b"
    ),
    "end": re.compile(
        r"(?i)\bfinal (?:model|weights|checkpoint)\b"
        r"|(?:^|[\W_])(?:seed|fold|run|training|config|experiment)\s?[#:=]?\s?\d{1,6}(?:\s?(?:/|of)\s?\d{1,6})?\W{0,10}$"
    ),
}
"""What a training does between steps, as its log tells of it; a resumption in the words of Hugging Face, Lightning,
mmengine, timm, Megatron and torchrun. What was caught is a failure too: it counts only before a start from the first
step. An end is that of the training, by its last file or by a heading of the next (seed 2, fold 2/5)."""
_LEAP = 2000
"""Any leap year: of timestamps without a year only the differences count."""
_LOOKED_AT = 400
"""Characters of a line in which it says what is done."""
_WRAPPED = " " * 20
"""What begins so goes on with the columns of the bar above."""
_RANK_NAME = re.compile(r"(?i)(?:^|[^a-z])rank[_\-]?(\d{1,5})(?!\d)")


def _other_work(line: str) -> list[str]:
    """What a line tells of; a resumption names the checkpoint that it begins from, and writes none."""
    told = [work for work, words in _OTHER_WORK.items() if words.search(line)]
    return ["resumption"] if "resumption" in told else told


class StepLog:
    """Takes the lines of one file in their order; ``frame`` is what they say."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[StepLine] = []
        self._stamps: list[str] = []
        self._lines: list[int] = []
        self._since: list[str | None] = []
        self._told: dict[str, None] = {}  # since the file began
        self._told_to: dict[tuple[object, ...], dict[str, None]] = {}  # since the last line of each kind and writer
        self._told_stamp = ""
        self._since_s: list[float] = []
        self._evaluated_s, self._evaluating_s = 0.0, 0.0  # by bars that ended, and by the one that stands
        self._elapsed: list[float] = []
        self._epoch: int | None = None
        self._in_table = False
        self._month_day: datetime | None = None
        self._begun: datetime | None = None
        self._first_stamp = ""
        named = _RANK_NAME.search(path.stem)
        self._rank = int(named[1]) if named else None

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
        elapsed_s = math.nan if stamp else self._since_first(line)
        said = said or step_of(line, stamped=bool(stamp) or not math.isnan(elapsed_s))
        if said is None:
            if not line.startswith(_WRAPPED):
                self.tell(line, stamp)
            if (seconds := evaluation_s(line)) >= 0:
                self._evaluated_s += self._evaluating_s if seconds < self._evaluating_s else 0.0
                self._evaluating_s = seconds
            return False
        if said.epoch is None and said.unit == "step" and self._epoch is not None:
            said = dataclasses.replace(said, epoch=self._epoch)
        if (trial := trial_of(line)) is not None:
            said = dataclasses.replace(said, trial=trial)
        self.add(number, said, stamp, elapsed_s)
        return True

    def tell(self, line: str, stamp: str) -> None:
        """Take a line that tells of no step for what it tells of other work."""
        self._first_stamp = self._first_stamp or stamp
        told = _other_work(line[:_LOOKED_AT])
        trial = trial_of(line) if told else None
        for (_, _, of), before in self._told_to.items():
            if trial is None or of in (None, trial):
                before.update(dict.fromkeys(told))
        self._told.update(dict.fromkeys(told))
        self._told_stamp = stamp if told and stamp else self._told_stamp

    def add(self, number: int, said: StepLine, stamp: str, elapsed_s: float = math.nan) -> None:
        """Take what a line says of a step; ``elapsed_s``: since the log began, where it has no timestamp."""
        self._first_stamp = self._first_stamp or stamp
        self._rows.append(said)
        self._stamps.append(stamp)
        self._lines.append(number)
        self._elapsed.append(elapsed_s)
        writer = (said.series, said.rank, said.trial)
        self._since.append(", ".join(sorted(self._told_to.get(writer, self._told), reverse=True)) or None)
        self._told_to[writer] = {}
        self._since_s.append(self._evaluation_s() or math.nan)
        self._evaluated_s = self._evaluating_s = 0.0

    def __len__(self) -> int:
        return len(self._rows)

    def _evaluation_s(self) -> float:
        """Time of evaluations since the last line on a step, by their own bars."""
        return self._evaluated_s + self._evaluating_s

    def _row_of_table(self, line: str) -> StepLine | None:
        row = table_row_of(line)
        self._in_table = row is not None or not line.strip()
        return of_bar(row) if row else None

    def _since_first(self, line: str) -> float:
        """Seconds since the file's first timestamp without a year; NaN for a line without one."""
        found = _MONTH_DAY.match(line)
        if not found:
            return math.nan
        try:
            month, day, hour, minute, second = map(int, found.groups())
            moment = datetime(_LEAP, month, day, hour, minute, second, tzinfo=UTC)
        except ValueError:
            return math.nan
        if self._month_day is not None and moment < self._month_day - timedelta(days=180):
            moment = moment.replace(year=_LEAP + 1)
        self._month_day = moment
        self._begun = self._begun or moment
        return (moment - self._begun).total_seconds()

    def frame(self, zone: tzinfo) -> tuple[pd.DataFrame, str]:
        """Table ``steps`` in the order of the lines, and how its timestamps are meant (utc, local, mixed, unknown)."""
        if not self._rows:
            return empty(STEPS), "unknown"
        times = to_utc(self._stamps, zone)
        begun = to_utc([self._first_stamp], zone).time.iloc[0]
        names = [field.name for field in dataclasses.fields(StepLine)]
        frame = pd.DataFrame({name: [getattr(row, name) for row in self._rows] for name in names})
        frame["step"] -= frame["series"].map(self._too_many())
        for name in ("total", "epoch", "rank", "trial"):
            frame[name] = pd.array(frame[name].tolist(), dtype="Int64")
        frame["rank"] = frame["rank"].fillna(self._rank) if self._rank is not None else frame["rank"]
        stamped = np.array(self._elapsed)
        frame["elapsed_s"] = np.where(np.isnan(stamped), frame["elapsed_s"], stamped)
        frame["time"], frame["line"] = times.time, self._lines
        since_begun = (frame["time"] - begun).dt.total_seconds()
        frame["begun_s"] = since_begun.where(since_begun >= 0).fillna(pd.Series(stamped))
        frame["since"] = pd.Series(self._since, dtype=text_dtype())
        frame["since_s"] = self._since_s
        last_row = self._rows[-1]
        if told := self._told_to[last_row.series, last_row.rank, last_row.trial]:  # behind the last line on a step
            last, then = frame.index[-1], to_utc([self._told_stamp], zone).time.iloc[0]
            frame.loc[last, "then"] = ", ".join(sorted(told, reverse=True))
            by_time = (then - frame.loc[last, "time"]).total_seconds()
            frame.loc[last, "then_s"] = max(by_time, 0.0) if by_time == by_time else self._evaluation_s()
        frame["path"] = pd.Series([as_text(self._path)] * len(frame), dtype=text_dtype())
        return conform(frame, STEPS), times.clock

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
