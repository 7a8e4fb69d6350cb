"""Which trials held the memory of a GPU: their own memory stacked, below what the GPU reported and its capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gpudiag.errors import NotMeasurable
from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.plots._draw.axes import day_numbers, legend_above, short, time_axis
from gpudiag.plots._draw.palette import INK, MUTED, RULE, STATE_COLORS, darker
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.plots._draw.telemetry import Trace, column_edges, extent, reduce, traces
from gpudiag.report.format import plural, quantity, share
from gpudiag.schema import OUTCOMES
from gpudiag.units import MIB_PER_GIB

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_PANELS = 4
MAX_EVENTS = 1200
MAX_PARTED = 250
COLUMNS = 500


@painter
def plot_memory_by_trial(
    memory: MemoryProfile, parallelism: ParallelismProfile, costs: CostsProfile, *, timezone: str = "UTC"
) -> Figure:
    """Memory of the trials on a GPU, stacked by worker and coloured by state; a panel for each of the first four GPUs.

    A trial counts from its start to its end with the memory of its own process, else with what it was seen to hold
    alone, else with what its end freed; one of which nothing is known stays grey, like all other memory in use.
    Raises NotMeasurable if no trial's memory is known.
    """
    blocks = _blocks(parallelism, costs)
    parts = _parts(memory, blocks)[:MAX_PANELS]
    figure = Figure(figsize=(9, 1.1 + max(2.4, 1.9 * len(parts))), layout="constrained")
    axes = figure.subplots(len(parts), 1, sharex=True, squeeze=False)[:, 0]
    low, high = extent(parts)
    for ax, part in zip(axes, parts, strict=True):
        mine = blocks[blocks["gpu"] == part.gpu]
        total = float(memory.per_gpu.loc[part.gpu, "total_mib"]) / MIB_PER_GIB
        _draw_stack(ax, mine, (low, high))
        _draw_used(ax, part)
        if np.isfinite(total):
            ax.axhline(total, color=MUTED, linestyle=(0, (4, 2)), linewidth=1.2)
        top = np.nanmax([total, np.nanmax(part.value)])
        name = f"GPU {short(part.gpu)}, " if len(parts) > 1 else ""
        ax.set(ylim=(0, 1.05 * top), ylabel=f"{name}memory [GiB]")
    time_axis(axes[-1], low, high, timezone)
    legend_above(axes[0], _handles(blocks, known_total=bool(memory.per_gpu["total_mib"].notna().any())), 4)
    return figure


def _blocks(parallelism: ParallelismProfile, costs: CostsProfile) -> pd.DataFrame:
    """gpu, worker, state, start, end, gib of each trial on one known GPU; NaN where its memory is not known."""
    trials = costs.trials
    known = trials["process_mem_mib"].fillna(trials["peak_mem_mib"]).fillna(trials["freed_mib"])
    if "gpu" not in trials or not known.notna().any():
        raise NotMeasurable("The memory of no single trial is known.", REMEDY)
    own = trials[["study", "trial", "gpu"]].assign(gib=known / MIB_PER_GIB)
    workers = parallelism.placed.merge(own[own["gpu"].notna()], on=["study", "trial"])
    return workers[["gpu", "worker", "state", "start", "end", "gib"]]


def _parts(memory: MemoryProfile, blocks: pd.DataFrame) -> list[Trace]:
    """Readings of each GPU on which trials ran."""
    found = traces(memory.series, "mem_used_mib", "mean_mib", scale=MIB_PER_GIB)
    parts = [part for part in found if (blocks["gpu"] == part.gpu).any()]
    if not parts:
        raise NotMeasurable("No GPU with readings of its memory has a trial whose own memory is known.")
    return parts


REMEDY = (
    "Record the processes as well (gpudiag record --processes -o gpu.csv -- COMMAND), and let each trial name its own: "
    "study.optimize(gd.TrialTimestamps(objective))."
)


def _draw_stack(ax: Axes, blocks: pd.DataFrame, window: tuple[float, float]) -> None:
    """One layer a worker, on top of the workers before it."""
    start, end = day_numbers(blocks["start"]), day_numbers(blocks["end"])
    gib = np.nan_to_num(blocks["gib"].to_numpy(float))
    worker, state = blocks["worker"].to_numpy(), blocks["state"].to_numpy(object)
    borders = np.unique(np.concatenate([start, end, window]))
    few = len(borders) <= MAX_EVENTS
    grid = borders if few else np.linspace(window[0], window[1], COLUMNS + 1)
    bottom = np.zeros(len(grid))
    for lane in np.unique(worker):
        mine = worker == lane
        height, owner = _layer(grid, start[mine], end[mine], gib[mine], few=few)
        names = np.append(state[mine], "")[owner]
        for name in OUTCOMES:
            here = (names == name) & (height > 0)
            if here.any():
                ax.fill_between(
                    grid, bottom, bottom + height, where=_reaching(here), step="post", color=STATE_COLORS[name],
                    alpha=0.8, linewidth=0, rasterized=not few,
                )  # fmt: skip
        bottom = bottom + height
        if few and len(blocks) <= MAX_PARTED:
            ax.step(grid, np.where(height > 0, bottom, np.nan), where="post", color="white", linewidth=0.6)
            at = np.searchsorted(grid, start[mine])
            ax.vlines(start[mine], (bottom - height)[at], bottom[at], color="white", linewidth=0.6)


def _layer(
    grid: np.ndarray, start: np.ndarray, end: np.ndarray, gib: np.ndarray, *, few: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Height of one worker from each point of the grid on, and the number of the trial there (-1: none).

    Where columns stand for many trials, each takes the trial that holds its middle.
    """
    order = np.argsort(start, kind="stable")
    at_time = grid if few else np.append((grid[1:] + grid[:-1]) / 2, grid[-1])
    at = np.searchsorted(start[order], at_time, side="right") - 1
    inside = (at >= 0) & (at_time < end[order][np.maximum(at, 0)])
    owner = np.where(inside, order[np.maximum(at, 0)], -1)
    return np.where(inside, gib[owner], 0.0), owner


