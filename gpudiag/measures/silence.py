"""Time in which GPUs were held behind the last line of a log that stops before its last step."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._gpu.gpu_rows import slices
from gpudiag.measures._gpu.held import held_from_mib, mean_known
from gpudiag.measures._steps.logs import training_logs
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.weighted import weighted_mean
from gpudiag.measures.base import Profile, need_gpu
from gpudiag.measures.endings import EndingsProfile, measure_endings
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT, has_values

LINES = 10.0
"""Times the usual step between two lines of a log: a line so late is still due, or waits in the buffer of its file."""
SLACK_S = 120.0
"""How far the work of the GPUs and the lines of the log may lie apart at their ends where both have one clock."""
MOSTLY = 0.95
FULL_PCT = 98.0
IDLE, FULL, AT_WORK = "idle", "full", "at work"


class SilentGpu(Row):
    """A GPU that worked while the log was written, behind its last line."""

    state: Column[str] = column(
        "idle; full: 98 % or more, of unknown power; at work: anything else, which tells of no standstill"
    )
    silent_s: Column[float] = column("observed time behind the last line", label="without a line")
    silent_pct: Column[float] = column("mean utilization in it", label="utilization meanwhile")
    silent_mib: Column[float] = column("mean memory in use in it; NaN unknown", label="memory meanwhile")
    is_freed: Column[bool] = column("memory was held before and was not in it")


class SilenceProfile(Profile, topic="silence"):
    """A log that stops before its last step without an error, while telemetry goes on. 0 s for any other."""

    per_gpu: Rows = table_of(SilentGpu)
    silent_s: Fact[float] = fact(
        "time from the last line of any kind to the end of the telemetry; 0 where it is over, where all GPUs work on, "
        "or where the clock of the log is not that of the telemetry",
        label="without a line",
    )
    due_s: Fact[float] = fact(
        "time for which the log was silent before at most, or that of 10 of its lines",
        label="the log is silent for, at most",
    )
    line_every_s: Fact[float] = fact("median time from one line to the next", label="between lines")
    last_step: Fact[float] = fact("last step logged; NaN without such a log", label="last step logged")
    total_steps: Fact[float] = fact("steps that the log states", label="steps stated")
    has_trials: Fact[bool] = fact("there are trials of a search, whose states tell how they ended")


@memoized
def measure_silence(run: Run) -> SilenceProfile:
    """Silence of a log beside GPUs that are held. Needs gpu.util_pct, and a log of a training."""
    need_gpu(run, "util_pct")
    ends = measure_endings(run)
    lines = training_logs(run).lines
    dated = lines[lines["time"].notna()] if len(lines) else lines
    if not _stops_short(ends) or len(dated) < len(lines) or len(dated) < 2:
        return _profile(ends)
    time_us = np.unique(microseconds(dated["time"]))
    between_s = np.diff(time_us) / SECOND_US
    last_s = dated["last_s"].fillna(0.0).to_numpy(float) if "last_s" in dated else np.zeros(len(dated))
    until_us = int((microseconds(dated["time"]) + SECOND_US * last_s).max())
    every_s = float(np.median(between_s)) if len(between_s) else 0.0
    due_s = max(LINES * every_s, float(between_s.max(initial=0.0)))
    samples = cells(run, "util_pct", *(name for name in ("mem_used_mib", "power_w") if name in run.gpu))
    table, one_clock = _behind(run, samples, int(time_us[0]), until_us, due_s)
    silent_s = max(float(samples["end_us"].max() - until_us) / SECOND_US, 0.0) if len(samples) else 0.0
    return _profile(ends, table, silent_s=silent_s if one_clock else 0.0, due_s=due_s, line_every_s=every_s)


def _stops_short(ends: EndingsProfile) -> bool:
    """Whether all that is known of the end is that the logs stop."""
    told = ends.n_done or ends.n_stopped or len(ends.failed) or ends.has_trials
    return not told and 0 < ends.n_short == ends.n_logs


def _profile(ends: EndingsProfile, table: pd.DataFrame | None = None, **told: float) -> SilenceProfile:
    columns = list(SilentGpu.declared())
    return SilenceProfile(
        per_gpu=pd.DataFrame(columns=columns).rename_axis("gpu") if table is None else table,
        **{"silent_s": 0.0, "due_s": math.nan, "line_every_s": math.nan, **told},
        last_step=ends.last_step if ends.n_short else math.nan,
        total_steps=ends.total_steps if ends.n_short else math.nan,
        has_trials=ends.has_trials,
    )


def _behind(run: Run, samples: pd.DataFrame, first_us: int, until_us: int, due_s: float) -> tuple[pd.DataFrame, bool]:
    """The GPUs that worked while the log was written, and whether their work shows the log's clock to be theirs."""
    rows, begun_us, worked_us = {}, [], []
    totals = gpu_boards(run)["total_mib"]
    for gpu, own in slices(samples):
        part = samples.iloc[own]
        active = part["util_pct"] >= IDLE_PCT
        logged = (part["end_us"] > first_us) & (part["start_us"] < until_us)
        if not (active & logged).any():
            continue
        behind = part[part["start_us"] >= until_us + due_s * SECOND_US]
        rows[gpu] = _one_gpu(part[logged], behind, float(totals.get(gpu, math.nan)))
        rows[gpu]["silent_s"] = float(part["weight_s"][part["start_us"] >= until_us].sum())
        if rows[gpu]["state"] != AT_WORK:
            begun_us.append(int(part["start_us"][active].min()))
            worked_us.append(int(part["end_us"][active].max()))
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(SilentGpu.declared())).rename_axis("gpu")
    slack_us = (SLACK_S + due_s) * SECOND_US
    full = (table["state"] == FULL).any()
    begins = len(begun_us) > 0 and min(begun_us) <= first_us + slack_us
    ends = full or (len(worked_us) > 0 and abs(max(worked_us) - until_us) <= slack_us)
    return table, bool(begins and ends)


def _one_gpu(logged: pd.DataFrame, behind: pd.DataFrame, total_mib: float) -> dict[str, object]:
    util, weight_s = behind["util_pct"].to_numpy(float), behind["weight_s"].to_numpy(float)
    mean_pct = weighted_mean(util, weight_s) if weight_s.sum() > 0 else math.nan
    idle = weight_s[util < IDLE_PCT].sum() >= MOSTLY * weight_s.sum() > 0
    has_power = has_values(behind, "power_w")
    state = IDLE if idle else FULL if mean_pct >= FULL_PCT and not has_power else AT_WORK
    used = [
        part["mem_used_mib"].to_numpy(float) if "mem_used_mib" in part else np.zeros(0) for part in (logged, behind)
    ]
    before_mib, mean_mib = map(mean_known, used)
    held_mib = held_from_mib(total_mib)
    return {
        "state": state,
        "silent_s": math.nan,
        "silent_pct": mean_pct,
        "silent_mib": mean_mib,
        "is_freed": bool(before_mib >= held_mib > mean_mib),
    }
