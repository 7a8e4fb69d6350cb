"""Forms of timestamps: how one is told from a few cells, and how a column of it becomes UTC or local time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import polars as pl

from gpudiag.patterns import late
from gpudiag.units import FIRST_YEAR, LAST_YEAR, SECOND_US

_DATE = r"(?P<date>\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}|\d{8})"
_CLOCK = r"(?P<clock>\d{1,2}:\d{2}(?P<seconds>:\d{2}(?P<fraction>[.,]\d+)?)?)(?P<half> ?[AaPp][Mm])?"
_ZONE = r"(?P<zone> ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?"
_NAMED = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:(?P<zone>[A-Z]{3,5}) )?\d{4}")
"""Output of ``date`` and of ``ctime``: ``Thu Aug  8 15:42:09 UTC 2024``."""
_CLOCK_ALONE = re.compile(_CLOCK)
_LENGTH = late(r"(?:(\d{1,6})(?: days?[,;]? |-))?(\d{1,6}):(\d\d):(\d\d(?:\.\d+)?)")
"""Hours, minutes and seconds since a start, with days before them: of Python, pandas and ``ps``."""
_LENGTH_S = (86_400, 3600, 60, 1)
TIMESTAMP = re.compile(rf"{_DATE}(?P<join>[ T_]| @ ){_CLOCK}{_ZONE}")

_DAY_US = 86_400 * SECOND_US
_SCALES_US = {"s": SECOND_US, "ms": 1000, "us": 1, "ns": 0.001}
_LONG_US = {"minute": 60 * SECOND_US, "hour": 3600 * SECOND_US}
"""Units of a count from a start; none since 1970 is in them."""


@dataclass(frozen=True)
class TimestampForm:
    """How the time cells of a file are written.

    ``kind`` is ``text``, ``epoch`` (a number since 1970 UTC), ``relative`` (a number since an unknown start)
    or ``clock`` (a time of day, shown as one of 1970-01-01). ``format`` is the chrono format of a text without
    its zone, and of a time since a start in hours, minutes and seconds its pattern. ``zone`` is the suffix all cells
    share or ``%z``, ``comma`` that a comma stands before the fraction.
    ``scale_us`` is the unit of a number in microseconds. ``ambiguous`` tells that day and month could be the
    other way round.
    """

    kind: str
    format: str = ""
    zone: str = ""
    scale_us: float = 1.0
    comma: bool = False
    ambiguous: bool = False

    @property
    def zoned(self) -> bool:
        """True if the result of :meth:`read` is UTC rather than local time."""
        return self.kind in ("epoch", "relative") or bool(self.zone)

    def read(self, cells: pl.Series) -> pl.Series:
        """Cells of text as Datetime[us] (UTC if ``zoned``, else local); null where a cell has another form."""
        cell = pl.col("")
        table = cells.alias("").to_frame()
        if self.kind == "relative" and self.format:
            parts = [cell.str.extract(f"^{self.format}$", part).cast(pl.Float64) for part in range(1, 5)]
            known = [parts[0].fill_null(0.0), *parts[1:]]
            seconds = pl.sum_horizontal(part * size for part, size in zip(known, _LENGTH_S, strict=True))
            length = pl.when(parts[-1].is_not_null()).then((seconds * SECOND_US).round())
            return table.select(length.cast(pl.Int64).cast(pl.Datetime("us"))).to_series()
        if self.kind in ("epoch", "relative"):
            timestamps = table.select(_number_us(cell, self.scale_us).cast(pl.Datetime("us"))).to_series()
            return timestamps if self.kind == "relative" else _sane(timestamps)
        if self.comma:
            table = table.select(cell.str.replace(",", ".", literal=True))
        if self.kind == "clock":
            clock = cell.str.to_time(self.format, strict=False, cache=True)
            return table.select(
                pl.lit(datetime(1970, 1, 1)).cast(pl.Datetime("us")) + clock.cast(pl.Duration("us"))
            ).to_series()
        if not self._fixed:
            return _sane(table.select(self._any(cell)).to_series())
        timestamps = table.select(self._quick(cell)).to_series()
        if timestamps.null_count():
            again = timestamps.is_null() & cells.is_not_null()
            timestamps = timestamps.zip_with(~again, table.select(pl.when(again).then(self._any(cell))).to_series())
        return _sane(timestamps)

    @property
    def _fixed(self) -> bool:
        """True for 19 characters of date and time, then a fraction and at most one spelling of the zone."""
        return self.format.startswith("%Y") and len(self.format) == 20 and self.zone != "%z"

    def _quick(self, cell: pl.Expr) -> pl.Expr:
        """Seconds repeat (over GPUs, within a second), so that each is parsed once; the fraction is a number."""
        second = cell.str.slice(0, 19).str.to_datetime(self.format[:-3], time_unit="us", strict=False, cache=True)
        rest = cell.str.slice(19)
        if self.zone:
            rest = pl.when(rest.str.ends_with(self.zone)).then(rest.str.strip_suffix(self.zone))
        fraction_us = (rest.cast(pl.Float64, strict=False) * SECOND_US).round().cast(pl.Int64, strict=False)
        return (second.cast(pl.Int64) + fraction_us).cast(pl.Datetime("us"))

    def _any(self, cell: pl.Expr) -> pl.Expr:
        if self.format.startswith("%a"):  # its zone stands before the year
            cell = cell.str.replace(r" (?:UTC|GMT) (\d{4})$", " $1+00:00" if self.zone else " $1")
            cell = cell if self.zone else cell.str.replace(r" [A-Z]{3,5} (\d{4})$", " $1")
        if not self.zone:
            return cell.str.to_datetime(self.format, time_unit="us", strict=False)
        text = cell.str.replace(" ?(Z|UTC|GMT)$", "+00:00").str.replace(r" ([+-]\d\d:?\d\d)$", "$1")
        return text.str.to_datetime(f"{self.format}%z", time_unit="us", strict=False).dt.replace_time_zone(None)


NVIDIA = TimestampForm("text", "%Y/%m/%d %H:%M:%S%.f")
"""``2026/02/15 06:12:48.455``: local time, no zone (nvidia-smi --query-gpu=timestamp)."""


def _sane(timestamps: pl.Series) -> pl.Series:
    low, high = datetime(FIRST_YEAR, 1, 1), datetime(LAST_YEAR, 1, 1)
    us = timestamps.to_physical()  # years that Python's datetime does not have
    if len(us) == us.null_count() or (us.min() >= _epoch_us(FIRST_YEAR) and us.max() <= _epoch_us(LAST_YEAR)):
        return timestamps
    return timestamps.to_frame("").select(pl.when(pl.col("").is_between(low, high)).then(pl.col(""))).to_series()


def _number_us(cell: pl.Expr, scale_us: float) -> pl.Expr:
    if scale_us < 1:  # nanoseconds exceed the 53 bits of a float
        whole = cell.cast(pl.Int64, strict=False) // round(1 / scale_us)
        return pl.coalesce(whole, (cell.cast(pl.Float64, strict=False) * scale_us).round().cast(pl.Int64, strict=False))
    return (cell.cast(pl.Float64, strict=False) * scale_us).round().cast(pl.Int64, strict=False)


def tell_form(cells: Sequence[str], unit: str = "", *, elapsed: bool = False) -> TimestampForm | None:
    """The form of these cells, or None if they are no timestamps.

    Args:
        cells: a sample of one column, stripped.
        unit: ``s``, ``ms``, ``us`` or ``ns`` where the column's name says so; ``minute`` or ``hour`` of a count from
            a start.
        elapsed: the column's name says that it counts from a start.
    """
    some = [cell for cell in cells if cell]
    if not some:
        return None
    numbers = [_float(cell) for cell in some]
    good = [number for number in numbers if number is not None]
    if 2 * len(good) > len(some):
        return _number_form(good, unit, elapsed)
    matches = [match for match in map(TIMESTAMP.fullmatch, some) if match]
    if 2 * len(matches) > len(some):
        return _text_form(matches)
    named = [match for match in map(_NAMED.fullmatch, some) if match]
    if 2 * len(named) > len(some):
        zones = {match["zone"] for match in named}
        return TimestampForm("text", "%a %b %e %H:%M:%S %Y", "%z" if zones <= {"UTC", "GMT"} else "")
    if elapsed and 2 * sum(_LENGTH.fullmatch(cell) is not None for cell in some) > len(some):
        return TimestampForm("relative", _LENGTH.pattern)
    clocks = [match for match in map(_CLOCK_ALONE.fullmatch, some) if match]
    if 2 * len(clocks) > len(some):
        comma = any((match["fraction"] or "").startswith(",") for match in clocks)
        return TimestampForm("clock", _clock_format(clocks[0]), comma=comma)
    return None


def _float(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _number_form(numbers: list[float], unit: str, elapsed: bool) -> TimestampForm:
    """A count since 1970 is told by its magnitude: each unit has a decade of its own between 1990 and 2200."""
    middle = sorted(numbers)[len(numbers) // 2]
    for scale_us in _SCALES_US.values():
        if not elapsed and _epoch_us(FIRST_YEAR) <= middle * scale_us <= _epoch_us(LAST_YEAR):
            return TimestampForm("epoch", scale_us=scale_us)
    return TimestampForm("relative", scale_us=(_SCALES_US | _LONG_US)[unit or "s"])


def _epoch_us(year: int) -> float:
    return (datetime(year, 1, 1) - datetime(1970, 1, 1)).total_seconds() * SECOND_US


def _text_form(matches: list[re.Match[str]]) -> TimestampForm:
    first = matches[0]
    date, ambiguous = _date_format([match["date"] for match in matches], american=first["half"] is not None)
    clock = _clock_format(first)
    zones = {match["zone"] or "" for match in matches}
    zone = "" if zones == {""} else zones.pop() if len(zones) == 1 and zones & {"Z", " UTC", "+00:00"} else "%z"
    comma = any((match["fraction"] or "").startswith(",") for match in matches)
    return TimestampForm("text", date + first["join"] + clock, zone, comma=comma, ambiguous=ambiguous)


def _clock_format(match: re.Match[str]) -> str:
    clock = "%H:%M:%S%.f" if match["seconds"] else "%H:%M"
    return clock.replace("%H", "%I") + match["half"][:-2] + "%p" if match["half"] else clock


def parts_order(match: re.Match[str]) -> str:
    """The order of year, month and day in one match of ``TIMESTAMP``, as ``Ymd``, ``dmY`` or ``mdY``."""
    return "".join(re.findall("%([Ymd])", _text_form([match]).format))


def _date_format(dates: Sequence[str], *, american: bool) -> tuple[str, bool]:
    """The chrono format of a date, and whether day and month could be the other way round."""
    if dates[0].isdecimal():
        return "%Y%m%d", False
    mark = next(char for char in dates[0] if not char.isdecimal())
    parts = [[int(part) for part in re.split(r"\D", date)] for date in dates]
    if parts[0][0] > 31:
        return f"%Y{mark}%m{mark}%d", False
    if any(part[0] > 12 for part in parts):
        return f"%d{mark}%m{mark}%Y", False
    if any(part[1] > 12 for part in parts):
        return f"%m{mark}%d{mark}%Y", False
    day_first = mark != "/" and not american
    return (f"%d{mark}%m{mark}%Y" if day_first else f"%m{mark}%d{mark}%Y"), True


def swapped(form: TimestampForm) -> TimestampForm:
    """The same form with day and month the other way round."""
    return replace(form, format=form.format.replace("%d", "\0").replace("%m", "%d").replace("\0", "%m"))


def decided(form: TimestampForm, scores: Sequence[tuple[int, tuple[int, int]]]) -> tuple[TimestampForm, str]:
    """The better reading of dates such as 04-03-2021, and a sentence on it.

    Args:
        form: the ambiguous form.
        scores: the number of rows lost and :func:`steps_back`, first under this form, then under :func:`swapped` of it.
    """
    best = swapped(form) if scores[1] < scores[0] else form
    order = "day first" if best.format.startswith("%d") else "month first"
    if scores[0] == scores[1]:
        return best, f"Dates can be read day first or month first, and nothing in the log decides; {order} was assumed."
    why = "rows are lost" if scores[0][0] != scores[1][0] else "time jumps"
    return best, f"Dates were read {order}: the other way {why}."


def steps_back(parts: Iterable[np.ndarray]) -> tuple[int, int]:
    """Steps back in time within each part (microseconds since 1970, in the order written), and the span in days."""
    back, first, last = 0, [], []
    for us in parts:
        if len(us):
            back += int((us[1:] < us[:-1]).sum())
            first.append(int(us.min()))
            last.append(int(us.max()))
    return back, (max(last) - min(first)) // _DAY_US if first else 0
