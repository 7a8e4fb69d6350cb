"""Memory that grows over the run, and memory that stays after it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import scipy

from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._ends.out_of_memory import growth_filled, out_of_memory
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._gpu.fills import FULL, Fill, fills
from gpudiag.measures._gpu.gpu_rows import by_gpu
from gpudiag.measures._gpu.restarts import was_restarted
from gpudiag.measures._time.activity import activity
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.coverage import coverage_pct, least_pct
from gpudiag.measures._time.expected import trials_window
from gpudiag.measures._time.microseconds import SECOND_US, microseconds
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.measures._trials.abandoned import find_open_trials
from gpudiag.measures._trials.memory_falls import falls_at_ends
from gpudiag.measures._waits.logged import LoggedInterval, logged_trainings
from gpudiag.measures.attribution import measure_attribution
from gpudiag.measures.base import Profile, clocks_may_differ, need_gpu, need_two_samples
from gpudiag.measures.failures import trial_ends
from gpudiag.memo import memoized
from gpudiag.run import Run

GROWTH = ["slope_pct_h", "p_rise", "rise_pct", "rise_mib", "span_s"]
BLOCKS = 20
MIN_PER_BLOCK = 3
SETTLE_S = 10.0
MIN_AFTER = 2
JUMP = 3.0
"""A step of this many median steps leads to another level."""
FEW = 3
"""Jumps between four levels: of five, fewer than one order in a hundred rises."""
GROWS = 0.01
LONG = 0.25
"""A trial that takes this share of the time or more may itself be what grows."""
MOST_LATE = 0.8
"""Share of the trials that ran out of memory, and began when half of the growth was over, from which on it is why."""
SPARE = 0.1
"""Of the total: growth is measured over the middle of the search, and goes on."""
LOADED = 0.9
MOST_ALIKE = 0.95
"""Correlation of neighbours beyond which twenty blocks say nothing more."""


class GpuLeak(Row):
    """A GPU, of memory in use in the middle 90 % of the samples with trials (of all without; where a training ran out
    of memory, of those from its first step or its last restart up to then); NaN with too few.
    """

    slope_pct_h: Column[float] = column(
        "Theil-Sen slope, per cent of the total per hour, of the minima of 20 blocks of samples, without what trials "
        "free at their end",
        label="growth of the floor",
    )
    p_rise: Column[float] = column(
        "one-sided Mann-Kendall over these blocks, less sure where neighbors resemble each other",
        label="chance of such growth by luck (p)",
    )
    rise_pct: Column[float] = column(
        "slope times the time between first and last block, at most what the last three exceed the first three by",
        label="growth, of the total",
    )
    rise_mib: Column[float] = column("the same in memory", label="growth")
    span_s: Column[float] = column("that time")
    ran_out: Column[bool] = column(
        "a training ran out of GPU memory, and what was in use at most in its first tenth is nearly all (90 %) with "
        "the growth up to then; or trials did, of which four in five began when half of the growth was over, and what "
        "others took at most is nearly all with the growth"
    )
    n_fills: Column[float] = column(
        "times that memory in use reached 90 % of the total and then fell by a fifth of it, as a job ended and was "
        "started again, without trials",
        label="times nearly full, and then freed",
    )
    n_open_fills: Column[float] = column("the same where it is open whether a job was started again")
    fill_slope_pct_h: Column[float] = column(
        "least growth up to such a fall of either kind, as above", label="growth up to each"
    )
    p_fill: Column[float] = column("the greatest p of these", label="chance of such growth by luck (p)")
    fill_rise_pct: Column[float] = column("the least rise of these", label="growth each time, of the total")
    fill_mib: Column[float] = column("the same in memory, the median", label="growth each time")
    fill_s: Column[float] = column("median of the times in which it grew so", label="time of that growth")
    after_mib: Column[float] = column(
        "median of memory from 10 s after the end of the last trial and of what the GPU worked after it; NaN where it "
        "works until the record ends",
        label="after the last trial",
    )
    before_mib: Column[float] = column(
        "median before the first trial, else the least of the record", label="before the first trial"
    )
    residual_mib: Column[float] = column("their difference", label="left over")
    residual_high_mib: Column[float] = column(
        "the most that can be left over: the least after the last trial less that before the first"
    )
    after_s: Column[float] = column("observed time after the last trial", label="observed after it")


class LeakProfile(Profile, topic="leak"):
    """Whether memory in use grew, and whether some was left after the last trial."""

    per_gpu: Rows = table_of(GpuLeak)
    n_open: Fact[int] = fact("trials without an end")
    freed_pct: Fact[float] = fact("COMPLETE and PRUNED trials at whose end memory fell by 300 MiB or more")
    ended: Fact[bool] = fact("the record goes on after the last trial")
    coverage_pct: Fact[float] = fact("observed part of the run, the least of all GPUs")
    has_trials: Fact[bool] = fact("there are trials, which may free memory")
    clock_open: Fact[bool] = fact("trials and telemetry may lie apart")


@memoized
def measure_leak(run: Run) -> LeakProfile:
    """Growth and remains of memory on each GPU. Needs gpu.mem_used_mib."""
    need_gpu(run, "mem_used_mib")
    samples = cells(run, "mem_used_mib", *({"util_pct"} & set(run.gpu)))
    need_two_samples(samples["weight_s"].sum() > 0, "GPU's memory")
    window = trials_window(run)
    totals = gpu_boards(run)["total_mib"]
    alive = find_open_trials(run) if len(run.trials) else None
    n_open = 0 if alive is None else int((~alive["abandoned"].astype(bool)).sum())
    low, high = window or (0, 0)
    lived = intervals_of(run)
    lived = lived[lived["known"] & (window is not None)]
    freed = np.zeros(len(lived), bool)
    well = (
        lived["state"].isin(("COMPLETE", "PRUNED")) & lived["end"].between(samples["time"].min(), samples["time"].max())
    ).to_numpy()
    told = [one for training in logged_trainings(run) for one in training.intervals]
    ran_out = None if len(run.trials) else out_of_memory(run)
    rows: dict[object, dict[str, float]] = {}
    for gpu, part in by_gpu(samples):
        time, used = part["time"].to_numpy("datetime64[us]").astype(np.int64), part["mem_used_mib"].to_numpy(float)
        total = float(totals.get(gpu, math.nan))
        held, falls = _held_by_trials(time, used, lived, LONG * (high - low))
        freed |= falls
        floor = np.where(used - held < used.min(), used, used - held)  # less than ever: a trial had not yet loaded
        util = part["util_pct"].to_numpy(float) if "util_pct" in part else np.full(len(part), math.nan)
        limit = math.nan if len(run.trials) else total
        filled = _filled(time, used, util, limit, told)
        if ran_out is None:
            grew = _growth(time, floor, total, window)
            grew["ran_out"] = _trials_ran_out(run, str(gpu), time, used, floor, grew["rise_mib"], total)
        else:
            its = ran_out.samples(time, [fill for fill, again in filled if again], BLOCKS * MIN_PER_BLOCK)
            grew = _growth(time[its], used[its], total, None)
            grew["ran_out"] = growth_filled(used[its], grew["rise_mib"], total)
        grew |= _fills(time, used, limit, filled)
        weight_s, doubted = part["weight_s"].to_numpy(), _with_doubt(window, run)
        rows[gpu] = grew | _remains(time, used, activity(util), weight_s, doubted)
    per_gpu = pd.DataFrame.from_dict(rows, orient="index").rename_axis("gpu")
    coverage = coverage_pct(run, samples)
    return LeakProfile(
        per_gpu,
        n_open,
        100 * float(freed[well].mean()) if well.any() else math.nan,
        bool((per_gpu["after_s"] > 0).any()),
        least_pct(coverage.values()),
        len(run.trials) > 0,
        clocks_may_differ(run),
    )


def _held_by_trials(
    time: np.ndarray, used: np.ndarray, lived: pd.DataFrame, long_us: float
) -> tuple[np.ndarray, np.ndarray]:
    """MiB at each sample that trials free at their end, and at which of their ends memory falls.

    From the middle of its life on, if memory has risen by as much since its start: before, a trial may still load.
    Without this the least of a block is what stays; with it 2, 7 and 8 % of 60 simulated searches each with 3, 4
    and 8 trials at once that keep nothing "grew".
    """
    start, end = microseconds(lived["start"]), microseconds(lived["end"])
    left, size, whose, freed = falls_at_ends(time, used, end)
    began = np.searchsorted(time, start[whose])
    middle = np.searchsorted(time, (start[whose] + end[whose]) // 2)
    falls = np.searchsorted(time, left, "right")
    own = (began < middle) & (middle < falls) & ((end - start)[whose] < long_us)
    began, middle, falls, size = began[own], middle[own], falls[own], size[own]
    held = np.zeros(len(time) + 1)
    if len(size):
        least = np.minimum.reduceat(used, np.column_stack([began, middle]).ravel())[::2]
        loaded = used[middle] - least >= LOADED * size
        np.add.at(held, middle[loaded], size[loaded])
        np.add.at(held, falls[loaded], -size[loaded])
    return np.cumsum(held)[:-1], freed


def _growth(time: np.ndarray, used: np.ndarray, total_mib: float, window: tuple[int, int] | None) -> dict[str, float]:
    within = np.arange(len(time)) if window is None else np.flatnonzero((time >= window[0]) & (time <= window[1]))
    kept = within[len(within) // 20 : len(within) - len(within) // 20]
    at, value = time[kept], used[kept]
    if len(at) < BLOCKS * MIN_PER_BLOCK:
        return dict.fromkeys(GROWTH, math.nan)
    first = np.arange(BLOCKS) * len(at) // BLOCKS
    least = np.minimum.reduceat(value, first)
    hours = (np.add.reduceat((at - at[0]) / SECOND_US, first) / np.diff(np.append(first, len(at)))) / 3600
    slope = _slope(hours, least)
    rise = min(slope * float(hours[-1] - hours[0]), float(least[-3:].max() - least[:3].min()))
    values = (
        100 * slope / total_mib,
        _mann_kendall(least),
        100 * rise / total_mib,
        rise,
        float(hours[-1] - hours[0]) * 3600,
    )
    return dict(zip(GROWTH, values, strict=True))


def _trials_ran_out(
    run: Run, gpu: str, time: np.ndarray, used: np.ndarray, floor: np.ndarray, rise_mib: float, total_mib: float
) -> bool:
    """Whether growth took the room that trials lacked: they ran out late, and had found it before."""
    if not rise_mib > 0 or run.trials.empty:
        return False
    ends = trial_ends(run)
    ours = measure_attribution(run).trials["gpu"].fillna(gpu).astype(str).str.split(",").map(lambda names: gpu in names)
    began = microseconds(ends.loc[((ends["kind"] == "oom") & ends["start"].notna() & ours).to_numpy(), "start"])
    before = time < began.min() if len(began) else np.zeros(len(time), bool)
    if before.sum() < BLOCKS:
        return False
    first = np.arange(BLOCKS) * len(time) // BLOCKS
    least = np.minimum.reduceat(floor, first)
    half = np.flatnonzero(least >= least[: BLOCKS // 4].min() + rise_mib / 2)
    late = len(half) > 0 and float((began >= time[first[half[0]]]).mean()) >= MOST_LATE
    need_mib = float(np.max(used[before] - floor[before]) + floor.min())
    return late and need_mib < FULL * total_mib <= need_mib + rise_mib + SPARE * total_mib


def _filled(
    time: np.ndarray, used: np.ndarray, util: np.ndarray, total_mib: float, told: Sequence[LoggedInterval]
) -> list[tuple[Fill, bool | None]]:
    """Each fall of memory that was nearly full, and whether a restart goes with it (None: open)."""
    return [
        (fill, was_restarted(time, used, util, (fill.samples.stop - 1, fill.freed), told))
        for fill in fills(used, total_mib)
    ]


def _fills(
    time: np.ndarray, used: np.ndarray, total_mib: float, filled: Sequence[tuple[Fill, bool | None]]
) -> dict[str, float]:
    """Growth up to each fall of memory that was nearly full, but for those that no restart goes with. NaN for the total
    where trials free theirs at each end.
    """
    parts = [fill.samples for fill, restarted in filled if restarted is not False]
    grown = pd.DataFrame([_growth(time[part], used[part], total_mib, None) for part in parts], columns=GROWTH)
    restarts = [restarted for _, restarted in filled]
    known = not math.isnan(total_mib)
    return {
        "n_fills": float(restarts.count(True)) if known else math.nan,
        "n_open_fills": float(restarts.count(None)) if known else math.nan,
        "fill_slope_pct_h": grown["slope_pct_h"].min(skipna=False),
        "p_fill": grown["p_rise"].max(skipna=False),
        "fill_rise_pct": grown["rise_pct"].min(skipna=False),
        "fill_mib": grown["rise_mib"].median(),
        "fill_s": grown["span_s"].median(),
    }


def _slope(x: np.ndarray, y: np.ndarray) -> float:
    """Median of the slopes between any two points (Theil-Sen); x rises. SciPy's takes a third of a second to import."""
    before, after = np.triu_indices(len(x), 1)
    return float(np.median((y[after] - y[before]) / (x[after] - x[before])))


