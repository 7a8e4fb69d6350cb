"""The GPU-time ledger: every second of every GPU in exactly one cell."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gpudiag._run.allocated_gpus import are_jobs
from gpudiag.facts import Column, Fact, Row, Rows, column, fact, table_of
from gpudiag.measures._steps.beside import process_beside
from gpudiag.measures._time.bins import bin_width_s
from gpudiag.measures._time.gpu_time import GpuTime, gpu_time
from gpudiag.measures._time.ledger_frames import binned, cell_seconds, compute_seconds, spans
from gpudiag.measures._time.microseconds import SECOND_US, utc
from gpudiag.measures._time.timeline import NO_TRIAL, Samples
from gpudiag.measures._time.weighted import weighted_quantiles
from gpudiag.measures.base import Profile, need_gpu, need_two_samples
from gpudiag.memo import memoized
from gpudiag.run import Run
from gpudiag.schema import IDLE_PCT, text_dtype
from gpudiag.spans import Window

UNCLEAR = ("startup_only", "tail_only", "stalled")
"""Between which cells ``waiting`` is undecided: errors of sampling aside, each lies between its own time and that plus
all of ``waiting``."""


IDLE = ("idle_no_trial", "startup_only", "tail_only", "waiting", "stalled")
"""The cells of an idle GPU, below 10 % utilization: the one meaning that "idle" has in a report."""


class LedgerCell(Row):
    """A cell of METHODS 3 of a GPU; all of a GPU add up to its window exactly."""

    gpu: Column[str] = column("GPU")
    cell: Column[str] = column("cell")
    gpu_s: Column[float] = column("time in it")
    share_pct: Column[float] = column("share of the GPU's window", label="share of the time")


class LedgerTotal(Row):
    """A cell over all GPUs."""

    cell: Column[str] = column("cell")
    gpu_s: Column[float] = column("time in it")
    share_pct: Column[float] = column("share of all time")
    share_high_pct: Column[float] = column(
        "the same with all of waiting for start-up, tail and stalls; errors of sampling come on top"
    )


class LedgerCompute(Row):
    """Utilization x time in a cell, a second view that is never added to the first."""

    gpu: Column[str] = column("GPU")
    cell: Column[str] = column("cell")
    compute_gpu_s: Column[float] = column("utilization x time")


class LedgerBin(Row):
    """A cell within one bin of ``bin_s``."""

    gpu: Column[str] = column("GPU")
    start: Column[pd.Timestamp] = column("start of the bin")
    cell: Column[str] = column("cell")
    gpu_s: Column[float] = column("time in it")


class LedgerSpan(Row):
    """An unbroken stretch in one cell."""

    gpu: Column[str] = column("GPU")
    start: Column[pd.Timestamp] = column("start")
    end: Column[pd.Timestamp] = column("end")
    cell: Column[str] = column("cell")


class LedgerWindow(Row):
    """A stretch that is accounted for: first start to last end of each study."""

    start: Column[pd.Timestamp] = column("start")
    end: Column[pd.Timestamp] = column("end")


class GpuLedger(Row):
    """A GPU."""

    window_s: Column[float] = column("time accounted for")
    observed_s: Column[float] = column("observed part of it")
    coverage_pct: Column[float] = column("its share")
    mean_util_pct: Column[float] = column("mean utilization of the observed time in the window")
    p5_pct: Column[float] = column("5th percentile of the utilization in the window")
    p50_pct: Column[float] = column("median")
    p95_pct: Column[float] = column("95th percentile")
    max_pct: Column[float] = column("highest")
    idle_s: Column[float] = column("time in the categories of an idle GPU")
    idle_pct: Column[float] = column("its share of the window")
    no_trial_s: Column[float] = column("observed time without a trial; in short pauses no sample may say what it did")
    ending_s: Column[float] = column("idle time without a trial after the last trial of all began")
    outside_s: Column[float] = column("telemetry outside the window")
    outside_busy_s: Column[float] = column("its part at 10 % or more")


class LedgerProfile(Profile, topic="ledger"):
    """Where the GPU time went."""

    cells: Rows = table_of(LedgerCell)
    totals: Rows = table_of(LedgerTotal)
    compute: Rows = table_of(LedgerCompute)
    bins: Rows = table_of(LedgerBin)
    spans: Rows = table_of(LedgerSpan)
    windows: Rows = table_of(LedgerWindow)
    per_gpu: Rows = table_of(GpuLedger)
    has_trials: Fact[bool] = fact(
        "False where there were no trials to tell idle from waiting, or no common clock: then the window is the "
        "telemetry's"
    )
    of_jobs: Fact[bool] = fact("whether the trials are jobs of a scheduler: without one nobody holds a GPU")
    n_gpus: Fact[int] = fact("GPUs of which some time is accounted for")
    bin_s: Fact[float] = fact("width of a bin")
    total_gpu_s: Fact[float] = fact("time accounted for")
    observed_gpu_s: Fact[float] = fact("observed part of it")
    coverage_pct: Fact[float] = fact("its share")
    mean_util_pct: Fact[float] = fact("mean utilization of the observed time", label="mean utilization")
    outside_gpu_s: Fact[float] = fact("telemetry outside the window")
    outside_busy_gpu_s: Fact[float] = fact("its part at 10 % or more", label="busy outside the trials")
    outside_of_work_pct: Fact[float] = fact(
        "that part of all time at 10 % or more; NaN without any", label="outside the trials, of all work"
    )
    foreign_of_no_trial_pct: Fact[float] = fact(
        "share of foreign load in the time without a trial that samples show", label="part of that time"
    )
    beside_ratio: Fact[float] = fact(
        "time of a step of a training beside a process of another command over that without, the least of where one "
        "came or went; 1 where none was there, NaN unknown",
        label="time of a step beside it",
    )
    beside_p: Fact[float] = fact(
        "chance that lines on steps in any order differ as much", label="chance of slower steps by luck (p)"
    )
    beside_name: Fact[str] = fact("that command; '' where none is known")
    beside_gpus: Fact[str] = fact("GPUs of the training on which it was, joined by commas")
    beside_s: Fact[float] = fact("time of the training in which it was there", label="time beside it")
    beside_mib: Fact[float] = fact("its greatest memory", label="its memory")
    beside_throughout: Fact[str] = fact(
        "commands that were on one GPU of the training all the time, joined by commas; '' where each had one"
    )
    beside_lost_gpu_h: Fact[float] = fact("GPU time of the training by which its steps took longer meanwhile")
    exact: Fact[bool] = fact(
        "False where trials and telemetry may lie seconds or more apart, and a GPU was not idle throughout, or never: "
        "idle time near a start or end is then in waiting, and work there is no foreign load"
    )
    doubt_s: Fact[float] = fact("how far apart they may lie; infinite where nobody knows")
    n_unknown_gpu: Fact[int] = fact(
        "trials of which nobody knows on which GPU they ran; where one may have run, an idle GPU is in waiting"
    )
    n_inferred_gpu: Fact[int] = fact("trials whose GPU was read off the telemetry")

    def to_frame(self) -> pd.DataFrame:
        """``cells``."""
        return self.cells

    def pct(self, *cells: str) -> float:
        """Share of these cells together in the time of all GPUs."""
        return float(self.totals.loc[self.totals["cell"].isin(cells), "share_pct"].sum())


@memoized
def measure_ledger(run: Run) -> LedgerProfile:
    """Put every GPU-second between the first start and the last end of each study into one cell.

    Needs gpu.util_pct. Without trials the window is the telemetry's, and time is idle, busy or unobserved.
    """
    need_gpu(run, "util_pct")
    time = gpu_time(run)
    need_two_samples(any(len(part.time_us) > 1 for part in time.samples.values()))
    cells, compute = cell_seconds(time.timelines), compute_seconds(time.timelines)
    whole = time.joined and "study" not in run.info.incomplete
    last_us = float(time.trials.start_us.max()) if whole else float("nan")
    per_gpu = _per_gpu(time, cells, compute, last_us)
    totals = cells.groupby("cell", observed=False)["gpu_s"].sum().reset_index()
    total = float(totals["gpu_s"].sum())
    seconds = totals.set_index("cell")["gpu_s"]
    most = totals["gpu_s"] + float(seconds["waiting"]) * totals["cell"].isin(UNCLEAR)
    totals["share_pct"], totals["share_high_pct"] = 100 * totals["gpu_s"] / total, 100 * most / total
    observed = total - float(seconds["unobserved"])
    no_trial = float(seconds["foreign"] + seconds["idle_no_trial"])
    beside = process_beside(run)
    return LedgerProfile(
        cells=cells,
        totals=totals,
        compute=compute,
        bins=binned(time.timelines, time.cuts_us),
        spans=spans(time.timelines),
        windows=pd.DataFrame({name: utc(np.array(time.windows)[:, i]) for i, name in enumerate(("start", "end"))}),
        per_gpu=per_gpu,
        has_trials=time.joined,
        of_jobs=time.joined and bool(are_jobs(run.trials).all()),
        n_gpus=int((per_gpu["window_s"] > 0).sum()),
        bin_s=float(bin_width_s(time.windows)),
        total_gpu_s=total,
        observed_gpu_s=observed,
        coverage_pct=100 * observed / total,
        mean_util_pct=_pct(float(compute["compute_gpu_s"].sum()), observed),
        outside_gpu_s=float(per_gpu["outside_s"].sum()),
        outside_busy_gpu_s=float(per_gpu["outside_busy_s"].sum()),
        outside_of_work_pct=_outside_of_work_pct(per_gpu, cells),
        foreign_of_no_trial_pct=_pct(float(seconds["foreign"]), no_trial) if time.joined else float("nan"),
        beside_ratio=beside.ratio,
        beside_p=beside.p,
        beside_name=beside.name,
        beside_gpus=", ".join(beside.gpus),
        beside_s=beside.seconds,
        beside_mib=beside.mib,
        beside_throughout=", ".join(beside.throughout),
        beside_lost_gpu_h=beside.lost_gpu_h,
        exact=not any(map(time.in_doubt, time.timelines)),
        doubt_s=run.info.clock.doubt_s if time.joined else 0.0,
        n_unknown_gpu=0 if time.where is None else time.where.n_trials - time.where.n_attributed,
        n_inferred_gpu=0 if time.where is None else time.where.n_inferred,
    )


def _per_gpu(time: GpuTime, cells: pd.DataFrame, compute: pd.DataFrame, last_us: float) -> pd.DataFrame:
    rows = {}
    seconds = cells["gpu_s"].groupby(cells["gpu"], sort=False).sum().to_dict()
    idle = cells[cells["cell"].isin(IDLE)].groupby("gpu", sort=False)["gpu_s"].sum().to_dict()
    left = cells[cells["cell"] == "unobserved"].set_index("gpu")["gpu_s"].to_dict()
    works = compute["compute_gpu_s"].groupby(compute["gpu"], sort=False).sum().to_dict()
    for gpu in time.timelines:
        window, active = seconds[gpu], works[gpu]
        observed = window - left[gpu]
        idle_s = float(idle.get(gpu, 0.0))
        line = time.timelines[gpu]
        seen, empty = ~np.isnan(line.util_pct), line.cell == NO_TRIAL
        util = line.util_pct[seen]
        p5, p50, p95 = weighted_quantiles(util, line.length_s[seen], (0.05, 0.5, 0.95))
        outside, busy = _outside(time.samples.get(gpu, Samples.none()), time.windows_of[gpu])
        rows[gpu] = {
            "window_s": window,
            "observed_s": observed,
            "coverage_pct": _pct(observed, window),
            "mean_util_pct": _pct(active, observed),
            "p5_pct": p5,
            "p50_pct": p50,
            "p95_pct": p95,
            "max_pct": float(util.max()) if len(util) else float("nan"),
            "idle_s": idle_s,
            "idle_pct": _pct(idle_s, window),
            "no_trial_s": float(line.length_s[seen & (line.held == 0)].sum()) if time.joined else float("nan"),
            "ending_s": float((line.end_us - np.maximum(line.start_us, last_us)).clip(0)[empty].sum()) / SECOND_US,
            "outside_s": outside,
            "outside_busy_s": busy,
        }
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("gpu")
    return frame.set_axis(frame.index.astype(text_dtype()))


def _outside_of_work_pct(per_gpu: pd.DataFrame, cells: pd.DataFrame) -> float:
    outside = float(per_gpu["outside_busy_s"].sum())
    work = outside + float(cells.loc[cells["cell"].isin(["foreign", "busy_low", "busy"]), "gpu_s"].sum())
    return _pct(outside, work)


def _pct(part: float, whole: float) -> float:
    """NaN of nothing."""
    return 100 * part / whole if whole else float("nan")


def _outside(samples: Samples, windows: list[Window]) -> tuple[float, float]:
    """Observed seconds outside all windows, and those above the idle threshold."""
    left = (samples.end_us - samples.start_us).astype(float)
    for low, high in windows:
        left -= np.maximum(np.minimum(samples.end_us, high) - np.maximum(samples.start_us, low), 0)
    return float(left.sum() / SECOND_US), float(left[samples.value >= IDLE_PCT].sum() / SECOND_US)
