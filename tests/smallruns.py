"""Small runs made by hand for the tests of measures: times are seconds after T0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.manifest import Settings
from gpudiag.memo import MemoRun
from gpudiag.run import ClockRecord, Run, RunInfo
from gpudiag.schema import GPU, GPUS, REPORTS, STEPS, STUDIES, TRIALS, conform

T0 = pd.Timestamp("2025-10-24 19:00:00", tz="UTC")
SECOND = pd.Timedelta(seconds=1)


def at(seconds: Any) -> Any:
    """Timestamps that many seconds after T0; NaN becomes NaT."""
    return T0 + pd.to_timedelta(np.asarray(seconds, float), unit="s")


def gpu(seconds: Sequence[float], name: str = "0", **columns: Any) -> pd.DataFrame:
    """Samples of one GPU."""
    return conform(pd.DataFrame({"time": at(seconds), "gpu": name, **columns}), GPU)


def gpus(**columns: Any) -> pd.DataFrame:
    return conform(pd.DataFrame(columns), GPUS)


def trials(rows: Sequence[tuple[str, float, float]], study: str = "s", **columns: Any) -> pd.DataFrame:
    """Trials 0, 1, 2... from (state, start, end); NaN is unknown."""
    states, starts, ends = zip(*rows, strict=True)
    frame = pd.DataFrame(
        {"study": study, "trial": range(len(rows)), "state": states, "start": at(starts), "end": at(ends), **columns}
    )
    return conform(frame, TRIALS)


def reports(steps: dict[int, Sequence[int]], study: str = "s") -> pd.DataFrame:
    """Intermediate values by trial and step; the values do not matter."""
    pairs = [(trial, step) for trial, listed in steps.items() for step in listed]
    frame = pd.DataFrame(pairs, columns=["trial", "step"]).assign(study=study, value=1.0)
    return conform(frame, REPORTS)


def study(directions: str, name: str = "s") -> pd.DataFrame:
    return conform(pd.DataFrame({"study": [name], "directions": [directions]}), STUDIES)


def run(
    joined: bool = True, overrides: dict[str, Any] | None = None, settings: dict[str, Any] | None = None, **tables: Any
) -> Run:
    """Its tables are not to be edited in place: what is made of it is made once."""
    info = RunInfo(
        settings=Settings(**(settings or {})), clock=ClockRecord(joined=joined), gpu_overrides=overrides or {}
    )
    return MemoRun.of(Run(info=info, **tables))


def steps_of(
    rows: Sequence[tuple[float, int]],
    *,
    step_s: float = math.nan,
    loader_s: float = math.nan,
    since: dict[int, str] | None = None,
    path: str = "train.log",
    **more: object,
) -> pd.DataFrame:
    """A log: (seconds since T0, steps done); each line states the mean of its steps since the one before."""
    frame = pd.DataFrame(
        {
            "time": [T0 + at * SECOND for at, _ in rows],
            "step": [step for _, step in rows],
            "step_s": step_s,
            "loader_s": loader_s,
            "since": [(since or {}).get(step) for _, step in rows],
        }
    )
    frame = frame.assign(unit="step", series="steps", meant="window", path=path, line=range(len(rows)), **more)
    return conform(frame, STEPS)
