"""The clocks of a recording: the wall clock, which is set at times, by the monotonic one of each boot of a machine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl

STEP_US = 1_000_000
"""A jump of the wall clock against the monotonic one that is no slewing."""
SET_WITHIN = (
    "The clock of the machine was set while it was recorded: rows before that are shown on the clock that held at the "
    "end, by the recorder's monotonic clock."
)
SET_BETWEEN = (
    "The clock of the machine was set between two sessions: how far apart they are is not known, nor which of their "
    "times are right. Spans and coverage over both may be wrong."
)
_EPOCH = datetime(1970, 1, 1)


class Boot(NamedTuple):
    """One boot of a host, during which ``mono_s`` runs on; an empty text is unknown."""

    host: str
    boot: str


def on_one_clock(rows: Sequence[pl.DataFrame], boots: Sequence[Boot]) -> list[pl.DataFrame]:
    """The rows of each session without steps of the wall clock; sessions that name one boot share a clock."""
    out = list(rows)
    groups: dict[object, list[int]] = {}
    for at, frame in enumerate(rows):
        if len(frame):
            groups.setdefault(boots[at] if boots[at].boot else at, []).append(at)
    for own in groups.values():
        whole = _unstepped(pl.concat([rows[at] for at in own], how="diagonal"))
        edges = np.cumsum([0, *(len(rows[at]) for at in own)]).tolist()
        for at, (low, high) in zip(own, pairwise(edges), strict=True):
            out[at] = whole.slice(low, high - low)
    return out


def _unstepped(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of one boot with their times as if the wall clock had never been set.

    A clock is set because it was wrong: what it showed at the end counts, and what came before is moved by the later
    steps. Column ``stepped`` tells which rows were moved.
    """
    if "stepped" in rows.columns or "mono_s" not in rows.columns:
        return rows
    ahead = pl.col("time").dt.epoch("us") - (pl.col("mono_s") * 1e6).round().cast(pl.Int64, strict=False)
    step = ahead.forward_fill().diff().fill_null(0)
    jump = pl.when(step.abs() > STEP_US).then(step).otherwise(0)
    later = jump.sum() - jump.cum_sum()
    return rows.with_columns(
        (pl.col("time") + pl.duration(microseconds=later, time_unit="us")).alias("time"), (later != 0).alias("stepped")
    )


def said_of(frames: Sequence[pl.DataFrame], boots: Sequence[Boot]) -> list[str]:
    """Sentences on a clock that was set, within what ``on_one_clock`` has put right and beyond it."""
    within = any(frame["stepped"].any() for frame in frames if "stepped" in frame.columns)
    return [SET_WITHIN] * within + [SET_BETWEEN] * _set_between(frames, boots)


def _set_between(frames: Sequence[pl.DataFrame], boots: Sequence[Boot]) -> bool:
    """True where, by the clock of a session, the machine was up already when the one before was recorded, and had
    another time then.
    """
    known = [
        (boot.host, frame["time"].max(), _booted_us(frame))
        for frame, boot in zip(frames, boots, strict=True)
        if "mono_s" in frame.columns and frame["time"].null_count() < len(frame)
    ]
    return any(
        host == other and abs(later - booted) > STEP_US and end > _EPOCH + timedelta(microseconds=later)
        for (host, end, booted), (other, _, later) in pairwise(known)
    )


def _booted_us(frame: pl.DataFrame) -> float:
    """When the machine was booted, by the wall clock of these rows."""
    booted = (frame["time"].dt.epoch("us") - frame["mono_s"] * 1e6).median()
    return booted if isinstance(booted, float) else 0.0
