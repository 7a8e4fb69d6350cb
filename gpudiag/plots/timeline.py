"""Trials by worker above the GPUs' utilization and memory, all on one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from gpudiag.errors import NotMeasurable
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.plots._draw.axes import count_axis, day_numbers, legend_above, time_axis
from gpudiag.plots._draw.cells import draw_ribbon
from gpudiag.plots._draw.palette import INK, STATE_COLORS, STATE_HATCHES, darker
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.plots._draw.telemetry import Trace, draw_lines, extent, traces
from gpudiag.plots.memory import draw_capacity
from gpudiag.report.format import duration, plural, ratio, share
from gpudiag.schema import OUTCOMES
from gpudiag.units import MIB_PER_GIB

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_EDGED = 300
MAX_NUMBERED = 60
MAX_VECTOR = 1000
LANE = 0.8
SLIVER = 0.02
ENDLESS = ("RUNNING", "ABANDONED")
"""States that have no end: that it is inferred goes without saying."""
MAX_RIBBONS = 12


@painter
def plot_timeline(
    parallelism: ParallelismProfile | None = None,
    utilization: UtilizationProfile | None = None,
    memory: MemoryProfile | None = None,
    ledger: LedgerProfile | None = None,
    *,
    timezone: str = "UTC",
) -> Figure:
    """Gantt chart of the trials by worker, coloured by state, above the ledger, utilization and memory of the GPUs.

    Trials without a known end are hatched up to the end that was inferred.
    Raises NotMeasurable if no trial has a start and no GPU a utilization or memory.
    """
    workers, use, mem = _shown(parallelism, utilization, memory)
    cells = ledger if ledger is not None and _has_ribbon(ledger) else None
    heights = [float(np.clip(0.32 * (workers["worker"].max() + 1), 0.9, 3.0))] if workers is not None else []
    heights += [_ribbon_inch(cells)] if cells is not None else []
    heights += [1.5] * bool(use) + [1.3] * bool(mem)
    figure = Figure(figsize=(9, sum(heights) + 0.75 + 0.3 * len(heights)), layout="constrained")
    axes = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    low, high, note = window(workers, use + mem)
    time_axis(axes[-1], low, high, timezone)
    axes[-1].set_xlabel(axes[-1].get_xlabel() + note)
    if workers is not None:
        draw_trials(axes[0], workers)
    if cells is not None:
        gpus, ax = [str(gpu) for gpu in cells.per_gpu.index], axes[0 if workers is None else 1]
        legend_above(ax, draw_ribbon(ax, cells.spans, gpus), 4)
    if use:
        ax = axes[-2] if mem else axes[-1]
        legend_above(ax, draw_lines(ax, use))
        ax.set(ylabel="utilization [%]", ylim=(-3, 103), yticks=[0, 25, 50, 75, 100])
    if mem and memory is not None:
        handles = draw_lines(axes[-1], mem, extremes=True)
        legend_above(axes[-1], ([] if use else handles) + draw_capacity(axes[-1], memory))
        axes[-1].set(ylabel="memory used [GiB]", ylim=(0, None))
    figure.align_ylabels(axes)
    return figure


def _has_ribbon(ledger: LedgerProfile) -> bool:
    """More rows than this would be a figure of their own, and the ledger's figure is one."""
    return ledger.has_trials and not ledger.spans.empty and ledger.n_gpus <= MAX_RIBBONS


def _ribbon_inch(ledger: LedgerProfile) -> float:
    return 0.35 + 0.17 * ledger.n_gpus


def window(workers: pd.DataFrame | None, parts: Sequence[Trace]) -> tuple[float, float, str]:
    """The span of all that is drawn, in day numbers, or of the trials alone where they would be a sliver of it; then
    what the time axis must say of that.
    """
    if workers is None:
        return *extent(parts), ""
    low, high = float(np.nanmin(day_numbers(workers["start"]))), float(np.nanmax(day_numbers(workers["end"])))
    if not parts:
        return low, high, ""
    first, last = extent(parts)
    wide = min(low, first), max(high, last)
    if 0 < high - low < SLIVER * (wide[1] - wide[0]):
        return low - (high - low) / 4, high + (high - low) / 4, "; telemetry far from the trials is not shown"
    return *wide, ""


def draw_trials(ax: Axes, workers: pd.DataFrame, *, numbers: bool = True) -> None:
    """A bar a trial on the row of its worker, coloured by state; with ``numbers``, of few trials their numbers."""
    start, end = day_numbers(workers["start"]), day_numbers(workers["end"])
    lane, state = workers["worker"].to_numpy(float), workers["state"].to_numpy(object)
    pending = workers["open"].to_numpy(bool)
    handles = []
    for name in OUTCOMES:
        for is_open in (False, True):
            mine = (state == name) & (pending == is_open)
            if mine.any():
                _bars(ax, name, start[mine], end[mine], lane[mine], is_open=is_open, n=len(workers))
                handles.append(_handle(name, int(mine.sum()), is_open=is_open))
    if numbers and len(workers) <= MAX_NUMBERED:
        _number(ax, workers["trial"].tolist(), start, end, lane)
    legend_above(ax, handles)
    ax.set(ylim=(np.nanmax(lane) + 0.6, -0.6), ylabel="worker [index]")
    count_axis(ax, "y", 6)
    ax.grid(visible=False, axis="y")


