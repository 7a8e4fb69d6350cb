"""The worker that ran each trial, as the study or a log names it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag._run.tables import RunTables

COLUMNS = ("worker", "user_attrs.worker", "user_attrs.worker_id", "user_attrs.worker_name", "user_attrs.slot")
"""Where a record names the worker, the surest first."""
LEAST_TRIALS = 3
"""Names with fewer trials each are processes that one trial ran in, and no workers."""


def worker_names(run: RunTables) -> pd.Series:
    """A name by row of ``run.trials``, missing where nothing names it.

    Log lines such as "w0 trial 3 started" count where only one study has that trial and they agree on it.
    """
    names = pd.Series(np.nan, run.trials.index, dtype=object)
    for column in COLUMNS:
        if column in run.trials:
            names = names.fillna(run.trials[column].astype(object))
    if names.notna().all() or run.events.empty or not {"worker", "trial"} <= set(run.events):
        return names
    said = run.events.dropna(subset=["worker", "trial"]).groupby("trial")["worker"].agg(["nunique", "first"])
    alone = ~run.trials["trial"].duplicated(keep=False)
    return names.fillna(run.trials["trial"].map(said.loc[said["nunique"] == 1, "first"]).where(alone).astype(object))


def are_workers(names: np.ndarray) -> bool:
    """Whether names tell the workers: each trial has one, and they are no names of processes."""
    return bool(pd.notna(names).all()) and len(names) >= LEAST_TRIALS * len(set(names.tolist()))
