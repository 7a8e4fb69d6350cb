"""How busy each GPU was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gpudiag.errors import NotMeasurable
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.plots._draw.axes import gpu_rows, legend_above, rows_inch
from gpudiag.plots._draw.palette import CELL_COLORS, INK, MUTED, ink_on
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.plots._draw.telemetry import MAX_LINES, draw_over_time, row_colors, traces
from gpudiag.report.format import number, plural, share
from gpudiag.schema import BUSY_PCT, IDLE_PCT

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LEGIBLE_PCT = 14


@painter
def plot_utilization(utilization: UtilizationProfile, *, timezone: str = "UTC") -> Figure:
    """Share of time that each GPU was idle, low and busy, its spread, and up to four GPUs utilization over time.

    The shares and quantiles are the profile's, weighted by time over all samples: the series is
    thinned for drawing and would distort them. Raises NotMeasurable if no GPU has a reading.
    """
    if utilization.series.empty:
        raise NotMeasurable("No GPU has a reading of its utilization.")
    parts = traces(utilization.series, "util_pct", "mean_pct")
    rows = utilization.per_gpu.loc[[part.gpu for part in parts]]
    if len(rows) > MAX_LINES:
        figure = Figure(figsize=(9, rows_inch(len(rows))), layout="constrained")
        shares, spread = figure.subplots(1, 2)
    else:
        figure = Figure(figsize=(9, 4.1 + 0.25 * len(rows)), layout="constrained")
        grid = figure.add_gridspec(2, 2, height_ratios=(0.5 + 0.25 * len(rows), 2.0))
        shares, spread, time_series = (figure.add_subplot(cell) for cell in (grid[0, 0], grid[0, 1], grid[1, :]))
        draw_over_time(time_series, parts, "utilization [%]", 100, timezone)
        time_series.set(ylim=(-3, 103), yticks=[0, 25, 50, 75, 100])
    _draw_shares(shares, rows)
    _draw_spread(spread, rows)
    return figure


def _draw_shares(ax: Axes, rows: pd.DataFrame) -> None:
    """Idle from the left, busy from the right; what lies between them is low."""
    y = np.arange(len(rows))
    idle, busy = rows["idle_pct"].to_numpy(float), rows["busy_pct"].to_numpy(float)
    low = 100 - idle - busy
    for name, left, width in (("idle_no_trial", 0 * idle, idle), ("busy_low", idle, low), ("busy", 100 - busy, busy)):
        ax.barh(y, width, left=left, height=0.7, color=CELL_COLORS[name], label=name)
        if len(rows) > 16:
            continue
        for row in np.flatnonzero(width >= LEGIBLE_PCT).tolist():
            ax.text(
                left[row] + width[row] / 2, row, share(width[row]),
                ha="center", va="center", fontsize=9, color=ink_on(CELL_COLORS[name]),
            )  # fmt: skip
    ax.set(xlabel="share of observed time [%]", xlim=(0, 100))
    gpu_rows(ax, list(rows.index))
    names = {
        "idle_no_trial": f"< {share(IDLE_PCT)}",
        "busy_low": f"{number(IDLE_PCT)} to {share(BUSY_PCT)}",
        "busy": f"≥ {share(BUSY_PCT)}",
    }
    legend_above(ax, [Patch(facecolor=CELL_COLORS[name], label=text) for name, text in names.items()], 3)


def _draw_spread(ax: Axes, rows: pd.DataFrame) -> None:
    y = np.arange(len(rows))
    colors = row_colors(rows.index)
    ax.barh(y, rows["p95_pct"] - rows["p5_pct"], left=rows["p5_pct"], height=0.5, color=colors, alpha=0.35)
    ax.scatter(rows["p50_pct"], y, marker="|", s=110, color=colors, linewidth=2, zorder=3)
    ax.scatter(rows["mean_pct"], y, marker="o", s=22, color=INK, zorder=4)
    for threshold in (IDLE_PCT, BUSY_PCT):
        ax.axvline(threshold, color=MUTED, linestyle=(0, (2, 2)), linewidth=0.9)
    ax.set(xlabel="utilization [%]", xlim=(-3, 103), xticks=[IDLE_PCT, BUSY_PCT, 100])
    gpu_rows(ax, list(rows.index), labels=False)
    legend_above(
        ax,
        [
            Patch(facecolor=colors[0], alpha=0.35, label="5–95 % of time"),
            Line2D(
                [], [], color=colors[0], marker="|", markersize=9, markeredgewidth=2, linestyle="none", label="median"
            ),
            Line2D([], [], color=INK, marker="o", markersize=5, linestyle="none", label="mean"),
        ],
        3,
    )


def alt_utilization(utilization: UtilizationProfile) -> str:
    """What :func:`plot_utilization` shows."""
    means = utilization.per_gpu["mean_pct"]
    text = (
        f"Utilization of {plural(utilization.n_gpus, 'GPU')} over the whole record: "
        f"{share(utilization.mean_pct)} on average, below {share(IDLE_PCT)} for {share(utilization.idle_pct)} of it."
    )
    if len(means) > 1:
        low, high = means.idxmin(), means.idxmax()
        text += f" The means run from {share(means[low])} (GPU {low}) to {share(means[high])} (GPU {high})."
    return text


UTILIZATION = Plot(
    plot_utilization,
    alt_utilization,
    "Left: share of observed time at or below 10 %, between, and at 50 % or more. Beside it the spread over "
    "time. A busy GPU had a kernel running; that does not say how much of the chip it used.",
)
