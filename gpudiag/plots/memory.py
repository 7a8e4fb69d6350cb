"""How full each GPU's memory was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gpudiag.errors import NotMeasurable
from gpudiag.measures.memory import MemoryProfile
from gpudiag.plots._draw.axes import gpu_rows, legend_above, rows_inch
from gpudiag.plots._draw.palette import INK, MUTED, RULE
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.plots._draw.telemetry import MAX_LINES, draw_over_time, row_colors, traces
from gpudiag.report.format import plural, quantity
from gpudiag.units import MIB_PER_GIB

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


@painter
def plot_memory(memory: MemoryProfile, *, timezone: str = "UTC") -> Figure:
    """Greatest and mean use of each GPU against its capacity, beside use over time.

    Raises NotMeasurable if no GPU has a reading.
    """
    if memory.series.empty:
        raise NotMeasurable("No GPU has a reading of its memory.")
    parts = traces(memory.series, "mem_used_mib", "mean_mib", scale=MIB_PER_GIB)
    rows = memory.per_gpu.loc[[part.gpu for part in parts]]
    figure = Figure(figsize=(9, max(3.2, rows_inch(len(rows)))), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.5))
    ceiling = float(np.nanmax(rows[["total_mib", "max_mib"]].to_numpy(float))) / MIB_PER_GIB
    _draw_fill(left, rows, ceiling)
    draw_over_time(right, parts, "memory used [GiB]", ceiling, timezone)
    if len(parts) <= MAX_LINES:
        draw_capacity(right, memory)
        right.set_ylim(0, ceiling * 1.05)
    else:
        gpu_rows(right, [part.gpu for part in parts], labels=False)
    return figure


def _draw_fill(ax: Axes, rows: pd.DataFrame, ceiling: float) -> None:
    y = np.arange(len(rows))
    gib = {name: rows[name].to_numpy(float) / MIB_PER_GIB for name in ("total_mib", "max_mib", "p99_mib", "mean_mib")}
    ax.barh(y, gib["total_mib"], height=0.7, color=RULE, label="capacity")
    ax.barh(y, gib["max_mib"], height=0.7, color=row_colors(rows.index), alpha=0.55, label="max")
    ax.scatter(gib["mean_mib"], y, marker="o", s=22, color=INK, zorder=3, label="mean")
    ax.set(xlabel="memory used [GiB]", xlim=(0, max(1.05 * ceiling, 0.001)))
    gpu_rows(ax, list(rows.index))
    handles: list[Artist] = [Patch(facecolor=row_colors(rows.index)[0], alpha=0.55, label="max")]
    handles.append(Line2D([], [], color=INK, marker="o", markersize=5, linestyle="none", label="mean"))
    if np.isfinite(gib["total_mib"]).any():
        handles.append(Patch(facecolor=RULE, label="capacity"))
    legend_above(ax, handles)


def draw_capacity(ax: Axes, memory: MemoryProfile) -> list[Artist]:
    """A dashed line at each distinct capacity of the GPUs; returns what a legend needs."""
    totals = sorted(set(memory.per_gpu["total_mib"].dropna() / MIB_PER_GIB))
    for total in totals:
        ax.axhline(total, color=MUTED, linestyle=(0, (4, 2)), linewidth=1.0)
    text = ", ".join(quantity(total, "GiB") for total in totals)
    return [Line2D([], [], color=MUTED, linestyle=(0, (4, 2)), label=f"capacity {text}")] if totals else []


def alt_memory(memory: MemoryProfile) -> str:
    """What :func:`plot_memory` shows."""
    fullest = memory.per_gpu["max_mib"].idxmax()
    row = memory.per_gpu.loc[fullest]
    text = f"Memory of {plural(len(memory.per_gpu), 'GPU')}: "
    text += f"the fullest, GPU {fullest}, reached {quantity(row['max_mib'], 'MiB')}"
    if np.isfinite(row["total_mib"]):
        text += f" of {quantity(row['total_mib'], 'MiB')}"
    return text + f", {quantity(row['mean_mib'], 'MiB')} on average."


MEMORY = Plot(
    plot_memory,
    alt_memory,
    "Left: the greatest use of each GPU's memory against its capacity. Frameworks keep memory that they have "
    "freed, so use can overstate need.",
)
