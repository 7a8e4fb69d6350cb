"""What stood between all observed time and the utilization that was measured, cause by cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from gpudiag.errors import NotMeasurable
from gpudiag.measures.causes import CausesProfile
from gpudiag.plots._draw.causes import cause_label, cause_look
from gpudiag.plots._draw.palette import CELL_COLORS, INK, MUTED, darker
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import share

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LEAST_PCT = 0.1
"""A cause that may hold less is left out."""
WIDE_PCT = 1.0
"""Bounds that are closer are not drawn."""


@painter
def plot_waterfall(causes: CausesProfile) -> Figure:
    """What each cause takes away from all observed time, down to the mean utilization, with its bounds.

    Raises NotMeasurable where every GPU was busy throughout.
    """
    rows = _shown(causes)
    names = [
        "all observed time",
        *(cause_label(str(cause), has_trials=causes.has_trials) for cause in rows.index),
        "mean utilization",
    ]
    mean_pct = 100 - causes.unused_pct
    figure = Figure(figsize=(9, 1.2 + 0.36 * len(names)), layout="constrained")
    ax = figure.add_subplot()
    ax.barh(0, 100, height=0.7, color=MUTED)
    _write(ax, 100, 0, "100 %")
    left = 100.0
    for row, (cause, own) in enumerate(rows.iterrows(), 1):
        color, hatch = cause_look(str(cause))
        left -= own["share_pct"]
        ax.barh(
            row, own["share_pct"], left=left, height=0.7, color=color, hatch=hatch, edgecolor=darker(color), linewidth=0
        )
        ax.plot([left, left], [row - 0.35, row + 1.35], color=MUTED, linewidth=0.8)
        end = left + own["share_pct"]
        if own["high_pct"] - own["low_pct"] >= WIDE_PCT and cause != "unknown":
            bounds = [max(end - own["high_pct"], 0), end - own["low_pct"]]
            ax.plot(bounds, [row, row], color=INK, linewidth=1.4, marker="|", markersize=7)
        _write(ax, end, row, f"− {share(own['share_pct'])}")
    ax.barh(len(names) - 1, mean_pct, height=0.7, color=CELL_COLORS["busy"])
    _write(ax, mean_pct, len(names) - 1, share(mean_pct))
    ax.set(xlim=(0, 124), xticks=[0, 25, 50, 75, 100], xlabel="share of observed GPU time [%]")
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")
    return figure


def _shown(causes: CausesProfile) -> pd.DataFrame:
    rows = causes.by_cause
    rows = rows[rows["share_pct"] >= LEAST_PCT]
    if rows.empty:
        raise NotMeasurable("The GPUs were busy throughout.")
    return rows


def _write(ax: Axes, x: float, row: int, text: str) -> None:
    ax.text(x + 1, row, text, va="center", fontsize=9, color=INK)


def alt_waterfall(causes: CausesProfile) -> str:
    """What :func:`plot_waterfall` shows."""
    rows = _shown(causes).sort_values("share_pct", ascending=False)
    taken = ", ".join(
        f"{cause_label(str(cause), has_trials=causes.has_trials)} {share(pct)}"
        for cause, pct in rows["share_pct"].items()
    )
    return f"From all observed time down to a mean utilization of {share(100 - causes.unused_pct)}: {taken} taken away."


WATERFALL = Plot(
    plot_waterfall,
    alt_waterfall,
    "What the GPUs waited for while no kernel ran. A line is what a cause may be at least and at most; what no source "
    "explains is unknown.",
)
