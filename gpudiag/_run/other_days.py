"""Logs of trainings of other days than the telemetry, which are no part of a run that has a log of its own days."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

import numpy as np
import pandas as pd

from gpudiag._run.tables import R

FAR = pd.Timedelta(days=1)
"""Beyond any difference between the clocks of two time zones."""
ANEW = 2.0
"""A training whose first line is within so many of its usual strides began at its first step."""
NOTE = "{name}: left out, for its training lies more than a day away from the telemetry, which other logs meet."


def without_logs_of_other_days(run: R) -> R:
    """The run without the lines of logs that lie more than a day before or behind all telemetry, each named by a note.

    All stay where no other log meets the telemetry, where one that does was resumed (it may go on with an earlier
    log's training), and where the run has trials, of which telemetry may show a part.
    """
    if run.steps.empty or run.gpu.empty or len(run.trials):
        return run
    seen = run.gpu["time"]
    spans = run.steps.groupby("path")["time"].agg(["min", "max"]).dropna()
    far = spans[(spans["max"] < seen.min() - FAR) | (spans["min"] > seen.max() + FAR)].index
    meets = spans[(spans["max"] >= seen.min()) & (spans["min"] <= seen.max())].index
    if not len(far) or not len(meets):
        return run
    if not all(_began_anew(lines) for _, lines in run.steps[run.steps["path"].isin(meets)].groupby("path")):
        return run
    notes = [NOTE.format(name=PurePath(str(path)).name) for path in far]
    steps = run.steps[~run.steps["path"].isin(far)].reset_index(drop=True)
    return replace(run, steps=steps, info=replace(run.info, notes=(*run.info.notes, *notes)))


def _began_anew(lines: pd.DataFrame) -> bool:
    """Whether a log begins with the first steps of a training."""
    first = lines.sort_values("line").iloc[0]
    own = lines[lines["series"] == first["series"]].sort_values("line")
    ahead = np.diff(own["step"].to_numpy(float))
    stride = float(np.median(ahead[ahead > 0])) if (ahead > 0).any() else 0.0
    epoch = first.get("epoch", pd.NA)
    return bool(first["step"] <= ANEW * stride) and bool(pd.isna(epoch) or epoch <= 1)
