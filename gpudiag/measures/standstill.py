"""Time in which a GPU looks busy and hardly computes: its power fell and stayed low while utilization stayed high."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.errors import NotMeasurable
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.gpu_rows import slices
from gpudiag.measures._gpu.idle_power import IdlePower, idle_powers
from gpudiag.measures._time.coverage import coverage_pct, least_pct
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.weighted import weighted_mean
from gpudiag.measures._time.work import stretches
from gpudiag.measures.base import RECORD_GPU, RECORD_LONGER, Profile, need_gpu
from gpudiag.measures.feed import SATURATED_PCT
from gpudiag.measures.power import power_cells
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import BUSY_PCT

LEVEL = 0.35
"""Share of the power range below which a busy GPU is at low power: that of light kernels (METHODS 1)."""
HIGH_S = 300.0
"""Time that a GPU must have been busy at its high power before."""
LOGGED_LEVEL = 0.75
"""The same where a log stops short: less of a fall is told there."""
FULL_PCT = 99.0
FLAT = 0.15
"""Of the power before: how far the middle 90 % of readings lie apart at most where a kernel only waits."""
SAME_MEMORY = 0.02
PHASE = 2.0
"""Times the longest stretch before it, of the same power, from which the GPU worked on by itself: one so long is the
same phase of the work, such as the rollouts of a reinforcement learning (twice is a default without a source)."""
SLACK_S = 60.0
LINES = 3.0
"""Times the usual step between two lines of a log: a line so late is still due."""


class GpuStandstill(Row):
    """A GPU, and the longest stretch in which it was busy (90 % or more) at low power after 5 min at high power. Low is
    below 0.35 of its power range, 0.75 from the last line of a log that stops short. NaN without such a stretch.
    """

    low_s: Column[float] = column("length of the stretch, 0 without one", label="busy at low power")
    low_start: Column[pd.Timestamp] = column("when it began", label="since")
    low_util_pct: Column[float] = column("mean utilization in it", label="utilization meanwhile")
    low_w: Column[float] = column("median power in it", label="power meanwhile")
    before_w: Column[float] = column("median power of busy time before", label="power before")
    idle_w: Column[float] = column(
        "idle power, the 5th percentile in settled idle time; NaN without such time", label="idle power"
    )
    low_ratio: Column[float] = column(
        "(power in it - idle) / (power before - idle), with 0 W for an unknown idle power: an upper limit",
        label="part of the earlier power",
    )
    least_low_ratio: Column[float] = column(
        "the same with the greatest idle power that is possible", label="part of the earlier power at least"
    )
    is_flat: Column[bool] = column(
        "utilization at 99 % or more, power and memory still, no trial began or ended, no work at high power follows "
        "at once, nor did it after a stretch like this one before",
        label="nothing moved meanwhile",
    )

    after_log: Column[bool] = column(
        "it began when a log that stops short had its last line, of any kind, and was no phase that had ended before",
        label="began with the last line of the log",
    )


class StandstillProfile(Profile, topic="standstill"):
    """Whether GPUs stayed busy at a fraction of their power, and whether the training's log went on."""

    per_gpu: Rows = table_of(GpuStandstill)
    stops_short: Fact[bool] = fact("the log stops before the last step that it states, within the telemetry")
    goes_on: Fact[bool] = fact("lines on steps were written in the longest stretch")
    written_s: Fact[float] = fact(
        "time of the longest stretch in which the log goes on without a step, behind its last one; NaN where it is "
        "silent",
        label="the log goes on without a step",
    )
    last_step: Fact[float] = fact("last step of a log that stops short, else NaN", label="last step logged")
    total_steps: Fact[float] = fact("steps that it states, else NaN", label="steps stated")
    coverage_pct: Fact[float] = fact("observed part of the run, the least of all GPUs")


@memoized
def measure_standstill(run: Run) -> StandstillProfile:
    """Stretches of low power at high utilization. Needs gpu.util_pct and gpu.power_w."""
    need_gpu(run, "util_pct")
    if "power_w" not in run.gpu:
        raise NotMeasurable("The telemetry has no power.", RECORD_GPU)
    optional = [name for name in ("mem_used_mib",) if name in run.gpu]
    samples = power_cells(run, "util_pct", *optional)
    if not samples["weight_s"].sum() > 0:
        raise NotMeasurable("No GPU has two or more readings of its power above 0 W.", RECORD_LONGER)
    idle = idle_powers(run)
    log = _Log.of(run, int(samples["start_us"].min()), int(samples["end_us"].max()))
    trials_us = _borders_us(run)
    names = ("start_us", "end_us", "weight_s", "util_pct", "power_w", *optional)
    columns = {name: samples[name].to_numpy() for name in names}
    rows = {gpu: _one_gpu(_Own.of(columns, own), idle[gpu], log, trials_us) for gpu, own in slices(samples)}
    per_gpu = pd.DataFrame.from_dict(rows, orient="index").rename_axis("gpu")
    goes_on, written_s = False, math.nan
    if (per_gpu["low_s"] > 0).any():
        longest = per_gpu.loc[per_gpu["low_s"].idxmax()]
        start_us = int(microseconds(pd.Series([longest["low_start"]]))[0])
        end_us = start_us + int(longest["low_s"] * SECOND_US)
        goes_on, written_s = log.writes_within(start_us, end_us), log.written_s(start_us, end_us)
    return StandstillProfile(
        per_gpu=per_gpu,
        stops_short=log.stops_short,
        goes_on=goes_on,
        written_s=written_s,
        last_step=log.last_step,
        total_steps=log.total_steps,
        coverage_pct=least_pct(coverage_pct(run, samples).values()),
    )


