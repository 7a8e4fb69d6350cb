"""What one line of prose says of GPUs: labeled values, whose they are, and when."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from gpudiag.patterns import late
from gpudiag.readers._fields.aliases import meaning_of
from gpudiag.readers._shape.moments import Moment, read_moment
from gpudiag.readers._shape.timestamp_forms import TIMESTAMP

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
    r"(?i)\b(?:gpu|cuda|card|nvidia|device)(?:_id)?[ :_#-]{0,3}(\d{1,3})"
    r"(?:\b(?!\s{0,9}[.%/°]|\s?(?:[MG]i?B|W|C)\b)|(?<=gpu\d)(?=[._/][a-z])|(?<=gpu[_\d]\d)(?=[._/][a-z]))"
    r"(?:\s{0,9}[:-]?\s{1,9}((?:NVIDIA|Tesla|GeForce|Quadro) ?[^:]{0,80}?)\s{0,9}(?::| - ))?"
)
"""A GPU, alone or in front of what is measured of it: ``gpu0_util``, ``gpu_1.mem``. A device may be another."""
_QUOTED = re.compile(r"(['\"])(\w[\w %()./-]{0,39})\1(?=\s{0,9}:)")
"""A key of a dictionary, as Python prints it and as JSON has it."""
_JSON = ('{"', '[{"')
"""A line that begins so is a document, which others read."""
OF_STEPS = re.compile(r"(?i)(?<![a-z])(?:steps?|iter(?:ation)?s?|epochs?|loss|lr)(?![a-z])")
_OF_TRAINING = re.compile(r"(?i)loss$|^lr$|learning_rate")
_OF_HOST = late(r"(?i)(?<![a-z])(?:cpu|ram|host|system|disk|swap|load[ _]?(?:avg|average))(?![a-z])")
_HOST = late(
    r"(?i)\b(?:host|hostname|node)\s?[=:]\s?(\d{1,3}(?:\.\d{1,3}){3}|[a-z][\w.-]{0,63}+"
    r"(?!\s?[:=]?\s?\d{1,15}(?:\.\d{1,15})?\s?(?:%|[KMGT]i?B)|: \d{1,15}(?:\.\d{1,15})?(?![\w.:-])))"
)
"""A name, and none of what is measured: ``Host: CPU: 20%``."""
_RANK = late(r"(?i)\brank[ =:_#]{0,2}(\d{1,5})\b")
_TOTALS = {"mem_used_mib": "mem_total_mib", "power_w": "power_limit_w"}


@dataclass
class Said:
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
    means: set[str] = field(default_factory=set)
    """Columns of which it tells an average alone."""
    of_no_one: set[str] = field(default_factory=set)
    """What only the last GPU of a line would be told."""


def is_sample(reading: Said, *, among: bool = False) -> bool:
    """True for a line that speaks of a GPU, by its name or by what it measures, more than of other things.

    ``among`` others that do, one whose labels say GPU is enough: ``GPU Memory: 3/8 GB`` alone may be a training's.
    """
    sure = reading.gpu or _sure(reading) or (among and reading.named)
    return bool(reading.values and sure and len(reading.values) >= reading.others and not reading.of_training)


def _sure(reading: Said) -> bool:
    return not reading.values.keys().isdisjoint(("util_pct", "power_w"))


def owner_of(line: str) -> tuple[str, str]:
    """The host and the rank that a line names; empty where it does not."""
    host, rank = _HOST.search(line), _RANK.search(line)
    return host[1] if host else "", rank[1] if rank else ""


def states_a_time(line: str) -> bool:
    """True for a line of a time and nothing else, such as ``Time: 2026-03-01 10:00:00``."""
    when, rest = _time_apart(line)
    return read_moment(line) is not None or (bool(when) and meaning_of(rest).target == "time")


def _time_apart(line: str) -> tuple[str, str]:
    """The timestamp in a line, empty where there is none, and the line without it."""
    found = TIMESTAMP.search(line)
    return (found[0], f"{line[: found.start()]} {line[found.end() :]}") if found else ("", line)


def readings_of(line: str, heading: str = "", *, names_behind_words: bool = True) -> list[Said]:
    """What a line says of each GPU that it names, or of one, at the time of the line; of several, the last is told what
    any other is told.

    What only the last would be told (``gpu 0: 30% gpu 1: 70% total power: 500 W``) may be said of all.
    """
    keys = [] if line.lstrip().startswith(_JSON) else [key[2] for key in _QUOTED.finditer(line)]
    of_training = any(map(_OF_TRAINING.search, keys))
    line = _QUOTED.sub(r"\2", line) if keys else line
    when, text = _time_apart(line)
    readings = [_reading_of(part, heading, names_behind_words=names_behind_words) for part in _by_gpu(text)]
    *others, last = readings
    if others:
        told = set[str]().union(*(one.values for one in others))
        last.of_no_one = last.values.keys() - told
        last.values = {name: value for name, value in last.values.items() if name in told}
        last.others = min(one.others for one in readings)  # what follows on all
    moment = read_moment(when) if when else None
    for reading in readings:
        reading.moment = moment
        reading.of_training = reading.of_training or of_training
    return readings


def _by_gpu(text: str) -> list[str]:
    """What a line says beside its time, in a part for each GPU where it names several.

    Values stand behind their GPU, or before it, where more of the names between two stand before the first than behind
    the last: those at the other end are of no one GPU. Nothing is taken where as many do. Names of steps stay with all.
    """
    devices = [next(same) for _, same in groupby(_DEVICE.finditer(text), key=lambda device: device[1])]
    if len(devices) < 2:
        return [text]
    first, last = devices[0], devices[-1]
    common = text[: first.start()]
    if before := _reading_of(common).values.keys():
        sides = text[first.end() : last.start()], text[last.end() :]
        between, behind = (_reading_of(side).values.keys() for side in sides)
        lead = len(before & between) - len(behind & between)
        if lead > 0 or (between and not behind):
            return [text[start:end] for start, end in pairwise([0, *(device.end() for device in devices)])]
        if lead == 0:
            return [""]
        common = ""
    return [common + text[start:end] for start, end in pairwise([*(one.start() for one in devices), len(text)])]


def _reading_of(text: str, heading: str = "", *, names_behind_words: bool = True) -> Said:
    """What a text says, below a heading that names this GPU; empty values if nothing of ours."""
    device = _DEVICE.search(text)
    reading = Said({}, device[1] if device else "", (device[2] or "") if device else "")
    for match in _PAIR.finditer(text):
        label = match["label"]
        if match["mark"] == "=":
            name = label.rpartition(" ")[2]
            if name.lower() == "gpus":  # so many there are
                continue
            label = name if names_behind_words else label
            reading.of_training = reading.of_training or bool(_OF_TRAINING.search(name))
        _take(reading, label, match, "gpu " if heading or device else "")
    for match in _SIZE.finditer(text):
        meaning = meaning_of(f"gpu memory {match['label']} ({match['unit']})")
        reading.values.setdefault(meaning.target, float(match["value"]) * meaning.scale)
        reading.units.add(meaning.target)
    if reading.of_host and not device:
        reading.values = {name: value for name, value in reading.values.items() if name not in reading.of_whom}
    if reading.gpu and not OF_STEPS.search(text):
        _take_unmarked(reading, text)
    if device and device[0][:6].lower() == "device" and not (reading.name or reading.named or _sure(reading)):
        reading.gpu = ""
    return reading


def _take_unmarked(reading: Said, text: str) -> None:
    """Take ``util 30%, mem 900 MB``: several such, or one beside others, are what a GPU does; one may be anything."""
    values: dict[str, float] = {}
    means = set[str]()
    for match in _UNMARKED.finditer(text):
        meaning = meaning_of(f"{match['label']} ({match['unit'].strip('°')})")
        if meaning.metric:
            values.setdefault(meaning.target, float(match["value"]) * meaning.scale)
            means |= {meaning.target} if meaning.mean else set()
    if len(values.keys() | reading.values.keys()) > 1:
        reading.means |= means - reading.values.keys()
        reading.values = values | reading.values
        reading.units |= values.keys()


def _take(reading: Said, label: str, match: re.Match[str], whose: str) -> None:
    unit = match["unit"].strip("°'") or match["most_unit"] or ""
    meaning = meaning_of(f"{label} ({unit})")
    named = re.search("[A-Za-z]", label) and not _OF_HOST.search(label)  # of "fan (0): 30%" it is a bracket
    if not meaning.target and named:
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
        if meaning.mean and meaning.target not in reading.values:
            reading.means.add(meaning.target)
        elif not meaning.mean and meaning.target in reading.means:  # the value now, beside its average
            reading.means.remove(meaning.target)
            del reading.values[meaning.target]
        reading.values.setdefault(meaning.target, float(match["value"]) * meaning.scale)
        reading.units |= {meaning.target, _TOTALS.get(meaning.target, "")} if meaning.unit else set()
        if match["most"] and meaning.target in _TOTALS:
            reading.values.setdefault(_TOTALS[meaning.target], float(match["most"]) * meaning.scale)
    elif meaning.target not in ("known", "time", "elapsed", "date"):
        reading.others += 1
        reading.of_host = reading.of_host or bool(_OF_HOST.search(label))
