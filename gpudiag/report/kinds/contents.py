"""What an input or a run holds, as blocks: the first thing to look at after reading.

Works on whatever has the tables of :mod:`gpudiag.schema`. Attributes of users are counted, never shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING

from gpudiag.readers._io.problems import Problem
from gpudiag.readers.base import Telemetry, Trials
from gpudiag.report._render.blocks import Block, Heading, Note, Number, TableBlock, TableCell
from gpudiag.report._render.frames import summary
from gpudiag.report._render.shown import shown_as
from gpudiag.report.format import NO_DATE, UNKNOWN, duration, is_dated, named, number, plural, safe, timestamp, zone
from gpudiag.run import Run
from gpudiag.schema import STATES

if TYPE_CHECKING:
    import pandas as pd

MAX_PROBLEMS = 5
MAX_STUDIES = 20
PER_GPU = {
    "util_pct": ("Mean utilization", "mean"),
    "mem_used_mib": ("Peak memory", "max"),
    "power_w": ("Mean power", "mean"),
    "temp_c": ("Peak temp.", "max"),
}


@shown_as.register
def run_blocks(run: Run) -> list[Block]:
    """A run: span, GPUs, trials, clock, and how each input was read."""
    times = [run.gpu["time"], run.host["time"], run.trials["start"], run.trials["end"]]
    tiles = [
        ("span", _span(times, zone(run.info.timezone))),
        ("timezone", run.info.timezone),
        ("GPUs", _gpu_names(run)),
        ("samples", number(len(run.gpu))),
    ]
    if len(run.trials):
        tiles += [("trials", _states(run.trials)), ("clocks", _clock(run))]
    if run.info.settings.parallel:
        tiles.append(("parallel, configured", number(run.info.settings.parallel)))
    rows: list[tuple[TableCell, ...]] = [
        (safe(r.path), r.reader or r.kind, Number(number(r.rows)), r.error or _short_problems(r.problems))
        for r in run.info.inputs
    ]
    blocks: list[Block] = [Heading(f"Run {safe(run.info.name)}"), *summary(tiles)]
    blocks += [TableBlock(("Input", "Reader", "Rows", "Oddities"), tuple(rows))] if rows else []
    return blocks + [Note(safe(note)) for note in run.info.notes]


@shown_as.register
def telemetry_blocks(data: Telemetry) -> list[Block]:
    """One log of GPU metrics: its GPUs with their means and peaks, and what was odd."""
    tiles = [("reader", data.reader), ("samples", number(data.rows)), ("span", _span([data.gpu["time"]], zone("UTC")))]
    others = {name: len(getattr(data, name)) for name in ("processes", "host", "events")}
    tiles += [(name, number(n)) for name, n in others.items() if n]
    table: list[Block] = [_per_gpu(data.gpu)] if len(data.gpu) else []
    return [Heading("Telemetry"), *summary(tiles), *table, *_problems(data)]


@shown_as.register
def trials_blocks(data: Trials) -> list[Block]:
    """One study or batch: states by study, reports, and what was odd."""
    span = _span([data.trials["start"], data.trials["end"]], zone("UTC"))
    tiles = (
        ("reader", data.reader),
        ("trials", number(len(data.trials))),
        ("reports", number(len(data.reports))),
        *((("steps", number(len(data.steps))),) if len(data.steps) else ()),
        ("span", span),
    )
    table: list[Block] = [_per_study(data.trials), _columns(data.trials)] if len(data.trials) else []
    return [Heading("Trials"), *summary(tiles), *table, *_problems(data)]


def _per_study(trials: pd.DataFrame) -> TableBlock:
    rows: list[tuple[TableCell, ...]] = [
        (safe(name), *(Number(number(int((part["state"] == state).sum()))) for state in STATES))
        for name, part in trials.groupby("study", sort=False)
    ]
    more = len(rows) - MAX_STUDIES
    caption = f"... and {more} more studies" if more > 0 else ""
    return TableBlock(("Study", *STATES), tuple(rows[:MAX_STUDIES]), caption)


def _columns(trials: pd.DataFrame) -> Note:
    params = sum(str(name).startswith("params.") for name in trials)
    attrs = sum(str(name).startswith("user_attrs.") for name in trials)
    return Note(f"{plural(params, 'parameter')}; {plural(attrs, 'user attribute')}" + ", not shown." * bool(attrs))


def _per_gpu(gpu: pd.DataFrame) -> TableBlock:
    have = [name for name in PER_GPU if name in gpu]
    rows: list[tuple[TableCell, ...]] = []
    for name, part in gpu.groupby("gpu", sort=False):
        values = (_known(column, part[column].agg(PER_GPU[column][1])) for column in have)
        rows.append((str(name), Number(number(len(part))), *map(Number, values)))
    return TableBlock(("GPU", "Samples", *(PER_GPU[name][0] for name in have)), tuple(rows), "Means are over samples.")


def _known(name: str, value: float) -> str:
    return named(name, float(value)) if value == value else UNKNOWN


def _problems(data: Telemetry | Trials) -> list[Block]:
    rows: list[tuple[TableCell, ...]] = [
        (safe(p.kind), Number(number(p.count)), Number(UNKNOWN if p.line is None else str(p.line)), safe(p.example))
        for p in data.problems[:MAX_PROBLEMS]
    ]
    more = len(data.problems) - MAX_PROBLEMS
    caption = f"... and {more} more kinds" if more > 0 else ""
    columns = ("Oddity", "Cases", "First line", "Example")
    found: list[Block] = [TableBlock(columns, tuple(rows), caption)] if rows else []
    return found + [Note(safe(note)) for note in data.notes]


def _short_problems(problems: Sequence[Problem]) -> str:
    if not problems:
        return "none"
    return f"{plural(sum(p.count for p in problems), 'case')} of {plural(len(problems), 'kind')}"


def _span(columns: Sequence[pd.Series], show_in: tzinfo) -> str:
    timestamps = [s for column in columns for s in (column.min(), column.max()) if s == s]
    if not timestamps:
        return UNKNOWN
    timestamps = [one for one in timestamps if is_dated(one)] or timestamps
    first, last = min(timestamps), max(timestamps)
    lasted = duration((last - first).total_seconds())
    if not is_dated(first):
        return f"{NO_DATE} ({lasted})"
    return f"{timestamp(first.isoformat(), show_in)} to {timestamp(last.isoformat(), show_in)} ({lasted})"


def _gpu_names(run: Run) -> str:
    if run.gpus.empty:
        return ", ".join(map(str, run.gpu["gpu"].unique())) or "none"
    names = run.gpus["name"] if "name" in run.gpus else run.gpus["gpu"].map(lambda gpu: "")
    both = zip(run.gpus["gpu"], names, strict=True)
    return ", ".join(f"{gpu} {safe(name) if isinstance(name, str) else ''}".strip() for gpu, name in both)


def _states(trials: pd.DataFrame) -> str:
    counts = trials["state"].value_counts()
    return f"{len(trials):,}: " + ", ".join(f"{int(counts[state])} {state}" for state in STATES if state in counts)


def _clock(run: Run) -> str:
    clock = run.info.clock
    if run.gpu.empty:
        return "one source only"
    return f"offset {named('_s', clock.offset_s)}, {clock.confidence}" + ("" if clock.joined else "; not joined")
