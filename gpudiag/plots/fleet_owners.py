"""Whose GPU time it was, and what became of it: the picture at the top of a fleet's report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from gpudiag.errors import NotMeasurable
from gpudiag.plots._draw.axes import legend_above, short
from gpudiag.plots._draw.cell_names import DRAWN
from gpudiag.plots._draw.cells import cell_handles, edge
from gpudiag.plots._draw.palette import CELL_COLORS, CELL_HATCHES, INK
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import quantity, share

if TYPE_CHECKING:
    import pandas as pd

OF_TRIALS = ("stalled", "waiting", "tail_only", "startup_only", "foreign")
LONGEST = 18
ROW_INCH, ROOM_INCH = 0.23, 1.05
LEAST = 0.003
"""Categories that never fill this share of the longest bar could not be seen, and have no place in the legend."""
BESIDE = 1.12
"""Room at the end of the longest bar for its utilization."""


@painter
def plot_owners(owners: pd.DataFrame) -> Figure:
    """GPU-hours by category, a bar for each user or project, its mean utilization beside it.

    ``owners``: a row each, the most GPU time first, a column in GPU-hours for each category, and ``util_pct``; the name
    of the index says what a row is. Raises NotMeasurable with fewer than two rows.
    """
    if len(owners) < 2:
        raise NotMeasurable("There is only one part of the fleet.")
    figure = Figure(figsize=(9, ROOM_INCH + ROW_INCH * len(owners)), layout="constrained")
    ax = figure.add_subplot()
    place, left = np.arange(len(owners)), np.zeros(len(owners))
    longest = float(owners[list(DRAWN)].sum(axis=1).max())
    present = [cell for cell in DRAWN if owners[cell].max() >= LEAST * longest]
    for cell in DRAWN:
        width = owners[cell].to_numpy(float)
        ax.barh(
            place,
            width,
            left=left,
            height=0.72,
            color=CELL_COLORS[cell],
            hatch=CELL_HATCHES[cell],
            edgecolor=edge(cell),
            linewidth=0,
        )
        left = left + width
    for y, end, pct in zip(place, left, owners["util_pct"], strict=True):
        if np.isfinite(pct):
            ax.annotate(share(pct), (end, y), (4, 0), textcoords="offset points", va="center", color=INK, fontsize=8)
    ax.set_yticks(place, [short(str(name), LONGEST) for name in owners.index])
    ax.set(xlim=(0, BESIDE * longest), ylim=(len(owners) - 0.5, -0.5))
    ax.set_xlabel(f"GPU time by {owners.index.name} [GPU-h]; beside it: mean utilization")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda hours, _: f"{hours:,g}"))
    ax.grid(visible=False, axis="y")
    legend_above(ax, cell_handles(present, has_trials=has_trials(owners)))
    return figure


def has_trials(cells: pd.DataFrame) -> bool:
    """Whether any GPU time is known to be within a trial: without, an idle GPU waits for nothing that anybody knows."""
    return bool(cells[list(OF_TRIALS)].to_numpy(float).any())


def alt_owners(owners: pd.DataFrame) -> str:
    """What :func:`plot_owners` shows."""
    hours = owners[list(DRAWN)].sum(axis=1)
    named = [
        f"{name} {quantity(one, 'GPU-h')} at {share(pct)} utilization" if np.isfinite(pct) else
        f"{name} {quantity(one, 'GPU-h')}"
        for name, one, pct in zip(owners.index, hours, owners["util_pct"], strict=True)
    ]  # fmt: skip
    return f"GPU time by {owners.index.name}: {', '.join(named)}."


OWNERS = Plot(
    plot_owners, alt_owners, "GPU time by category, the most first; the number beside a bar is the mean utilization."
)
