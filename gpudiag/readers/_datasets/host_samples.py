"""The utilization of every GPU of one host, from all its files of a data set: sorted, and each sample once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import tzinfo
from itertools import islice

import numpy as np
import polars as pl

from gpudiag.readers._datasets.cloud import parquet_source
from gpudiag.readers._datasets.telemetry_columns import IDENTITY, TelemetryColumns, known_columns
from gpudiag.readers._datasets.telemetry_times import microseconds_of
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._shape.identity import GpuIdentity, resolve
from gpudiag.schema import GPU, IDLE_PCT, gpu_index

AT_ONCE = 2
"""Hosts held at a time."""
NAMELESS = "row that names no GPU"
UNREADABLE, OTHER, DAMAGED = "file that cannot be read", "file without columns of telemetry", "row without a known time"
_UTIL = GPU["util_pct"]


Numbered = tuple[int, int, str]
"""First and last time of a GPU under a number, microseconds since 1970."""


@dataclass(frozen=True)
class UtilSamples:
    """Utilization of one GPU: times in microseconds since 1970, strictly increasing, and percent. ``label``: its name
    on the host, the number it was first seen with where no other GPU has that.

    ``numbers``: from when to when it was seen under which number; empty where nothing says so, or it had two at once.
    """

    label: str
    time_us: np.ndarray
    util_pct: np.ndarray
    uuid: str = ""
    model: str = ""
    numbers: tuple[Numbered, ...] = ()


@dataclass(frozen=True)
class HostSamples:
    """All GPUs of a host, those without any reading included. ``in_percent``: the columns of all files say so.
    ``unread``: files that gave nothing, and why.
    """

    host: str
    gpus: tuple[UtilSamples, ...]
    problems: ProblemLog
    in_percent: bool = True
    unread: tuple[str, ...] = ()

    @property
    def shares(self) -> bool:
        """Whether no reading is above 1 while some are no whole number: then 1 may stand for 100 %. Readings that are
        all below 0.1 are of an idle host in either unit.
        """
        some = [gpu.util_pct for gpu in self.gpus if len(gpu.util_pct)]
        if self.in_percent or not some:
            return False
        return IDLE_PCT / 100 <= max(map(np.max, some)) <= 1 and any((values % 1 > 0).any() for values in some)


Chunk = tuple[GpuIdentity, np.ndarray, np.ndarray]
"""Samples of one GPU in one file."""


def samples_of_hosts(hosts: Iterable[tuple[str, tuple[str, ...]]], zone: tzinfo) -> Iterator[HostSamples]:
    """Host after host, read ahead: AT_ONCE are held at a time, however many there are."""
    waiting = iter(hosts)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(samples_of, host, files, zone) for host, files in islice(waiting, AT_ONCE)]
        while running:
            done = running.pop(0).result()
            running += [pool.submit(samples_of, host, files, zone) for host, files in islice(waiting, 1)]
            yield done


def samples_of(host: str, files: Iterable[str], zone: tzinfo) -> HostSamples:
    """The samples of one host. Of two of one GPU at one time the later in the order of the files holds."""
    problems = ProblemLog()
    unsaid: list[str] = []
    unread: list[str] = []
    held: dict[GpuIdentity, list[tuple[int, np.ndarray, np.ndarray]]] = {}
    for at, file in enumerate(files):
        for identity, time, util in _chunks(file, zone, problems, unsaid, unread):
            held.setdefault(identity, []).append((at, time, util))
    identities = list(held)
    labels = dict(zip(identities, resolve(identities)[0], strict=True))
    gpus = []
    for label in sorted(set(labels.values()), key=lambda name: (gpu_index(name) is None, gpu_index(name) or 0, name)):
        own = [one for one in identities if labels[one] == label]
        known = {name: next((value for one in own if (value := getattr(one, name))), "") for name in ("uuid", "name")}
        numbers = _numbers((one.index, time) for one in own for _, time, _ in held[one])
        parts = [chunk for one in own for chunk in held.pop(one)]  # not kept twice
        time, util = _joined(sorted(parts, key=lambda part: part[0]))
        gpus.append(UtilSamples(label, time, util, known["uuid"], known["name"], numbers))
    return HostSamples(host, tuple(gpus), problems, not unsaid, tuple(unread))


def _numbers(chunks: Iterable[tuple[str, np.ndarray]]) -> tuple[Numbered, ...]:
    """Under which number a GPU was seen when: a reboot may number the same GPUs otherwise."""
    out: list[Numbered] = []
    for low, high, index in sorted((int(time.min()), int(time.max()), index) for index, time in chunks if len(time)):
        if not index:
            continue
        if out and out[-1][2] == index:
            out[-1] = (out[-1][0], max(out[-1][1], high), index)
        elif out and out[-1][1] >= low:
            return ()
        else:
            out.append((low, high, index))
    return tuple(out)


def _joined(parts: list[tuple[int, np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    time = np.concatenate([part[1] for part in parts])
    util = np.concatenate([part[2] for part in parts])
    if (time[1:] > time[:-1]).all():
        return time, util
    order = np.argsort(time, kind="stable")
    time, util = time[order], util[order]
    last = np.append(time[1:] != time[:-1], True)
    return time[last], util[last]


def _chunks(file: str, zone: tzinfo, problems: ProblemLog, unsaid: list[str], unread: list[str]) -> Iterator[Chunk]:
    """The samples of each GPU of a file; a GPU that is described and has none is there with nothing. ``unsaid`` gets a
    file that does not say that its utilization is in percent.
    """
    try:
        source = parquet_source(file)
        columns = known_columns(pl.scan_parquet(source, hive_partitioning=False, glob=False).collect_schema())
        if columns is None:
            problems.add(OTHER, example=file, lost=True)
            unread.append(f"{OTHER}: {file}")
            return
        frame = pl.scan_parquet(source, hive_partitioning=False, glob=False).select(columns.names).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        why = " ".join(str(error).split())
        problems.add(UNREADABLE, example=f"{file}: {why}", lost=True)
        unread.append(f"{UNREADABLE}: {file}: {why}"[:300])
        return
    unsaid += [] if columns.in_percent else [file]
    described = {}
    if columns.ours:
        described = {one.index: one for one in _described(frame.filter(pl.col("table") == "gpus"), columns)}
        frame = frame.filter(pl.col("table") == "gpu")
        columns = replace(columns, of_gpu={"index": "gpu"})
    time = microseconds_of(frame[columns.time], zone)
    value = pl.col(columns.util).cast(pl.Float64, strict=False)
    keys = {kind: name for kind, name in columns.of_gpu.items() if kind in IDENTITY}
    texts = [pl.col(name).cast(pl.String).alias(kind) for kind, name in columns.of_gpu.items()]
    frame = frame.select(*texts, value.alias("util")).with_columns(time.alias("time"))
    dated = frame.filter(pl.col("time").is_not_null())
    problems.add(DAMAGED, len(frame) - len(dated), example=file, lost=True)
    named = dated.filter(pl.any_horizontal(pl.col(kind).fill_null("").str.len_bytes() > 0 for kind in keys))
    problems.add(NAMELESS, len(dated) - len(named), example=file, lost=True)
    met = set()
    for _, own in named.group_by([*keys], maintain_order=True):
        identity = _identity(own.row(0, named=True))
        met.add(identity.index)
        seen = own.filter(pl.col("util").is_between(_UTIL.low, _UTIL.high))
        yield described.get(identity.index, identity), seen["time"].to_numpy(), seen["util"].to_numpy()
    for index in described.keys() - met:
        yield described[index], np.zeros(0, np.int64), np.zeros(0)


def _described(rows: pl.DataFrame, columns: TelemetryColumns) -> list[GpuIdentity]:
    texts = [pl.col(name).cast(pl.String).alias(kind) for kind, name in columns.of_gpu.items()]
    return [_identity(row) for row in rows.select(texts).iter_rows(named=True)]


def _identity(row: dict[str, str | None]) -> GpuIdentity:
    return GpuIdentity(**{kind: row.get(kind) or "" for kind in (*IDENTITY, "name")})
