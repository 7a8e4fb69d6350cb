"""What the record itself gives away: sensors that do not move, a sampler that slows down, GPUs that change identity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum

import numpy as np
import pandas as pd

from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.gpu_rows import by_gpu, slices
from gpudiag.measures._time.cells import cells, rows_by_gpu
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures.base import Profile, need_gpu
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import BUSY_PCT, IDLE_PCT, has_values

MIN_SHARE = 0.1
MIN_SAMPLES = 20
MIN_STEPS = 20
AT_LIMIT = 0.97
MOVING = ("power_w", "temp_c", "mem_util_pct")
HOST = ("cpu_pct", "cpu_max_core_pct", "process_cpu_max_pct")
SATURATED_PCT = 100.0
"""What a processor that feeds GPUs shows from the first sample to the last: that may be measured."""
IDENTITY = ("uuid", "bus_id", "name")


class GpuRecorder(Row):
    """A GPU."""

    n_samples: Column[float] = column("samples")
    idle_period_s: Column[float] = column(
        "median step while utilization is below 10 %, NaN below 20 steps", label="period while idle"
    )
    busy_period_s: Column[float] = column("the same at 50 or more", label="period while busy")
    slow_ratio: Column[float] = column("busy over idle, NaN where logs take turns", label="slower by")
    stuck_s: Column[float] = column(
        "longest stretch of one and the same power reading, below 97 % of the limit, in which the GPU was both idle "
        "and busy for a tenth each",
        label="stuck for",
    )


class ConstantColumn(Row):
    """A column that never moved over 20 samples or more though what it measures did."""

    table: Column[str] = column("table")
    column_: Column[str] = column("column")
    gpu: Column[str] = column("GPU, None for the host")
    value: Column[float] = column("the value")


class Mix(StrEnum):
    """How the identity of GPUs is mixed up."""

    SEVERAL = "several"
    """One GPU has several values."""
    SHARED = "shared"
    """Several GPUs have one value."""
    TOTAL = "total"
    """The total of memory of a GPU changes."""


class MixedGpu(Row):
    """One identity (uuid, bus id) on several GPUs, several on one GPU, or totals of memory that change."""

    gpu: Column[str] = column("GPU", label="GPU")
    kind: Column[str] = column("several, shared or total")
    name: Column[str] = column("of which column")
    n: Column[int] = column("values that it has")


class RecorderProfile(Profile, topic="recorder"):
    """Faults of the record itself."""

    per_gpu: Rows = table_of(GpuRecorder)
    constants: Rows = table_of(ConstantColumn)
    n_judged: Fact[int] = fact("columns that could be judged for being constant")
    n_blind: Fact[int] = fact("columns that could not, since utilization is missing")
    mixed: Rows = table_of(MixedGpu)


@memoized
def measure_recorder(run: Run) -> RecorderProfile:
    """Faults of the record. Needs GPU telemetry."""
    need_gpu(run, "time")
    known = [name for name in ("power_w", "power_limit_w") if name in run.gpu]
    samples = cells(run, *(["util_pct"] if "util_pct" in run.gpu else []), *known)
    rows = {gpu: _one_gpu(part) for gpu, part in by_gpu(samples)}
    per_gpu = pd.DataFrame.from_dict(rows, orient="index", columns=list(_NAMES)).rename_axis("gpu")
    per_gpu.loc[per_gpu.index.isin(run.info.taking_turns), "slow_ratio"] = math.nan
    constants, n_judged = _constants(run)
    blind = not has_values(run.gpu, "util_pct")
    return RecorderProfile(
        per_gpu=per_gpu,
        constants=constants,
        n_judged=n_judged,
        n_blind=sum(name in run.gpu for name in MOVING) if blind else 0,
        mixed=_mixed(run),
    )


_NAMES = ("n_samples", "idle_period_s", "busy_period_s", "slow_ratio", "stuck_s")


def _one_gpu(part: pd.DataFrame) -> dict[str, float]:
    util = part["util_pct"].to_numpy(float) if "util_pct" in part else np.full(len(part), math.nan)
    joined = part["end_us"].to_numpy()[:-1] == part["start_us"].to_numpy()[1:]
    step = np.diff(part["time"].to_numpy("datetime64[us]").astype(np.int64)) / SECOND_US
    # A sampler that works in a loop is late after the load that it saw first.
    idle, busy = (_period(step[joined & flag[:-1]]) for flag in (util < IDLE_PCT, util >= BUSY_PCT))
    return dict(zip(_NAMES, (float(len(part)), idle, busy, busy / idle, _stuck_s(part, util)), strict=True))


def _period(steps: np.ndarray) -> float:
    return float(np.median(steps)) if len(steps) >= MIN_STEPS else math.nan


def _stuck_s(part: pd.DataFrame, util: np.ndarray) -> float:
    """Longest series of one power reading over at least 20 samples in which the GPU was idle and busy."""
    if "power_w" not in part or not len(part) or np.isnan(util).all():
        return math.nan
    power = part["power_w"].to_numpy(float)
    if not np.isfinite(power).any():
        return math.nan
    borders = np.flatnonzero(np.concatenate(([True], power[1:] != power[:-1], [True])))
    limit = part["power_limit_w"].to_numpy(float) if "power_limit_w" in part else np.full(len(power), math.nan)
    weight_s, longest = part["weight_s"].to_numpy(), 0.0
    for series in np.flatnonzero(np.diff(borders) >= MIN_SAMPLES).tolist():
        own = slice(borders[series], borders[series + 1])
        both = min((util[own] < IDLE_PCT).mean(), (util[own] >= BUSY_PCT).mean()) >= MIN_SHARE
        if both and not power[own.start] >= AT_LIMIT * limit[own.start]:
            longest = max(longest, float(weight_s[own].sum()))
    return longest


def _constants(run: Run) -> tuple[pd.DataFrame, int]:
    """The columns that stood still, and how many were looked at."""
    rows: list[tuple[str, str, str | None, np.ndarray]] = []
    if "util_pct" in run.gpu:
        known = cells(run, "util_pct", *(name for name in MOVING if name in run.gpu))
        columns = {name: known[name].to_numpy(float) for name in MOVING if name in known}
        util = known["util_pct"].to_numpy(float)
        for gpu, own in slices(known):
            both = min((util[own] < IDLE_PCT).mean(), (util[own] >= BUSY_PCT).mean()) >= MIN_SHARE
            rows += [("gpu", name, gpu, values[own]) for name, values in columns.items() if both]
    host = run.host.drop_duplicates("time")
    rows += [("host", name, None, host[name].to_numpy(float)) for name in HOST if name in host]
    judged = [row for row in rows if np.count_nonzero(~np.isnan(row[3])) >= MIN_SAMPLES]
    found = [
        (table, name, gpu, float(low))
        for table, name, gpu, values in judged
        if (low := np.fmin.reduce(values)) == np.fmax.reduce(values) and not (table == "host" and low == SATURATED_PCT)
    ]
    return pd.DataFrame(found, columns=["table", "column", "gpu", "value"]), len(judged)


def _mixed(run: Run) -> pd.DataFrame:
    rows = []
    listed = run.gpus.drop_duplicates()
    for name in (n for n in IDENTITY if n in listed):
        each = listed.dropna(subset=[name]).groupby("gpu")[name].nunique()
        rows += [(str(gpu), Mix.SEVERAL.value, name, int(n)) for gpu, n in each.items() if n > 1]
        if name != "name":
            rows += [(", ".join(owners), Mix.SHARED.value, name, 1) for owners in _sharers(listed, name)]
    if "mem_total_mib" in run.gpu:
        total = run.gpu["mem_total_mib"].to_numpy(float)
        for gpu, own in sorted(rows_by_gpu(run).items()):
            if np.fmax.reduce(total[own]) > 1.02 * np.fmin.reduce(total[own]):
                rows.append((gpu, Mix.TOTAL.value, "mem_total_mib", pd.Series(total[own]).nunique()))
    return pd.DataFrame(rows, columns=["gpu", "kind", "name", "n"])


def _sharers(listed: pd.DataFrame, name: str) -> Iterator[list[str]]:
    """GPUs that have one uuid or bus id. A bus id is one of a machine: GPUs of other uuids have it on another."""
    rows = listed.dropna(subset=[name])
    host = rows["gpu"].map(lambda gpu: str(gpu).rpartition("/")[0]) if name == "bus_id" else ""
    for _, own in rows.assign(on=host).groupby([name, "on"]):
        owners = own["gpu"].unique()
        elsewhere = name == "bus_id" and "uuid" in own and own["uuid"].nunique() == len(owners)
        if len(owners) > 1 and not elsewhere:
            yield sorted(map(str, owners))
