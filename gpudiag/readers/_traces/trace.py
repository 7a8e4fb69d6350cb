"""A trace of torch.profiler or of Nsight Systems as tables: work of the GPUs, work of the host, profiled steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl

from gpudiag.errors import InputError
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source
from gpudiag.readers._traces import kinds
from gpudiag.readers._traces.breakdown import TraceBreakdown, break_down
from gpudiag.readers._traces.json_events import MOST_NS, EventStream
from gpudiag.readers._traces.launches import with_launches
from gpudiag.readers._traces.memory_snapshot import is_memory_snapshot, refuse_memory_snapshot
from gpudiag.readers._traces.nsight import NsightReport
from gpudiag.readers._traces.steps import profiled_steps
from gpudiag.readers._traces.tables import TraceTables
from gpudiag.readers._traces.xla_trace import is_xplane, names_xla_processes, refuse_xla_trace
from gpudiag.shown import Shown

SINCE_EPOCH_NS = 10**17
"""Timestamps below (three years) count from ``baseTimeNanoseconds``; older versions count from 1970."""
LONGEST_US = 86_400e6
MOST_GPUS = 64
"""No machine has more, and no profile is longer than a day."""


class Trace(TraceTables, Shown):
    """What a profiler recorded; it shows itself as its breakdown."""

    @property
    def breakdown(self) -> TraceBreakdown:
        """Where the time of each GPU went in the profiled steps. Raises NotMeasurable without work of a GPU."""
        return break_down(self)

    def to_frame(self) -> pd.DataFrame:
        """``gpu``."""
        return self.gpu


def read_trace(path: str | Path) -> Trace:
    """Read a Chrome trace of torch.profiler (Kineto), plain or compressed, or a report of Nsight Systems in SQLite.

    Raises InputError for a file that is neither, for traces of TensorFlow and JAX, which name no work of the host, and
    for memory snapshots of PyTorch.
    """
    source = Source.open(path)
    if source.is_dir:
        raise InputError(f"{source.path}: is a folder; give one trace, such as the *.pt.trace.json.gz of one rank.")
    if is_memory_snapshot(source):
        raise refuse_memory_snapshot(source.path)
    if is_xplane(source):
        raise refuse_xla_trace(source.path)
    problems = ProblemLog()
    stream: EventStream | NsightReport
    if source.is_sqlite:
        stream = NsightReport(source)
    elif source.is_binary:
        raise InputError(
            f"{source.path}: expected a trace of torch.profiler in JSON, but this is a binary file. Write it with "
            "prof.export_chrome_trace(path); of Nsight Systems give `nsys export --type sqlite`."
        )
    else:
        stream = EventStream(source, problems)
    parts, python = [], False
    for frame in stream.frames():
        parts.append(_of_interest(frame))
        python = python or bool((frame["cat"] == kinds.PYTHON_CATEGORY).any())
    events = pl.concat(parts) if parts else pl.DataFrame()
    if not len(events):
        raise _nothing(source)
    return replace(_trace(source.path, events, stream.beside, problems), python_recorded=python)


def _nothing(source: Source) -> InputError:
    """Why a trace without a single event of PyTorch's kinds cannot be read."""
    if names_xla_processes(source):
        return refuse_xla_trace(source.path)
    return InputError(
        f"{source.path}: expected a trace of torch.profiler, but no event of it is a kernel, a copy, an operator or a "
        "call of CUDA. Write it with prof.export_chrome_trace(path)."
    )


def _of_interest(events: pl.DataFrame) -> pl.DataFrame:
    """Events of the GPU and of the host, each with its kind; all else is dropped while it is read."""
    name = pl.col("name")
    events = events.filter(pl.col("ts_ns").is_not_null() & pl.col("dur").is_between(0, LONGEST_US)).with_columns(
        name.fill_null(""), cat=pl.col("cat").str.to_lowercase()
    )
    step = name.str.contains(kinds.STEP_NAME.pattern)
    step_on_gpu = (pl.col("cat") == kinds.ON_GPU) & step
    events = events.filter(pl.col("cat").is_in([*kinds.GPU_CATEGORIES, *kinds.HOST_CATEGORIES]) | step_on_gpu)
    on_gpu = pl.col("cat").is_in(list(kinds.GPU_CATEGORIES))
    runtime = pl.col("cat").is_in(kinds.RUNTIME_CATEGORIES)
    names = events.filter(on_gpu)["name"].unique().to_list()
    communicates = name.is_in([one for one in names if kinds.communicates(one)])
    waits = name.str.contains(kinds.SYNCHRONIZES)
    copies = name.str.contains("Memcpy|Memset")
    kind = (
        pl.when(on_gpu & communicates).then(pl.lit(kinds.COMMUNICATION))
        .when(on_gpu).then(pl.col("cat").replace(kinds.GPU_CATEGORIES))
        .when(step_on_gpu).then(pl.lit(kinds.STEP_ON_GPU))
        .when(step).then(pl.lit(kinds.STEP))
        .when(runtime & waits).then(pl.lit(kinds.SYNC))
        .when(runtime & name.str.contains(kinds.TAKES_MEMORY)).then(pl.lit(kinds.MEMORY))
        .when(runtime & ~copies & (pl.col("dur") >= kinds.SETUP_US)).then(pl.lit(kinds.SETUP))
        .when(~runtime & name.str.contains(kinds.WAITS_FOR_DATA)).then(pl.lit(kinds.DATA))
        .when(~runtime & name.str.contains(kinds.OPTIMIZES)).then(pl.lit(kinds.OPTIMIZER))
        .when(pl.col("cat") != "user_annotation").then(pl.lit(kinds.OPERATOR))
    )  # fmt: skip
    return (
        events.with_columns(
            kind=kind, runtime=runtime, on_gpu=on_gpu, launches=runtime & name.str.contains(kinds.LAUNCHES)
        )
        .filter(pl.col("kind").is_not_null())
        .drop("cat")
    )


