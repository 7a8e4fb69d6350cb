"""The step that a log told of last before an error: what a line without a timestamp is placed by."""

from __future__ import annotations

import numpy as np
import pandas as pd


def last_above(lines: pd.DataFrame, events: pd.DataFrame) -> np.ndarray:
    """By event the place in ``lines`` of the last line above it in its file; -1 where there is none. Both have ``path``
    and ``line``.
    """
    found = np.full(len(events), -1)
    known = events.assign(place=np.arange(len(events))).dropna(subset=["path", "line"])
    of_file = lines.reset_index(drop=True).dropna(subset=["path", "line"]).groupby("path", observed=True)
    for path, own in known.groupby("path", observed=True):
        if path not in of_file.groups:
            continue
        told = of_file.get_group(path)["line"].sort_values(kind="stable")
        above = np.searchsorted(told.to_numpy(np.int64), own["line"].to_numpy(np.int64)) - 1
        found[own["place"]] = np.where(above >= 0, told.index.to_numpy()[above], -1)
    return found
