"""Progress bars: tqdm's, those of Lightning and Ultralytics that are made with it, Lightning's of rich, Keras's, and
fastai's table.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from gpudiag.patterns import late
from gpudiag.readers._steps.written_numbers import clock_s, each_s, number

_CLOCK = r"(?:\d{1,5} days?, )?\d{1,5}(?::\d\d){1,2}"
_TQDM = late(
    rf"\[(?P<elapsed>{_CLOCK})<(?:\d{{1,5}} days?, )?[^,\]]{{1,40}},\s{{0,6}}(?P<rate>[\d.]{{1,15}}|\?)\s?"
    r"(?:s/(?P<each>[a-zA-Z]{1,12})|(?P<many>[a-zA-Z]{1,12})/s)"
)
"""tqdm/std.py, format_meter: ``n/total [elapsed<remaining, rate]``; the rate is smoothed."""
_NO_TOTAL = late(
    rf"(?P<step>\d{{1,12}})(?:it|steps?|batch(?:es)?) \[(?P<elapsed>{_CLOCK}),\s{{0,6}}(?P<rate>[\d.]{{1,15}}|\?)\s?"
    r"(?:s/(?P<each>it|step|batch)|(?:it|steps?|batch(?:es)?)/s).{0,200}\bloss"
)
"""tqdm's bar of a loop of unknown length. Only a loss behind it tells that it is one of steps."""
_ULTRALYTICS = late(
    r"\d{1,3}% [━─╸╺ ]{1,60} (?P<step>\d{1,9})/(?P<total>\d{1,9}) (?P<rate>[\d.]{1,12})(?P<per>it/s|s/it) "
    r"(?P<elapsed>[\d.:]{1,12})s?(?:<|$|\s)"
)
"""ultralytics/utils/tqdm.py, since 8.3.190."""
_PLACE = late(r"(?<![\d/])(\d{1,12})/(\d{1,12}|\?)(?![\d/])")
_RICH_BAR = late("[━╸╺]")
_RICH = late(
    r"[━╸╺] {1,4}(?P<step>\d{1,9})/(?P<total>\d{1,9}) (?P<elapsed>\d{1,4}:\d\d:\d\d) • {1,12}(?:[-\d:]{4,12} )?"
    r"(?P<rate>[\d.]{1,12})it/s"
)
"""lightning/pytorch/callbacks/progress/rich_progress.py: steps, time since the epoch began, time left (in a narrow
terminal on a line below), and the rate.
"""
_KERAS = late(
    r"(?:^|\s)(?P<step>\d{1,9})/(?P<total>\d{1,9}) (?:\[[=>.]{1,40}\] - |[━ ]{5,60}|- )(?P<shown>\d{1,7})s (?:- )?"
    r"(?:\S.{0,400}? - \d{1,7}s/epoch - )?(?P<rate>\d{1,7})(?P<unit>us|ms|s)/(?P<of>step|epoch)"
)
"""keras/src/utils/progbar.py. What stands before the rate is the time taken in the last line of an epoch, else the time
left; the rate is the mean of the epoch so far. Without a bar Keras 2 has it behind the metrics.
"""
_FASTAI_HEAD = late(r"^\s{0,4}epoch\s{1,20}train_loss\s.{0,400}\btime\s{0,20}$")
_FASTAI_ROW = late(
    r"^\s{0,4}(?P<step>\d{1,6})\s{1,12}[\d.#na-]{1,14}\s.{0,400}?(?P<time>\d{1,4}(?::\d\d){1,2})\s{0,20}$"
)

_LOOKED_BACK = 200
"""Characters before a bar's times in which its count stands."""
_STEPS = ("it", "its", "step", "steps", "batch", "batches", "b", "ba", "iter", "iters", "epoch", "epochs", "img")
"""What a bar of steps counts; bytes, files and examples are other work."""
_OTHER_WORK = late(
    r"(?i)\b(?:map|filter|download|load|read|shard|token|generat|eval|valid|val\b|test|predict|infer|sanity|pack|index"
    r"|extract|fetch|cach|process|preprocess|sav|writ|scan|tun|quanti|compil|captur|class(?:es)?\s{1,20}(?:images|top1)|upload|convert|comput)"
    r"|^\W{0,4}batches\W{0,4}$"
)
"""What a bar that is no training calls itself."""
_EVALUATION = late(r"(?i)\b(?:eval|valid|val\b|test|class(?:es)?\s{1,20}(?:images|top1))")
"""What the bar of an evaluation calls itself; the last are the columns of Ultralytics."""
_BAR = late(r"\d{1,3}%\|?")
_EPOCH = late(r"(?i)\bepochs?\b\s{0,3}[:\[#]?\s{0,3}(\d{1,6})|^\s{0,10}(\d{1,6})/\d{1,6}\s{1,10}[\d.]{1,8}G\b")
_EPOCHS = late(r"(?i)^\W{0,4}(?:epochs?|training epochs?)\W{0,4}$")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True)
class BarLine:
    """How far a bar is; ``name`` is what it calls itself, without numbers. NaN is unknown, and so is a total of 0.
    ``blur_s``: by how much ``elapsed_s`` is rounded, if more than to whole seconds.
    """

    name: str
    step: int
    total: int
    step_s: float
    elapsed_s: float
    epoch: int | None = None
    unit: str = "step"
    blur_s: float = 0.0


