"""Utilization of every GPU over time, as a map with a row a GPU."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from gpudiag.errors import NotMeasurable
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.plots._draw.axes import gpu_rows, rows_inch, time_axis
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.plots._draw.telemetry import draw_map, extent, traces
from gpudiag.report.format import plural, share
from gpudiag.schema import IDLE_PCT


@painter
def plot_utilization_map(utilization: UtilizationProfile, *, timezone: str = "UTC") -> Figure:
    """Mean utilization of each GPU in each column of time; what was not observed stays white.

    Raises NotMeasurable if no GPU has a reading.
    """
    if utilization.series.empty:
        raise NotMeasurable("No GPU has a reading of its utilization.")
    parts = traces(utilization.series, "util_pct", "mean_pct")
    figure = Figure(figsize=(9, rows_inch(len(parts))), layout="constrained")
    ax = figure.add_subplot()
    time_axis(ax, *extent(parts), timezone)
    mesh = draw_map(ax, parts, 100)
    gpu_rows(ax, [part.gpu for part in parts])
    ax.set_ylim(len(parts) - 0.5, -0.5)
    ax.grid(visible=False)
    for row in range(1, len(parts)) if len(parts) <= 16 else ():
        ax.axhline(row - 0.5, color="white", linewidth=2)
    bar = figure.colorbar(mesh, ax=ax, pad=0.015, aspect=max(8, 3 * len(parts)) if len(parts) < 10 else 30)
    bar.set_label("utilization [%]")
    bar.set_ticks([0, 50, 100])
    bar.outline.set_visible(False)
    return figure


def alt_utilization_map(utilization: UtilizationProfile) -> str:
    """What :func:`plot_utilization_map` shows."""
    idle = utilization.per_gpu["idle_pct"].dropna()
    text = f"Map of the utilization of {plural(utilization.n_gpus, 'GPU')} over time. "
    quiet = int(np.sum(idle >= 90))
    text += f"GPU {idle.idxmax()} was below {share(IDLE_PCT)} longest, for {share(idle.max())} of its record"
    return text + (f"; {plural(quiet, 'GPU')} for 90 % or more." if quiet else ".")


UTILIZATION_MAP = Plot(
    plot_utilization_map,
    alt_utilization_map,
    "A row is a GPU: dark was little used, bright was busy, white was not observed. Look for rows that stay dark and "
    "for columns in which all GPUs wait at once.",
)
