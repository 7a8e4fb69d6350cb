"""Why the clocks of trials and telemetry are taken to differ by so much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gpudiag.errors import NotMeasurable
from gpudiag.measures.clock import ClockProfile
from gpudiag.plots._draw.axes import legend_above
from gpudiag.plots._draw.palette import ACCENT, INK, MUTED
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import ratio, shift

if TYPE_CHECKING:
    import pandas as pd

HOUR_S = 3600.0


@painter
def plot_clock(clock: ClockProfile) -> Figure:
    """Correlation of telemetry and trials at every quarter of an hour within 14 hours.

    Raises NotMeasurable if offsets were not compared.
    """
    table = _compared(clock)
    hours, fit = table["offset_s"].to_numpy(float) / HOUR_S, table["fit"].to_numpy(float)
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    ax = figure.add_subplot()
    best = int(fit.argmax())
    ax.vlines(hours, 0, fit, color=MUTED, linewidth=1.4)
    ax.vlines(hours[best], 0, fit[best], color=ACCENT, linewidth=3)
    ax.scatter([hours[best]], [fit[best]], color=ACCENT, s=30, zorder=3)
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.set(
        xlim=(-14.6, 14.6), xticks=range(-12, 15, 4), xlabel="offset of the trials' clock [h]", ylabel="correlation [1]"
    )
    best_label = f"best: {shift(HOUR_S * hours[best])} ({clock.confidence})"
    legend_above(
        ax,
        [
            Line2D([], [], color=ACCENT, linewidth=3, label=best_label),
            Line2D([], [], color=MUTED, linewidth=1.4, label="other quarters of an hour"),
        ],
    )
    return figure


def _compared(clock: ClockProfile) -> pd.DataFrame:
    if clock.candidates.empty:
        raise NotMeasurable("Offsets between trials and telemetry were not compared.")
    return clock.candidates


def alt_clock(clock: ClockProfile) -> str:
    """What :func:`plot_clock` shows."""
    ordered = _compared(clock).sort_values("fit", ascending=False)
    if len(ordered) < 2:
        return f"Offset {shift(clock.offset_s)}, {clock.confidence}."
    (first, fit), (second, other) = ordered[["offset_s", "fit"]].to_numpy(float)[:2]
    return (
        f"Correlation of telemetry with trials at {len(ordered)} offsets: best at {shift(first)} with "
        f"{ratio(fit)}, next at {shift(second)} with {ratio(other)}; the offset is {clock.confidence}."
    )


CLOCK = Plot(
    plot_clock,
    alt_clock,
    "How well changes of activity and memory fit the starts and ends of the trials if their clock is moved by so "
    "much. One line that stands out is evidence; several of like height are none.",
)
