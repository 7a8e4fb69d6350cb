"""A run as a trace for ui.perfetto.dev and chrome://tracing: what ran when, and what the GPUs did meanwhile.

The lane of a worker holds its trials, that of a training the stretches between lines of its log; each GPU has its
counters and a lane of ledger cells; findings are instants.
The Trace Event Format is described in https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
Times are microseconds since the earliest event, which ``otherData.start`` gives in UTC, null where it has no date:
Perfetto drops what lies before zero. A cell of the ledger begins before the sample that it is known by.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gpudiag.files import write as write_file
from gpudiag.measures._time.decimate import decimate
from gpudiag.measures._time.microseconds import NEVER, microseconds
from gpudiag.measures._waits.logged import LoggedInterval, logged_trainings
from gpudiag.plain_data import JsonObject, clean
from gpudiag.plots._draw.causes import cause_label
from gpudiag.plots._draw.cell_names import cell_label
from gpudiag.report.format import is_dated, safe

if TYPE_CHECKING:
    from gpudiag.diagnosis import Diagnosis
    from gpudiag.run import Run

TraceEvent = JsonObject

TRIALS, FINDINGS, TRAININGS, FIRST_GPU = 1001, 1002, 1003, 1010
"""Process ids. Lanes count from 1: one that had the id of its process would be shown as its main thread."""
COUNTERS = {
    "util_pct": ("utilization", "%"),
    "mem_used_mib": ("memory used", "MiB"),
    "power_w": ("power", "W"),
    "temp_c": ("temperature", "°C"),
    "sm_clock_mhz": ("SM clock", "MHz"),
}
"""Name and unit; Perfetto calls a counter by the name of the event and that of its argument."""
LEAST_PAUSE_S = 1.0
"""A shorter pause does not name the stretch that it lies in."""
MAX_POINTS = 20_000
"""Points of one counter of one GPU; the extremes are kept."""


def write(diagnosis: Diagnosis, path: Path) -> list[Path]:
    """Write the trace to ``path``."""
    write_file(path, json.dumps(trace(diagnosis), ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    return [path]


def trace(diagnosis: Diagnosis) -> JsonObject:
    """The trace as JSON's own types."""
    run = diagnosis.run
    zero = _earliest(diagnosis)
    events = [*_trials(diagnosis, zero), *_trainings(run, zero), *_findings(diagnosis, zero)]
    for at, gpu in enumerate(_gpus(run)):
        events += _gpu(diagnosis, gpu, FIRST_GPU + at, zero)
    began = pd.Timestamp(zero, unit="us", tz="UTC")
    start = clean(began) if is_dated(began) else None
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"run": safe(run.info.name), "start": start}}


def _trials(diagnosis: Diagnosis, zero: int) -> Iterator[TraceEvent]:
    """A slice a trial, in the lane of its worker. Its name begins with its state, which gives it the state's colour."""
    where = diagnosis.profiles.get("parallelism")
    if where is None:
        return
    yield from _named(TRIALS, f"Trials of {safe(diagnosis.run.info.name)}", sort=0)
    workers = where.placed
    for worker in sorted(workers["worker"].unique()):
        yield from _lane(TRIALS, int(worker) + 1, f"worker {worker}")
    arguments = _arguments(diagnosis.run)
    several = workers["study"].nunique() > 1
    start, end = microseconds(workers["start"]) - zero, microseconds(workers["end"]) - zero
    after = pd.Series(start).groupby(workers["worker"].to_numpy()).shift(-1, fill_value=NEVER).to_numpy()
    end = np.maximum(np.minimum(end, after), start)  # slices of a lane may not overlap, as trials that hand over may
    for row, begin, until in zip(workers.itertuples(index=False), start, end, strict=True):
        study = f"{safe(row.study)}/" if several else ""
        yield {
            "ph": "X", "pid": TRIALS, "tid": int(row.worker) + 1, "ts": int(begin), "dur": int(until - begin),
            "name": f"{row.state} {study}{row.trial}", "cat": "trial",
            "args": arguments.get((row.study, row.trial), {}) | ({"end": "inferred"} if row.open else {}),
        }  # fmt: skip


def _arguments(run: Run) -> dict[tuple[str, int], JsonObject]:
    """Parameters and values by study and trial; attributes only where run.toml's show_attrs names them."""
    shown = {f"user_attrs.{name.removeprefix('user_attrs.')}" for name in run.info.show_attrs}
    columns = [c for c in map(str, run.trials) if c.startswith(("params.", "value")) or c in shown]
    names = [column.removeprefix("params.") for column in columns]
    rows = zip(run.trials["study"], run.trials["trial"], *(run.trials[c] for c in columns), strict=True)
    return {(study, trial): _plain(dict(zip(names, values, strict=True))) for study, trial, *values in rows}


def _plain(values: Mapping[str, object]) -> JsonObject:
    """What is known, as numbers or harmless text."""
    known = {name: value for name, raw in values.items() if (value := clean(raw)) is not None}
    return {name: value if isinstance(value, int | float) else safe(value) for name, value in known.items()}


