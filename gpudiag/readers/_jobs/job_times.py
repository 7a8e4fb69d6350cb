"""Start and end of jobs as sacct prints them: local and without an offset, by default."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from gpudiag.units import FIRST_YEAR, LAST_YEAR, SECOND_US

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_ELAPSED = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?")


@dataclass(frozen=True)
class JobTimes:
    """``spans``: start and end in microseconds since 1970 (UTC), None where there is none. ``zoned``: all carried an
    offset. ``doubtful``: in an hour that autumn repeats, with nothing that decides.
    """

    spans: tuple[tuple[int | None, int | None], ...]
    zoned: bool
    doubtful: int


def job_times(cells: Sequence[tuple[str, str, str]], zone: tzinfo) -> JobTimes:
    """Of cells Start, End and Elapsed. Where autumn repeats an hour, the pass is taken that makes Elapsed true."""
    spans: list[tuple[int | None, int | None]] = []
    doubtful, naive = 0, False
    for start, end, elapsed in cells:
        starts, ends = _readings(start, zone), _readings(end, zone)
        naive |= any(_is_naive(cell) for cell in (start, end))
        pairs = [(a, b) for a in _or_none(starts) for b in _or_none(ends)]
        length = _elapsed_us(elapsed)
        known = [(a, b) for a, b in pairs if a is not None and b is not None and b - a == length]
        possible: list[tuple[int | None, int | None]] = (
            [*known] or [(a, b) for a, b in pairs if a is None or b is None or b >= a] or pairs
        )
        doubtful += len(possible) > 1
        spans.append(possible[0])
    return JobTimes(tuple(spans), not naive, doubtful)


def _or_none(times: list[int]) -> Sequence[int | None]:
    return times or (None,)


def _is_naive(cell: str) -> bool:
    moment = _moment(cell)
    return moment is not None and moment.tzinfo is None


def _readings(cell: str, zone: tzinfo) -> list[int]:
    """What a cell may mean: one time, two in the hour that autumn repeats, none for Unknown."""
    moment = _moment(cell)
    if moment is None:
        return []
    if moment.tzinfo is not None:
        return [_us(moment)]
    passes = (0, 1) if _folds(moment, zone) else (0,)
    return [_us(moment.replace(tzinfo=zone, fold=fold)) for fold in passes]


def _folds(moment: datetime, zone: tzinfo) -> bool:
    """Whether it is there twice; an hour that spring skips is not, and is shifted forward."""
    first, second = (moment.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    return first is not None and second is not None and first > second


def _moment(cell: str) -> datetime | None:
    text = cell.strip()
    try:
        if text.isdecimal() and len(text) in (9, 10):
            return _EPOCH + timedelta(seconds=int(text))
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if FIRST_YEAR <= found.year < LAST_YEAR else None


def _us(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _elapsed_us(cell: str) -> int | None:
    found = _ELAPSED.fullmatch(cell.strip())
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * SECOND_US
