"""The run on one time axis, small enough for the top of a page: trials, GPU utilization and what the time went into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from gpudiag.errors import NotMeasurable
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.plots._draw.axes import legend_above, short, time_axis
from gpudiag.plots._draw.cells import cell_handles, draw_shares
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.plots._draw.telemetry import Trace, draw_levels, traces
from gpudiag.plots.memory import draw_capacity
from gpudiag.plots.timeline import draw_trials, window
from gpudiag.report.format import plural, quantity, share
from gpudiag.units import MIB_PER_GIB

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

TRIALS_INCH, USE_INCH, BAND_INCH = 0.7, 0.7, 0.34
HALF_INCH = (USE_INCH + BAND_INCH) / 2
"""Of memory and of utilization where they stand above each other: the figure is as high as the other one."""
ROOM_INCH, LEGEND_INCH = 0.95, 0.2
"""Time axis and two legends; a third, of several GPUs."""
LEVEL: dict[str, Any] = {"rotation": 0, "ha": "right", "va": "center"}
"""Of the words beside a low axis: turned they would be longer than it is high."""
LEAST_PCT = 5.0
"""Of a bar of the band: categories that never hold more could not be seen, and have no place in its legend."""


@painter
def plot_overview(
    parallelism: ParallelismProfile | None = None,
    utilization: UtilizationProfile | None = None,
    ledger: LedgerProfile | None = None,
    *,
    timezone: str = "UTC",
) -> Figure:
    """Trials by worker, the shares of the ledger's categories, and the utilization of each GPU.

    Raises NotMeasurable if there is neither a trial with a start nor utilization.
    """
    workers, use = _shown(parallelism, utilization)
    band = ledger if ledger is not None and use and not ledger.bins.empty else None
    lanes = [(BAND_INCH, partial(_draw_band, ledger=band))] if band is not None else []
    return _on_one_axis(workers, use, lanes, timezone)


@painter
def plot_overview_memory(
    memory: MemoryProfile,
    parallelism: ParallelismProfile | None = None,
    utilization: UtilizationProfile | None = None,
    *,
    timezone: str = "UTC",
) -> Figure:
    """Trials by worker, the memory in use on each GPU with its capacity, and the utilization.

    Raises NotMeasurable if no GPU has a reading of its memory.
    """
    workers, use = _shown(parallelism, utilization)
    mem = traces(_of_memory(memory), "mem_used_mib", "mean_mib", scale=MIB_PER_GIB)
    lane = HALF_INCH, partial(_draw_memory, mem=mem, memory=memory)
    return _on_one_axis(workers, use, [lane], timezone, also=mem, use_inch=HALF_INCH)


def _on_one_axis(
    workers: pd.DataFrame | None,
    use: list[Trace],
    lanes: Sequence[tuple[float, Callable[[Axes], None]]],
    timezone: str,
    also: Sequence[Trace] = (),
    use_inch: float = USE_INCH,
) -> Figure:
    """Trials, these lanes with their heights, then the utilization; ``also``: what else the time axis must hold."""
    heights = [TRIALS_INCH] * (workers is not None) + [inch for inch, _ in lanes] + [use_inch] * bool(use)
    room = ROOM_INCH + LEGEND_INCH * (len(use) > 1)
    figure = Figure(figsize=(9, sum(heights) + room), layout="constrained")
    axes: list[Axes] = list(figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0])
    low, high, note = window(workers, [*use, *also])
    time_axis(axes[-1], low, high, timezone)
    axes[-1].set_xlabel(axes[-1].get_xlabel() + note)
    rows = iter(axes)
    if workers is not None:
        ax = next(rows)
        draw_trials(ax, workers, numbers=False)
        ax.set_ylabel("workers\n[a row each]")
        ax.set_yticks([])
    for _, draw_lane in lanes:
        draw_lane(next(rows))
    if use:
        ax = next(rows)
        legend_above(ax, draw_levels(ax, use))
        least = -4 if len(use) > 1 else 0  # the line of an idle GPU would lie under the axis
        ax.set(ylim=(least, 103), yticks=[0, 100])
        ax.set_ylabel("GPU use\n[%]", **LEVEL)
    for ax in axes[:-1]:
        ax.tick_params(labelbottom=False)
    figure.align_ylabels(axes)
    return figure


def _draw_band(ax: Axes, ledger: LedgerProfile) -> None:
    """The shares of the ledger's categories."""
    draw_shares(ax, ledger.bins, ledger.bin_s)
    held_s = ledger.bins.groupby(["start", "cell"], observed=True)["gpu_s"].sum()
    part_pct = 100 * held_s / held_s.groupby("start").transform("sum")
    shown = set(part_pct[part_pct >= LEAST_PCT].index.get_level_values("cell"))
    legend_above(ax, cell_handles(shown, has_trials=ledger.has_trials), 5)
    ax.set(yticks=[0, 100], ylim=(0, 100))
    # Upright it would be higher than the band.
    ax.set_ylabel("GPU time\n[%]", **LEVEL)
    ax.grid(visible=False)


