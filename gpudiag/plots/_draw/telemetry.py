"""Telemetry over time: a line a GPU up to four GPUs, else a band over all of them, or a map with a row a GPU.

A series is broken where its profile says so, by a row without a value inside each gap. Where it has more
points than the page has room for, it is drawn as its mean with a pale band from least to greatest value:
the reduction that the pixels would make anyway, without the solid block of ink.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gpudiag.plots._draw.axes import day_numbers, legend_above, short, time_axis
from gpudiag.plots._draw.palette import CELL_COLORS, GPU_COLORS, MUTED, gpu_color, gpu_dash, gpu_number
from gpudiag.schema import gpu_index
from gpudiag.units import DAY_S

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

MAX_LINES = 4
MAX_POINTS = 700
COLUMNS = 400
ALIKE, ALIKE_FOR = 0.06, 0.9
"""Of the height of the axis, and of the time."""
MAP_COLORS = LinearSegmentedColormap.from_list("use", ["#dceaf4", CELL_COLORS["busy"]])
"""The fuller the color, the higher, as in the interactive timeline."""


@dataclass(frozen=True, eq=False)
class Trace:
    """One GPU's series in order of time, which is in day numbers. NaN in ``value`` stands for a gap.

    ``value`` holds the extremes, ``mean`` the level around each of them.
    """

    gpu: str
    number: int
    time: np.ndarray
    value: np.ndarray
    mean: np.ndarray


@dataclass(frozen=True, eq=False)
class PageColumns:
    """Least, mean and greatest value in each column of the page; NaN where nothing was observed."""

    edges: np.ndarray
    low: np.ndarray
    mean: np.ndarray
    high: np.ndarray

    @property
    def middle(self) -> np.ndarray:
        """Centre of each column, in day numbers."""
        return (self.edges[:-1] + self.edges[1:]) / 2


def natural(gpu: object) -> tuple[int, int, str]:
    """Sort key of GPU names: 0, 1, 2, 10, then names that are no number."""
    index = gpu_index(gpu)
    return (1, 0, str(gpu)) if index is None else (0, index, "")


def traces(series: pd.DataFrame, value: str, mean: str, *, scale: float = 1.0) -> list[Trace]:
    """The series of each GPU, in natural order of the GPUs; columns ``value`` and ``mean`` divided by ``scale``."""
    parts = {str(gpu): rows for gpu, rows in series.groupby("gpu", sort=False)}
    return [
        Trace(
            gpu,
            gpu_number(gpu, i),
            day_numbers(parts[gpu]["time"]),
            parts[gpu][value].to_numpy(float) / scale,
            parts[gpu][mean].to_numpy(float) / scale,
        )
        for i, gpu in enumerate(sorted(parts, key=natural))
    ]


def extent(parts: Sequence[Trace]) -> tuple[float, float]:
    """First and last instant over all traces, in day numbers."""
    return min(float(part.time[0]) for part in parts), max(float(part.time[-1]) for part in parts)


def column_edges(parts: Sequence[Trace]) -> np.ndarray:
    """Edges of columns that divide the common extent: as many as the page shows, or fewer for few samples."""
    low, high = extent(parts)
    n = int(np.clip(max(len(part.time) for part in parts) // 2, 1, COLUMNS))
    half_s = 0.5 / DAY_S
    return np.linspace(low, high, n + 1) if high > low else np.array([low - half_s, high + half_s])


def reduce(part: Trace, edges: np.ndarray) -> PageColumns:
    """The trace in columns. A column without a sample, but not in a gap, repeats the one before."""
    at = np.clip(np.searchsorted(edges, part.time, side="right") - 1, 0, len(edges) - 2)
    known = np.isfinite(part.value)
    low, high = np.full(len(edges) - 1, np.inf), np.full(len(edges) - 1, -np.inf)
    np.minimum.at(low, at[known], part.value[known])
    np.maximum.at(high, at[known], part.value[known])
    n = np.bincount(at[known], minlength=len(low))
    mean = np.bincount(at[known], part.mean[known], len(low)) / np.where(n, n, np.nan)
    source = np.where(n, np.arange(len(low)), -1)
    for first, last in _pieces(known):
        inside = slice(at[first], at[last] + 1)
        source[inside] = np.maximum.accumulate(source[inside])
    unseen = source < 0
    return PageColumns(edges, *(np.where(unseen, np.nan, values[source]) for values in (low, mean, high)))


def _pieces(known: np.ndarray) -> list[tuple[int, int]]:
    """First and last index of each stretch of known values."""
    turns = np.diff(np.concatenate(([0], known.astype(np.int8), [0])))
    return list(zip(np.flatnonzero(turns == 1), np.flatnonzero(turns == -1) - 1, strict=True))


def draw_lines(ax: Axes, parts: Sequence[Trace], *, extremes: bool = False) -> list[Artist]:
    """Draw the traces over time; returns what a legend needs, nothing where one plain line needs none.

    The band over more than four GPUs spans their levels, or, with ``extremes``, their single readings.
    """
    if len(parts) > MAX_LINES:
        return _draw_band(ax, parts, extremes=extremes)
    reduced = any(len(part.time) > MAX_POINTS for part in parts)
    handles: list[Artist] = []
    for part in parts:
        color, x, y = gpu_color(part.number), part.time, part.value
        if reduced:
            view = reduce(part, column_edges(parts))
            ax.fill_between(
                view.middle, view.low, view.high, color=color, alpha=0.18 if len(parts) == 1 else 0.1, linewidth=0
            )
            x, y = view.middle, view.mean
        _line(ax, x, y, part.number)
        name = f"GPU {short(part.gpu)}" + (" mean" if reduced else "")
        handles.append(Line2D([], [], color=color, linestyle=gpu_dash(part.number), linewidth=1.6, label=name))
    if reduced:
        handles.append(Patch(facecolor=MUTED, alpha=0.3, label="min to max"))
    return handles if len(parts) > 1 or reduced else []


def draw_levels(ax: Axes, parts: Sequence[Trace], highest: float = 100.0) -> list[Artist]:
    """The mean level of each GPU, small: one as a filled curve, up to eight a line each, more as a band with its mean,
    as well as lines that would cover each other. ``highest``: value at the top of the axis.

    Columns in which nothing was observed stay blank. Returns what a legend needs, nothing for one GPU.
    """
    edges = column_edges(parts)
    views = [reduce(part, edges) for part in parts]
    if len(parts) > len(GPU_COLORS) or (len(parts) > 1 and _alike(views, highest)):
        return _draw_band(ax, parts, extremes=False)
    handles: list[Artist] = []
    for part, view in zip(parts, views, strict=True):
        color = gpu_color(part.number)
        if len(parts) == 1:
            ax.fill_between(view.middle, 0, view.mean, color=color, alpha=0.25, linewidth=0)
        _line(ax, view.middle, view.mean, part.number)
        name = f"GPU {short(part.gpu)}"
        handles.append(Line2D([], [], color=color, linestyle=gpu_dash(part.number), linewidth=1.6, label=name))
    return handles if len(parts) > 1 else []


def _alike(views: Sequence[PageColumns], highest: float) -> bool:
    """Whether the levels lie within the width of a line or two, nearly always."""
    apart = np.fmax.reduce([view.mean for view in views]) - np.fmin.reduce([view.mean for view in views])
    seen = apart[np.isfinite(apart)]
    return bool(len(seen)) and float(np.quantile(seen, ALIKE_FOR)) <= ALIKE * highest


def _mean(views: Sequence[PageColumns]) -> tuple[np.ndarray, np.ndarray]:
    """Middle of each column, and the mean of the GPUs that were observed in it."""
    seen = np.sum([np.isfinite(view.mean) for view in views], axis=0)
    return views[0].middle, np.sum([np.nan_to_num(view.mean) for view in views], axis=0) / np.where(seen, seen, np.nan)


def _draw_band(ax: Axes, parts: Sequence[Trace], *, extremes: bool) -> list[Artist]:
    edges = column_edges(parts)
    views = [reduce(part, edges) for part in parts]
    low = np.fmin.reduce([v.low if extremes else v.mean for v in views])
    high = np.fmax.reduce([v.high if extremes else v.mean for v in views])
    middle, mean = _mean(views)
    band = ax.fill_between(middle, low, high, color=gpu_color(0), alpha=0.2, linewidth=0)
    band.set_label("lowest to highest GPU")
    _line(ax, middle, mean, 0)
    return [Line2D([], [], color=gpu_color(0), linewidth=1.6, label=f"mean of {len(parts)} GPUs"), band]


def _line(ax: Axes, x: np.ndarray, y: np.ndarray, i: int) -> None:
    """A line broken at NaN, with a dot for each value that stands alone and would be no line."""
    ax.plot(x, y, color=gpu_color(i), linestyle=gpu_dash(i), linewidth=1.2, solid_joinstyle="round")
    known = np.concatenate(([False], np.isfinite(y), [False]))
    alone = known[1:-1] & ~known[:-2] & ~known[2:]
    if alone.any():
        ax.plot(x[alone], y[alone], color=gpu_color(i), linestyle="none", marker="o", markersize=4)


def draw_over_time(ax: Axes, parts: Sequence[Trace], label: str, ceiling: float, timezone: str) -> None:
    """Fill ``ax`` with the traces: a map with a colour bar for more than four GPUs, else a line each."""
    time_axis(ax, *extent(parts), timezone, ticks=6)
    if len(parts) > MAX_LINES:
        mesh = draw_map(ax, parts, ceiling)
        bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02, aspect=30)
        bar.set_label(label)
        bar.outline.set_visible(False)
        return
    handles = draw_lines(ax, parts)
    ax.set_ylabel(label)
    legend_above(ax, handles)


def row_colors(gpus: Sequence[str]) -> list[str]:
    """Colour of each GPU's row: its own up to four GPUs, else one for all, as in the band over time."""
    if len(gpus) > MAX_LINES:
        return [gpu_color(0)] * len(gpus)
    return [gpu_color(gpu_number(gpu, i)) for i, gpu in enumerate(gpus)]


def draw_map(ax: Axes, parts: Sequence[Trace], ceiling: float) -> QuadMesh:
    """Draw a row a GPU coloured by the mean of each column; what was not observed stays white."""
    edges = column_edges(parts)
    values = np.ma.masked_invalid([reduce(part, edges).mean for part in parts])
    rows = np.arange(len(parts) + 1) - 0.5
    return ax.pcolormesh(edges, rows, values, cmap=MAP_COLORS, vmin=0, vmax=ceiling, rasterized=True)
