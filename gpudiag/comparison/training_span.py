"""From when to when a training had its GPUs, by telemetry and log: what its totals are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpudiag.comparison.coverage import LEAST_COVER_PCT, steps_cover_pct
from gpudiag.comparison.side import Side
from gpudiag.measures._gpu.boards import gpu_boards
from gpudiag.measures._gpu.gpu_rows import slices
from gpudiag.measures._gpu.held import held_from_mib
from gpudiag.measures._steps.courses import courses
from gpudiag.measures._time.activity import activity
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.expected import logged_window
from gpudiag.measures._time.microseconds import SECOND_US
from gpudiag.measures._time.no_waits import are_no_waits, between_jobs
from gpudiag.measures._time.own_time import held_windows
from gpudiag.spans import Window


@dataclass(frozen=True)
class GpuUse:
    """When a GPU worked, and held memory around that without a break; in microseconds. ``free_before`` and
    ``free_behind``: the record shows it without work and memory there. ``kept``: it held memory, or worked, throughout.
    ``free``: stretches between the first and the last work in which it did neither, and which are no waits.
    """

    worked: Window
    held: Window
    free_before: bool
    free_behind: bool
    kept: bool
    free: tuple[Window, ...]


@dataclass(frozen=True)
class TrainingSpan:
    """``wall_s``: from the first to the last moment; ``gpu_h``: of all its GPUs, without times between two jobs;
    ``startup_s``: up to its first steps, which began before their line; NaN where its beginning or the clock of its
    log is unknown.
    """

    wall_s: float
    gpu_h: float
    startup_s: float


def training_spans(*sides: Side) -> list[TrainingSpan]:
    """A span a side, from and to the same events in all; nothing where the telemetry of one does not show its training.

    Memory held before and behind the work counts where all records show it begin, and end: what one has recorded of it
    and another has not is no difference of the trainings.
    """
    uses = [_uses(side) for side in sides]
    if not all(_shown(side, use) for side, use in zip(sides, uses, strict=True)):
        return []
    every = [one for use in uses for one in use.values()]
    begins, ends = all(one.free_before for one in every), all(one.free_behind for one in every)
    return [_span(side, use, begins, ends) for side, use in zip(sides, uses, strict=True)]


def _span(side: Side, uses: dict[str, GpuUse], begins: bool, ends: bool) -> TrainingSpan:
    windows = {
        gpu: ((use.held if begins else use.worked)[0], (use.held if ends else use.worked)[1])
        for gpu, use in uses.items()
    }
    first, last = min(low for low, _ in windows.values()), max(high for _, high in windows.values())
    logged = logged_window(side.run)
    startup_s = float("nan")
    if logged is not None:
        startup_s = max((logged[0] - first) / SECOND_US - _opening_s(side), 0) if begins else startup_s
        first, last = min(first, logged[0]), max(last, logged[1])
    gpu_us = sum(high - low for gpu, one in windows.items() for low, high in held_windows(side.run, gpu, [one]))
    return TrainingSpan((last - first) / SECOND_US, gpu_us / SECOND_US / 3600, startup_s)


def _opening_s(side: Side) -> float:
    """What the steps before the first line take at the usual pace, where the log does not say when they began."""
    opening = min((part.iloc[0] for part in courses(side.run)), key=lambda one: one["end"])
    return float(opening["n"] * opening["pace_s"]) if pd.isna(opening["start"]) else 0.0


def _shown(side: Side, uses: dict[str, GpuUse]) -> bool:
    """Whether the work in the telemetry is known to be all of the training, and of nothing else: the log's timestamps
    say so, and no work lies apart from its lines; or, without these, the GPUs were free before and behind, and not in
    between.
    """
    stated = side.run.info.training.gpus
    if not uses or (stated and stated != len(uses)):
        return False
    if side.run.steps["time"].notna().any():
        ledger, logged = side.get("ledger"), logged_window(side.run)
        if logged is None or ledger is None or not ledger.coverage_pct >= LEAST_COVER_PCT:
            return False
        if not steps_cover_pct(side) >= LEAST_COVER_PCT:
            return False
        return all(logged[0] <= low and high <= logged[1] for use in uses.values() for low, high in use.free)
    return all(use.free_before and use.free_behind and use.kept for use in uses.values())


def _uses(side: Side) -> dict[str, GpuUse]:
    """By GPU that worked."""
    return side.memo.once("training's GPUs", lambda: _uses_of(side))


def _uses_of(side: Side) -> dict[str, GpuUse]:
    run = side.run
    if "util_pct" not in run.gpu or run.gpu.empty:
        return {}
    has_memory = "mem_used_mib" in run.gpu
    samples = cells(run, "util_pct", *(["mem_used_mib"] if has_memory else []))
    totals = gpu_boards(run)["total_mib"]
    util, start_us, end_us = (samples[name].to_numpy() for name in ("util_pct", "start_us", "end_us"))
    used = samples["mem_used_mib"].to_numpy(float) if has_memory else np.full(len(samples), np.nan)
    out = {}
    for gpu, own in slices(samples):
        at_work = activity(util[own])
        if at_work.any():
            held = at_work | (used[own] >= held_from_mib(float(totals.get(gpu, np.nan))))
            known = bool(np.isfinite(used[own]).all())
            out[gpu] = _use(at_work, held, start_us[own], end_us[own], between_jobs(run), known=known)
    return out


def _use(
    at_work: np.ndarray,
    held: np.ndarray,
    start_us: np.ndarray,
    end_us: np.ndarray,
    between: Sequence[Window],
    *,
    known: bool,
) -> GpuUse:
    """``known``: the memory is, so that a sample without either shows the GPU free."""
    first, last = np.flatnonzero(at_work)[[0, -1]].tolist()
    before, behind = np.flatnonzero(~held[:first]), np.flatnonzero(~held[last:])
    begin = int(before[-1]) + 1 if len(before) else 0
    end = last + int(behind[0]) - 1 if len(behind) else len(held) - 1
    return GpuUse(
        worked=(int(start_us[first]), int(end_us[last])),
        held=(int(start_us[begin]), int(end_us[end])),
        free_before=known and begin > 0,
        free_behind=known and end < len(held) - 1,
        kept=bool(held[begin : end + 1].all()),
        free=_free(held[first : last + 1], start_us[first : last + 1], end_us[first : last + 1], between),
    )


def _free(held: np.ndarray, start_us: np.ndarray, end_us: np.ndarray, between: Sequence[Window]) -> tuple[Window, ...]:
    """Between samples that show the GPU held, the stretches that are no waits within one job."""
    ends, starts = end_us[held][:-1], start_us[held][1:]
    long = are_no_waits(ends, starts, between)
    return tuple(zip(ends[long].tolist(), starts[long].tolist(), strict=True))