@dataclass(frozen=True)
class _Log:
    """Times of the lines on steps, in order, the usual step between them, and up to when the log goes on with any other
    dated lines; the last step, where it stops short within the telemetry.
    """

    time_us: np.ndarray
    usual_us: float
    until_us: float
    stops_short: bool
    last_step: float
    total_steps: float

    @classmethod
    def of(cls, run: Run, first_us: int, last_us: int) -> _Log:
        lines = run.steps.dropna(subset=["time"]) if len(run.steps) else run.steps
        time_us = np.sort(microseconds(lines["time"])) if len(lines) else np.zeros(0, np.int64)
        between_us = np.diff(np.unique(time_us))
        usual = float(np.median(between_us)) if len(between_us) else 0.0
        last_s = lines["last_s"].fillna(0.0).to_numpy(float) if "last_s" in lines else np.zeros(len(lines))
        until_us = float((microseconds(lines["time"]) + SECOND_US * last_s).max()) if len(lines) else -math.inf
        nothing = cls(time_us, usual, until_us, False, math.nan, math.nan)
        if not len(lines) or "total" not in lines or not first_us <= time_us[-1] <= last_us:
            return nothing
        last = lines.loc[lines["time"] == lines["time"].max()].iloc[-1]
        step, total = float(last["step"]), float(last["total"]) if pd.notna(last["total"]) else math.nan
        return cls(time_us, usual, until_us, True, step, total) if step < total else nothing

    @property
    def slack_us(self) -> float:
        """How long after a line the next one is still due."""
        return max(LINES * self.usual_us, SLACK_S * SECOND_US)

    def writes_within(self, start_us: int, end_us: int) -> bool:
        """Whether lines were written in a stretch, but for those that may tell of steps before it."""
        return bool(((self.time_us > start_us + self.slack_us) & (self.time_us <= end_us)).any())

    def written_s(self, start_us: int, end_us: int) -> float:
        """Seconds of a stretch behind the last step up to the last line of any kind; NaN for any other stretch, and
        where all lines may tell of what was before it.
        """
        until_us, due_us = min(self.until_us, float(end_us)), start_us + self.slack_us
        behind = len(self.time_us) > 0 and self.time_us[-1] <= due_us < until_us
        return (until_us - start_us) / SECOND_US if behind else math.nan

    def is_silent_from(self, start_us: int) -> bool:
        """Whether a stretch begins with the last line on a step, and no line tells of it."""
        return bool(start_us <= self.time_us[-1] + self.slack_us and self.until_us <= start_us + self.slack_us)


def _borders_us(run: Run) -> np.ndarray:
    """Starts and ends of the trials."""
    times = [microseconds(run.trials[name].dropna()) for name in ("start", "end") if name in run.trials]
    return np.concatenate(times) if times else np.zeros(0, np.int64)


@dataclass(frozen=True)
class _Own:
    """Columns of one GPU as arrays; memory is NaN where it was not recorded."""

    start_us: np.ndarray
    end_us: np.ndarray
    weight_s: np.ndarray
    util: np.ndarray
    power: np.ndarray
    memory: np.ndarray

    @classmethod
    def of(cls, columns: dict[str, np.ndarray], own: slice) -> _Own:
        part = {name: values[own].astype(float) for name, values in columns.items() if name not in _BORDERS}
        memory = part.get("mem_used_mib", np.full(len(part["power_w"]), math.nan))
        start_us, end_us = (columns[name][own] for name in _BORDERS)
        return cls(start_us, end_us, part["weight_s"], part["util_pct"], part["power_w"], memory)


_BORDERS = ("start_us", "end_us")
_NONE = {
    "low_s": 0.0, "low_start": pd.NaT, "low_util_pct": math.nan, "low_w": math.nan, "before_w": math.nan,
    "idle_w": math.nan, "low_ratio": math.nan, "least_low_ratio": math.nan, "is_flat": False, "after_log": False,
}  # fmt: skip


