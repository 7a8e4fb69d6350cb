"""GPUs that are no longer listed: the rows of one end for good, while those of others on its host go on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.measures._gpu.event_gpus import NOTICED_S, SILENT_PERIODS, period_of
from gpudiag.measures._trials.error_texts import short_error
from gpudiag.readers._batches.log_lines import ENDINGS
from gpudiag.run import Run

MIN_S = 60.0
"""Without an error others are listed for so long behind it: recorders do not end with all GPUs at one moment (a default
without a published source)."""
ERRORS = tuple(kind for kind in ENDINGS if kind not in ("time_limit", "canceled", "exited"))
"""What a program meets where its GPU is lost; a job that is ended is another matter."""


class Vanished(NamedTuple):
    """``last``: its last row; ``unlisted_s``: for so long others were listed behind it; ``error``: what a log tells of
    at that moment, '' without one.
    """

    gpu: str
    last: pd.Timestamp
    unlisted_s: float
    error: str


class _Error(NamedTuple):
    """An error between two times, in seconds since 1970: its own, or those of the line above it and the next."""

    low_s: float
    high_s: float
    text: str


def vanished(run: Run) -> pd.DataFrame:
    """The fields of :class:`Vanished` by GPU. One whose others went silent at the same moment is none: another
    recording begins there.
    """
    errors: list[_Error] | None = None
    found = []
    for gpu, at_s, others in _beside(run.gpu):
        last_s, period_s = float(at_s[-1]), period_of(at_s)
        unlisted_s = max(float(other[-1]) for other in others) - last_s
        if not unlisted_s > SILENT_PERIODS * period_s or not any(_goes_on(other, last_s, period_s) for other in others):
            continue
        errors = list(_errors(run)) if errors is None else errors
        slack_s = 2 * period_s + NOTICED_S
        text = next((one.text for one in errors if one.low_s - slack_s <= last_s <= one.high_s + slack_s), "")
        if text or unlisted_s >= MIN_S:
            found.append(Vanished(gpu, pd.Timestamp(last_s, unit="s", tz="UTC").round("ms"), unlisted_s, text))
    table = pd.DataFrame(found, columns=list(Vanished._fields)).set_index("gpu")
    return table.assign(last=pd.to_datetime(table["last"], utc=True)).astype({"unlisted_s": float})


def _beside(gpu: pd.DataFrame) -> Iterator[tuple[str, np.ndarray, list[np.ndarray]]]:
    """Each GPU with the times of its rows, in seconds, and those of the others on its host."""
    rows = gpu[gpu["time"].notna()]
    at_s = (rows["time"] - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    times = {str(name): np.sort(own.to_numpy(float)) for name, own in at_s.groupby(rows["gpu"].astype(str))}
    for name, own in times.items():
        others = [time for other, time in times.items() if other != name and _host(other) == _host(name)]
        if others and len(own) > SILENT_PERIODS:
            yield name, own, others


def _host(gpu: str) -> str:
    return gpu.rpartition("/")[0]


def _goes_on(at_s: np.ndarray, last_s: float, period_s: float) -> bool:
    """Whether rows follow at once, as many as would be missed."""
    reach_s = last_s + 2 * SILENT_PERIODS * period_s
    return int(((at_s > last_s) & (at_s <= reach_s)).sum()) >= SILENT_PERIODS


def _errors(run: Run) -> Iterator[_Error]:
    """Where a line has no timestamp, between the last one above it and the next that would have come."""
    events = run.events[run.events["kind"].isin(ERRORS)].reindex(columns=["time", "detail", "path", "line"])
    steps = run.steps.reindex(columns=["time", "path", "line"]).dropna(subset=["time"])
    for event in events.itertuples(index=False):
        above = steps["time"][(steps["path"] == event.path) & (steps["line"] < event.line)]
        known = above if pd.isna(event.time) else pd.Series([event.time])
        if len(known):
            at_s = np.sort((known - pd.Timestamp(0, tz="UTC")).dt.total_seconds().to_numpy(float))
            yield _Error(at_s[-1], at_s[-1] + period_of(at_s), short_error(str(event.detail)).rstrip("."))
