"""Which GPUs a run recorded and when, so that a second recording of the same GPU time is found whatever its files are.

A GPU with a uuid is the same GPU wherever that stands. One without is known again by its samples: digests of times and
utilization, ten minutes each (UTC), which a copy in another format has as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING

from gpudiag.report.fleet.document import Recording, RunRow
from gpudiag.units import SECOND_US

if TYPE_CHECKING:
    import numpy as np

    from gpudiag.run import Run

PART_US = 600 * SECOND_US
"""Of the samples that make one digest: a run of twenty minutes has one whole part at least, wherever it is cut."""
TELLING = 8
"""Different pairs of utilization and part of a second that a part must have: idle hosts that are sampled at the same
full seconds are alike."""
UUID = re.compile(r"(GPU|MIG)-(?!0{8})[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""As NVIDIA's driver writes it. What other tools put in its place may be the same on every host."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Sought:
    """What telemetry of a cluster is to be looked through for: uuids and digests of the runs beside it."""

    uuids: frozenset[str] = frozenset()
    parts: frozenset[str] = frozenset()


NOTHING = Sought()


def sought(rows: Iterable[RunRow]) -> Sought:
    """What these runs recorded."""
    held = [one for row in rows for one in row.recordings]
    return Sought(frozenset(one.gpu for one in held if one.gpu), frozenset(part for one in held for part in one.parts))


def recordings_of(run: Run) -> tuple[Recording, ...]:
    """A recording a GPU: of its samples with utilization, where it has any."""
    import pandas as pd

    uuids = _uuids(run)
    out = []
    for gpu, samples in run.gpu.groupby("gpu", sort=True, observed=True):
        known = samples.dropna(subset=["util_pct"]) if "util_pct" in samples else samples[:0]
        mine = (known if len(known) else samples).sort_values("time")
        uuid, times = uuids.get(str(gpu), ""), mine["time"]
        digests: Iterable[tuple[int, str]] = ()
        if len(known) and not uuid:
            times_us = (times.dt.tz_convert("UTC") - pd.Timestamp(_EPOCH)) // pd.Timedelta(microseconds=1)
            digests = parts_of(times_us.to_numpy(), mine["util_pct"].to_numpy(float))
        parts = tuple(digest for _, digest in digests)
        out.append(Recording(uuid, times.iloc[0].isoformat(), times.iloc[-1].isoformat(), parts))
    return tuple(out)


def _uuids(run: Run) -> Mapping[str, str]:
    if "uuid" not in run.gpus:
        return {}
    known = run.gpus.dropna(subset=["uuid"]).astype({"gpu": str, "uuid": str})
    return {gpu: uuid for gpu, uuid in zip(known["gpu"], known["uuid"], strict=True) if UUID.fullmatch(uuid)}


def parts_of(times_us: np.ndarray, util_pct: np.ndarray) -> Iterator[tuple[int, str]]:
    """Start and digest of each part of ten minutes whose samples tell it from others; times in ascending order."""
    import numpy as np

    from gpudiag.measures._gpu.gpu_rows import edges_of_codes

    part = times_us // PART_US
    pct = np.rint(util_pct * 100).astype(np.int64)
    for low, high in pairwise(edges_of_codes(part)):
        both = np.stack([times_us[low:high], pct[low:high]]).astype("<i8")
        if high - low >= TELLING and len(np.unique(both % SECOND_US, axis=1).T) >= TELLING:
            yield int(part[low]) * PART_US, sha256(both.tobytes()).hexdigest()[:16]


@dataclass
class GpuTime:
    """GPU time that is counted: spans by uuid, and digests."""

    spans: dict[str, list[tuple[datetime, datetime]]] = field(default_factory=dict)
    parts: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)  # with the recording that each is of

    def add(self, recordings: Iterable[Recording]) -> None:
        """These are counted."""
        for one in recordings:
            self.parts.update(dict.fromkeys(one.parts, _span(one)))
            if one.gpu:
                self.spans.setdefault(one.gpu, []).append(_span(one))

    def share(self, recordings: Iterable[Recording]) -> float:
        """The part of these recordings that is counted, from 0 to 1."""
        whole = counted = timedelta(0)
        for one in recordings:
            start, end = _span(one)
            whole += end - start
            if one.gpu:
                counted += _covered(start, end, self.spans.get(one.gpu, ()))
            elif one.parts:
                counted += (end - start) * (sum(self._known(one)) / len(one.parts))
        return counted / whole if whole else 0.0

    def _known(self, one: Recording) -> list[bool]:
        """Which parts of it are counted. That with which it begins or ends may be cut, and is then like no other: it
        is counted where its neighbor is, by a recording that goes on beyond it.
        """
        start, end = _span(one)
        known = [part in self.parts for part in one.parts]
        if len(known) > 1:
            known[0] |= known[1] and self.parts[one.parts[1]][0] <= start
            known[-1] |= known[-2] and end <= self.parts[one.parts[-2]][1]
        return known


def within_s(recordings: Iterable[Recording], start: datetime, end: datetime) -> tuple[float, float]:
    """Seconds of all GPUs that were recorded, and how many of them lie between two moments."""
    spans = [_span(one) for one in recordings]
    inside = sum((_covered(low, high, [(start, end)]) for low, high in spans), timedelta(0))
    return sum((high - low).total_seconds() for low, high in spans), inside.total_seconds()


def at_other_times(recordings: Iterable[Recording], others: Iterable[Recording]) -> bool:
    """Whether none of these lies in the time of one of the others, on whatever GPU."""
    spans = [_span(one) for one in others]
    return not any(_covered(*_span(one), spans) for one in recordings)


def _covered(start: datetime, end: datetime, spans: Iterable[tuple[datetime, datetime]]) -> timedelta:
    """How much of a time lies in the union of these."""
    covered, reached = timedelta(0), start
    for low, high in sorted(spans):
        low, high = max(low, reached), min(high, end)
        if low < high:
            covered, reached = covered + (high - low), high
    return covered


def _span(one: Recording) -> tuple[datetime, datetime]:
    return datetime.fromisoformat(one.start), datetime.fromisoformat(one.end)


def iso(us: int) -> str:
    """Microseconds since 1970 as ISO 8601 in UTC."""
    return (_EPOCH + timedelta(microseconds=int(us))).isoformat()


def recorded_s(one: Recording) -> float:
    """From the first to the last sample."""
    start, end = _span(one)
    return (end - start).total_seconds()


def keys_of(recordings: Iterable[Recording]) -> Iterator[tuple[str, str]]:
    """What two recordings of the same GPU time have in common at least: a part, or a uuid and a day."""
    for one in recordings:
        yield from (("part", part) for part in one.parts)
        if one.gpu:
            start, end = _span(one)
            first, last = (moment.astimezone(UTC).date() for moment in (start, end))
            days = (first + timedelta(days=k) for k in range((last - first).days + 1))
            yield from ((one.gpu, day.isoformat()) for day in days)
