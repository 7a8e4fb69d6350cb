"""What has a place in time: events of logs, and findings that name a time or trials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures.steps import StepsProfile
from gpudiag.report.format import count, duration, label, safe
from gpudiag.rules._engine.verdict import Verdict
from gpudiag.run import Run

MOST_EVENTS = 400
MOST_PAUSES = 100
MOST_CHARS = 160
QUIET = ("worker", "monitor", "epoch", "loader", "model", "settings", "record_start", "record_cut")
"""Kinds of event that a trial's bar or a curve shows already, and lines that a training prints all the time."""


@dataclass(frozen=True)
class Mark:
    """One stretch or instant (µs). ``rule`` is '' for an event; ``level`` the severity of a finding."""

    start_us: int
    end_us: int
    text: str
    rule: str = ""
    level: str = ""


Spans = Mapping[str, tuple[int, int]]
"""Start and end (µs) of a trial by its name."""


def event_marks(run: Run) -> tuple[list[Mark], int]:
    """Events in order of time, each once, and how many more there are."""
    events = run.events
    if events.empty:
        return [], 0
    told = events[events["time"].notna() & ~events["kind"].isin(QUIET)]
    told = told.drop_duplicates(["time", "kind", "detail"]).sort_values("time", kind="stable")
    shown = told.head(MOST_EVENTS)
    gpus = shown["gpu"] if "gpu" in shown else pd.Series(None, shown.index, dtype=object)
    marks = [
        Mark(int(at), int(at), f"{_kind(kind)}{_on(gpu)}: {safe(detail)[:MOST_CHARS]}")
        for at, kind, gpu, detail in zip(
            microseconds(shown["time"]), shown["kind"], gpus, shown["detail"].fillna(""), strict=True
        )
    ]
    return marks, len(told) - len(shown)


def pause_marks(steps: StepsProfile) -> list[Mark]:
    """Pauses between the steps of a training, the longest first: each lies somewhere within its mark."""
    timed = steps.pauses.dropna(subset=["start", "end"]).head(MOST_PAUSES)
    return [
        Mark(
            int(start),
            int(end),
            f"pause of {duration(paused_s)} {where} step {count(step)}{f' ({said})' if said else ''}",
        )
        for start, end, paused_s, where, step, said in zip(
            microseconds(timed["start"]),
            microseconds(timed["end"]),
            timed["paused_s"],
            np.where(timed["behind"] == True, "after", "by"),  # noqa: E712 - NaN is unknown
            timed["after_step"],
            timed["since"],
            strict=True,
        )
    ]


def _kind(kind: object) -> str:
    names = {
        "oom": "out of memory", "gpu_lost": "GPU lost", "xid": "Xid", "sxid": "SXid", "nccl": "NCCL", "ecc": "ECC"
    }  # fmt: skip
    return names.get(str(kind), safe(label(str(kind)))[:MOST_CHARS])


def _on(gpu: object) -> str:
    return f" on GPU {safe(gpu)}" if isinstance(gpu, str) and gpu else ""


def finding_marks(findings: Iterable[Verdict], spans: Spans) -> list[Mark]:
    """A mark for each time and each trial that a finding names."""
    marks = []
    for finding in findings:
        said = f"{finding.title}: {finding.summary}" if finding.summary else finding.title
        for start, end in _places(finding, spans):
            marks.append(Mark(start, end, safe(said), finding.rule, finding.severity.value))
    return marks


def _places(finding: Verdict, spans: Spans) -> Iterable[tuple[int, int]]:
    named = finding.where.get("trial")
    for name in str(named).split(", ") if named is not None else ():
        if name in spans:
            yield spans[name]
    at = finding.where.get("time")
    moment = pd.Timestamp(str(at)) if at is not None else pd.NaT
    if not pd.isna(moment):
        us = int(microseconds(pd.Series([moment]))[0])
        yield us, us
