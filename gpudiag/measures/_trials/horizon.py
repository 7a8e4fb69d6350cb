"""Until when a trial without an end may have lived."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
import pandas as pd

from gpudiag._run.allocated_gpus import are_jobs
from gpudiag.measures._time.microseconds import NEVER, SECOND_US, after, microseconds, utc
from gpudiag.measures._time.trial_intervals import HANDOVER_US, intervals_of, is_open, ran_until, trial_names
from gpudiag.measures.attribution import measure_attribution
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT, dtype

STALE_FACTOR = 5
"""Optuna takes a RUNNING trial for alive while it is younger than 5 x the longest finished one
(optuna/visualization/_timeline.py)."""
BEAT_S = 60.0
"""Between two heartbeats where no ended trial shows it: the interval that Optuna's documentation takes."""
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
    """Its GPUs were not active in the last IDLE_S or more of the telemetry."""
    CROWDED = "crowded"
    """A trial started though with it as many ran as were configured."""
    BEYOND = "beyond"
    """A trial started though with it as many ran as ever ran at once around then, where nothing was configured."""
    SILENT = "silent"
    """Its heartbeats stopped."""
    MARKED = "marked"
    """Somebody marked it FAIL, which nothing else shows to be its end."""
    FREED = "freed"
    """Memory of its GPU was freed though no other trial ended."""


def open_trials(run: Run) -> pd.DataFrame:
    """study, trial, name, state, start, last_evidence, horizon, reason, abandoned of every trial with a start and no
    end.

    It lived at least until ``last_evidence`` (its start, its last heartbeat, its last report where that has a time, or
    the moment of which a scheduler's list says that it was running)
    and at most until ``horizon``: the last timestamp of the run, or earlier where its worker took another trial,
    its process left the GPU, its GPUs went idle for good, its heartbeats stopped, or Optuna itself would call it dead.
    ``abandoned``: a RUNNING trial of which something other than the end of the record says that it is dead;
    ``reason``, a :class:`Sign`, says what.
    """
    intervals = intervals_of(run)
    rows = intervals[is_open(intervals)]
    start = microseconds(rows["start"])
    signs = _signs(run, intervals, rows, start) if len(rows) else {Sign.END: start}  # most runs have none to look for
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


def _signs(run: Run, intervals: pd.DataFrame, rows: pd.DataFrame, start: np.ndarray) -> dict[Sign, np.ndarray]:
    """When each open trial may have ended, by each sign; NEVER where it says nothing."""
    return {
        Sign.END: np.full(len(rows), _last_timestamp(run, intervals)),
        Sign.STALE: np.where(are_jobs(run.trials).iloc[rows.index], NEVER, _stale(intervals, rows, start)),
        Sign.REUSED: _next_on_worker(run.trials, intervals)[is_open(intervals).to_numpy()],
        Sign.VANISHED: _vanished(run, rows),
        Sign.IDLE: quiet_since(run, IDLE_S),
        Sign.SILENT: _silent(run.trials, intervals, rows),
        Sign.MARKED: _moments(run.trials, rows, "marked"),
    }


def _moments(trials: pd.DataFrame, rows: pd.DataFrame, column: str) -> np.ndarray:
    """A time of each open trial (µs); NEVER where it is unknown."""
    if column not in trials:
        return np.full(len(rows), NEVER)
    found = trials[column].iloc[rows.index]
    return np.where(found.notna(), microseconds(found), NEVER)


def _silent(trials: pd.DataFrame, intervals: pd.DataFrame, rows: pd.DataFrame) -> np.ndarray:
    """The latest moment before the next heartbeat of each open trial was due, as ended trials show; else NEVER.

    Only where others go on for another such time: what the record ends with may still have run.
    """
    last = _moments(trials, rows, "last_seen")
    if (last == NEVER).all():
        return last
    seen = trials["last_seen"].reset_index(drop=True)
    every = int(BEAT_S * SECOND_US)
    if (known := intervals["known"] & intervals["state"].isin(["COMPLETE", "PRUNED"]) & seen.notna()).any():
        every = int((intervals["end"] - seen)[known].dt.total_seconds().max() * SECOND_US)
    signs = pd.concat([intervals["start"], intervals["end"], seen]).max()
    latest = int(microseconds(pd.Series([signs]))[0])
    due = np.where(last == NEVER, NEVER, np.minimum(last, NEVER - 2 * every) + every)
    return np.where(due + every <= latest, due, NEVER)


