"""When each trial lived, and until when a trial without an end may have lived."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import pandas as pd

from gpudiag.measures._time.microseconds import NEVER, SECOND_US, microseconds, utc
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT, dtype

STALE_FACTOR = 5
"""Optuna takes a RUNNING trial for alive while it is younger than 5 x the longest finished one
(optuna/visualization/_timeline.py)."""
HANDOVER_US = 2 * SECOND_US
IDLE_S = 600.0
VANISHED_S = 60.0


class Sign(StrEnum):
    """What the latest end of a trial without an end follows from."""

    END = "end"
    """Nothing shows that it ended; it counts to the last timestamp of the run."""
    STALE = "stale"
    """Older than STALE_FACTOR times the longest finished trial of its study."""
    REUSED = "reused"
    """Its worker started another trial."""
    VANISHED = "vanished"
    """Its process left the GPU."""
    IDLE = "idle"
    """No GPU was active in the last IDLE_S or more of the telemetry."""
    CROWDED = "crowded"
    """With it more trials would have run at once than were configured."""


def trial_intervals(trials: pd.DataFrame) -> pd.DataFrame:
    """study, trial, state, start, end, duration_s, known of every trial, in the order given.

    A start or an end that is missing is filled from the stated duration. ``known`` is True where start
    and end are known and in order; a trial that ends before it starts (a clock fault) has no duration. What is WAITING
    has not lived, whatever timestamps it has.
    """
    out = trials[["study", "trial", "state", "start", "end"]].reset_index(drop=True)
    stated = trials["duration_s"].reset_index(drop=True) if "duration_s" in trials else pd.Series(np.nan, out.index)
    with np.errstate(over="ignore"):  # pandas 2.2 rounds what it never set where a duration is unknown
        length = pd.to_timedelta(stated, unit="s")
    out["end"] = out["end"].fillna((out["start"] + length).astype(dtype("time")))
    out["start"] = out["start"].fillna((out["end"] - length).astype(dtype("time")))
    lived = (out["end"] - out["start"]).dt.total_seconds()
    out["duration_s"] = lived.fillna(stated).where(~(lived < 0))
    out["known"] = (lived >= 0) & ~out["state"].isin(["WAITING"])
    return out


def trial_names(trials: pd.DataFrame, *, several: bool | None = None) -> pd.Series:
    """What to call each trial: its number, with its study before it where there are ``several`` ("study/7")."""
    several = trials["study"].nunique() > 1 if several is None else several
    names = [
        f"{study}/{trial}" if several else str(trial)
        for study, trial in zip(trials["study"], trials["trial"], strict=True)
    ]
    return pd.Series(names, trials.index, dtype=object)


def open_trials(run: Run) -> pd.DataFrame:
    """study, trial, name, state, start, last_evidence, horizon, reason, abandoned of every trial with a start and no
    end.

    It lived at least until ``last_evidence`` (its start, or its last report where reports carry times)
    and at most until ``horizon``: the last timestamp of the run, or earlier where its worker took another trial,
    its process left the GPU, every GPU went idle for good, or Optuna itself would call it dead.
    ``abandoned``: a RUNNING trial of which something other than the end of the record says that it is dead;
    ``reason``, a :class:`Sign`, says what.
    """
    intervals = trial_intervals(run.trials)
    is_open = intervals["start"].notna() & intervals["end"].isna() & (intervals["state"] != "WAITING")
    rows = intervals[is_open]
    start = microseconds(rows["start"])
    signs = {
        Sign.END: np.full(len(rows), _last_timestamp(run, intervals)),
        Sign.STALE: _stale(intervals, rows, start),
        Sign.REUSED: _next_on_worker(run.trials, intervals)[is_open.to_numpy()],
        Sign.VANISHED: _vanished(run, rows),
        Sign.IDLE: np.full(len(rows), _idle_since(run)),
    }
    # A sign from before the trial began says nothing about it.
    at = np.column_stack([np.where(timestamps >= start, timestamps, NEVER) for timestamps in signs.values()])
    which = at.argmin(axis=1)
    horizon = at[np.arange(len(rows)), which]
    out = rows.assign(name=trial_names(rows, several=intervals["study"].nunique() > 1))[
        ["study", "trial", "name", "state", "start"]
    ].reset_index(drop=True)
    out["last_evidence"] = utc(np.minimum(_last_report(run, rows), horizon))
    out["horizon"] = utc(horizon)
    out["reason"] = pd.Series([list(signs)[i].value for i in which], dtype=object)
    out["abandoned"] = (which != 0) & (out["state"] == "RUNNING").to_numpy()
    return out


def _last_timestamp(run: Run, intervals: pd.DataFrame) -> int:
    """The end of observation: the last timestamp of trials, reports and, on the same clock, telemetry; else NEVER."""
    known = [intervals["start"], intervals["end"]]
    if "time" in run.reports:
        known.append(run.reports["time"])
    if run.info.clock.joined:
        known += [run.gpu["time"], run.processes["time"]]
    last = pd.Series([column.max() for column in known], dtype=dtype("time")).max()
    return NEVER if pd.isna(last) else int(microseconds(pd.Series([last]))[0])


def _stale(intervals: pd.DataFrame, rows: pd.DataFrame, start: np.ndarray) -> np.ndarray:
    """When each open trial is too old, by the finished trials of its own study; NEVER where it has none."""
    longest = intervals[intervals["known"]].groupby("study")["duration_s"].max()
    own = rows["study"].map(longest).to_numpy(float)
    out = np.full(len(rows), NEVER)
    out[own > 0] = start[own > 0] + (STALE_FACTOR * own[own > 0] * SECOND_US).astype(np.int64)
    return out


def _next_on_worker(trials: pd.DataFrame, intervals: pd.DataFrame) -> np.ndarray:
    """Start of the next trial on the same worker, for workers that run one trial at a time; else NEVER."""
    out = np.full(len(intervals), NEVER)
    if "worker" not in trials:
        return out
    frame = intervals.assign(worker=trials["worker"].to_numpy())
    frame = frame[frame["worker"].notna() & frame["start"].notna()].sort_values(["worker", "start", "study", "trial"])
    start = pd.Series(microseconds(frame["start"]), frame.index)
    end = pd.Series(0, frame.index)
    end[frame["known"]] = microseconds(frame.loc[frame["known"], "end"])
    before = end.groupby(frame["worker"]).cummax().groupby(frame["worker"]).shift(fill_value=0)
    shared = (before > start + HANDOVER_US).groupby(frame["worker"]).transform("any")
    following = start.groupby(frame["worker"]).shift(-1, fill_value=NEVER)
    usable = ~shared & (following > start)
    out[frame.index[usable]] = following[usable]
    return out


def _vanished(run: Run, rows: pd.DataFrame) -> np.ndarray:
    """Last time that the trial's process was seen on a GPU, where the record of processes goes on after it."""
    if not run.info.clock.joined or "pid" not in run.trials or run.processes.empty:
        return np.full(len(rows), NEVER)
    seen = run.processes.dropna(subset=["pid", "time"]).groupby("pid")["time"].max()
    seen = seen[seen <= run.processes["time"].max() - pd.Timedelta(seconds=VANISHED_S)]
    found = seen.reindex(run.trials["pid"].iloc[rows.index])
    out = np.full(len(rows), NEVER)
    out[found.notna().to_numpy()] = microseconds(found.dropna())
    return out


def _idle_since(run: Run) -> int:
    """When the last GPU went idle, if the telemetry then goes on for IDLE_S or more; else NEVER."""
    if not run.info.clock.joined or "util_pct" not in run.gpu:
        return NEVER
    active = run.gpu.loc[run.gpu["util_pct"] > IDLE_PCT, "time"].max()
    known = run.gpu.loc[run.gpu["util_pct"].notna(), "time"].max()
    if pd.isna(active) or (known - active).total_seconds() < IDLE_S:
        return NEVER
    return int(microseconds(pd.Series([active]))[0])


def _last_report(run: Run, rows: pd.DataFrame) -> np.ndarray:
    """Time of the last report of each trial, its start where none carries a time."""
    start = microseconds(rows["start"])
    if "time" not in run.reports or rows.empty:
        return start
    last = run.reports.groupby(["study", "trial"])["time"].max().rename("last").reset_index()
    found = rows[["study", "trial"]].merge(last, how="left", on=["study", "trial"])["last"]
    known = found.notna().to_numpy()
    out = start.copy()
    out[known] = np.maximum(start[known], microseconds(found.dropna()))
    return out
