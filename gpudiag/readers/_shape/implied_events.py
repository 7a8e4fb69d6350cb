"""Events that a log of metrics tells by itself: the driver lost a GPU, or a row says something in place of numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.readers._shape.coded import Coded

_SAID = re.compile(r"GPU is lost|fallen off the bus|[Uu]nable to determine the device handle")


def implied_events(
    timestamps: Any,
    gpu: Coded,
    lines: np.ndarray,
    lost: Mapping[str, np.ndarray],
    others: Sequence[tuple[int, str]],
    marks: Sequence[tuple[int, Any, str]],
    path: str,
) -> pd.DataFrame | None:
    """Rows of table ``events``: the first of each run of a GPU's rows that say it is lost, lines that say so, marks.

    Args:
        timestamps: time of each row.
        gpu: id of each row; rows of one GPU stand together, in the order of the file.
        lines: line number of each row.
        lost: numbers of the lines whose cells say that the GPU is lost, by what they say.
        others: number and text of the lines that are no rows.
        marks: line, time and text of rows that hold no number.
        path: name of the file.
    """
    messages = [(line, text.strip()) for line, text in others if _SAID.search(text)]
    if not any(map(len, lost.values())) and not messages and not marks:
        return None
    time = pd.Series(timestamps)
    zone = getattr(time.dtype, "tz", None)
    hits = {said: np.isin(lines, numbers) for said, numbers in lost.items()}
    hit = np.logical_or.reduce(list(hits.values()))
    same = np.append(False, gpu.codes[1:] == gpu.codes[:-1])
    firsts = np.flatnonzero(hit & ~(np.append(False, hit[:-1]) & same))
    events = [
        {
            "time": time[at],
            "kind": "gpu_lost",
            "detail": next(said for said, told in hits.items() if told[at]),
            "gpu": gpu.labels[gpu.codes[at]],
            "line": lines[at],
        }
        for at in firsts.tolist()
    ]
    for line, text in messages:
        above = np.where(lines < line, lines, -1)
        timestamp = time[int(above.argmax())] if (above >= 0).any() else pd.NaT
        events.append({"time": timestamp, "kind": "gpu_lost", "detail": text, "gpu": None, "line": line})
    for line, when, text in marks:
        timestamp = pd.NaT if when is None else pd.Timestamp(when, tz=zone)
        events.append({"time": timestamp, "kind": "mark", "detail": text, "gpu": None, "line": line})
    return pd.DataFrame(events).assign(path=path)
