"""Why trials failed of which the study keeps no text: what a log says that names them, or that they reported NaN."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from gpudiag._run.failure_text import is_failure_text
from gpudiag.readers._batches.log_lines import FAILURES, TRIAL_FAILED
from gpudiag.run import Run

NAN_REPORTED = "its last reported value is nan"
"""Optuna fails a trial that returns NaN, and keeps no text of it."""
NEAR_S = 60.0
"""A log names the failure of a trial within so much of its time; else it is of another study's trial of that number."""


def with_logged_failures(run: Run) -> Run:
    """The run with such texts as ``detail`` of trials that failed without one."""
    trials = run.trials
    texts = [name for name in trials if is_failure_text(str(name))]
    bare = trials[(trials["state"] == "FAIL") & trials[texts].isna().all(axis=1)]
    if bare.empty:
        return run
    found = _logged(run, bare)
    found = found.where(found.notna(), _nan_reported(run, bare)).dropna()
    if found.empty:
        return run
    detail = trials["detail"] if "detail" in trials else pd.Series(None, trials.index, dtype=found.dtype)
    return replace(run, trials=trials.assign(detail=detail.where(detail.notna(), found)))


def _logged(run: Run, bare: pd.DataFrame) -> pd.Series:
    """What a log says of each; a log names a trial by its number alone, which only one study may have."""
    none = pd.Series(None, bare.index, dtype=object)
    if "trial" not in run.events or run.trials["study"].nunique() != 1:
        return none
    said = run.events[run.events["kind"].isin((TRIAL_FAILED, *FAILURES)) & run.events["trial"].notna()]
    both = bare.reset_index(names="row").merge(said, on="trial", suffixes=("", "_said"))
    near = pd.Timedelta(seconds=NEAR_S)
    elsewhere = (both["time"] < both["start"] - near) | (both["time"] > both["end"] + near)
    told = both[~elsewhere].drop_duplicates("row", keep="last").set_index("row")
    text = told["detail_said" if "detail_said" in told else "detail"].astype(object)
    return none.where(~none.index.isin(text.index), text)


def _nan_reported(run: Run, bare: pd.DataFrame) -> pd.Series:
    """For each whose last report is NaN, that it is."""
    last = run.reports.sort_values("step", kind="stable").drop_duplicates(["study", "trial"], keep="last")
    broken = last.loc[last["value"].isna(), ["study", "trial"]]
    is_nan = pd.MultiIndex.from_frame(bare[["study", "trial"]]).isin(pd.MultiIndex.from_frame(broken))
    return pd.Series(NAN_REPORTED, bare.index, dtype=object).where(is_nan)
