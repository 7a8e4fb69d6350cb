"""Waits within the work of a GPU: regular ones with their period, and irregular ones."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import scipy

from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.gpu_rows import gpu_order
from gpudiag.measures._steps.epoch_times import epoch_time
from gpudiag.measures._time.activity import LONGEST_WAIT_S
from gpudiag.measures._time.cells import longest_period_s
from gpudiag.measures._time.idle import period_by_gpu, period_of, without_pauses
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.no_waits import are_no_waits, between_jobs
from gpudiag.measures._time.periodicity import Period
from gpudiag.measures._time.weighted import weighted_mean, weighted_quantiles
from gpudiag.measures._time.work import WorkSamples, stretches, work_by_gpu, work_coverage_pct, work_without_trials
from gpudiag.measures._waits.beats import Drops, Reading, reading_of, step_through, too_sharp
from gpudiag.measures._waits.divided import logged_gpus
from gpudiag.measures.base import (
    Profile,
    clocks_may_differ,
    need_gpu,
    need_two_samples,
    need_unset_clock,
)
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT

NEAR = 0.25
PER_TRIAL = 2
"""Idle stretches that a trial may leave by itself: its start-up and its end."""
BRIEF = 0.1
"""Share of stretches of work that one sample shows, or of steps between such dips that are no multiple of the period,
from which on others are between samples (a default without a published source)."""
LONGER = 2.0
"""Dips more than twice as long as most of the time in them, and two samples more, are none of the period's."""
SHARP = 0.125
MAX_CHANCE = 0.01
"""A period is told where, by chance, so many dips have another within an eighth of it in a hundredth of records
(defaults without a published source). Measured on 480 records of uniform, exponential, gamma and lognormal waits: 16
had a period without this test, 3 with it; of 150 with a scatter of up to 20 % and 10 cycles or more: 148 and 139.
"""

DIPS = ("acf", "period_s", "n_dips", "regular_pct", "depth_pct", "width_s", "lost_pct", "most_lost_pct", "beat_s")
NO_DIPS: dict[str, object] = {
    **dict.fromkeys(DIPS, math.nan), "reading": "", "epoch_s": math.nan, "is_uncounted": False, "is_multiple": False,
}  # fmt: skip


class GpuStalls(Row):
    """A GPU at work."""

    work_s: Column[float] = column("observed time at work; without trials less pauses, idle for more than 10 min")
    p95_pct: Column[float] = column("95th percentile of utilization at work")
    stalled_s: Column[float] = column("time below 10 % utilization", label="stalled for")
    stalled_pct: Column[float] = column("its share of work_s", label="time stalled")
    unclear_s: Column[float] = column(
        "time below 10 % that may be a stall or the start-ups and ends of trials that share the GPU, no part of work_s"
    )
    n_stalls: Column[float] = column("stalls", label="stalls")
    longest_stall_s: Column[float] = column("longest of them", label="longest stall")
    is_single: Column[bool] = column(
        "most of stalled_s lies in stalls of a single sample, whose number and length are open",
        label="mostly single samples",
    )
    is_brief: Column[bool] = column(
        "a tenth or more of the stretches of work between stalls is a single sample: as short ones may lie between "
        "samples, and then the stalls are more, and shorter"
    )
    no_kernel_pct: Column[float] = column("share of the work without a kernel")
    brief_lost_pct: Column[float] = column("share of the work that drops of a single sample cost, regular or not")
    through_s: Column[float] = column(
        "time of a step, where the log's steps go on through stalls that seem longer than one; else NaN"
    )
    acf: Column[float] = column(
        "height of the first peak of the autocorrelation, NaN without one", label="autocorrelation at the period"
    )
    period_s: Column[float] = column("where that peak is", label="every")
    n_dips: Column[float] = column("dips that repeat with it", label="dips seen")
    regular_pct: Column[float] = column("share of the steps from dip to dip within a quarter of the period")
    depth_pct: Column[float] = column("points below the level between dips", label="deep by")
    width_s: Column[float] = column("width of a dip, the median of the time in dips", label="each lasting")
    lost_pct: Column[float] = column(
        "share of the work that these dips cost; of a beat the share without a kernel", label="utilization lost"
    )
    most_lost_pct: Column[float] = column(
        "the most that it is: without a kernel, where they are a wait a step or may be a beat"
    )
    reading: Column[str] = column(
        "what the dips are: waits as long as they look, one a step, a beat of the samples with waits in each step, or "
        "open between both; '' without a period"
    )
    beat_s: Column[float] = column("time of a step that is the period or beats with the samples, NaN unknown")
    epoch_s: Column[float] = column("time of an epoch that the log counts, where a dip comes once in each; else NaN")
    is_uncounted: Column[bool] = column("these dips lie in time that no clock of the log counts, as between its bars")
    is_multiple: Column[bool] = column(
        "the period may be a fraction of this one: dips as short as a sample also come a part of it after another"
    )
    open_pct: Column[float] = column(
        "idle time of which a clock in doubt leaves open whether it is a wait, as a share of it and the work"
    )