def _last_timestamp(run: Run, intervals: pd.DataFrame) -> int:
    """The end of observation: the last timestamp of trials, reports and, on the same clock, telemetry; else NEVER."""
    known = [intervals["start"], intervals["end"], ran_until(run.trials)]
    if "time" in run.reports:
        known.append(run.reports["time"])
    if run.info.clock.joined:
        known += [run.gpu["time"], run.processes["time"]]
    last = pd.Series([column.max() for column in known], dtype=dtype("time")).max()
    return NEVER if pd.isna(last) else int(microseconds(pd.Series([last]))[0])


def _stale(intervals: pd.DataFrame, rows: pd.DataFrame, start: np.ndarray) -> np.ndarray:
    """When each open trial is too old, by the finished trials of its own study; NEVER where it has none."""
    longest = intervals[intervals["known"]].groupby("study")["duration_s"].max()
    return after(start, STALE_FACTOR * rows["study"].map(longest[longest > 0]).astype(float))


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


@memoized
def _quiet(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """When the GPUs of each open trial (all, where they are not known) were last active (µs), and for how many seconds
    after that all of them are recorded; NaN seconds where nothing is known of it.
    """
    intervals = intervals_of(run)
    rows = intervals.index[is_open(intervals)]
    if not run.info.clock.joined or "util_pct" not in run.gpu or not len(rows):
        return np.full(len(rows), NEVER), np.full(len(rows), np.nan)
    seen = run.gpu[run.gpu["util_pct"].notna()]
    known = seen.groupby("gpu")["time"].max()
    active = seen[seen["util_pct"] >= IDLE_PCT].groupby("gpu")["time"].max()
    where = measure_attribution(run).trials
    gpus = where["gpu"].where(where["confidence"] == "strong").iloc[rows]
    found: dict[object, tuple[int, float]] = {}
    for names in gpus.unique():
        own = list(known.index) if pd.isna(names) else str(names).split(",")
        last, until = active.reindex(own).max(), known.reindex(own).min(skipna=False)
        if pd.notna(last) and pd.notna(until):
            found[names] = (int(microseconds(pd.Series([last]))[0]), (until - last).total_seconds())
        else:
            found[names] = (NEVER, np.nan)
    at, for_s = zip(*(found[name] for name in gpus), strict=True)
    return np.array(at, np.int64), np.array(for_s, float)


def quiet_since(run: Run, for_s: float) -> np.ndarray:
    """When the GPUs of each open trial were last active (µs), if all of them are recorded for ``for_s`` or more after
    that; else NEVER.
    """
    last_us, quiet_s = _quiet(run)
    return np.where(quiet_s >= for_s, last_us, NEVER)


def _last_report(run: Run, rows: pd.DataFrame) -> np.ndarray:
    """Time of the last report or heartbeat of each trial, or until which it is stated to have run; else its start."""
    stated = ran_until(run.trials).loc[rows.index]
    start = microseconds(stated.where(stated > rows["start"], rows["start"]))
    beat = _moments(run.trials, rows, "last_seen")
    start = np.maximum(start, np.where(beat == NEVER, start, beat))
    if "time" not in run.reports or rows.empty:
        return start
    last = run.reports.groupby(["study", "trial"])["time"].max().rename("last").reset_index()
    found = rows[["study", "trial"]].merge(last, how="left", on=["study", "trial"])["last"]
    known = found.notna().to_numpy()
    out = start.copy()
    out[known] = np.maximum(start[known], microseconds(found.dropna()))
    return out
