"""Power drawn by each GPU against its limit, with impossible readings set aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gpudiag.errors import NotMeasurable
from gpudiag.measures.power import PowerProfile
from gpudiag.plots._draw.axes import gpu_rows, legend_above, rows_inch
from gpudiag.plots._draw.palette import ACCENT, INK
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.plots._draw.telemetry import natural, row_colors
from gpudiag.report.format import count, plural, quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROOM = 1.12
REJECTED = "rejected as impossible"


@painter
def plot_power(power: PowerProfile) -> Figure:
    """Greatest and mean plausible power of each GPU against its limit.

    A rejected reading is a cross in a strip to the right of the scale, which it therefore cannot stretch.
    Raises NotMeasurable if no GPU has a plausible reading.
    """
    rows = power.per_gpu.loc[sorted(power.per_gpu.index, key=natural)]
    if not rows["max_w"].notna().any():
        raise NotMeasurable("No GPU has a plausible reading of its power.")
    figure = Figure(figsize=(9, max(2.4, rows_inch(len(rows)))), layout="constrained")
    ax = figure.add_subplot()
    y = np.arange(len(rows))
    colors = row_colors(rows.index)
    ax.barh(y, rows["max_w"], height=0.6, color=colors, alpha=0.45)
    ax.scatter(rows["mean_w"], y, marker="o", s=24, color=INK, zorder=3)
    ax.scatter(rows["limit_w"], y, marker="|", s=220, color=INK, linewidth=1.6, zorder=3)
    handles = [
        Patch(facecolor=colors[0], alpha=0.45, label="max"),
        Line2D([], [], color=INK, marker="o", markersize=5, linestyle="none", label="mean"),
    ]
    if rows["limit_w"].notna().any():
        handles.append(Line2D([], [], color=INK, marker="|", markersize=10, linestyle="none", label="limit"))
    if not power.rejected.empty:
        _draw_rejected(ax, power, [str(gpu) for gpu in rows.index])
        handles.append(Line2D([], [], color=ACCENT, marker="x", markeredgewidth=1.6, linestyle="none", label=REJECTED))
    full = float(np.nanmax(rows[["max_w", "limit_w"]].to_numpy(float)))
    ax.set(xlabel="power [W]", xlim=(0, full * ROOM if full > 0 else 1))
    gpu_rows(ax, list(rows.index))
    legend_above(ax, handles)
    return figure


def _draw_rejected(ax: Axes, power: PowerProfile, gpus: list[str]) -> None:
    """One cross a GPU beyond the right edge, with how many readings it stands for and the greatest."""
    beyond = ax.get_yaxis_transform()
    worst = power.rejected.groupby("gpu", sort=False)["power_w"].agg(["size", "max"])
    for gpu, row in worst.iterrows():
        y = gpus.index(str(gpu))
        ax.plot([1.02], [y], marker="x", color=ACCENT, markeredgewidth=1.6, transform=beyond, clip_on=False)
        text = f"{count(row['size'])} × {'up to ' if row['size'] > 1 else ''}{quantity(row['max'], 'W')}"
        ax.text(1.035, y, text, transform=beyond, va="center", fontsize=9, color=INK)


def alt_power(power: PowerProfile) -> str:
    """What :func:`plot_power` shows."""
    of_mean = bool(power.per_gpu["mean_w"].notna().any())
    drawn = power.per_gpu["mean_w" if of_mean else "max_w"]
    row = power.per_gpu.loc[hungriest := drawn.idxmax()]
    text = f"Power of {plural(len(power.per_gpu), 'GPU')}: GPU {hungriest} drew most, "
    text += f"{quantity(drawn[hungriest], 'W')} {'on average' if of_mean else 'at most'}"
    text += (
        f" of a limit of {quantity(row['limit_w'], 'W')}."
        if np.isfinite(row["limit_w"])
        else "; its limit is not known."
    )
    if power.n_rejected:
        readings = plural(power.n_rejected, "impossible reading")
        text += f" Set aside: {readings} of up to {quantity(power.rejected['power_w'].max(), 'W')}."
    return text


POWER = Plot(
    plot_power,
    alt_power,
    "Power that each board drew against its limit. Readings that the board cannot produce are crosses beyond "
    "the scale and count in no figure.",
)
