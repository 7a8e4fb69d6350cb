"""`gpudiag inspect` as text: one line an input, its problems below it."""

from __future__ import annotations

import re
from datetime import datetime

from gpudiag._run.tables import InputRecord, StudyRecord
from gpudiag.report.format import duration, plural


def lines(entry: InputRecord) -> list[str]:
    """The lines for one input."""
    path = entry.path
    if entry.error is not None:
        # What a file could have been is said where it is named alone; a folder's listing stays short.
        reason = re.sub(r"; expected .*; its first line", "; its first line", entry.error.removeprefix(f"{path}: "))
        return [f"{path}: not read: {reason}"]
    parts = [entry.reader, plural(entry.rows, "row")]
    if entry.gpus:
        parts.append(plural(len(entry.gpus), "GPU"))
    if entry.start and entry.end:
        parts.append(_span(entry.start, entry.end))
    if entry.median_period_s:
        parts.append(f"every {duration(entry.median_period_s)}")
    out = [f"{path}: " + ", ".join(parts)]
    out += [f"    study {study.name}: {_study(study)}" for study in entry.studies]
    for problem in entry.problems:
        where = f", first at line {problem.line}" if problem.line is not None else ""
        example = f" ({problem.example})" if problem.example else ""
        out.append(f"    {problem.count:,} × {problem.kind}{where}{example}")
    out += [f"    note: {note}" for note in entry.notes]
    return out


def _study(study: StudyRecord) -> str:
    states = " ".join(f"{state} {n}" for state, n in study.states.items()) or "no trials"
    directions = ", ".join(d.lower() for d in study.directions)
    reports = f", {study.reports:,} reports" if study.reports else ""
    parts = [states + reports, directions]
    if study.start and study.end:
        parts.append(_span(study.start, study.end))
    if study.max_concurrent:
        parts.append(f"at most {study.max_concurrent} at once")
    return "; ".join(part for part in parts if part)


def _span(start: str, end: str) -> str:
    first, last = datetime.fromisoformat(start), datetime.fromisoformat(end)
    if first.year == 1970:
        return f"{duration((last - first).total_seconds())} long, without dates"
    same_day = first.date() == last.date()
    return f"{first:%Y-%m-%d %H:%M:%S} to {last:{'%H:%M:%S' if same_day else '%Y-%m-%d %H:%M:%S'}} UTC"
