"""Put the trials on the telemetry's clock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from gpudiag.run import ClockRecord, ClockStep, Run


def apply_clock(run: Run, record: ClockRecord) -> Run:
    """The run with ``record`` kept and its ``applied_s`` added to every timestamp that came from a trial source.

    Telemetry is never moved. Parts of a study that another version of Optuna wrote are moved by
    their own offset (``record.parts``), times behind a step of the clock also by that.
    """
    info = replace(run.info, clock=record)
    if not record.applied_s and not record.parts and record.step is None:
        return replace(run, info=info)
    return replace(
        run,
        trials=_moved(run.trials, ("start", "end", "last_seen", "marked"), record),
        reports=_moved(run.reports, ("time",), record),
        events=_moved_events(run, record),
        info=info,
    )


def shifts_s(frame: pd.DataFrame, record: ClockRecord) -> np.ndarray:
    """Seconds to add to each row of a table keyed by ``study`` and ``trial``."""
    shift = np.full(len(frame), record.applied_s)
    for study, first_trial, offset_s in record.parts:
        rows = (frame["study"] == study) & (frame["trial"] >= first_trial)
        shift[rows.to_numpy(dtype=bool)] = offset_s
    return shift


def as_stated(frame: pd.DataFrame, columns: tuple[str, ...], record: ClockRecord) -> pd.DataFrame:
    """The table with the times of these columns as they were before the record was applied."""
    back = later(frame, columns, -shifts_s(frame, record))
    step = record.step
    return back if step is None else behind(back, columns, replace(step, at_s=step.at_s - step.size_s), step.size_s)


def _moved(frame: pd.DataFrame, columns: tuple[str, ...], record: ClockRecord) -> pd.DataFrame:
    """The table with these times on the telemetry's clock."""
    step = record.step
    own = frame if step is None else behind(frame, columns, step, -step.size_s)
    return later(own, columns, shifts_s(frame, record))


def later(frame: pd.DataFrame, columns: tuple[str, ...], by_s: np.ndarray) -> pd.DataFrame:
    """The table with so many seconds added to these times of each row."""
    present = [name for name in columns if name in frame]
    if frame.empty or not present:
        return frame
    step = pd.to_timedelta(np.round(by_s * 1e6).astype("int64"), unit="us")
    return frame.assign(**{name: (frame[name] + step).astype(frame[name].dtype) for name in present})


def behind(frame: pd.DataFrame, columns: tuple[str, ...], step: ClockStep, by_s: float) -> pd.DataFrame:
    """The table with so many seconds added to all times behind a step that was taken out."""
    for name in columns if step.moved else ():
        if name in frame:
            after = (frame[name] >= pd.Timestamp(step.at_s, unit="s", tz="UTC")).to_numpy(dtype=bool)
            frame = later(frame, (name,), np.where(after, by_s, 0.0))
    return frame


def _moved_events(run: Run, record: ClockRecord) -> pd.DataFrame:
    """Events follow the trials' clock where they were read from a source of trials; all others stay."""
    events = run.events
    if events.empty or "path" not in events or "source" not in run.studies:
        return events
    same_source = events["path"].isin(run.studies["source"].dropna()).to_numpy(dtype=bool)
    moved = _moved(events, ("time",), replace(record, parts=()))
    return events.assign(time=events["time"].where(~same_source, moved["time"]))
