"""From what a reader found out about each trial of one batch to the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._studies.end_order import checked_ends
from gpudiag.readers._studies.fold import settle_rows
from gpudiag.readers._studies.pivot import column, plain
from gpudiag.readers._studies.timestamps import moments_of, to_utc
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.schema import EVENTS, REPORTS, STUDIES, TRIALS, conform, empty, family, text_dtype

_TEXTS = ("name", "worker", "gpu", "host", "detail")


def batch(
    rows: Sequence[Mapping[str, Any]],
    source: Source,
    options: ReadOptions,
    reader: str,
    problems: ProblemLog,
    *,
    study: str,
    reports: Sequence[Mapping[str, Any]] = (),
    events: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[str] = (),
    lines: Sequence[int] | None = None,
) -> Trials:
    """Tables of one batch; the study is called as the options say, else as the reader found.

    Args:
        rows: one mapping per trial with names of table ``trials``; ``start`` and ``end`` as cells (text, number or
            datetime), families as ``params.<name>``. ``trial`` may be absent: then the order numbers them.
        source: the input, for messages and as the study's source.
        options: as given to the reader.
        reader: name of the reader.
        problems: problems met so far.
        study: name of the batch where the options give none.
        reports: one mapping per intermediate value with ``trial``, ``step``, ``value`` and perhaps ``time`` (epoch s).
        events: one mapping per event with ``time`` as a cell.
        notes: sentences on what was assumed.
        lines: line number of each row.
    """
    name = options.study or study
    start, end = (moments_of([row.get(key) for row in rows], options.timezone, problems) for key in ("start", "end"))
    frame = pd.DataFrame({"trial": [row.get("trial", at) for at, row in enumerate(rows)]}).assign(study=name)
    frame["state"] = [row["state"] for row in rows]
    clock = _clock({start.clock, end.clock} - {"unknown"})
    local = settle_rows(start.time, end.time, options.timezone) if clock == "local" else None
    frame["start"], ends = (local.start, local.end) if local else (start.time, end.time)
    frame["end"] = checked_ends(frame["start"], ends, source.path, problems, lines)
    known = (frame["start"].notna() & frame["end"].notna()).to_numpy()
    durations = np.array([row.get("duration_s", np.nan) for row in rows], dtype=float)
    frame["duration_s"] = np.where(known, np.nan, durations)
    frame["value"] = np.array([row.get("value", np.nan) for row in rows], dtype=float)
    frame["pid"] = pd.array([row.get("pid") for row in rows], dtype="Int64")
    for key in _TEXTS:
        frame[key] = pd.Series([row.get(key) for row in rows], dtype=text_dtype())
    frame = pd.concat([frame, pd.DataFrame(_wide(rows), index=frame.index)], axis=1)
    doubt = local.said if local else ""
    assumed = [f"{reader}: timestamps without a zone read as local time of {options.timezone}{doubt}."]
    shown = pd.DataFrame(
        {"study": [name], "directions": [""], "source": [as_text(source.path)], "clock": [clock]}, dtype=text_dtype()
    )
    return Trials(
        trials=conform(frame.sort_values("trial", kind="stable"), TRIALS),
        reports=_reports(reports, name),
        studies=conform(shown, STUDIES),
        events=_events(events, source, options),
        problems=problems.all,
        notes=(*notes, *(assumed if clock in ("local", "mixed") else [])),
        reader=reader,
    )


def _clock(found: set[str]) -> str:
    return "unknown" if not found else found.pop() if len(found) == 1 else "mixed"


def _wide(rows: Sequence[Mapping[str, Any]]) -> dict[str, pd.Series]:
    """Parameters and attributes as columns."""
    names = dict.fromkeys(name for row in rows for name in family(row, TRIALS.prefixes))
    out = {}
    for name in names:
        here = [at for at, row in enumerate(rows) if name in row]
        cells = np.empty(len(here), dtype=object)
        cells[:] = [plain(rows[at][name]) for at in here]
        out[name] = column(cells, np.array(here, dtype=int), len(rows))
    return out


def _reports(reports: Sequence[Mapping[str, Any]], study: str) -> pd.DataFrame:
    """One row per trial and step; where a step was reported twice the last value holds."""
    if not reports:
        return empty(REPORTS)
    frame = pd.DataFrame(list(reports)).assign(study=study)
    if "time" in frame:
        frame["time"] = to_utc(frame["time"].tolist(), UTC).time
    frame = frame.drop_duplicates(["trial", "step"], keep="last").sort_values(["trial", "step"], kind="stable")
    return conform(frame, REPORTS)


def _events(events: Sequence[Mapping[str, Any]], source: Source, options: ReadOptions) -> pd.DataFrame:
    if not events:
        return empty(EVENTS)
    times = to_utc([event.get("time") for event in events], options.timezone).time
    frame = pd.DataFrame(list(events)).assign(time=times, path=as_text(source.path))
    return conform(frame, EVENTS)