def _trainings(run: Run, zero: int) -> Iterator[TraceEvent]:
    """A slice a stretch between two lines of a log, with the seconds of what it went into; a lane a training."""
    found = logged_trainings(run)
    if found:
        yield from _named(TRAININGS, "Trainings, by their logs", sort=2)
    for at, training in enumerate(found):
        known = {"rank": training.rank, "trial": training.trial}
        names = [f"{name} {round(value)}" for name, value in known.items() if value >= 0]
        yield from _lane(TRAININGS, at + 1, ", ".join(names) or "training")
        for one in training.intervals:
            paused = [cause_label(one.cause)] if one.cause and one.paused_s >= LEAST_PAUSE_S else []
            yield {
                "ph": "X", "pid": TRAININGS, "tid": at + 1, "ts": one.start_us - zero, "dur": one.end_us - one.start_us,
                "name": " and ".join(["steps", *paused]), "cat": "training", "args": _stretch(one),
            }  # fmt: skip


def _stretch(one: LoggedInterval) -> JsonObject:
    """Seconds of what a stretch went into; of its steps, those that waited for data."""
    seconds = {"steps_s": one.steps_s, "paused_s": one.paused_s or None, "loader_s": one.loader_s}
    return _plain(seconds)


def _findings(diagnosis: Diagnosis, zero: int) -> Iterator[TraceEvent]:
    """An instant a finding: where it begins, or at the start of the run where it holds throughout."""
    if not diagnosis.findings:
        return
    yield from _named(FINDINGS, "Findings", sort=1)
    for at, finding in enumerate(diagnosis.findings):
        yield from _lane(FINDINGS, at + 1, f"{finding.severity.value}: {finding.rule}")
        facts = {"summary": finding.summary, "severity": finding.severity.value, "lost_gpu_h": finding.lost_gpu_h}
        yield {
            "ph": "i", "s": "t", "pid": FINDINGS, "tid": at + 1, "ts": max(_begins(finding.where, zero), 0),
            "name": safe(finding.title), "cat": "finding", "args": _plain(facts),
        }  # fmt: skip


def _begins(where: Any, zero: int) -> int:
    for name in ("start", "time", "at"):
        try:
            timestamp = pd.Timestamp(where[name])
        except (KeyError, ValueError, TypeError):
            continue
        if timestamp is not pd.NaT and timestamp.tzinfo is not None:
            return int(timestamp.tz_convert("UTC").value // 1000) - zero
    return 0


def _gpu(diagnosis: Diagnosis, gpu: str, pid: int, zero: int) -> Iterator[TraceEvent]:
    """Counters of one GPU, and the cells of its ledger."""
    run = diagnosis.run
    names = run.gpus.loc[run.gpus["gpu"] == gpu, "name"].dropna() if "name" in run.gpus else []
    yield from _named(pid, " ".join(["GPU", safe(gpu), *(safe(name) for name in names)]), sort=pid)
    samples = run.gpu[run.gpu["gpu"] == gpu]
    for column, (name, unit) in COUNTERS.items():
        if column in samples:
            points = decimate(samples[["time", column]].dropna(), "time", column, MAX_POINTS)
            for ts, value in zip(microseconds(points["time"]) - zero, points[column], strict=True):
                yield {"ph": "C", "pid": pid, "ts": int(ts), "name": name, "args": {unit: float(value)}}
    if diagnosis.ledger is not None:
        yield from _lane(pid, 1, "ledger")
        spans = diagnosis.ledger.spans
        spans = spans[spans["gpu"] == gpu]
        start, end = microseconds(spans["start"]) - zero, microseconds(spans["end"]) - zero
        for cell, begin, until in zip(spans["cell"], start, end, strict=True):
            at = {"ts": int(begin), "dur": int(until - begin)}
            said = cell_label(str(cell), has_trials=diagnosis.ledger.has_trials)
            yield {"ph": "X", "pid": pid, "tid": 1, **at, "name": said, "cat": "ledger", "args": {"cell": str(cell)}}


def _named(pid: int, name: str, sort: int) -> Iterator[TraceEvent]:
    yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
    yield {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": sort}}


def _lane(pid: int, tid: int, name: str) -> Iterator[TraceEvent]:
    """The name of a lane; lanes stand in the order of their ids."""
    yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}
    yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_sort_index", "args": {"sort_index": tid}}


def _gpus(run: Run) -> list[str]:
    return list(dict.fromkeys([*run.gpus["gpu"].dropna().astype(str), *run.gpu["gpu"].dropna().astype(str).unique()]))


def _earliest(diagnosis: Diagnosis) -> int:
    """When the first event begins, in microseconds since 1970."""
    run, ledger = diagnosis.run, diagnosis.ledger
    columns = [run.gpu["time"], run.trials["start"], *([] if ledger is None else [ledger.spans["start"]])]
    known = [int(microseconds(column.dropna()).min()) for column in columns if column.notna().any()]
    return min([*known, *(training.span_us[0] for training in logged_trainings(run))], default=0)
