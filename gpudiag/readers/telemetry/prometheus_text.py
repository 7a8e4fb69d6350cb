"""Scrapes of dcgm-exporter or nvidia_gpu_exporter, one or many in a file.

A scrape has no time of its own: a timestamp behind the value or a date line between scrapes is used where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pandas as pd

from gpudiag.readers._fields.dcgm_fields import FB_FREE, XID, Metric, is_blank
from gpudiag.readers._fields.metric_names import PROCESS_MEMORY, Cards, metric_of
from gpudiag.readers._fields.rivals import Rivals, hosts_note
from gpudiag.readers._io.lines import numbered_lines
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.engine import settle
from gpudiag.readers._shape.moments import Moment, read_moment
from gpudiag.readers._shape.pods import depth, note, tenant_of, total, uid
from gpudiag.readers._shape.snapshots import Snapshots, quantity
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "Prometheus text"

_SERIES = re.compile(
    r"(?P<name>[A-Za-z_:][\w:]*)\s*(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+(?P<ms>\d{12,14}))?\s*"
)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_OURS = re.compile(r"(?:DCGM_FI_|nvidia_smi_|ray_node_g(?:pu|ram_))\w+\s*(?:\{.*\})?\s+[-+\w.]+(?:\s+\d+)?\s*")


def recognises(source: Source) -> bool:
    return any(line[:1] in ("D", "n", "r") and _OURS.fullmatch(line) for line in source.lines)


def read(source: Source, options: ReadOptions) -> Telemetry:
    scrapes, log = _read(source, Cards())
    if apart := scrapes.rivals.told_apart_by():
        scrapes, log = _read(source, Cards(apart))
    snapshots = scrapes.cards.relabel(scrapes.snapshots)
    rows, notes = settle(pd.DataFrame(snapshots.gpu))
    snapshots.gpu = rows.to_dict("records") if notes else snapshots.gpu
    said = [*note(sorted(scrapes.summed)), *hosts_note(apart), *notes]
    return snapshots.finish(source, NAME, options, log, said)


def _read(source: Source, cards: Cards) -> tuple[_Scrapes, ProblemLog]:
    log, scrapes = ProblemLog(), _Scrapes(cards=cards)
    for number, line in numbered_lines(source, log):
        if line and not line.isspace() and not line.startswith(("# HELP", "# TYPE", "# EOF")):
            match = _SERIES.fullmatch(line)
            if match:
                scrapes.take(number, match)
            elif (moment := read_moment(line)) and moment.day and moment.clock:
                scrapes.end()
                scrapes.moment = moment
            else:
                log.add("line that is no sample", line=number, example=line)
    scrapes.end()
    return scrapes, log


@dataclass
class _Reading:
    """A column of one GPU in a scrape, by pod where pods share the board."""

    rank: int
    depth: int
    most: float
    by_pod: dict[str, float]

    @property
    def value(self) -> float | None:
        """The board's reading; None if it is unknown."""
        return total(self.by_pod, self.most)[0] if self.by_pod else None

    @property
    def is_sum(self) -> bool:
        return total(self.by_pod, self.most)[1]


@dataclass
class _ScrapeReadings:
    """The readings of one GPU in the scrape under way, by column."""

    line: int
    readings: dict[str, _Reading] = field(default_factory=dict)
    tenants: set[str] = field(default_factory=set)

    def add(self, metric: Metric, labels: Mapping[str, str], value: float | None) -> None:
        """Use a reading of a series with these labels."""
        self.tenants |= {tenant_of(labels)} - {""}
        known, place = self.readings.get(metric.column), (metric.rank, depth(labels))
        values = {} if value is None else {uid(labels): value * metric.factor}
        if known is None or not known.by_pod or (values and place < (known.rank, known.depth)):
            self.readings[metric.column] = _Reading(*place, metric.most, values)
        elif place == (known.rank, known.depth) and uid(labels):
            known.by_pod |= values

    def values(self) -> dict[str, float | None]:
        """Columns of the schema, with the size of memory from its parts where it is not exported."""
        out = {column: reading.value for column, reading in self.readings.items() if column != XID}
        free, used = out.pop(FB_FREE, None), out.get("mem_used_mib")
        if out.get("mem_total_mib") is None and free is not None and used is not None:
            out["mem_total_mib"] = used + free + (out.get("mem_reserved_mib") or 0.0)
        return out


@dataclass
class _Scrapes:
    """Follows the series; a series that comes again begins a new scrape."""

    snapshots: Snapshots = field(default_factory=Snapshots)
    cards: Cards = field(default_factory=Cards)
    moment: Moment | None = None
    summed: set[str] = field(default_factory=set)
    rivals: Rivals = field(default_factory=Rivals)
    _seen: set[str] = field(default_factory=set)
    _samples: dict[tuple[str, str, str], _ScrapeReadings] = field(default_factory=dict)
    _processes: list[tuple[int, Mapping[str, str], float]] = field(default_factory=list)
    _labels: dict[str, dict[str, str]] = field(default_factory=dict)
    _xid: dict[str, float] = field(default_factory=dict)

    def take(self, number: int, match: re.Match[str]) -> None:
        """Use one reading."""
        text = match["labels"] or ""
        series = f"{match['name']}{{{text}}}"
        if series in self._seen:
            self.end()
        self._seen.add(series)
        if text not in self._labels:
            self._labels[text] = {key: re.sub(r"\\(.)", r"\1", value) for key, value in _LABEL.findall(text)}
        labels = self._labels[text]
        metric = metric_of(match["name"], labels)
        value = quantity(match["value"])
        self.cards.learn(match["name"], labels, value)
        if match["ms"] and self.moment is None:
            self.moment = Moment(datetime.fromtimestamp(int(match["ms"]) / 1000, UTC).replace(tzinfo=None), utc=True)
        if match["name"] == PROCESS_MEMORY and value is not None:
            self._processes.append((number, labels, value))
        elif metric is not None:
            known = None if value is None or value != value or is_blank(value) else value
            key = self.cards.key(labels)
            self._samples.setdefault(key, _ScrapeReadings(number)).add(metric, labels, known)
            if not key[2]:
                self.rivals.add((key, match["name"]), metric, labels, known)

    def end(self) -> None:
        """Close the scrape under way."""
        if self._samples:
            self.snapshots.begin(self.moment)
            for key, sample in self._samples.items():
                self._close(self.cards.label(key), sample)
            for number, labels, size in self._processes:
                self._process(number, labels, size)
        self.moment = None if self._samples else self.moment
        self._seen, self._samples, self._processes = set(), {}, []
        self.rivals.next()

    def _close(self, gpu: str, sample: _ScrapeReadings) -> None:
        whose = {"tenant": ", ".join(sorted(sample.tenants))} if sample.tenants else {}
        self.snapshots.sample(gpu, sample.line, **sample.values(), **whose)
        self.summed |= {column for column, reading in sample.readings.items() if reading.is_sum}
        xid = sample.readings[XID].value if XID in sample.readings else None
        if xid is not None:
            if xid > 0 and xid != self._xid.get(gpu):
                self.snapshots.event("xid", sample.line, gpu, f"last XID error is {xid:.0f}")
            self._xid[gpu] = xid

    def _process(self, number: int, labels: Mapping[str, str], size: float) -> None:
        if labels.get("pid", "").isdecimal():
            gpu = self.cards.label(self.cards.key(labels))
            name = labels.get("process_name")
            self.snapshots.process(gpu, number, int(labels["pid"]), name=name, mem_used_mib=size / 2**20)


READER = Reader(NAME, recognises, read)
