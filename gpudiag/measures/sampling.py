"""How well the telemetry covers the time: period, gaps and coverage. Observed time is the sum of the weights of samples
(:mod:`gpudiag.measures._time.cells`); the rest is unobserved.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._gpu.gpu_rows import slices
from gpudiag.measures._time.cells import caps_us, cells, seen_us
from gpudiag.measures._time.coverage import coverage_pct, least_pct
from gpudiag.measures._time.expected import expected_window, trials_window
from gpudiag.measures._time.microseconds import SECOND_US, median_of_steps, microseconds, utc
from gpudiag.measures._time.own_time import held_windows
from gpudiag.measures._time.trial_intervals import intervals_of
from gpudiag.measures.base import Profile, need_gpu, need_two_samples
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import text_dtype
from gpudiag.spans import Window, length_us, overlap


class GpuSampling(Row):
    """A GPU."""

    n_samples: Column[int] = column("samples")
    start: Column[pd.Timestamp] = column("first sample")
    end: Column[pd.Timestamp] = column("last sample")
    span_s: Column[float] = column("from the first to the last, of what attempts that had the GPU held")
    median_period_s: Column[float] = column("median step between samples")
    cap_s: Column[float] = column("longest time that one sample stands for")
    observed_s: Column[float] = column("observed part of it")
    unobserved_s: Column[float] = column("the rest of it, without samples")
    coverage_pct: Column[float] = column("observed time over the expected span")
    n_gaps: Column[int] = column("gaps", label="gaps")
    longest_gap_s: Column[float] = column("longest gap, 0 without gaps", label="longest gap")


class SamplingGap(Row):
    """A gap within one attempt: from the last timestamp before to the first after it, or to an edge of the attempt."""

    gpu: Column[str] = column("GPU")
    start: Column[pd.Timestamp] = column("last timestamp before, or start of the attempt", label="from")
    end: Column[pd.Timestamp] = column("first timestamp after, or end of the attempt")
    gap_s: Column[float] = column("length")
    trials_ended: Column[int] = column("trials that ended FAIL within it")
    share_pct: Column[float] = column(
        "share of the GPU's span that it leaves unobserved: the samples at its ends stand for part of it"
    )


class SamplingProfile(Profile, topic="sampling"):
    """What the telemetry covers. Duplicates and steps back in time are counted by the readers."""

    per_gpu: Rows = table_of(GpuSampling)
    gaps: Rows = table_of(SamplingGap)
    coverage_pct: Fact[float] = fact("observed time over the expected span, the least of all GPUs")
    median_period_s: Fact[float] = fact("median step between samples, of the GPU sampled least often")
    n_gaps: Fact[int] = fact("gaps of all GPUs")
    longest_gap_s: Fact[float] = fact("longest gap of any GPU, 0 without gaps")
    expected_s: Fact[float] = fact(
        "expected span: the trials' where there are any, else that of telemetry and logs; of attempts on other GPUs, "
        "the longest that one GPU was held",
        label="length of the run",
    )
    outside_pct: Fact[float] = fact(
        "share of telemetry outside the expected span, NaN without trials", label="observed outside the run"
    )


@memoized
def measure_sampling(run: Run) -> SamplingProfile:
    """Period, coverage and gaps per GPU. Needs at least two samples of one GPU."""
    need_gpu(run, "time")
    samples = cells(run)
    window = expected_window(run, samples)
    coverage = coverage_pct(run, samples, window)
    columns = [
        microseconds(samples["time"]),
        *(samples[name].to_numpy() for name in ("start_us", "end_us", "weight_s")),
    ]
    rows, gaps = {}, []
    for gpu, own in slices(samples):
        time, start, end, weight_s = (column[own] for column in columns)
        held = held_windows(run, gpu, [(int(start[0]), int(end[-1]))])
        rows[gpu], found = _one_gpu(time, start, end, weight_s, held)
        rows[gpu]["coverage_pct"] = coverage[gpu]
        gaps.append(found)
    per_gpu = pd.DataFrame.from_dict(rows, orient="index").rename_axis("gpu")
    need_two_samples(per_gpu["median_period_s"].notna().any())
    for name in ("start", "end"):
        per_gpu[name] = utc(per_gpu[name].to_numpy()).array
    all_gaps = _all_gaps(list(rows), gaps)
    all_gaps.insert(4, "trials_ended", _failed_within(all_gaps, run))
    return SamplingProfile(
        per_gpu=per_gpu,
        gaps=all_gaps,
        coverage_pct=least_pct(coverage.values()),
        median_period_s=float(per_gpu["median_period_s"].median()),
        n_gaps=len(all_gaps),
        longest_gap_s=float(per_gpu["longest_gap_s"].max()),
        expected_s=max(length_us(held_windows(run, gpu, [window])) for gpu in rows) / SECOND_US,
        outside_pct=_outside_pct(samples, window) if trials_window(run) else float("nan"),
    )


Gaps = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Of one GPU: start and end (microseconds), and the share of its span."""


