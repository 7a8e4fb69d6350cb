"""Cells of the GPU-time ledger: their legend, and a ribbon of them over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch

from gpudiag.plots._draw.axes import day_numbers, gpu_rows
from gpudiag.plots._draw.cell_names import DRAWN, cell_label
from gpudiag.plots._draw.palette import CELL_COLORS, CELL_HATCHES, darker
from gpudiag.units import DAY_S

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_VECTOR = 1500
MAX_BARS = 60


def cell_handles(present: Iterable[str], *, has_trials: bool = True) -> list[Patch]:
    """Legend entries of the cells present, in the order of DRAWN."""
    shown = set(present)
    return [cell_patch(name, has_trials=has_trials) for name in DRAWN if name in shown]


def cell_patch(name: str, *, has_trials: bool = True) -> Patch:
    """The swatch of one cell."""
    return Patch(
        facecolor=CELL_COLORS[name],
        edgecolor=edge(name),
        linewidth=0.0,
        hatch=CELL_HATCHES[name],
        label=cell_label(name, has_trials=has_trials),
    )


def edge(name: str) -> tuple[float, float, float]:
    """Colour of a cell's hatch."""
    return darker(CELL_COLORS[name], 0.75)


def draw_ribbon(ax: Axes, spans: pd.DataFrame, gpus: Sequence[str]) -> list[Patch]:
    """One band a GPU with the cell of each instant; returns the legend entries. The x axis is in day numbers."""
    rows = {gpu: i for i, gpu in enumerate(gpus)}
    low, high = day_numbers(spans["start"]), day_numbers(spans["end"])
    row = spans["gpu"].map(rows).to_numpy(float)
    names = spans["cell"].astype(str).to_numpy()
    for name in DRAWN:
        mine = names == name
        if not mine.any():
            continue
        y = row[mine]
        _rectangles(ax, name, low[mine], high[mine], y - 0.4, y + 0.4, rasterized=len(spans) > MAX_VECTOR)
    gpu_rows(ax, gpus)
    return cell_handles(names)


def draw_shares(ax: Axes, bins: pd.DataFrame, bin_s: float) -> None:
    """Cells over time as stacked bars to 100 %; a bin that the window cuts is as narrow as what of it counts."""
    table = bins.pivot_table(index="start", columns="cell", values="gpu_s", aggfunc="sum", observed=False).fillna(0.0)
    x = day_numbers(table.index.to_series())
    total = table.sum(axis=1).to_numpy(float)
    width_s = bins.groupby(["start", "gpu"], observed=True)["gpu_s"].sum().groupby("start").max()
    right = x + np.minimum(width_s.to_numpy(float), bin_s) / DAY_S
    bottom = np.zeros(len(x))
    for name in DRAWN:
        if name not in table:
            continue
        height = 100 * table[name].to_numpy(float) / total
        _rectangles(ax, name, x, right, bottom, bottom + height, rasterized=len(x) > MAX_BARS)
        bottom = bottom + height
    ax.autoscale_view()


def _rectangles(
    ax: Axes, cell: str, x0: np.ndarray, x1: np.ndarray, y0: np.ndarray, y1: np.ndarray, *, rasterized: bool
) -> None:
    """Bars of one cell as one collection, which is drawn much faster than as many patches."""
    corners = np.stack([np.stack(corner, axis=1) for corner in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))], axis=1)
    bars = PolyCollection(
        list(corners), facecolor=CELL_COLORS[cell], edgecolor="none", linewidth=0, rasterized=rasterized, label=cell
    )
    ax.add_collection(bars, autolim=False)
    if len(x0):
        ax.update_datalim([(x0.min(), y0.min()), (x1.max(), y1.max())])
