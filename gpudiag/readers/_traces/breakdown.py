"""Where the time of each GPU went in the profiled steps: every instant has one state, and the states add up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.plain_data import NAN_IS_NULL, TIME, json_text
from gpudiag.readers._io.paths import as_text
from gpudiag.readers._traces import kinds
from gpudiag.readers._traces.json_events import CUT_OFF, DAMAGED
from gpudiag.readers._traces.spans import Spans, pieces, union
from gpudiag.readers._traces.tables import TraceTables
from gpudiag.readers._traces.window import profiled_window, table_spans
from gpudiag.shown import Shown
from gpudiag.spans import held_within

WORK: Final = (kinds.COMPUTE, kinds.COMMUNICATION, kinds.COPY)
HOST: Final = (
    kinds.DATA, kinds.PAGEABLE, kinds.SYNC, kinds.MEMORY, kinds.SETUP, kinds.OPTIMIZER, kinds.OPERATOR
)  # fmt: skip
STATES: Final = tuple(f"{kind}_pct" for kind in (*WORK, kinds.QUEUED, *HOST, "other"))
"""In the order in which they are tried: what computes and communicates counts as computing. Behind the states of work
the GPU is idle. Where its next work was queued, the host is no cause. Else the host decides: it waits for data, copies
pageable memory, waits for the GPU, takes memory, sets CUDA up, prepares kernels, or does none of these."""
IDLE_STATES: Final = STATES[len(WORK) :]
MOST_KERNELS, MOST_WAITS = 10, 3
MOST_CALLS = 20_000
"""Synchronizations whose operators are looked for, the longest first."""


@dataclass(frozen=True)
class GpuTime:
    """Shares of the profiled time of one GPU in percent; ``other_pct`` is idle while the host did nothing that the
    trace names. ``idle_pct`` and the three states of work add up to 100, as do all twelve.
    ``queued_pct`` is idle before work that had been launched when the gap began.

    ``communication_total_pct``: with and without computing beside it; ``hidden_pct``: the share of it with.
    """

    gpu: str
    name: str
    idle_pct: float
    compute_pct: float
    communication_pct: float
    copy_pct: float
    queued_pct: float
    data_pct: float
    pageable_pct: float
    sync_pct: float
    memory_pct: float
    setup_pct: float
    optimizer_pct: float
    operator_pct: float
    other_pct: float
    communication_total_pct: float
    hidden_pct: float = field(metadata=NAN_IS_NULL)


@dataclass(frozen=True)
class KernelTime:
    """Kernels or copies of one name, without template arguments. ``share_pct``: of the sum of the durations of all that
    ran on GPUs in the window.
    """

    name: str
    n: int
    total_s: float
    share_pct: float


@dataclass(frozen=True)
class HostWait:
    """Waits of the host for the GPU by the operator they are in ('' in none): ``share_pct`` of the profiled time."""

    operator: str
    call: str
    n: int
    total_s: float
    share_pct: float


@dataclass(frozen=True, repr=False)
class TraceBreakdown(Shown):
    """The profiled steps of one trace: their number, median, shortest and longest time.

    Without steps the window is all that was recorded, ``n_steps`` is 0 and the times of a step are unknown. Not in it
    are ``n_odd_steps``, in which the GPUs were idle for longer than a usual step takes, ``odd_steps_s`` long in all,
    and ``outside_s`` of GPU time in which GPUs worked in no step.
    """

    schema: Literal["gpudiag.trace/1"]
    file: str
    begin: str | None = field(metadata=TIME)
    rank: int | None
    world_size: int | None
    n_steps: int
    window_s: float
    step_s: float = field(metadata=NAN_IS_NULL)
    step_low_s: float = field(metadata=NAN_IS_NULL)
    step_high_s: float = field(metadata=NAN_IS_NULL)
    n_odd_steps: int
    odd_steps_s: float
    outside_s: float
    host_recorded: bool
    python_recorded: bool
    gpus: tuple[GpuTime, ...]
    kernels: tuple[KernelTime, ...]
    waits: tuple[HostWait, ...]
    problems: tuple[str, ...]

    def to_json(self) -> str:
        """The document of schema ``gpudiag.trace/1``."""
        return json_text(self)

    def to_frame(self) -> pd.DataFrame:
        """One row a GPU."""
        return pd.DataFrame([vars(one) for one in self.gpus])


def break_down(trace: TraceTables) -> TraceBreakdown:
    """States of every GPU over the profiled steps.

    Raises NotMeasurable without work of a GPU in them, where work of it is missing, and for several processes.
    """
    _refuse(trace)
    profiled = profiled_window(trace)
    window, lengths = profiled.spans, profiled.lengths_us
    # Steps whose host was done before the earlier kernels were, and which launched none, take no time.
    first, last = (window.start[0], window.end[-1]) if len(window.start) else (np.inf, -np.inf)
    gpu = trace.gpu[(trace.gpu["end_us"] > first) & (trace.gpu["start_us"] < last)]
    if gpu.empty:
        raise NotMeasurable(
            f"{trace.path.name} holds no work of a GPU"
            + (" in its profiled steps" if len(trace.gpu) else "")
            + ". Profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]."
        )
    host = [table_spans(trace.host[trace.host["kind"] == kind]) for kind in HOST]
    return TraceBreakdown(
        schema="gpudiag.trace/1",
        file=as_text(trace.path.name),
        begin=None if trace.begin is pd.NaT else trace.begin.isoformat(),
        rank=trace.rank,
        world_size=trace.world_size,
        n_steps=int(np.isfinite(lengths).sum()),
        window_s=window.total / 1e6,
        step_s=float(np.median(lengths)) / 1e6,
        step_low_s=float(lengths.min()) / 1e6,
        step_high_s=float(lengths.max()) / 1e6,
        n_odd_steps=len(profiled.odd_us),
        odd_steps_s=float(profiled.odd_us.sum()) / 1e6,
        outside_s=profiled.outside_us / 1e6,
        host_recorded=bool((~trace.host["runtime"] & (trace.host["kind"] == kinds.OPERATOR)).any()),
        python_recorded=trace.python_recorded,
        gpus=tuple(_gpu_time(trace, key, part, host, window) for key, part in gpu.groupby("gpu", sort=True)),
        kernels=tuple(_kernels(gpu, window)),
        waits=tuple(_waits(trace.host, window)),
        problems=tuple(map(str, trace.problems)),
    )


def _refuse(trace: TraceTables) -> None:
    """Raise NotMeasurable where a share would be wrong."""
    missing = [one for one in trace.problems if one.kind in (CUT_OFF, DAMAGED)]
    if missing:
        raise NotMeasurable(
            f"{trace.path.name}: {missing[0]}. Work of the GPU is missing, so that idle time cannot be told from it. "
            "Take the trace again; the events that were read are in gpudiag.read_trace(FILE).gpu and .host."
        )
    if trace.n_processes > 1:
        raise NotMeasurable(
            f"{trace.path.name} holds {trace.n_processes} processes that launch kernels. Give a trace of one process: "
            "what one does explains no idle time of another."
        )


def _gpu_time(trace: TraceTables, key: object, work: pd.DataFrame, host: Sequence[Spans], window: Spans) -> GpuTime:
    tried = [*(table_spans(work[work["kind"] == kind]) for kind in WORK), _queued(work), *host]
    middle, length = pieces(tried, window)
    inside = np.array([spans.holds(middle) for spans in tried] + [np.ones(len(middle), bool)])
    state = inside.argmax(axis=0)  # the first that is true
    pct = np.bincount(state, length, len(STATES)) / length.sum() * 100
    talks = float(length[inside[1]].sum())
    index = int(str(key))
    return GpuTime(
        gpu=str(index),
        name=trace.gpu_names.get(index, ""),
        idle_pct=float(pct[len(WORK) :].sum()),
        **dict(zip(STATES, map(float, pct), strict=True)),
        communication_total_pct=talks / float(length.sum()) * 100,
        hidden_pct=float(length[inside[0] & inside[1]].sum()) / talks * 100 if talks else np.nan,
    )


def _queued(work: pd.DataFrame) -> Spans:
    """Gaps between work of a GPU whose next work had been launched before they began.

    HTA tells time that waits for the host from the rest in the same way (its "idle time breakdown").
    """
    busy = table_spans(work)
    took = work[work["end_us"] > work["start_us"]]
    returned_us = took.groupby("start_us")["returned_us"].min().reindex(busy.start[1:]).to_numpy(float)
    waits = returned_us <= busy.end[:-1]  # false where it is unknown
    return Spans(busy.end[:-1][waits], busy.start[1:][waits])


def _within(table: pd.DataFrame, window: Spans) -> np.ndarray:
    """Microseconds of each row that lie in the window."""
    return held_within(table["start_us"].to_numpy(float), table["end_us"].to_numpy(float), *window)


def _kernels(gpu: pd.DataFrame, window: Spans) -> Iterator[KernelTime]:
    """Those that took most time."""
    gpu = gpu.assign(us=_within(gpu, window))
    gpu = gpu[gpu["us"] > 0]
    by_name = gpu.groupby("name", observed=True)["us"].agg(["sum", "count"])
    us = by_name.groupby([kinds.bare(str(name)) for name in by_name.index]).sum()
    total = us["sum"].sum()
    for name, row in us.sort_values("sum", ascending=False, kind="stable").head(MOST_KERNELS).iterrows():
        yield KernelTime(str(name), int(row["count"]), float(row["sum"]) / 1e6, float(row["sum"] / total * 100))


def _waits(host: pd.DataFrame, window: Spans) -> Iterator[HostWait]:
    """Synchronizations by the outermost operator that they lie in, those that took most time."""
    calls = host[host["kind"] == kinds.SYNC]
    calls = calls.assign(us=_within(calls, window)).nlargest(MOST_CALLS, "us")
    calls = calls[calls["us"] > 0]
    if calls.empty:
        return
    operators = host[~host["runtime"] & host["kind"].isin((kinds.OPERATOR, kinds.OPTIMIZER))]
    calls = calls.assign(operator="")
    for thread, part in calls.groupby("thread", observed=True):
        calls.loc[part.index, "operator"] = _outermost(operators[operators["thread"] == thread], part["start_us"])
    grouped = calls.groupby(["operator", "name"], observed=True)["us"].agg(["sum", "count"])
    for (operator, call), row in grouped.sort_values("sum", ascending=False, kind="stable").head(MOST_WAITS).iterrows():
        total = float(row["sum"])
        yield HostWait(str(operator), str(call), int(row["count"]), total / 1e6, total / window.total * 100)


def _outermost(operators: pd.DataFrame, at: pd.Series) -> np.ndarray:
    """The name of the operator that lies in no other and holds each instant; '' for none.

    Operators of one thread are nested: those in no other are what is left where touching spans stay apart.
    """
    spans = union(operators["start_us"].to_numpy(float), operators["end_us"].to_numpy(float), apart=True)
    found = spans.number(at.to_numpy(float))
    if not len(spans.start):
        return np.full(len(at), "", dtype=object)
    longest = operators.sort_values(["start_us", "end_us"], ascending=[True, False]).drop_duplicates("start_us")
    names = longest.set_index("start_us")["name"].astype(object).reindex(spans.start).to_numpy(object)
    return np.where(found >= 0, names[found], "")