class StallsProfile(Profile, topic="stalls"):
    """Stalls and regular dips of GPUs at work."""

    per_gpu: Rows = table_of(GpuStalls)
    coverage_pct: Fact[float] = fact("observed part of the run, the least of all GPUs")
    sampling_period_s: Fact[float] = fact(
        "median step between samples, of the GPU sampled least often; what is shorter cannot be seen"
    )


@memoized
def measure_stalls(run: Run) -> StallsProfile:
    """Stalls of each GPU while it was at work. Needs gpu.util_pct. Where trials are not joined, so few that each trial
    may have left the GPU idle are open.
    """
    need_gpu(run, "util_pct")
    need_unset_clock(run)
    works = work_by_gpu(run)
    need_two_samples(bool(works))
    clock = run.info.clock
    in_doubt = clock.joined and not clock.exact
    open_pct = {gpu: _open_pct(work) if in_doubt else 0.0 for gpu, work in works.items()}
    if math.isfinite(clock.doubt_s) or not any(open_pct.values()):
        periods = period_by_gpu(run)
        rows = {gpu: _one_gpu(run, gpu, works[gpu], periods[gpu]) for gpu in gpu_order(works)}
    else:
        works = work_without_trials(run)
        rows = {gpu: _of_no_trial(run, gpu, works[gpu]) for gpu in gpu_order(works)}
    if not clock.joined and clocks_may_differ(run):
        for gpu, row in rows.items():
            if row["n_stalls"] <= PER_TRIAL * len(run.trials):  # type: ignore[operator]
                open_pct[gpu] = row["stalled_pct"]  # type: ignore[assignment]
                rows[gpu] = _of_no_trial(run, gpu, works[gpu])
    per_gpu = pd.DataFrame.from_dict(rows, orient="index").rename_axis("gpu").assign(open_pct=pd.Series(open_pct))
    period_s = longest_period_s(work.time_us for work in works.values())
    return StallsProfile(per_gpu, work_coverage_pct(run, works), period_s)


def _open_pct(work: WorkSamples) -> float:
    """The share of idle time that may be part of the work, or not, in it and the work."""
    idle_s, worked_s = (float(work.weight_s[own].sum()) for own in (work.unclear, work.at_work))
    return 100 * idle_s / (idle_s + worked_s) if idle_s else 0.0


def _one_gpu(run: Run, gpu: str, work: WorkSamples, period: Period | None) -> dict[str, object]:
    at, weight = without_pauses(work, between_jobs(run)), work.weight_s
    worked = float(weight[at].sum())
    low, high, p95 = weighted_quantiles(work.util_pct[at], weight[at], (0.02, 0.75, 0.95))
    first, last = stretches(at & (work.util_pct < (low + high) / 2), work.start_us, work.end_us)
    return {
        "work_s": worked,
        "p95_pct": p95,
        "no_kernel_pct": 100 - weighted_mean(work.util_pct[at], weight[at]),
        "brief_lost_pct": _lost_pct(work, first[first == last], high, worked),
        **_stalls(run, gpu, work, worked),
        **_dips(run, gpu, replace(work, at_work=at), worked, period, (low, high), (first, last)),
    }


