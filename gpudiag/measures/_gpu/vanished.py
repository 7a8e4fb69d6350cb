"""GPUs that are no longer listed: the rows of one end for good, while those of others on its host go on."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.measures._gpu.event_gpus import NOTICED_S, SILENT_PERIODS, period_of, seconds_by_gpu
from gpudiag.measures._steps.lines_above import last_above
from gpudiag.measures._trials.error_texts import short_error
from gpudiag.readers._batches.log_lines import ENDINGS
from gpudiag.run import Run

MIN_S = 60.0
"""Without an error others are listed for so long behind it: recorders do not end with all GPUs at one moment (a default
without a published source)."""
LOST = re.compile(
    r"(?i)\bCUDA (?:driver )?(?:error|failure)\b.{0,40}\bunknown error\b|\bcuda(?:_error_?|error)unknown\b"
    r"|\bunspecified launch failure\b|\bcuda(?:_error_launch_failed|errorlaunchfailure)\b"
    r"|\bno CUDA-capable device is detected\b|\bcuda(?:_error_no_device|errornodevice)\b"
    r"|\bunable to determine the device handle\b"
)
"""What the driver and CUDA tell a program whose GPU is lost. Programs that run out of memory, are killed or fail by
themselves say other things, and theirs is no lost GPU."""


class Vanished(NamedTuple):
    """``last``: its last row; ``unlisted_s``: for so long others were listed behind it; ``error``: of the driver or
    CUDA, which a log tells of at that moment, '' without one or where no one recording lists the others on.
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
    for gpu, at_s, others in _beside(run):
        last_s, period_s = float(at_s[-1]), period_of(at_s)
        unlisted_s = max(float(other[-1]) for other in others.values()) - last_s
        on = [name for name, other in others.items() if _goes_on(other, last_s, period_s)]
        if not unlisted_s > SILENT_PERIODS * period_s or not on:
            continue
        errors = list(_errors(run)) if errors is None else errors
        slack_s = 2 * period_s + NOTICED_S
        text = next((one.text for one in errors if one.low_s - slack_s <= last_s <= one.high_s + slack_s), "")
        if text and not _in_one_recording(run, gpu, on, last_s, last_s + SILENT_PERIODS * period_s):
            text = ""
        if text or unlisted_s >= MIN_S:
            last = pd.Timestamp(last_s, unit="s", tz="UTC").round("ms")
            found.append(Vanished(gpu, last, unlisted_s, short_error(text).rstrip(".")))
    table = pd.DataFrame(found, columns=list(Vanished._fields)).set_index("gpu")
    return table.assign(last=pd.to_datetime(table["last"], utc=True)).astype({"unlisted_s": float})


def _beside(run: Run) -> Iterator[tuple[str, np.ndarray, Mapping[str, np.ndarray]]]:
    """Each GPU that others on its host outlast, with the times of its rows, in seconds, and those of these by name."""
    times = seconds_by_gpu(run, np.ones(len(run.gpu), bool))
    for name, own in times.items():
        others = {other: time for other, time in times.items() if other != name and _host(other) == _host(name)}
        if len(own) > SILENT_PERIODS and any(time[-1] > own[-1] for time in others.values()):
            yield name, own, others


def _host(gpu: str) -> str:
    return gpu.rpartition("/")[0]


def _goes_on(at_s: np.ndarray, last_s: float, period_s: float) -> bool:
    """Whether rows follow at once, as many as would be missed."""
    reach_s = last_s + 2 * SILENT_PERIODS * period_s
    return int(((at_s > last_s) & (at_s <= reach_s)).sum()) >= SILENT_PERIODS


def _in_one_recording(run: Run, gpu: str, others: list[str], last_s: float, until_s: float) -> bool:
    """Whether a file that lists the GPU and one of the others goes on behind it. Where files name GPUs by number alone,
    and those of several hosts so by the same, all that may be the one do.
    """
    files = [one for one in run.info.inputs if one.kind == "telemetry" and not _seconds(one.start) > last_s]
    exact = any(gpu in one.gpus for one in files)
    own, *beside = (gpu, *others) if exact else (name.rpartition("/")[2] for name in (gpu, *others))
    reach = [one for one in files if own in one.gpus and not _seconds(one.end) < last_s]
    go_on = [_seconds(one.end) >= until_s and not set(beside).isdisjoint(one.gpus) for one in reach]
    return any(go_on) if exact else bool(go_on) and all(go_on)


def _seconds(time: str | None) -> float:
    """Since 1970; NaN where it is unknown."""
    return (pd.Timestamp(time) - pd.Timestamp(0, tz="UTC")).total_seconds() if time else math.nan


def _errors(run: Run) -> Iterator[_Error]:
    """Where a line has no timestamp, between the last one above it and the next that would have come."""
    events = run.events[run.events["kind"].isin(ENDINGS)].reindex(columns=["time", "kind", "detail", "path", "line"])
    events = events[(events["kind"] == "gpu_lost") | events["detail"].astype(str).str.contains(LOST)]
    steps = run.steps.reindex(columns=["time", "path", "line"]).dropna(subset=["time"])
    steps = steps.assign(at_s=(steps["time"] - pd.Timestamp(0, tz="UTC")).dt.total_seconds())
    period_s = {path: period_of(np.sort(own.to_numpy(float))) for path, own in steps.groupby("path")["at_s"]}
    own_s = (events["time"] - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    for at, event_s, text, path in zip(last_above(steps, events), own_s, events["detail"], events["path"], strict=True):
        if not np.isnan(event_s):
            yield _Error(event_s, event_s, str(text))
        elif at >= 0:
            above_s = float(steps["at_s"].iloc[at])
            yield _Error(above_s, above_s + period_s[path], str(text))