def _one_gpu(c: _Own, idle: IdlePower, log: _Log, trials_us: np.ndarray) -> dict[str, object]:
    busy, floor = c.util >= SATURATED_PCT, idle.most_w  # the greatest that is possible, to see all that may be low
    low = _below(c, busy, floor, LEVEL)
    found, after_log = _fall(c, busy, low), False
    if log.stops_short:
        below = _below(c, busy, floor, LOGGED_LEVEL)
        at_last = _fall(c, busy, below & (c.start_us > log.time_us[-1]))
        if at_last is not None and log.is_silent_from(int(c.start_us[at_last[0]])):
            after_log = not _is_phase(c, at_last, busy, below)
        found = at_last if after_log else found
    if found is None:
        return {**_NONE, "idle_w": idle.seen_w}
    begin, end, earlier = found
    before_w, low_w = float(np.median(c.power[earlier])), float(np.median(c.power[begin:end]))
    start_us, end_us = int(c.start_us[begin]), int(c.end_us[end - 1])
    least, most = idle.shares(np.array([low_w]), before_w)
    apart = (trials_us > start_us - SLACK_S * SECOND_US) & (trials_us < end_us - SLACK_S * SECOND_US)
    return {
        "low_s": (end_us - start_us) / SECOND_US,
        "low_start": pd.Timestamp(start_us, unit="us", tz="UTC"),
        "low_util_pct": weighted_mean(c.util[begin:end], c.weight_s[begin:end]),
        "low_w": low_w,
        "before_w": before_w,
        "idle_w": idle.seen_w,
        "low_ratio": float(most[0]),
        "least_low_ratio": float(least[0]),
        "is_flat": _is_still(c, begin, end, before_w)
        and not _works_after(c, end, busy & ~low)
        and not _is_phase(c, found, busy, low)
        and not apart.any(),
        "after_log": after_log,
    }


def _fall(c: _Own, busy: np.ndarray, low: np.ndarray) -> tuple[int, int, np.ndarray] | None:
    """First sample of the longest stretch of low power, the one after it, and the samples of work before it; None where
    these are too few.
    """
    first, last = stretches(low, c.start_us, c.end_us)
    if not len(first):
        return None
    longest = int((c.end_us[last] - c.start_us[first]).argmax())
    begin, end = int(first[longest]), int(last[longest]) + 1
    earlier = np.flatnonzero(busy[:begin] & ~low[:begin])
    return (begin, end, earlier) if c.weight_s[earlier].sum() >= HIGH_S else None


def _below(c: _Own, busy: np.ndarray, floor: float, level: float) -> np.ndarray:
    """True where the GPU is busy below that level of the range up to the power that it drew while busy for 5 min."""
    order = np.flatnonzero(busy)[np.argsort(-c.power[busy], kind="stable")]
    enough = np.cumsum(c.weight_s[order]) >= HIGH_S
    if not enough.any():
        return np.zeros(len(busy), bool)
    top = c.power[order[enough.argmax()]]
    return np.asarray(busy & (c.power < floor + level * (top - floor)))


def _is_still(c: _Own, begin: int, end: int, before_w: float) -> bool:
    """Whether utilization is full, and power and memory do not move; the sample at the fall may be of both."""
    inner = slice(begin + 1, end) if end - begin > 2 else slice(begin, end)
    low, high = np.percentile(c.power[inner], (5, 95))
    memory = c.memory[max(begin - 1, 0) : end]
    memory = memory[~np.isnan(memory)]
    moved = len(memory) and memory.max() - memory.min() > SAME_MEMORY * memory.max()
    full = weighted_mean(c.util[inner], c.weight_s[inner]) >= FULL_PCT
    return bool(full and high - low <= FLAT * before_w and not moved)


def _is_phase(c: _Own, found: tuple[int, int, np.ndarray], busy: np.ndarray, low: np.ndarray) -> bool:
    """Whether the GPU worked on by itself after a stretch like this one, before it."""
    begin, end, earlier = found
    apart_w = FLAT * float(np.median(c.power[earlier]))
    low_w, low_us = float(np.median(c.power[begin:end])), int(c.end_us[end - 1] - c.start_us[begin])
    first, last = stretches(low[:begin], c.start_us[:begin], c.end_us[:begin])
    return any(
        low_us <= PHASE * (c.end_us[b] - c.start_us[a])
        and abs(float(np.median(c.power[a : b + 1])) - low_w) <= apart_w
        and _works_after(c, b + 1, busy & ~low)
        for a, b in zip(first.tolist(), last.tolist(), strict=True)
        if b + 1 < begin
    )


def _works_after(c: _Own, end: int, at_work: np.ndarray) -> bool:
    """Whether the GPU works on at high power without having been idle: what hangs does not go on by itself."""
    after = np.flatnonzero(at_work[end:] | (c.util[end:] < BUSY_PCT))
    return bool(len(after) and at_work[end + after[0]])
