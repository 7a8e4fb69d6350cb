"""The newest of many runs of the same training against the noise of the earlier ones: as JSON, and in a terminal."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from gpudiag._run.tables import TIME
from gpudiag.plain_data import NAN_IS_NULL, meaning
from gpudiag.report._render.blocks import Block, Chip, Heading, Note, Number, TableBlock, TableCell
from gpudiag.report.format import UNKNOWN, interval, plural, precise, safe, timestamp, zone

HistoryVerdict = Literal["worse", "better", "within the noise", "not assessed"]
LEVELS = {"worse": "warning", "better": "ok", "within the noise": "ok", "not assessed": "unknown"}
MOST_RUNS = 12


@dataclass(frozen=True)
class HistoryRun:
    """One run: what it is called, when it began, and the quantities that are known of it."""

    name: str
    start: str | None = field(metadata=TIME)
    values: dict[str, float]


@dataclass(frozen=True)
class HistoryQuantity:
    """The newest value against the band that 95 % of such histories would keep it in if nothing had changed, all
    quantities together.
    """

    name: str
    title: str
    unit: str
    newest: float = field(metadata=NAN_IS_NULL)  # infinity: GPU time was spent and no trial completed
    typical: float | None = field(metadata=meaning("mean of the earlier runs, geometric of all but shares"))
    low: float | None
    high: float | None
    n_earlier: int
    verdict: HistoryVerdict


@dataclass(frozen=True)
class History:
    """Runs in the order of their time, and what may be said of the newest."""

    schema: Literal["gpudiag.history/1"]
    runs: tuple[HistoryRun, ...]
    quantities: tuple[HistoryQuantity, ...]
    unread: tuple[str, ...] = field(metadata=meaning("documents that could not be read, and why"))

    @property
    def regression(self) -> bool:
        """Whether the newest run is worse in anything."""
        return any(one.verdict == "worse" for one in self.quantities)


def history_text(held: History, fewest: int) -> list[Block]:
    """What a terminal shows."""
    newest = held.runs[-1]
    lines = [_sentence(held, fewest)]
    rows: list[tuple[TableCell, ...]] = [
        (
            one.title,
            Number(_shown(one.newest, one.unit)),
            Number(UNKNOWN if one.low is None else interval(one.low, one.high, one.unit)),
            Number(str(one.n_earlier)),
            Chip(LEVELS[one.verdict], one.verdict),
        )
        for one in held.quantities
    ]
    out: list[Block] = [Heading(safe(newest.name)), Note(lines[0])]
    out.append(TableBlock(("Quantity", "Newest", "Expected", "Earlier runs", "Verdict"), tuple(rows)))
    recent = held.runs[-MOST_RUNS:]
    columns = [one for one in held.quantities][:3]
    table: list[tuple[TableCell, ...]] = [
        (
            safe(run.name),
            timestamp(run.start, zone("UTC")) if run.start else UNKNOWN,
            *(Number(_shown(run.values.get(one.name), one.unit)) for one in columns),
        )
        for run in recent
    ]
    out.append(TableBlock(("Run", "Began (UTC)", *(one.title for one in columns)), tuple(table)))
    return out + [Note(f"Left out: {safe(one)}") for one in held.unread]


def _shown(value: float | None, unit: str) -> str:
    return "no result" if value is not None and math.isinf(value) else precise(value, unit)


def _sentence(held: History, fewest: int) -> str:
    n = len(held.runs) - 1
    worse = [one for one in held.quantities if one.verdict == "worse"]
    if worse:
        first = worse[0]
        usual = precise(first.typical, first.unit)
        return (
            f"Worse than {plural(n, 'earlier run')}: {first.title} is {precise(first.newest, first.unit)}, not {usual}."
        )
    if all(one.verdict == "not assessed" for one in held.quantities):
        return f"{plural(n, 'earlier run')}: at least {fewest} are needed to know the noise."
    if better := [one.title for one in held.quantities if one.verdict == "better"]:
        return f"Better than {plural(n, 'earlier run')}: {', '.join(better)}."
    return f"Within the noise of {plural(n, 'earlier run')}."
