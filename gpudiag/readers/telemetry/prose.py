"""Sentences with labeled values: ``GPU_ID: 2, Timestamp: 2023/04/05 17:32:25.451, Power consumption: 23.43 W``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.readers._delimited.sweep import OTHER
from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.corrections import PEAKS, correct
from gpudiag.readers._shape.finish import finish
from gpudiag.readers._shape.moments import Moment, read_moment
from gpudiag.readers._shape.prose_lines import OF_STEPS, Said, is_sample, owner_of, readings_of, states_a_time
from gpudiag.readers._shape.prose_rows import bare_row, columns_of
from gpudiag.readers._shape.ticks import apart, moment_column, zone_note
from gpudiag.readers._shape.timestamp_forms import TIMESTAMP, tell_form
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "prose"
_SNIFFED_LINES = 60
_ENOUGH = 0.4


class _Line(NamedTuple):
    """What a line says of one GPU, or its bare numbers; ``moment`` is the time stated last."""

    number: int
    text: str
    moment: Moment | None
    reading: Said
    row: list[float] | None


@dataclass
class _ParsedLines:
    """Rows gathered from lines."""

    timestamps: list[Moment | None] = field(default_factory=list)
    rows: list[dict[str, object]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    units: set[str] = field(default_factory=set)
    _open: dict[str, dict[str, object]] = field(default_factory=dict)
    """The row of each GPU at the time stated last."""

    def add(self, line: int, moment: Moment | None, gpu: str, values: dict[str, float]) -> None:
        """Take what a line says; several lines of one time and GPU that say different things are one sample."""
        gpu = gpu or "0"
        if not self.timestamps or moment is None or moment != self.timestamps[-1]:
            self._open.clear()
        if gpu in self._open and self._open[gpu].keys().isdisjoint(values):
            self._open[gpu].update(values)
            return
        self._open[gpu] = {"line": line, "gpu": gpu, **values}
        self.timestamps.append(moment)
        self.rows.append(self._open[gpu])


def recognises(source: Source) -> bool:
    """Timed lines of labelled GPU measurements, in good part."""
    if source.is_dir or source.is_binary:
        return False
    lines = [line for line in source.top[:_SNIFFED_LINES] if line.strip()]
    of_steps = any(map(OF_STEPS.search, lines))  # what GPUs do is then told in passing, and a log of steps reads more
    readings = [one for line in lines for one in readings_of(line, names_behind_words=not of_steps)]
    sure = any(map(is_sample, readings))
    telling = sum(is_sample(one, among=sure) for one in readings)
    rows = sum(bare_row(line) is not None for line in lines)
    dates = sum(map(states_a_time, lines))
    headings = sum(bool(one.gpu and not one.values) for one in readings)
    ruled = sum(not re.search(r"\w", line) for line in lines)
    timed = dates or any(one.moment is not None for one in readings)
    rest = len(readings) - dates - headings - ruled
    return bool(sure and timed and telling + rows >= _ENOUGH * rest)


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Read every line; see :func:`gpudiag.readers.telemetry.read_telemetry`."""
    log = ProblemLog()
    found = _ParsedLines()
    lines = list(_lines(source, log))
    _name_owners(lines)
    summaries = _take_averages_out(lines)
    unnamed = _unnamed_of_gpus(lines)
    several = len({line.reading.gpu for line in lines if line.reading.gpu}) > 1
    for line in lines:
        whose = line.reading.gpu or not several  # what names nobody beside lines on several GPUs is of any
        if line.row is None and whose and (is_sample(line.reading, among=True) or line.number in unnamed):
            found.add(line.number, line.moment, line.reading.gpu, line.reading.values)
            found.units |= line.reading.units
            if line.reading.name:
                found.names[line.reading.gpu] = line.reading.name
        elif line.number in summaries or (
            line.row is None and (line.reading.moment is None or (line.reading.values and not whose))
        ):
            log.add(OTHER, line=line.number, example=line.text)
    bare = [(line.number, line.moment, line.row) for line in lines if line.row is not None]
    notes = _bare_rows(found, bare, options, log)
    notes += _of_no_one(lines) + zone_note(found.timestamps) + _date_note(source)
    frame = pd.DataFrame(found.rows, columns=None if found.rows else ["line", "gpu"])
    frame["time"] = moment_column(found.timestamps, options.timezone)
    frame = frame.sort_values("line", kind="stable", ignore_index=True)
    frame, corrected = _corrected(frame, found.units)
    notes += corrected
    gpus = pd.DataFrame({"gpu": list(found.names), "name": list(found.names.values())}) if found.names else None
    return finish(source, NAME, options, log, gpu=frame, gpus=gpus, notes=notes)


