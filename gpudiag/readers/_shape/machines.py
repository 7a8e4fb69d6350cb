"""Which GPUs of several logs are different ones although they have one index: those of two machines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from gpudiag.readers._shape import log_names
from gpudiag.readers._shape.identity import GpuIdentity, same_model
from gpudiag.readers._shape.one_gpu import OneGpu, copied, difference
from gpudiag.readers.base import Telemetry
from gpudiag.statement import NOTHING, Statement
from gpudiag.units import SECOND_US

_OTHER_SIZE = 1.15
"""Memory totals this far apart are of two boards: less may be MB for MiB, or what the driver reserves."""
OVERLAP_US = 60 * SECOND_US
"""A log that is continued in another one may overlap with it for less."""
NAMED = "logs of {one} and {other}"
WITH_ANOTHER = "GPU {index} of the same logs is two: {why}"


class Machines:
    """What tells GPUs of several logs apart. GPUs go by their position among those of all logs, in the logs' order."""

    def __init__(self, parts: Sequence[Telemetry], gpus: Sequence[Sequence[GpuIdentity]], paths: Sequence[str]) -> None:
        self._parts, self._gpus = parts, gpus
        self._owned = [(log, identity) for log, own in enumerate(gpus) for identity in own]
        held = [[identity.index for identity in own] for own in gpus]
        known = any(identity.host for own in gpus for identity in own)
        self._names = [""] * len(parts) if known or not paths else log_names.machines(paths, held)
        self._of_two: dict[tuple[int, int], Statement] = {}
        self._why: dict[tuple[int, int, str, str], Statement] = {}
        self._rows: dict[tuple[int, str], OneGpu] = {}
        self._spans = [_span(part) for part in parts]
        self._together = set(self._at_one_time())
        self._sizes_mib = [_sizes_mib(part) for part in parts]

    def apart(self, one: int, other: int) -> Statement:
        """Why two GPUs of one index, by position, are different ones; NOTHING if nothing says so."""
        (first, identity), (second, another) = self._owned[one], self._owned[other]
        if first == second:
            return NOTHING
        return self._difference(first, identity, second, another) or self._of_two_machines(first, second)

    def unsure(self, positions: Sequence[int]) -> list[int]:
        """Of the logs of what was taken for one GPU, those of one tool that hold it at the same time and name it by
        its number alone, and are no copies of each other: they may be of a machine each.
        """
        bare = [(log, identity) for log, identity in (self._owned[at] for at in positions) if not identity.uuid]
        timed = [(log, rows) for log, identity in bare if len(rows := self._samples(log, identity))]
        for reader in dict.fromkeys(self._parts[log].reader for log, _ in timed):
            own = [(log, rows) for log, rows in timed if self._parts[log].reader == reader]
            if len(own) > 1 and _overlap([rows for _, rows in own]):
                kept: list[tuple[int, OneGpu]] = []
                for log, rows in own:
                    if not any(copied(rows, other) for _, other in kept):
                        kept.append((log, rows))
                if _overlap([rows for _, rows in kept]):
                    return [log for log, _ in kept]
        return []

    def _at_one_time(self) -> Iterator[tuple[str, str]]:
        """Names of machines whose logs overlap: a job that moved on has the GPUs of one machine after the other's."""
        for one, other in combinations(range(len(self._spans)), 2):
            pair = self._names[one], self._names[other]
            if pair[0] and pair[1] and pair[0] != pair[1] and _shared_us(self._spans[one], self._spans[other]) > 0:
                yield from (pair, pair[::-1])

    def _of_two_machines(self, one: int, other: int) -> Statement:
        key = min(one, other), max(one, other)
        if key not in self._of_two:
            self._of_two[key] = self._told_apart(*key)
        return self._of_two[key]

    def _told_apart(self, one: int, other: int) -> Statement:
        """Why two logs are of two machines: their names, or another GPU of theirs that is two."""
        named = (self._names[one], self._names[other]) in self._together
        alike = self._parts[one].reader == self._parts[other].reader
        if not named and not (alike and _shared_us(self._spans[one], self._spans[other]) > OVERLAP_US):
            return NOTHING
        uuids = [{identity.uuid.lower() for identity in self._gpus[log]} - {""} for log in (one, other)]
        of_other = {identity.index: identity for identity in self._gpus[other]}
        pairs = [(gpu, of_other[gpu.index]) for gpu in self._gpus[one] if gpu.index and gpu.index in of_other]
        copies = any(copied(self._samples(one, gpu), self._samples(other, same)) for gpu, same in pairs)
        if uuids[0] & uuids[1] or copies:
            return NOTHING
        if named:
            return Statement(NAMED, one=self._names[one], other=self._names[other])
        for gpu, same in pairs:
            if why := self._difference(one, gpu, other, same):
                return Statement(WITH_ANOTHER, index=gpu.index, why=why)
        return NOTHING

    def _difference(self, first: int, identity: GpuIdentity, second: int, another: GpuIdentity) -> Statement:
        """Why two logs' GPUs of one index are two by what they say of that GPU alone."""
        key = first, second, identity.index, another.index
        if key not in self._why:
            self._why[key] = self._compared(first, identity, second, another)
        return self._why[key]

    def _compared(self, first: int, identity: GpuIdentity, second: int, another: GpuIdentity) -> Statement:
        if not same_model(identity.name, another.name):
            return Statement("{one} and {other}", one=identity.name, other=another.name)
        one, other = self._parts[first], self._parts[second]
        sizes = sorted(
            self._sizes_mib[log].get(gpu.index, math.nan) for log, gpu in ((first, identity), (second, another))
        )
        if sizes[1] > _OTHER_SIZE * sizes[0] > 0:
            small, large = (f"{size:.0f}" for size in sizes)
            return Statement("of {small} and {large} MiB", small=small, large=large)
        rows = self._samples(first, identity), self._samples(second, another)
        return difference(*rows, same_tool=one.reader == other.reader)

    def _samples(self, log: int, identity: GpuIdentity) -> OneGpu:
        if (log, identity.index) not in self._rows:
            table = self._parts[log].gpu
            self._rows[log, identity.index] = OneGpu(table[table["gpu"] == identity.index])
        return self._rows[log, identity.index]


def _overlap(logs: Sequence[OneGpu]) -> bool:
    """Whether two of the logs, which are of one tool, hold their GPU at the same time for long."""
    last = None
    for first, end in sorted((int(rows.time_us[0]), int(rows.time_us[-1])) for rows in logs):
        if last is not None and min(last, end) - first > OVERLAP_US:
            return True
        last = end if last is None else max(last, end)
    return False


def _span(part: Telemetry) -> tuple[int, int]:
    """First and last moment of a log, microseconds; (0, 0) without samples."""
    table = part.gpu if len(part.gpu) else part.processes
    if not len(table):
        return 0, 0
    return table["time"].min().value // 1000, table["time"].max().value // 1000


def _shared_us(one: tuple[int, int], other: tuple[int, int]) -> int:
    return min(one[1], other[1]) - max(one[0], other[0])


def _sizes_mib(part: Telemetry) -> dict[str, float]:
    """The memory of each GPU of a log."""
    known = part.gpus if "mem_total_mib" in part.gpus else part.gpus.assign(mem_total_mib=math.nan)
    return dict(zip(known["gpu"].astype(str), known["mem_total_mib"].astype(float), strict=True))