def _bars(ax: Axes, state: str, start: np.ndarray, end: np.ndarray, lane: np.ndarray, *, is_open: bool, n: int) -> None:
    """Bars of one state. The edge in the bar's own hue keeps a trial of a few seconds visible."""
    low, high = lane - LANE / 2, lane + LANE / 2
    corners = np.stack(
        [np.stack([start, low], 1), np.stack([end, low], 1), np.stack([end, high], 1), np.stack([start, high], 1)], 1
    )
    few = n <= MAX_EDGED
    color = STATE_COLORS[state]
    bars = PolyCollection(
        list(corners),
        facecolor=color,
        edgecolor=darker(color) if few else color,
        linewidth=0.5 if few else 0.8 if state == "FAIL" else 0.3,
        hatch=(STATE_HATCHES["RUNNING"] if is_open else STATE_HATCHES[state] if few else "") or None,
        alpha=0.75 if is_open else None,
        rasterized=n > MAX_VECTOR,
        zorder=3 if state == "FAIL" else 2,
        label=state,
    )
    ax.add_collection(bars, autolim=False)


def _handle(state: str, n: int, *, is_open: bool) -> Patch:
    color = STATE_COLORS[state]
    hatch = STATE_HATCHES["RUNNING"] if is_open else STATE_HATCHES[state]
    label = f"{state}, end inferred ({n})" if is_open and state not in ENDLESS else f"{state} ({n})"
    return Patch(facecolor=color, edgecolor=darker(color), linewidth=0.5, hatch=hatch or None, label=label)


def _number(ax: Axes, trials: list[int], start: np.ndarray, end: np.ndarray, lane: np.ndarray) -> None:
    """Write the trial's number where the bar is wide enough for it."""
    left, right = ax.get_xlim()
    for trial, low, high, y in zip(trials, start, end, lane, strict=True):
        if high - low > (right - left) * (0.011 * len(str(trial)) + 0.006):
            ax.text(
                (low + high) / 2, y, str(trial), ha="center", va="center", fontsize=8, color=INK, zorder=4,
                bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
            )  # fmt: skip


def _shown(
    parallelism: ParallelismProfile | None, utilization: UtilizationProfile | None, memory: MemoryProfile | None
) -> tuple[pd.DataFrame | None, list[Trace], list[Trace]]:
    """Trials on their workers, and the utilization and the memory of each GPU."""
    workers = parallelism.placed if parallelism is not None and len(parallelism.placed) else None
    use = traces(utilization.series, "util_pct", "mean_pct") if utilization is not None else []
    mem = traces(memory.series, "mem_used_mib", "mean_mib", scale=MIB_PER_GIB) if memory is not None else []
    if workers is None and not use and not mem:
        raise NotMeasurable("No trial has a start time, and no GPU a utilization or memory.")
    return workers, use, mem


def alt_timeline(
    parallelism: ParallelismProfile | None = None,
    utilization: UtilizationProfile | None = None,
    memory: MemoryProfile | None = None,
    ledger: LedgerProfile | None = None,
) -> str:
    """What :func:`plot_timeline` shows."""
    _shown(parallelism, utilization, memory)  # what cannot be drawn has no words either
    texts = [] if parallelism is None or parallelism.placed.empty else [_alt_trials(parallelism)]
    if utilization is not None:
        gpus = plural(utilization.n_gpus, "GPU")
        texts.append(f"Below it, the utilization of {gpus}." if texts else f"Utilization of {gpus} over time.")
    if memory is not None and not texts:
        texts.append("Memory of GPUs over time.")
    if memory is not None and np.isfinite(memory.max_used_pct):
        texts.append(f"GPU memory filled up to {share(memory.max_used_pct)}.")
    if ledger is not None and _has_ribbon(ledger):
        worked = share(ledger.pct("busy", "busy_low"))
        texts.append(
            f"A ribbon shows what each GPU did at each instant: it worked {'for trials ' if ledger.has_trials else ''}"
            f"for {worked} of the time."
        )
    return " ".join(texts)


def _alt_trials(parallelism: ParallelismProfile) -> str:
    counts = parallelism.placed["state"].value_counts()
    states = ", ".join(f"{counts[state]} {state}" for state in OUTCOMES if state in counts)
    return (
        f"Timeline of {plural(len(parallelism.placed), 'trial')} in {plural(parallelism.n_workers, 'worker')} over "
        f"{duration(parallelism.window_s)}: {states}; {ratio(parallelism.effective)} ran at once on average."
    )


TIMELINE = Plot(
    plot_timeline,
    alt_timeline,
    "A bar is a trial on the worker that it held; RUNNING and ABANDONED have no recorded end, and reach hatched to "
    "where they most likely ended. Blank stretches of the curves were not observed.",
    without=("parallelism", "Blank stretches of the curves were not observed."),
)
