"""Sentences with labeled values: ``GPU_ID: 2, Timestamp: 2023/04/05 17:32:25.451, Power consumption: 23.43 W``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.readers._delimited.sweep import OTHER
from gpudiag.readers._fields.aliases import meaning_of
from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.corrections import correct
from gpudiag.readers._shape.finish import finish
from gpudiag.readers._shape.moments import Moment, read_moment
from gpudiag.readers._shape.prose_rows import bare_row, columns_of
from gpudiag.readers._shape.ticks import apart, moment_column, zone_note
from gpudiag.readers._shape.timestamp_forms import TIMESTAMP, tell_form
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "prose"
_SNIFFED_LINES = 60
_ENOUGH = 0.4

# Every repetition has a limit: over a long run of one kind of letter, one without it takes the square of its length.
_PAIR = re.compile(
    r"(?<![A-Za-z_%()])(?P<label>[A-Za-z_%()]{1,40}(?: [A-Za-z_%()]{1,40}){0,2})\s{0,9}(?P<mark>[:=])\s{0,9}"
    r"(?P<value>-?\d{1,15}(?:\.\d{1,15})?)\s{0,9}(?P<unit>°?[A-Za-z%']{0,10})(?!\w|,\d|\s{0,9}[:=])"
    r"(?:\s{0,9}/\s{0,9}(?P<most>\d{1,15}(?:\.\d{1,15})?)\s{0,9}(?P<most_unit>[A-Za-z%]{0,3})(?!\w|\s{0,9}[:=]))?"
)
_SIZE = re.compile(
    r"(?P<value>\d{1,15}(?:\.\d{1,15})?)\s{0,9}(?P<unit>MiB|MB|GiB|GB)\s{1,9}(?:is )?"
    r"(?P<label>used|free|total)\b(?! (?i:mem|vram|gpu))"
)
_UNMARKED = re.compile(
    r"(?<![\w%()])(?P<label>[A-Za-z_]{1,40}(?: [A-Za-z_]{1,40}){0,3}) {1,3}(?P<value>\d{1,15}(?:\.\d{1,15})?) ?"
    r"(?P<unit>%|[MG]i?B|W|°?C)(?![\w%]|,\d| {0,3}(?:/|of|free|left|available|total|limit|max|peak))"
)
"""``util 30%``, where the line names a GPU."""
_DEVICE = re.compile(
    r"(?i)\b(?:gpu|cuda|card|nvidia)(?:_id)?[ :_#-]{0,3}(\d{1,3})"
    r"(?:\b(?!\s{0,9}[.%/°]|\s?(?:[MG]i?B|W|C)\b)|(?<=gpu\d)(?=[._/][a-z])|(?<=gpu[_\d]\d)(?=[._/][a-z]))"
    r"(?:\s{0,9}[:-]?\s{1,9}((?:NVIDIA|Tesla|GeForce|Quadro) ?[^:]{0,80}?)\s{0,9}(?::| - ))?"
)
"""A GPU, alone or in front of what is measured of it: ``gpu0_util``, ``gpu_1.mem``."""
_QUOTED = re.compile(r"(['\"])(\w[\w %()./-]{0,39})\1(?=\s{0,9}:)")
"""A key of a dictionary, as Python prints it and as JSON has it."""
_JSON = ('{"', '[{"')
"""A line that begins so is a document, which others read."""
_OF_STEPS = re.compile(r"(?i)(?<![a-z])(?:steps?|iter(?:ation)?s?|epochs?|loss|lr)(?![a-z])")
_OF_TRAINING = re.compile(r"(?i)loss$|^lr$|learning_rate")
_OF_HOST = re.compile(r"(?i)(?<![a-z])(?:cpu|ram|host|system|disk|swap)(?![a-z])")
_TOTALS = {"mem_used_mib": "mem_total_mib", "power_w": "power_limit_w"}


@dataclass
class _Reading:
    """What one line says: values by column, the GPU, the time."""

    values: dict[str, float]
    gpu: str = ""
    name: str = ""
    moment: Moment | None = None
    others: int = 0
    named: bool = False
    """Its labels say GPU."""
    units: set[str] = field(default_factory=set)
    of_training: bool = False
    """It has a name of a loss or a learning rate: its steps tell more."""
    of_host: bool = False
    of_whom: set[str] = field(default_factory=set)
    """Memory under names that do not say whose."""


class _Line(NamedTuple):
    """What a line says of one GPU, or its bare numbers; ``moment`` is the time stated last."""

    number: int
    text: str
    moment: Moment | None
    reading: _Reading
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
    of_steps = any(map(_OF_STEPS.search, lines))  # what GPUs do is then told in passing, and a log of steps reads more
    readings = [one for line in lines for one in _readings_of(line, names_behind_words=not of_steps)]
    sure = any(map(_is_sample, readings))
    telling = sum(_is_sample(one, among=sure) for one in readings)
    rows = sum(bare_row(line) is not None for line in lines)
    dates = sum(map(_states_a_time, lines))
    headings = sum(bool(one.gpu and not one.values) for one in readings)
    ruled = sum(not re.search(r"\w", line) for line in lines)
    timed = dates or any(one.moment is not None for one in readings)
    rest = len(readings) - dates - headings - ruled
    return bool(sure and timed and telling + rows >= _ENOUGH * rest)


def _is_sample(reading: _Reading, *, among: bool = False) -> bool:
    """True for a line that speaks of a GPU, by its name or by what it measures, more than of other things.

    ``among`` others that do, one whose labels say GPU is enough: ``GPU Memory: 3/8 GB`` alone may be a training's.
    """
    sure = reading.gpu or {"util_pct", "power_w"} & set(reading.values) or (among and reading.named)
    return bool(reading.values and sure and len(reading.values) >= reading.others and not reading.of_training)


def _states_a_time(line: str) -> bool:
    """True for a line of a time and nothing else, such as ``Time: 2026-03-01 10:00:00``."""
    when, rest = _time_apart(line)
    return read_moment(line) is not None or (bool(when) and meaning_of(rest).target == "time")


def _time_apart(line: str) -> tuple[str, str]:
    """The timestamp in a line, empty where there is none, and the line without it."""
    found = TIMESTAMP.search(line)
    return (found[0], f"{line[: found.start()]} {line[found.end() :]}") if found else ("", line)


def _readings_of(line: str, heading: str = "", *, names_behind_words: bool = True) -> list[_Reading]:
    """What a line says of each GPU that it names, or of one; of several, the last is told what any other is told.

    What only the last would be told (``gpu 0: 30% gpu 1: 70% total power: 500 W``) may be said of all.
    """
    keys = [] if line.lstrip().startswith(_JSON) else [key[2] for key in _QUOTED.finditer(line)]
    of_training = any(map(_OF_TRAINING.search, keys))
    line = _QUOTED.sub(r"\2", line) if keys else line
    readings = [_reading_of(part, heading, names_behind_words=names_behind_words) for part in _by_gpu(line)]
    *others, last = readings
    if others:
        told = set[str]().union(*(one.values for one in others))
        last.values = {name: value for name, value in last.values.items() if name in told}
        last.others = min(one.others for one in readings)  # what follows on all
    for reading in readings:
        reading.of_training = reading.of_training or of_training
    return readings


def _by_gpu(line: str) -> list[str]:
    """The line, in a part for each GPU where it names several, each at the time of the line.

    Values stand behind their GPU, or before it, where more of the names between two stand before the first than behind
    the last: those at the other end are of no one GPU. Nothing is taken where as many do. Names of steps stay with all.
    """
    when, rest = _time_apart(line)
    devices = [next(same) for _, same in groupby(_DEVICE.finditer(rest), key=lambda device: device[1])]
    if len(devices) < 2:
        return [line]
    first, last = devices[0], devices[-1]
    sides = (rest[: first.start()], rest[first.end() : last.start()], rest[last.end() :])
    before, between, behind = (_reading_of(side).values.keys() for side in sides)
    lead = len(before & between) - len(behind & between)
    if before and (lead > 0 or not behind):
        edges = [0, *(device.end() for device in devices)]
        return [f"{when} {rest[start:end]}" for start, end in pairwise(edges)]
    if before and lead == 0:
        return [when]
    edges = [*(device.start() for device in devices), len(rest)]
    common = "" if before else sides[0]
    return [f"{when} {common}{rest[start:end]}" for start, end in pairwise(edges)]


def _reading_of(line: str, heading: str = "", *, names_behind_words: bool = True) -> _Reading:
    """What a line says, below a heading that names this GPU; empty values if nothing of ours."""
    when, rest = _time_apart(line)
    device = _DEVICE.search(rest)
    reading = _Reading({}, device[1] if device else "", (device[2] or "") if device else "")
    reading.moment = read_moment(when) if when else None
    for match in _PAIR.finditer(rest):
        label = match["label"]
        if match["mark"] == "=":
            name = label.rpartition(" ")[2]
            if name.lower() == "gpus":  # so many there are
                continue
            label = name if names_behind_words else label
            reading.of_training = reading.of_training or bool(_OF_TRAINING.search(name))
        _take(reading, label, match, "gpu " if heading else "")
    for match in _SIZE.finditer(rest):
        meaning = meaning_of(f"gpu memory {match['label']} ({match['unit']})")
        reading.values.setdefault(meaning.target, float(match["value"]) * meaning.scale)
        reading.units.add(meaning.target)
    if reading.of_host and not device:
        reading.values = {name: value for name, value in reading.values.items() if name not in reading.of_whom}
    if reading.gpu and not _OF_STEPS.search(rest):
        _take_unmarked(reading, rest)
    return reading


def _take_unmarked(reading: _Reading, text: str) -> None:
    """Take ``util 30%, mem 900 MB``: several such, or one beside others, are what a GPU does; one may be anything."""
    values: dict[str, float] = {}
    for match in _UNMARKED.finditer(text):
        meaning = meaning_of(f"{match['label']} ({match['unit'].strip('°')})")
        if meaning.metric:
            values.setdefault(meaning.target, float(match["value"]) * meaning.scale)
    if len(values.keys() | reading.values.keys()) > 1:
        reading.values = values | reading.values
        reading.units |= values.keys()


def _take(reading: _Reading, label: str, match: re.Match[str], whose: str) -> None:
    unit = match["unit"].strip("°'") or match["most_unit"] or ""
    meaning = meaning_of(f"{label} ({unit})")
    if not meaning.target:
        meaning = meaning_of(f"{whose}{label} ({unit})")
    if meaning.target == "index":
        reading.gpu = match["value"]
    elif meaning.metric:
        reading.named = reading.named or meaning.gpu
        if meaning.gpu and meaning.target in reading.of_whom:  # this one says whose it is
            reading.of_whom.remove(meaning.target)
            del reading.values[meaning.target]
        elif not meaning.gpu and meaning.target.startswith("mem_") and meaning.target not in reading.values:
            reading.of_whom.add(meaning.target)
        reading.values.setdefault(meaning.target, float(match["value"]) * meaning.scale)
        reading.units |= {meaning.target, _TOTALS.get(meaning.target, "")} if meaning.unit else set()
        if match["most"] and meaning.target in _TOTALS:
            reading.values.setdefault(_TOTALS[meaning.target], float(match["most"]) * meaning.scale)
    elif meaning.target not in ("known", "time", "elapsed", "date"):
        reading.others += 1
        reading.of_host = reading.of_host or bool(_OF_HOST.search(label))


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Read every line; see :func:`gpudiag.readers.telemetry.read_telemetry`."""
    log = ProblemLog()
    found = _ParsedLines()
    lines = list(_lines(source, log))
    unnamed = _unnamed_of_gpus(lines)
    several = len({line.reading.gpu for line in lines if line.reading.gpu}) > 1
    for line in lines:
        whose = line.reading.gpu or not several  # what names nobody beside lines on several GPUs is of any
        if line.row is None and whose and (_is_sample(line.reading, among=True) or line.number in unnamed):
            found.add(line.number, line.moment, line.reading.gpu, line.reading.values)
            found.units |= line.reading.units
            if line.reading.name:
                found.names[line.reading.gpu] = line.reading.name
        elif line.row is None and (line.reading.moment is None or (line.reading.values and not whose)):
            log.add(OTHER, line=line.number, example=line.text)
    bare = [(line.number, line.moment, line.row) for line in lines if line.row is not None]
    notes = _bare_rows(found, bare, options, log)
    notes += zone_note(found.timestamps) + _date_note(source)
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
        for reading in [_Reading({})] if row else _readings_of(text, heading):
            reading.moment = reading.moment or (None if row else read_moment(text))
            last = reading.moment or last
            if row is None and not reading.values and (reading.moment or re.search("[A-Za-z]", text)):
                heading = reading.gpu  # "GPU 1: NVIDIA ...", of which the values right below it speak
            reading.gpu = reading.gpu or heading
            yield _Line(number, text, last, reading, row)


def _unnamed_of_gpus(lines: Sequence[_Line]) -> set[int]:
    """The numbers of lines that name nobody (``Memory used: 900 MiB``) at times of which others tell what a GPU does,
    and nothing of this. None where something is told of the host, whose it may be.
    """
    sure = [line for line in lines if _is_sample(line.reading, among=True)]
    told = {name for line in sure for name in line.reading.values}
    if any(line.reading.of_host for line in lines):
        return set()
    times = {line.moment.timestamp for line in sure if line.moment}
    new = [line for line in lines if line.reading.values and told.isdisjoint(line.reading.values)]
    timed = (line for line in new if line.moment and line.moment.timestamp in times)
    return {line.number for line in timed if not line.reading.others and not line.reading.of_training}


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