def bar_of(line: str) -> BarLine | None:
    """The bar in a line; None for none, and for one of other work than training steps."""
    if "<" in line and (found := _TQDM.search(line)):
        return _tqdm(line, found)
    if " [" in line and "loss" in line and (found := _NO_TOTAL.search(line)):
        return _told(line[: found.start()], found, _each(found), clock_s(found["elapsed"]))
    if _drawn(line) and (found := _ULTRALYTICS.search(line)):
        rate, per_second = number(found["rate"]), found["per"] == "it/s"
        return _told(line[: found.start()], found, each_s(rate) if per_second else rate, clock_s(found["elapsed"]))
    if "•" in line and (found := _RICH.search(line)):
        name = _RICH_BAR.split(line, maxsplit=1)[0]
        return _told(name, found, each_s(number(found["rate"])), clock_s(found["elapsed"]))
    return _keras(found) if "/step" in line and (found := _KERAS.search(line)) else None


def _drawn(line: str) -> bool:
    """Whether a bar of Ultralytics may be in it, which begins without a full cell."""
    return "━" in line or "─" in line


def evaluation_s(line: str) -> float:
    """Time that a bar of tqdm or Ultralytics which calls itself an evaluation has run; NaN for any other line."""
    if not _EVALUATION.search(line):
        return math.nan
    found = (_TQDM.search(line) if "<" in line else None) or (_ULTRALYTICS.search(line) if _drawn(line) else None)
    said = line[: found.start()].partition("|")[0] if found else ""
    return clock_s(found["elapsed"]) if found and _EVALUATION.search(said) else math.nan


def _keras(found: re.Match[str]) -> BarLine | None:
    """The time of a step before an epoch's last is told where its mean is not rounded to whole seconds. The time of the
    epoch is then as many rounded means as there were steps.
    """
    step_s, step = float(found["rate"]) * _UNITS[found["unit"]], int(found["step"])
    if found["step"] == found["total"]:
        shown = float(found["shown"])
        return _told("keras", found, step_s, shown) if shown > 0 or not step_s * step > 1 else None
    if found["unit"] == "s":
        return None
    bar = _told("keras", found, step_s, step * step_s)
    return replace(bar, blur_s=step * _UNITS[found["unit"]]) if bar else None


def _tqdm(line: str, found: re.Match[str]) -> BarLine | None:
    before = line[max(found.start() - _LOOKED_BACK, 0) : found.start()]
    places = list(_PLACE.finditer(before))
    unit = (found["each"] or found["many"]).lower()
    if not places or unit not in _STEPS:
        return None
    bar = _BAR.search(line)
    return _told(
        line[: bar.start()] if bar and bar.start() < found.start() else before[: places[-1].start()].split("|")[0],
        places[-1],
        _each(found),
        clock_s(found["elapsed"]),
    )


def _each(found: re.Match[str]) -> float:
    """Time of a step by the rate of a bar of tqdm."""
    rate = math.nan if found["rate"] == "?" else number(found["rate"])
    return rate if found["each"] else each_s(rate)


def _told(said: str, place: re.Match[str], step_s: float, elapsed_s: float) -> BarLine | None:
    if _OTHER_WORK.search(said):
        return None
    named = place.groupdict()
    count, whole = (named["step"], named.get("total")) if "step" in named else place.groups()
    step, total = int(count), int(whole) if whole and whole != "?" else 0
    if total and step > total:
        return None
    epoch = _EPOCH.search(said)
    return BarLine(
        name=re.sub(r"[\d.]+G?", "#", said).strip()[:60],
        step=step,
        total=total,
        step_s=step_s,
        elapsed_s=elapsed_s if step else 0.0,  # before its first step rich shows the time of the epoch before
        epoch=int(epoch[1] or epoch[2]) if epoch else None,
        unit="epoch" if _EPOCHS.match(said) else "step",
    )


def begins_table(line: str) -> bool:
    """True for the head of fastai's table, whose rows follow."""
    return "train_loss" in line and bool(_FASTAI_HEAD.match(line))


def table_row_of(line: str) -> BarLine | None:
    """A row of fastai's table: one epoch and the time it took."""
    found = _FASTAI_ROW.match(line)
    if not found:
        return None
    return BarLine("fastai", int(found["step"]) + 1, 0, clock_s(found["time"]), math.nan, unit="epoch")