def _draw_memory(ax: Axes, mem: list[Trace], memory: MemoryProfile) -> None:
    totals = memory.per_gpu["total_mib"].dropna() / MIB_PER_GIB
    highest = max([*totals, *(float(np.nanmax(part.value)) for part in mem)])
    handles = draw_levels(ax, mem, highest)
    legend_above(ax, [*handles, *draw_capacity(ax, memory)])
    ax.set(ylim=(0, 1.08 * highest or 1.0))
    ax.set_ylabel("memory\n[GiB]", **LEVEL)


def _of_memory(memory: MemoryProfile) -> pd.DataFrame:
    if memory.series.empty:
        raise NotMeasurable("No GPU has a reading of its memory.")
    return memory.series


def _shown(
    parallelism: ParallelismProfile | None, utilization: UtilizationProfile | None
) -> tuple[pd.DataFrame | None, list[Trace]]:
    """Trials on their workers, and the utilization of each GPU."""
    workers = parallelism.placed if parallelism is not None and not parallelism.placed.empty else None
    use = traces(utilization.series, "util_pct", "mean_pct") if utilization is not None else []
    if workers is None and not use:
        raise NotMeasurable("There is no trial with a start time and no utilization.")
    return workers, use


def alt_overview(
    parallelism: ParallelismProfile | None = None,
    utilization: UtilizationProfile | None = None,
    ledger: LedgerProfile | None = None,
) -> str:
    """What :func:`plot_overview` shows."""
    seen = []
    _shown(parallelism, utilization)  # what cannot be drawn has no words either
    if parallelism is not None and not parallelism.placed.empty:
        seen.append(f"{plural(len(parallelism.placed), 'trial')} on {plural(parallelism.n_workers, 'worker')}")
    if utilization is not None and np.isfinite(utilization.mean_pct):
        seen.append(_alt_use(utilization, ledger))
    if ledger is not None:
        worked = share(ledger.pct("busy", "busy_low"))
        seen.append(f"a band of what the GPU time went into, {worked} of it work for trials" if ledger.has_trials else
                    f"a band of what the GPU time went into, {worked} of it work")  # fmt: skip
    return f"On one time axis: {'; '.join(seen)}."


def alt_overview_memory(
    memory: MemoryProfile,
    parallelism: ParallelismProfile | None = None,
    utilization: UtilizationProfile | None = None,
) -> str:
    """What :func:`plot_overview_memory` shows."""
    _of_memory(memory)
    also = alt_overview(parallelism, utilization).rstrip(".")
    fullest = quantity(float(memory.per_gpu["max_mib"].max()), "MiB")
    return f"{also}; the memory in use, at most {fullest} of a GPU."


def _alt_use(utilization: UtilizationProfile, ledger: LedgerProfile | None) -> str:
    """The mean of all GPUs, and of several the least and the most used: within the ledger's window where it has one."""
    mean, means = utilization.mean_pct, utilization.per_gpu["mean_pct"]
    if ledger is not None and np.isfinite(ledger.mean_util_pct):
        mean, means = ledger.mean_util_pct, ledger.per_gpu["mean_util_pct"]
    text = f"the utilization of {plural(utilization.n_gpus, 'GPU')}, {share(mean)} on average"
    means = means.dropna()
    if len(means) > 1:
        low, high = means.idxmin(), means.idxmax()
        if share(means[low]) != share(means[high]):
            text += (
                f", from {share(means[low])} (GPU {short(str(low))}) to {share(means[high])} (GPU {short(str(high))})"
            )
    return text


OVERVIEW = Plot(
    plot_overview,
    alt_overview,
    "From above, as far as known: trials by worker, what the GPU time went into, the utilization. Up to eight GPUs "
    "have a line each; of more, the line is their mean, and the band reaches from the least to the most used.",
)

OVERVIEW_MEMORY = Plot(
    plot_overview_memory,
    alt_overview_memory,
    "From above, as far as known: trials by worker, the memory in use with the capacity of the GPUs, the utilization. "
    "Lines that would cover each other are one, their mean, with a band from the lowest to the highest.",
)
