"""One trace as rows of table ``profiled``."""

from __future__ import annotations

import math

import pandas as pd

from gpudiag.errors import InputError, NotMeasurable
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._io.source import Source
from gpudiag.readers._traces.breakdown import IDLE_STATES
from gpudiag.readers._traces.trace import read_trace
from gpudiag.readers.base import Trials
from gpudiag.schema import PROFILED, conform, dtype


def profiled(source: Source, reader: str) -> Trials:
    """Where the time went in the profiled steps, a row a GPU. Raises InputError where that cannot be told."""
    trace = read_trace(source.path)
    try:
        found = trace.breakdown
    except NotMeasurable as error:
        raise InputError(f"{source.path}: {error}") from error
    frame = found.to_frame().drop(columns="name")
    if not found.host_recorded:
        frame[list(IDLE_STATES)] = math.nan
    about = {name: getattr(found, name) for name in ("rank", "world_size", "n_steps", "window_s")}
    about |= {name: getattr(found, name) for name in ("step_s", "step_low_s", "step_high_s")}
    frame = frame.assign(
        path=as_text(source.path),
        time=pd.Series([trace.begin] * len(frame), dtype=dtype("time"), index=frame.index),
        **about,
    )
    name = as_text(source.path.name)
    odd = f", {found.n_odd_steps} unlike them left out" if found.n_odd_steps else ""
    note = f"{name}: {found.n_steps or 'no'} profiled steps{odd}; see them with gpudiag trace {name}."
    return Trials(
        profiled=conform(pd.DataFrame(frame), PROFILED), problems=trace.problems, notes=(note,), reader=reader
    )