def _one_gpu(
    time: np.ndarray, start_us: np.ndarray, end_us: np.ndarray, weight_s: np.ndarray, held: Sequence[Window]
) -> tuple[dict[str, object], Gaps]:
    """Figures of one GPU without its coverage, start and end in microseconds; and its gaps.

    ``held``: what of its record lies in attempts that had it. As in the ledger, the time between them is no gap.
    """
    step = np.diff(time)
    period = int(median_of_steps(step)) if len(step) else 0
    whole = list(held) == [(int(start_us[0]), int(end_us[-1]))]
    span_us = length_us(held)
    observed_s = (
        float(weight_s.sum()) if whole else sum(seen_us(start_us, end_us, window) for window in held) / SECOND_US
    )
    caps = caps_us(step, period)
    at = np.flatnonzero(step > caps)
    gaps = np.stack([time[at], time[at + 1], end_us[at], start_us[at + 1]], axis=1)
    if not whole:
        gaps = _within(gaps, np.broadcast_to(caps, step.shape)[at], held)
    gap_s = (gaps[:, 1] - gaps[:, 0]) / SECOND_US
    figures: dict[str, object] = {
        "n_samples": len(time),
        "start": time[0],
        "end": time[-1],
        "span_s": span_us / SECOND_US,
        "median_period_s": period / SECOND_US if len(step) else float("nan"),
        "cap_s": float(np.max(caps)) / SECOND_US if len(step) else float("nan"),
        "observed_s": observed_s,
        "unobserved_s": span_us / SECOND_US - observed_s,
        "coverage_pct": float("nan"),
        "n_gaps": len(gaps),
        "longest_gap_s": float(gap_s.max()) if len(gaps) else 0.0,
    }
    return figures, (gaps[:, 0], gaps[:, 1], 100 * (gaps[:, 3] - gaps[:, 2]) / span_us if span_us else gap_s)


def _within(gaps: np.ndarray, caps_us: np.ndarray, held: Sequence[Window]) -> np.ndarray:
    """What of the gaps (start, end, start and end of what no cell covers) lies within held time and is a gap there."""
    parts = overlap([(low, high) for low, high, *_ in gaps.tolist()], held)
    start, end = np.array(parts, np.int64).reshape(-1, 2).T
    of = np.searchsorted(gaps[:, 0], start, "right") - 1
    within = np.stack([start, end, np.maximum(start, gaps[of, 2]), np.minimum(end, gaps[of, 3])], axis=1)
    return within[end - start > caps_us[of]]


def _all_gaps(gpus: list[str], gaps: list[Gaps]) -> pd.DataFrame:
    """gpu, start, end, gap_s, share_pct."""
    start, end, share_pct = (np.concatenate([found[i] for found in gaps]) for i in range(3))
    gpu = np.repeat(np.array(gpus, dtype=object), [len(found[0]) for found in gaps])
    times = {"start": utc(start), "end": utc(end), "gap_s": (end - start) / SECOND_US}
    return pd.DataFrame({"gpu": pd.Series(gpu, dtype=text_dtype()), **times, "share_pct": share_pct})


def _failed_within(gaps: pd.DataFrame, run: Run) -> np.ndarray:
    """Number of FAIL ends in each gap."""
    if not run.info.clock.joined or run.trials.empty or gaps.empty:
        return np.zeros(len(gaps), np.int64)
    intervals = intervals_of(run)
    ends = np.sort(microseconds(intervals.loc[intervals["state"] == "FAIL", "end"].dropna()))
    low = np.searchsorted(ends, microseconds(gaps["start"]), "right")
    return np.searchsorted(ends, microseconds(gaps["end"]), "left") - low


def _outside_pct(samples: pd.DataFrame, window: tuple[int, int]) -> float:
    start, end = samples["start_us"].to_numpy(), samples["end_us"].to_numpy()
    observed_s = float(samples["weight_s"].sum())
    inside = sum(seen_us(start[own], end[own], window) for _, own in slices(samples))
    return float(100 * (1 - inside / SECOND_US / observed_s)) if observed_s else float("nan")