def _trace(path: Path, events: pl.DataFrame, beside: dict[str, Any], problems: ProblemLog) -> Trace:
    events = _of_one_time(events, problems)
    first_ns = int(events["ts_ns"].min() or 0)
    events = events.with_columns(start_us=(pl.col("ts_ns") - first_ns) / 1000).with_columns(
        end_us=pl.col("start_us") + pl.col("dur")
    )
    device = pl.coalesce("device", pl.col("pid").cast(pl.Int64, strict=False), pl.lit(0))
    gpu = events.filter("on_gpu").with_columns(gpu=device)
    problems.add("event of an impossible GPU", gpu.filter(~_possible()).height, lost=True)
    gpu = gpu.filter(_possible())
    steps_on_gpu = events.filter(pl.col("kind") == kinds.STEP_ON_GPU)
    host = events.filter(~pl.col("on_gpu") & (pl.col("kind") != kinds.STEP_ON_GPU)).with_columns(
        thread=pl.concat_str("pid", "tid", separator="/", ignore_nulls=True)
    )
    gpu = with_launches(gpu, host)
    for copies, kind in kinds.BLOCKS.items():
        blocking = gpu.filter(pl.col("name").str.contains(copies))["correlation"].drop_nulls().unique()
        blocks = pl.col("runtime") & pl.col("correlation").is_in(blocking.implode())
        host = host.with_columns(kind=pl.when(blocks).then(pl.lit(kind)).otherwise("kind"))
    step = pl.col("kind") == kinds.STEP
    launching = host.filter("launches")
    training = pl.concat([launching["thread"], host.filter(step)["thread"]]).unique()
    kept = host.filter(~step & pl.col("thread").is_in(training.implode()))
    distributed = beside.get("distributedInfo")
    distributed = distributed if isinstance(distributed, dict) else {}
    work = gpu.select("gpu", "stream", "start_us", "end_us", "kind", "name", "returned_us")
    return Trace(
        path,
        _pandas(work.sort("gpu", "start_us")),
        _pandas(kept.sort("start_us").select("thread", "start_us", "end_us", "kind", "name", "runtime")),
        _pandas(profiled_steps(host.filter(step), steps_on_gpu, gpu)),
        _begin(first_ns, beside), _names(beside),
        _whole(distributed.get("rank")), _whole(distributed.get("world_size")),
        launching["pid"].n_unique(), problems.all,
    )  # fmt: skip


def _of_one_time(events: pl.DataFrame, problems: ProblemLog) -> pl.DataFrame:
    """Events within a day of the one in the middle: no profile is longer, and one odd timestamp would be the window."""
    middle = events["ts_ns"].median()
    near = ((pl.col("ts_ns") - middle).abs() / 1000) < LONGEST_US
    problems.add("event at an impossible time", events.filter(~near).height, lost=True)
    return events.filter(near)


def _possible() -> pl.Expr:
    return pl.col("gpu").is_between(0, MOST_GPUS - 1)


def _pandas(frame: pl.DataFrame) -> pd.DataFrame:
    """Columns as pandas has them; texts as categories, since few names are said often."""
    data = {
        name: pd.Categorical(column.to_list()) if column.dtype == pl.String else column.to_numpy()
        for name, column in zip(frame.columns, frame.get_columns(), strict=True)
    }
    return pd.DataFrame(data)


def _begin(first_ns: int, beside: dict[str, Any]) -> pd.Timestamp:
    """When the trace began, UTC."""
    base = beside.get("baseTimeNanoseconds")
    if first_ns < SINCE_EPOCH_NS:
        if not isinstance(base, int) or not 0 < base < MOST_NS:
            return pd.NaT
        first_ns += base
    return pd.Timestamp(first_ns // 1000, unit="us", tz="UTC") if first_ns < MOST_NS else pd.NaT


def _names(beside: dict[str, Any]) -> dict[int, str]:
    """Product names of the machine's GPUs by their index."""
    listed = beside.get("deviceProperties")
    found: dict[int, str] = {}
    for at, one in enumerate(listed if isinstance(listed, list) else []):
        index, name = (one.get("id", at), one.get("name")) if isinstance(one, dict) else (None, None)
        if isinstance(index, int) and isinstance(name, str):
            found[index] = name[:100]
    return found


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**6 else None
