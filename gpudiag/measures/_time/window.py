"""Which time a ledger accounts for, and which trials and samples fall on which GPU."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.measures._gpu.gpu_rows import gpu_order
from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures._time.timeline import Samples
from gpudiag.measures._time.trial_intervals import intervals_of, is_open, ran_until
from gpudiag.measures._trials.abandoned import find_open_trials
from gpudiag.measures._trials.outcomes import outcomes_of
from gpudiag.measures.attribution import AttributionProfile
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.spans import Window, union


@dataclass(frozen=True)
class TimedTrials:
    """``rows`` (index: row of ``run.trials``): study, trial, outcome (one of OUTCOMES), open, goes_on (a job that
    its scheduler said was running). Times in µs.
    """

    rows: pd.DataFrame
    start_us: np.ndarray
    end_us: np.ndarray

    def at(self, places: np.ndarray) -> TimedTrials:
        """Those at some positions."""
        return TimedTrials(self.rows.iloc[places], self.start_us[places], self.end_us[places])


@memoized
def timed_trials(run: Run) -> TimedTrials:
    """Trials with a start and an end; open ones end where they most likely did (see ``find_open_trials``)."""
    intervals = intervals_of(run)
    closed = intervals.loc[intervals["known"], ["study", "trial", "state", "start", "end"]].assign(open=False)
    opens = find_open_trials(run)
    ended = opens.set_axis(intervals.index[is_open(intervals)])
    ended["state"] = outcomes_of(run)[ended.index]
    rows = pd.concat([closed, ended[["study", "trial", "state", "start", "end"]].assign(open=True)]).sort_index()
    goes_on = ran_until(run.trials).notna().reindex(rows.index, fill_value=False)
    rows = rows.rename(columns={"state": "outcome"}).assign(goes_on=goes_on.to_numpy(bool))
    return TimedTrials(
        rows[["study", "trial", "outcome", "open", "goes_on"]], microseconds(rows["start"]), microseconds(rows["end"])
    )


def study_windows(trials: TimedTrials) -> list[Window]:
    """First start to last end of each study, joined where they overlap.

    An open trial extends the window of its study only where no trial has an end, since nobody knows how long it really
    ran, or where a scheduler said that it was running. Studies apart in time leave the time between them out of the
    ledger.
    """
    spans = []
    for _, place in trials.rows.groupby("study", sort=False).indices.items():
        start, end = trials.start_us[place], trials.end_us[place]
        ended = end[(~trials.rows["open"] | trials.rows["goes_on"]).to_numpy()[place]]
        last = max(int(ended.max()), int(start.max())) if len(ended) else int(end.max())
        if last > start.min():
            spans.append((int(start.min()), last))
    return union(spans)


def telemetry_windows(samples: dict[str, Samples]) -> list[Window]:
    """From the first to the last observed instant of any GPU."""
    known = [part for part in samples.values() if len(part.time_us) > 1]
    return [(min(int(s.start_us[0]) for s in known), max(int(s.end_us[-1]) for s in known))] if known else []


def places_by_gpu(trials: TimedTrials, where: AttributionProfile, gpus: list[str]) -> dict[str, np.ndarray]:
    """Positions in ``trials`` of those that are known to have run on each GPU."""
    gpu_of = where.trials["gpu"].iloc[trials.rows.index]
    out = {gpu: np.zeros(0, np.int64) for gpu in gpus}
    for names, places in gpu_of.groupby(gpu_of).indices.items():
        for gpu in str(names).split(","):
            out[gpu] = np.sort(np.concatenate([out.get(gpu, places[:0]), places]))
    return {gpu: out[gpu] for gpu in gpu_order(out)}


def maybe_by_gpu(trials: TimedTrials, where: AttributionProfile) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Positions in ``trials`` of those that may have run on each GPU, and the chance; alike where nothing tells."""
    own = trials.rows[["study", "trial"]].reset_index(drop=True).rename_axis("position").reset_index()
    both = where.maybe.merge(own, on=["study", "trial"])
    alike = 1 / both.groupby(["study", "trial"])["gpu"].transform("size")
    both["chance"] = both["chance"].fillna(alike)
    return {
        str(gpu): (part["position"].to_numpy(np.int64), part["chance"].to_numpy(float))
        for gpu, part in both.sort_values("position").groupby("gpu")
    }
