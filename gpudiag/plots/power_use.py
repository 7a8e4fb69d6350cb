"""Power against utilization: busy is not the same as used well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gpudiag.errors import NotMeasurable
from gpudiag.measures.power import LOAD_BIN_PCT, LOAD_BINS, PowerProfile
from gpudiag.plots._draw.axes import legend_above, short
from gpudiag.plots._draw.palette import ACCENT, CARD, GPU_COLORS, MUTED
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.plots._draw.telemetry import MAX_LINES, natural
from gpudiag.report.format import plural, share
from gpudiag.schema import BUSY_PCT

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

HALF_PCT = 50.0
QUARTERS = (0, 25, 50, 75, 100)
LEAST_SHARE_PCT = 0.05
STRENGTH = LinearSegmentedColormap.from_list("strength", [f"{GPU_COLORS[0]}20", GPU_COLORS[0]])
"""From the paper's own color, white or dark, to blue."""


@painter
def plot_power_use(power: PowerProfile) -> Figure:
    """Share of time at each utilization and each power as a share of the limit: a panel a GPU up to four, else one.

    The line is the mean power at each utilization. Raises NotMeasurable if no reading has both.
    """
    load = _known(power)
    gpus = sorted(load["gpu"].unique(), key=natural)
    panels = [load[load["gpu"] == gpu] for gpu in gpus] if len(gpus) <= MAX_LINES else [load]
    names = [f"GPU {short(str(gpu))}" for gpu in gpus] if len(gpus) <= MAX_LINES else [f"{len(gpus)} GPUs"]
    rows, columns = -(-len(panels) // 2), min(len(panels), 2)
    figure = Figure(figsize=(9, 4.0 if rows == 1 else 6.6), layout="constrained")
    grid = figure.add_gridspec(rows, columns)
    axes = [figure.add_subplot(grid[divmod(i, columns)]) for i in range(len(panels))]
    top = max(100.0, float(load["load_pct"].max()) + LOAD_BIN_PCT / 2)
    for i, (ax, panel, name) in enumerate(zip(axes, panels, names, strict=True)):
        mesh = _draw(ax, panel, top)
        legend_above(
            ax, [Line2D([], [], color=ACCENT, linewidth=1.6, marker="o", markersize=3.5, label=f"{name}, mean")]
        )
        weak = _weak_pct(panel)
        if weak == weak:
            plate = {"boxstyle": "round,pad=0.15", "facecolor": CARD, "edgecolor": "none", "alpha": 0.8}
            text = f"{share(weak)} of\nbusy time"
            ax.text(98, 2.5, text, ha="right", va="bottom", fontsize=9, bbox=plate, zorder=4)
        if i % columns == 0:
            ax.set_ylabel("power [% of limit]")
        if i >= len(panels) - columns:
            ax.set_xlabel("utilization [%]")
    bar = figure.colorbar(mesh, ax=axes, pad=0.015, aspect=30)
    bar.set_label("share of time [%]")
    bar.set_ticks([0.1, 1, 10, 100], labels=["0.1", "1", "10", "100"])
    bar.outline.set_visible(False)
    return figure


def _draw(ax: Axes, load: pd.DataFrame, top: float) -> QuadMesh:
    column = (load["util_pct"] // LOAD_BIN_PCT).astype(int)
    row = (load["load_pct"] // LOAD_BIN_PCT).astype(int)
    n_rows = int(np.ceil(top / LOAD_BIN_PCT))
    seconds = np.bincount(row * LOAD_BINS + column, load["observed_s"], n_rows * LOAD_BINS).reshape(n_rows, LOAD_BINS)
    part = 100 * seconds / seconds.sum()
    edges = np.arange(LOAD_BINS + 1) * LOAD_BIN_PCT, np.arange(n_rows + 1) * LOAD_BIN_PCT
    mesh = ax.pcolormesh(
        *edges, np.ma.masked_less(part, LEAST_SHARE_PCT), cmap=STRENGTH, rasterized=True,
        norm=LogNorm(LEAST_SHARE_PCT, 100),
    )  # fmt: skip
    height = edges[1][:-1] + LOAD_BIN_PCT / 2
    held = seconds.sum(axis=0)
    known = held >= LEAST_SHARE_PCT / 100 * held.sum()
    mean = height @ seconds[:, known] / held[known]
    ax.plot((edges[0][:-1] + LOAD_BIN_PCT / 2)[known], mean, color=ACCENT, linewidth=1.6, marker="o", markersize=3.5)
    for mark in (ax.axvline(BUSY_PCT), ax.axhline(HALF_PCT)):
        mark.set(color=MUTED, linestyle=(0, (2, 2)), linewidth=0.9)
    ax.set(xlim=(0, 100), ylim=(0, n_rows * LOAD_BIN_PCT), xticks=QUARTERS, yticks=QUARTERS)
    return mesh


def _weak_pct(load: pd.DataFrame) -> float:
    """Share of the busy time that was spent below half of the limit; NaN without any."""
    busy = load[load["util_pct"] >= BUSY_PCT]
    total = float(busy["observed_s"].sum())
    return 100 * float(busy.loc[busy["load_pct"] < HALF_PCT, "observed_s"].sum()) / total if total else float("nan")


def _known(power: PowerProfile) -> pd.DataFrame:
    if not power.load["observed_s"].sum() > 0:
        raise NotMeasurable("No reading of power has a reading of utilization beside it.")
    return power.load


def alt_power_use(power: PowerProfile) -> str:
    """What :func:`plot_power_use` shows."""
    load = _known(power)
    text = f"Map of the power of {plural(load['gpu'].nunique(), 'GPU')} against utilization"
    weak = _weak_pct(load)
    if weak != weak:
        return f"{text}: utilization never reached {share(BUSY_PCT)}."
    return f"{text}: {share(weak)} of the time at {share(BUSY_PCT)} or more was spent below half of the power limit."


POWER_USE = Plot(
    plot_power_use,
    alt_power_use,
    "Strong blue is where the time was spent. Lower right is busy but not used well: a kernel always runs and the "
    "board draws little, as with small batches or waits for memory; the number is its share of the busy time. Upper "
    "right is work that fills the chip.",
)
