"""The profiled time: the steps that are like each other, without one in which something else happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.readers._traces import kinds
from gpudiag.readers._traces.spans import Spans, union
from gpudiag.readers._traces.tables import TraceTables
from gpudiag.spans import held_within

MIN_STEPS = 3
"""Of two that differ, nobody knows which is usual."""


class Window(NamedTuple):
    """``spans`` of the steps that count, their ``lengths_us`` (NaN without steps), and what is not in it: the lengths
    of odd steps, ``odd_us``, and work of the GPUs that lies in no step, ``outside_us``.
    """

    spans: Spans
    lengths_us: np.ndarray
    odd_us: np.ndarray
    outside_us: float


def profiled_window(trace: TraceTables) -> Window:
    """The profiled steps; without steps from the first to the last event. Raises NotMeasurable without either."""
    steps = trace.steps
    if steps.empty:
        return Window(_all_recorded(trace), np.array([np.nan]), np.array([]), 0.0)
    length = (steps["end_us"] - steps["start_us"]).to_numpy(float)
    odd = (_idle_us(trace) > np.median(length)) & (len(steps) >= MIN_STEPS)
    busy = [table_spans(work) for _, work in trace.gpu.groupby("gpu", sort=False)]
    if not _worked_us(busy, steps[~odd]):
        odd[:] = False  # the others are no steps of a training
    outside = max(sum(one.total for one in busy) - _worked_us(busy, steps), 0.0)
    return Window(table_spans(steps[~odd]), length[~odd], length[odd], outside)


def _worked_us(busy: Sequence[Spans], steps: pd.DataFrame) -> float:
    """How long the GPUs worked within the steps."""
    inside = table_spans(steps)
    return sum(float(held_within(*one, *inside).sum()) for one in busy)


def _idle_us(trace: TraceTables) -> np.ndarray:
    """How long in each step no GPU worked, but for waits for data, which some steps of a loader have and others not.

    Where that is longer than a usual step as a whole, as with a pause in a log (as much again as its steps), the step
    holds what the others do not: a compilation, an evaluation, a checkpoint.
    """
    data = trace.host[trace.host["kind"] == kinds.DATA]
    known = union(*(pd.concat([trace.gpu[edge], data[edge]]).to_numpy(float) for edge in ("start_us", "end_us")))
    start, end = (trace.steps[edge].to_numpy(float) for edge in ("start_us", "end_us"))
    return end - start - held_within(start, end, *known)


def _all_recorded(trace: TraceTables) -> Spans:
    tables = [table for table in (trace.gpu, trace.host) if len(table)]
    if not tables:
        raise NotMeasurable(f"{trace.path.name} holds no work of a GPU and no thread that gave it any.")
    start = np.array([min(float(table["start_us"].min()) for table in tables)])
    end = np.array([max(float(table["end_us"].max()) for table in tables)])
    if not end[0] > start[0]:
        raise NotMeasurable(f"{trace.path.name} holds no event that took time.")
    return Spans(start, end)


def table_spans(table: pd.DataFrame) -> Spans:
    """What is covered by the rows of a table."""
    return union(table["start_us"].to_numpy(float), table["end_us"].to_numpy(float))
