"""Timestamps of exports and task logs: text with or without a zone, or seconds since 1970, as UTC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

import numpy as np
import pandas as pd
import pyarrow as pa

from gpudiag.readers._io.problems import ProblemLog
from gpudiag.timezones import localize
from gpudiag.units import FIRST_YEAR, LAST_YEAR

_ZONED = re.compile(r"(Z|UTC|GMT|[+-]\d{2}:?\d{2}|:\d{2}(?:\.\d+)? ?[+-]\d{2})$")
"""A zone of hours alone, as PostgreSQL writes it, follows a clock: behind a date it is the day."""
_COMMA = re.compile(r"(\d{2}:\d{2}:\d{2}),(\d+)")
_NOTHING = frozenset(["", "-", "nan", "NaN", "NaT", "None", "null", "NULL", "NA", "N/A", "n/a", "<NA>"])
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}")
_DURATION = re.compile(r"(?:(\d+) days?,? ?)?(\d+):(\d{2}):(\d{2}(?:\.\d+)?)")
DATE_ALONE = "date without a time of day"
EPOCH_S = 1e8
"""Smallest number taken for seconds since 1970 (1973); a thousand times more is milliseconds, and so on."""


@dataclass(frozen=True)
class Timestamps:
    """``time``: UTC, NaT where unknown. ``clock``: utc, local, mixed, or unknown if there is no timestamp.

    ``bad`` counts cells that are there but are no date, ``example`` is the first.
    """

    time: pd.Series
    clock: str
    bad: int = 0
    example: str = ""


def to_utc(cells: Sequence[object], zone: tzinfo) -> Timestamps:
    """Cells (text, number, datetime or None), in the order given, as UTC."""
    plain = _plain_utc(cells)
    if plain is not None:
        return Timestamps(plain, "utc")
    texts = [_clean(cell) for cell in cells]
    numbers = np.array([_number(text) for text in texts], dtype=float)
    zoned = np.array([bool(_ZONED.search(text)) for text in texts], dtype=bool) | np.isfinite(numbers)
    there = np.array([bool(text) for text in texts], dtype=bool)
    out = pd.Series(pd.NaT, index=range(len(texts)), dtype="datetime64[us, UTC]")
    if np.isfinite(numbers).any():
        out = out.where(~np.isfinite(numbers), _epoch(numbers))
    series = pd.Series(texts, dtype="object")
    aware, naive = zoned & there & ~np.isfinite(numbers), ~zoned & there
    if aware.any():
        cut = series[aware].str.replace(r"\s*(UTC|GMT)$", "+00:00", regex=True)
        out[aware] = pd.to_datetime(cut, format="ISO8601", errors="coerce", utc=True).astype("datetime64[us, UTC]")
    if naive.any():
        told = possible(pd.to_datetime(series[naive], format="ISO8601", errors="coerce"))
        out[naive] = localize(told, zone).time
    out = possible(out)
    bad = out.isna().to_numpy() & there
    clock = "mixed" if zoned.any() and naive.any() else "utc" if zoned.any() else "local" if naive.any() else "unknown"
    return Timestamps(out, clock, int(bad.sum()), texts[int(bad.argmax())] if bad.any() else "")


def moments_of(cells: Sequence[object], zone: tzinfo, problems: ProblemLog) -> Timestamps:
    """The same, and what is no moment is counted. Dates alone, at midnight, would make trials of no length that ran all
    at once.
    """
    first = next((text for cell in cells if (text := _clean(cell))), "")
    if _DATE.fullmatch(first) and all(_DATE.fullmatch(text) for cell in cells if (text := _clean(cell))):
        problems.add(DATE_ALONE, sum(not is_nothing(cell) for cell in cells), example=first)
        cells = [None] * len(cells)
    timestamps = to_utc(cells, zone)
    problems.add("timestamp that is no date", timestamps.bad, example=timestamps.example)
    return timestamps


def _plain_utc(cells: Sequence[object]) -> pd.Series | None:
    """Timestamps such as Optuna 5 writes them, ISO 8601 with +00:00, or None; else no answer: each needs a look."""
    if not all(cell is None or (type(cell) is str and cell.endswith("+00:00")) for cell in cells):
        return None
    try:
        times = pa.array(cells, pa.string()).cast(pa.timestamp("us", "UTC"))
    except pa.ArrowInvalid:
        return None
    if times.null_count == len(times):
        return None
    out = times.to_pandas().astype("datetime64[us, UTC]")
    return out if possible(out).notna().sum() == out.notna().sum() else None


def possible(times: pd.Series) -> pd.Series:
    """The timestamps, NaT where no trial can have run: the bounds of a sample's timestamp hold for trials as well."""
    first, last = (pd.Timestamp(year, 1, 1, tz=times.dt.tz) for year in (FIRST_YEAR, LAST_YEAR))
    if not (times.min() < first or times.max() >= last):
        return times
    return times.where((times >= first) & (times < last))


def duration_s(cell: object) -> float:
    """``0 days 00:03:12.5``, ``0:03:12.5`` or a timedelta in seconds; NaN for anything else."""
    if isinstance(cell, timedelta):
        return cell.total_seconds()
    found = _DURATION.fullmatch(str(cell).strip())
    if found is None:
        return np.nan
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def is_nothing(cell: object) -> bool:
    """Whether a cell is empty, or has one of the words for it."""
    return cell is None or str(cell).strip() in _NOTHING


def _clean(cell: object) -> str:
    if is_nothing(cell):
        return ""
    if isinstance(cell, datetime):
        return cell.isoformat()
    text = str(cell).strip()
    # A comma before the fraction is what Python's logging writes.
    return _COMMA.sub(r"\1.\2", text) if "," in text else text


def _number(text: str) -> float:
    """Seconds since 1970 if the text is a number of plausible size, else NaN."""
    if text[4:5] == "-":  # a date, or no number
        return np.nan
    try:
        number = float(text)
    except ValueError:
        return np.nan
    # Eight digits are a date such as 20240618.
    return number if number >= EPOCH_S else np.nan


MOST_US = 2.0**62
"""What is larger is no time, and more than a column of times can hold."""


def _epoch(numbers: np.ndarray) -> pd.Series:
    """Seconds, milliseconds, microseconds or nanoseconds since 1970, told from their size."""
    power = np.clip(np.floor(np.log10(np.maximum(np.nan_to_num(numbers, nan=EPOCH_S), EPOCH_S) / EPOCH_S) / 3), 0, 3)
    micros = numbers / 1000.0**power * 1e6
    micros[~(np.abs(micros) < MOST_US)] = np.nan
    return pd.Series(pd.to_datetime(np.round(micros), unit="us", utc=True)).astype("datetime64[us, UTC]")
