"""Put the trials on the telemetry's clock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from gpudiag.run import ClockRecord, Run


def apply_clock(run: Run, record: ClockRecord) -> Run:
    """The run with ``record`` kept and its ``applied_s`` added to every timestamp that came from a trial source.

    Telemetry is never moved. Parts of a study that another version of Optuna wrote are moved by
    their own offset (``record.parts``).
    """
    info = replace(run.info, clock=record)
    if not record.applied_s and not record.parts:
        return replace(run, info=info)
    return replace(
        run,
        trials=_moved(run.trials, ("start", "end"), record),
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


def _moved(frame: pd.DataFrame, columns: tuple[str, ...], record: ClockRecord) -> pd.DataFrame:
    present = [name for name in columns if name in frame]
    if frame.empty or not present:
        return frame
    step = pd.to_timedelta(np.round(shifts_s(frame, record) * 1e6).astype("int64"), unit="us")
    return frame.assign(**{name: (frame[name] + step).astype(frame[name].dtype) for name in present})


def _moved_events(run: Run, record: ClockRecord) -> pd.DataFrame:
    """Events follow the trials' clock where they were read from a source of trials; all others stay."""
    events = run.events
    if events.empty or "path" not in events or "source" not in run.studies:
        return events
    same_source = events["path"].isin(run.studies["source"].dropna()).to_numpy(dtype=bool)
    step = pd.to_timedelta(np.where(same_source, round(record.applied_s * 1e6), 0).astype("int64"), unit="us")
    return events.assign(time=(events["time"] + step).astype(events["time"].dtype))