def _reaching(here: np.ndarray) -> np.ndarray:
    """The points that an area needs: those of the layer and the one after each, where its step ends."""
    return here | np.append(False, here[:-1])


def _draw_used(ax: Axes, part: Trace) -> None:
    """What the GPU reported: the greatest value of each column, so that no peak is lost."""
    view = reduce(part, column_edges([part]))
    ax.fill_between(view.middle, view.high, step="mid", color=RULE, linewidth=0, zorder=0.5)
    ax.step(view.middle, view.high, where="mid", color=INK, linewidth=1.1, zorder=4)


def _handles(blocks: pd.DataFrame, *, known_total: bool) -> list[Patch | Line2D]:
    known = blocks[blocks["gib"].notna()]
    handles: list[Patch | Line2D] = [
        Patch(facecolor=STATE_COLORS[state], edgecolor=darker(STATE_COLORS[state]), linewidth=0.5, alpha=0.8,
              label=f"{state} ({(known['state'] == state).sum()})")
        for state in OUTCOMES if (known["state"] == state).any()
    ]  # fmt: skip
    handles.append(Line2D([], [], color=INK, linewidth=1.2, label="used on the GPU"))
    if known_total:
        handles.append(Line2D([], [], color=MUTED, linestyle=(0, (4, 2)), linewidth=1.2, label="capacity"))
    lacking = len(blocks) - len(known)
    text = "no trial's own" + (f", or one of {lacking} not known" if lacking else "")
    handles.append(Patch(facecolor=RULE, label=text))
    return handles


def alt_memory_by_trial(memory: MemoryProfile, parallelism: ParallelismProfile, costs: CostsProfile) -> str:
    """What :func:`plot_memory_by_trial` shows."""
    blocks = _blocks(parallelism, costs)
    _parts(memory, blocks)  # what cannot be drawn has no words either
    known = blocks["gib"].dropna()
    text = (
        f"Memory of {len(known)} of {plural(len(blocks), 'trial')} stacked over time: "
        f"{quantity(known.median(), 'GiB')} in the median, {quantity(known.max(), 'GiB')} at most"
    )
    if np.isfinite(memory.max_used_pct):
        text += f"; the fullest GPU reached {share(memory.max_used_pct)} of its memory"
    return text + "."


MEMORY_BY_TRIAL = Plot(
    plot_memory_by_trial,
    alt_memory_by_trial,
    "Each block is a trial, as high as the memory that its process took, that it was seen to hold alone, or that "
    "its end freed. Grey was in use and cannot be told apart. Between line and capacity more trials would fit.",
    in_report=False,
)