def _of_no_trial(run: Run, gpu: str, work: WorkSamples) -> dict[str, object]:
    """The row of a GPU of which nobody knows when its trials began and ended: each of these may leave it idle once, so
    that more dips at one period are no start-ups. Single ones may be.
    """
    row = _one_gpu(run, gpu, work, period_of(work, between_jobs(run)))
    if not row["n_dips"] > PER_TRIAL * len(run.trials):  # type: ignore[operator]
        row |= NO_DIPS
    unclear_s = row["stalled_s"]
    names = ("stalled_s", "stalled_pct", "n_stalls", "longest_stall_s", "through_s", "brief_lost_pct")
    open_ = dict.fromkeys(names, math.nan)
    return row | open_ | {"is_single": False, "is_brief": False, "unclear_s": unclear_s}


def _stalls(run: Run, gpu: str, work: WorkSamples, worked: float) -> dict[str, object]:
    first, last = stretches(work.at_work & (work.util_pct < IDLE_PCT), work.start_us, work.end_us)
    start, end = work.start_us[first], work.end_us[last]
    own = ~are_no_waits(start, end, between_jobs(run)) | work.from_trials
    lengths = (end - start)[own] / SECOND_US
    other = np.column_stack([start[~own], end[~own]])
    drops = Drops(start[own], end[own], other, (int(work.start_us[0]), int(work.end_us[-1])), sharp=False)
    total = float(lengths.sum())
    between = first[1:] - last[:-1] - 1
    return {
        "is_brief": bool(len(between) and (between == 1).mean() >= BRIEF),
        "is_single": bool(lengths[(first == last)[own]].sum() > total / 2),
        "stalled_s": total,
        "stalled_pct": 100 * total / worked if worked else math.nan,
        "unclear_s": float(work.weight_s[work.may_stall].sum()),
        "n_stalls": float(len(lengths)),
        "longest_stall_s": float(lengths.max()) if len(lengths) else 0.0,
        "through_s": step_through(run, logged_gpus(run).get(gpu), drops, _step_s(work)),
    }


def _dips(
    run: Run,
    gpu: str,
    work: WorkSamples,
    worked: float,
    found: Period | None,
    levels: tuple[float, float],
    dips: tuple[np.ndarray, np.ndarray],
) -> dict[str, object]:
    """The period of the utilization and what the dips that repeat with it cost."""
    if found is None:
        return NO_DIPS
    (low, high), (first, last) = levels, dips
    start, end = work.start_us[first], work.end_us[last]
    steps = np.diff(start) / SECOND_US
    near = np.abs(steps - found.period_s) <= NEAR * found.period_s
    apart = np.abs(steps - np.rint(steps / found.period_s) * found.period_s) > NEAR * found.period_s
    own = _at_the_period(start, end, found.period_s, work.step_us)
    (width_us,) = weighted_quantiles((end - start)[own], (end - start)[own], (0.5,))
    long = ~own & (end - start > LONGER * width_us + 2 * work.step_us)
    between = work.at_work & (np.abs(work.util_pct - (low + high) / 2) < (high - low) / 4)
    sharp = too_sharp(int(between.sum()), 2 * int(own.sum()), found.period_s, _step_s(work))
    span_us = int(work.start_us[0]), int(work.end_us[-1])
    drops = Drops(start[own], end[own], np.column_stack([start[~own], end[~own]]), span_us, sharp)
    reading = reading_of(run, logged_gpus(run).get(gpu), drops, found.period_s, _step_s(work))
    of_epochs = reading.kind in ("waits", "open")
    once = _once_an_epoch(run, found.period_s, width_us / SECOND_US) if of_epochs else (math.nan, False)
    if once[0] > 0:
        reading = Reading("waits")  # no chance puts a beat there
    elif of_epochs and _chance(start, end, own, found.period_s, work) > MAX_CHANCE:
        return NO_DIPS
    if width_us > LONGEST_WAIT_S * SECOND_US and not work.from_trials and reading.kind in ("waits", "open"):
        return NO_DIPS  # another load, as a longer idle stretch is a pause
    inside = _inside(first[own], last[own], len(work.at_work))
    lost_pct = _lost_pct(work, inside, high, worked)
    # A beat's dips are a small part of it: even between them each sample shows a wait, and never the full level.
    no_kernel_pct = _lost_pct(work, work.at_work & ~_inside(first[long], last[long], len(work.at_work)), 100.0, worked)
    values = (
        found.height,
        found.period_s,
        float(own.sum()),
        100 * float(near.mean()) if len(steps) else math.nan,
        high - weighted_mean(work.util_pct[inside], work.weight_s[inside]),
        width_us / SECOND_US,
        no_kernel_pct if reading.kind == "beat" else lost_pct,
        lost_pct if reading.kind == "waits" else no_kernel_pct,
        reading.step_s,
    )
    return {
        **dict(zip(DIPS, values, strict=True)),
        "reading": reading.kind,
        "epoch_s": once[0],
        "is_uncounted": once[1],
        "is_multiple": bool(width_us < 1.5 * work.step_us and apart.sum() >= BRIEF * len(steps) > 0),
    }