def _mann_kendall(values: np.ndarray) -> float:
    """One-sided p of a rising trend over blocks, of which those that share a trial resemble each other.

    Growth between the jumps from one level to another is growth; jumps alone are trials of differing size, and their
    order may be chance. Of 400 simulated runs of 3, 5 and 8 levels 7, 2 and 1 % "grew" at 1 % (17, 14 and 7 % without).
    Two to four levels rise by chance too often: of the orders of four, one in 24 does.
    """
    step = np.abs(np.diff(values))
    jump = step > JUMP * np.median(step)
    jump[1:-1] &= ~(jump[:-2] & jump[2:])  # between two others it is part of a rise
    between = np.split(values, np.flatnonzero(jump) + 1)
    if jump.sum() > len(values) / 2 or _chance(between, 1.0) < GROWS:
        return _chance([values], 1.0)
    return max(_chance([values], _repetition(values)), _by_order(step))


def _by_order(step: np.ndarray) -> float:
    """How likely two to four levels rise by chance; 0 where these steps lead to no such levels, or to more of them."""
    size = np.sort(step)[::-1][: FEW + 1]
    n_jumps = 1 + int(np.argmax(size[:-1] - JUMP * size[1:] > 0))
    return 1 / math.factorial(n_jumps + 1) if size[n_jumps - 1] > JUMP * size[n_jumps] else 0.0


