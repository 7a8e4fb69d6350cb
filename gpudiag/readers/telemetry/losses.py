"""The event that a log of metrics itself can show: the driver lost a GPU."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

_SAID = re.compile(r"GPU is lost|fallen off the bus|[Uu]nable to determine the device handle")


def gpu_losses(
    stamps: Any,
    gpu: pd.Categorical,
    lines: np.ndarray,
    lost: np.ndarray,
    others: Sequence[tuple[int, str]],
    path: str,
) -> pd.DataFrame | None:
    """Rows of table ``events``: the first of each run of a GPU's rows that say it is lost, and lines that say so.

    Args:
        stamps: time of each row.
        gpu: id of each row; rows of one GPU stand together, in the order of the file.
        lines: line number of each row.
        lost: numbers of the lines whose cells say that the GPU is lost.
        others: number and text of the lines that are no rows.
        path: name of the file.
    """
    said = [(line, text.strip()) for line, text in others if _SAID.search(text)]
    if not len(lost) and not said:
        return None
    time = pd.Series(stamps)
    hit = np.isin(lines, lost)
    same = np.append(False, gpu.codes[1:] == gpu.codes[:-1])
    firsts = np.flatnonzero(hit & ~(np.append(False, hit[:-1]) & same))
    events = [
        {"time": time[at], "kind": "gpu_lost", "detail": "[GPU is lost]", "gpu": gpu[at], "line": lines[at]}
        for at in firsts.tolist()
    ]
    for line, text in said:
        above = np.where(lines < line, lines, -1)
        stamp = time[int(above.argmax())] if (above >= 0).any() else pd.NaT
        events.append({"time": stamp, "kind": "gpu_lost", "detail": text, "gpu": None, "line": line})
    return pd.DataFrame(events).assign(path=path)