def _once_an_epoch(run: Run, period_s: float, width_s: float) -> tuple[float, bool]:
    """Time of an epoch that the log counts, where dips come once in each, and whether they lie in time beside that."""
    epoch = epoch_time(run)
    if epoch.once_uncounted(period_s, width_s):
        return epoch.counted_s, True
    return (epoch.counted_s if epoch.once(period_s) else math.nan), False


def _lost_pct(work: WorkSamples, held: np.ndarray, level_pct: float, worked_s: float) -> float:
    """What these samples lack of a level, as a share of the work at that level."""
    missing = (work.weight_s[held] * (level_pct - work.util_pct[held])).sum()
    return 100 * float(missing) / worked_s / level_pct if level_pct and worked_s else math.nan


def _at_the_period(start_us: np.ndarray, end_us: np.ndarray, period_s: float, step_us: float) -> np.ndarray:
    """The dips with one of about their width a period before or after, but for those whose width is unlike that of
    most of their time: a training that is down for minutes saves no checkpoint then.
    """
    least, most = ((1 + sign * NEAR) * period_s * SECOND_US for sign in (-1, 1))
    width = (end_us - start_us).astype(float)
    size = np.log2(width / step_us + 1).astype(int)
    own = np.zeros(len(width), bool)
    for one in np.unique(size):
        alike, mine = start_us[np.abs(size - one) <= 1], start_us[size == one]
        for low, high in ((mine + least, mine + most), (mine - most, mine - least)):
            own[size == one] |= np.searchsorted(alike, high, "right") > np.searchsorted(alike, low, "left")
    if not own.any():
        return own
    (usual,) = weighted_quantiles(width[own], width[own], (0.5,))
    return own & (width <= LONGER * usual + 2 * step_us) & (width >= usual / LONGER - 2 * step_us)


def _chance(start_us: np.ndarray, end_us: np.ndarray, own: np.ndarray, period_s: float, work: WorkSamples) -> float:
    """The chance that as many dips have another of about their width one period later, within an eighth of it and half
    a sampling period, where their times are irregular.

    The autocorrelation of irregular waits has a peak as well, at about the mean time from one to the next: with some 15
    of them it is above 0.2 in one record of eight. By chance dips at their rate, one a period at least, lie there as
    independent ones do (Poisson): of two irregular times in turn, as long as each other at most, no more do.
    """
    width = end_us - start_us
    (usual,) = weighted_quantiles(width[own], width[own], (0.5,))
    alike = start_us[(width <= LONGER * usual + 2 * work.step_us) & (width >= usual / LONGER - 2 * work.step_us)]
    period, near = period_s * SECOND_US, SHARP * period_s * SECOND_US + work.step_us / 2
    asked = alike[alike + period + near <= work.end_us[work.at_work][-1]]
    hits = np.searchsorted(alike, asked + period + near, "right") > np.searchsorted(
        alike, asked + period - near, "left"
    )
    observed_us = work.weight_s[work.at_work].sum() * SECOND_US
    by_chance = 1 - math.exp(-2 * near * max(len(alike) / observed_us, 1 / period))
    k, n = int(hits.sum()), len(asked)
    return float(scipy.special.betainc(k, n - k + 1, by_chance)) if k else 1.0


def _inside(first: np.ndarray, last: np.ndarray, n: int) -> np.ndarray:
    """True for the samples of some stretches."""
    edges = np.zeros(n + 1, np.int64)
    edges[first] += 1
    edges[last + 1] -= 1
    return np.cumsum(edges[:-1]) > 0


def _step_s(work: WorkSamples) -> float:
    """Mean time from sample to sample, without gaps."""
    steps = np.diff(work.time_us)
    return float(steps[steps <= 1.5 * work.step_us].mean()) / SECOND_US