def _chance(parts: Sequence[np.ndarray], repetition: float) -> float:
    """One-sided p of a rising trend in all parts: normal approximation with the correction for ties (Kendall 1975).

    And with that for continuity, which ``scipy.stats.kendalltau`` leaves out: its p is 10 to 20 % smaller at 20 blocks.
    """
    score, variance = 0.0, 0.0
    for values in parts:
        n = len(values)
        score += float(np.triu(np.sign(values[None, :] - values[:, None]), 1).sum())
        ties = np.unique(values, return_counts=True)[1]
        variance += (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if not variance > 0:
        return 1.0
    return float(scipy.special.ndtr(-(score - np.sign(score)) / math.sqrt(variance * repetition)))


def _repetition(values: np.ndarray) -> float:
    """How many times as much the score varies where neighbours resemble each other (Hamed & Rao 1998, as AR(1)).

    From the ranks left when the trend is taken away, their correlation freed of its bias (Kendall 1954); 1 without any.
    """
    n = len(values)
    place = np.arange(n)
    left = values - _slope(place, values) * place
    if np.ptp(left) <= 1e-9 * np.ptp(values):
        return 1.0
    rank = pd.Series(left).rank().to_numpy() - (n + 1) / 2
    alike = (float(rank[1:] @ rank[:-1]) / float(rank @ rank) + 1 / n) / (1 - 3 / n)
    lags = place[1:]
    return 1 + 2 * float(((1 - lags / n) * min(max(alike, 0.0), MOST_ALIKE) ** lags).sum())


def _with_doubt(window: tuple[int, int] | None, run: Run) -> tuple[int, int] | None:
    """The time of the trials with so much on both sides as their clock may differ; None where nobody knows how much."""
    doubt_s = run.info.clock.doubt_s
    if window is None or math.isinf(doubt_s):
        return None
    return window[0] - int(doubt_s * SECOND_US), window[1] + int(doubt_s * SECOND_US)


def _remains(
    time: np.ndarray, used: np.ndarray, at_work: np.ndarray, weight_s: np.ndarray, window: tuple[int, int] | None
) -> dict[str, float]:
    """Memory after the last trial: what works on beside or after the trials holds its own, which is not left over."""
    out = dict.fromkeys(("after_mib", "before_mib", "residual_mib", "residual_high_mib", "after_s"), math.nan)
    if window is None:
        return out
    settle_us = int(SETTLE_S * SECOND_US)
    after, before = time > window[1] + settle_us, time < window[0]
    if after.sum() < MIN_AFTER:
        return {**out, "after_s": 0.0}
    base = float(np.median(used[before])) if before.any() else float(used.min())
    high = float(used[after].min()) - base
    out |= {"before_mib": base, "residual_high_mib": high, "after_s": float(weight_s[after].sum())}
    still = after & (time > time[at_work].max(initial=window[1]) + settle_us)
    if still.sum() < MIN_AFTER:
        return out
    end = float(np.median(used[still]))
    return {**out, "after_mib": end, "residual_mib": end - base}