def _lines(source: Source, log: ProblemLog) -> Iterator[_Line]:
    """What each line says that says something."""
    last: Moment | None = None
    heading = ""
    for number, text in numbered_lines(source, log):
        if not text.strip():
            continue
        row = bare_row(text)
        for reading in [Said({})] if row else readings_of(text, heading):
            reading.moment = reading.moment or (None if row else read_moment(text))
            last = reading.moment or last
            if row is None and not reading.values and (reading.moment or re.search("[A-Za-z]", text)):
                heading = reading.gpu  # "GPU 1: NVIDIA ...", of which the values right below it speak
            reading.gpu = reading.gpu or heading
            yield _Line(number, text, last, reading, row)


def _name_owners(lines: Sequence[_Line]) -> None:
    """Let several ranks be GPUs where no line names one, and tell the GPUs of several hosts apart."""
    owners = {line.number: owner_of(line.text) for line in lines if line.reading.values}
    hosts, ranks = ({owner[part] for owner in owners.values()} - {""} for part in (0, 1))
    unnamed = not any(line.reading.gpu for line in lines)
    for line in lines:
        host, rank = owners.get(line.number, ("", ""))
        reading = line.reading
        if unnamed and len(ranks) > 1:
            reading.gpu = rank
        if host and len(hosts) > 1:
            reading.gpu = f"{host}/{reading.gpu or 0}"


def _unnamed_of_gpus(lines: Sequence[_Line]) -> set[int]:
    """The numbers of lines that name nobody (``Memory used: 900 MiB``) at times of which others tell what a GPU does,
    and nothing of this. None where something is told of the host, whose it may be.
    """
    sure = [line for line in lines if is_sample(line.reading, among=True)]
    told = {name for line in sure for name in line.reading.values}
    if any(line.reading.of_host for line in lines):
        return set()
    times = {line.moment.timestamp for line in sure if line.moment}
    new = [line for line in lines if line.reading.values and told.isdisjoint(line.reading.values)]
    timed = (line for line in new if line.moment and line.moment.timestamp in times)
    return {line.number for line in timed if not line.reading.others and not line.reading.of_training}


def _take_averages_out(lines: Sequence[_Line]) -> set[int]:
    """Take out averages of what as many lines tell as it is, and peaks beside them; the numbers of these lines."""
    told = Counter(name for line in lines for name in line.reading.values.keys() - line.reading.means)
    told.subtract(name for line in lines for name in line.reading.means)
    summaries = [line for line in lines if any(told[name] >= 0 for name in line.reading.means)]
    for line in summaries:
        gone = {name for name in line.reading.means if told[name] >= 0} | PEAKS
        line.reading.values = {name: value for name, value in line.reading.values.items() if name not in gone}
    return {line.number for line in summaries}


def _bare_rows(
    found: _ParsedLines, bare: Sequence[tuple[int, Moment | None, list[float]]], options: ReadOptions, log: ProblemLog
) -> list[str]:
    """Rows of numbers between the sentences, under the names given or those that the numbers show."""
    if not bare:
        return []
    total = {value for row in found.rows if isinstance(value := row.get("mem_total_mib"), float)}
    names, note = columns_of([row for _, _, row in bare], options.columns, total)
    for line, moment, row in bare:
        if names is None or len(row) != len(names):
            log.add("row of numbers without names", line=line, example=row, lost=True)
            continue
        values = dict(zip(names, row, strict=True))
        gpu = values.pop("index", 0.0)
        found.add(line, moment, f"{gpu:g}", {name: value for name, value in values.items() if name})
    return [note]


def _of_no_one(lines: Sequence[_Line]) -> list[str]:
    left_out = sorted(set[str]().union(*(line.reading.of_no_one for line in lines)))
    if not left_out:
        return []
    return [f"Lines tell {', '.join(left_out)} behind their last GPU alone: it may be of all, so it was not read."]


def _date_note(source: Source) -> list[str]:
    timestamps = [match[0] for line in source.lines if (match := TIMESTAMP.search(line))]
    form = tell_form(timestamps)
    if form is None or not form.ambiguous:
        return []
    order = "day first" if form.format.startswith("%d") else "month first"
    return [f"Dates can be read day first or month first, and nothing in the log decides; {order} was assumed."]


def _corrected(frame: pd.DataFrame, units: set[str]) -> tuple[pd.DataFrame, list[str]]:
    """The rows of each GPU together, as their numbers show them to be meant; ``units`` were told for these columns."""
    code = pd.factorize(frame["gpu"])[0]
    order = np.argsort(code, kind="stable")
    frame, code = frame.take(order), code[order]
    named = ("gpu", "line", "time")
    columns = {name: frame[name].to_numpy(dtype="float64") for name in frame if name not in named}
    notes = correct(columns, code, unitless=columns.keys() - units)
    timestamps, coarse = apart(frame["time"], code, columns)
    rest = {"time": timestamps, "gpu": frame["gpu"].to_numpy(), "line": frame["line"].to_numpy()}
    return pd.DataFrame(rest | columns), notes + coarse


READER = Reader(NAME, recognises, read)
