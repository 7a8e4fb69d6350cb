"""What another number of trials at once would bring."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gpudiag.errors import NotMeasurable
from gpudiag.plots._draw.axes import legend_above
from gpudiag.plots._draw.palette import ACCENT, INK, MUTED, RULE, STATE_COLORS, gpu_color
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import number, plural

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from gpudiag.forecast.estimate import Estimate
    from gpudiag.forecast.parallelism.what_if import Forecast

WIDTH = 0.28


@painter
def plot_throughput(forecast: Forecast) -> Figure:
    """Trials per hour against trials at once, with intervals and bounds; beside it the risk of running out of memory.

    Without a risk, utilization takes its place. Raises NotMeasurable if there is not one bound.
    """
    if not any(np.isfinite(s.throughput.high) for s in forecast.parallel):
        raise NotMeasurable("No number of trials at once has even a bound on its throughput.")
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.7, 1))
    _draw_rates(left, forecast)
    risk = any(np.isfinite(s.overflow.high) for s in forecast.parallel)
    estimates = [s.overflow if risk else s.util for s in forecast.parallel]
    _draw_estimates(right, forecast, estimates, STATE_COLORS["FAIL"] if risk else gpu_color(0))
    right.set(ylabel="chance that memory overflows [%]" if risk else "GPU utilization [%]", ylim=(-3, 105))
    return figure


def _draw_rates(ax: Axes, forecast: Forecast) -> None:
    k = [s.k for s in forecast.parallel]
    top = max(s.throughput.high for s in forecast.parallel if np.isfinite(s.throughput.high))
    ax.fill_between(k, [s.least for s in forecast.parallel], [s.most for s in forecast.parallel], color=RULE, alpha=0.6)
    linear = [forecast.rate.value * n / forecast.now for n in k]
    ax.plot(k, linear, color=MUTED, linestyle=(0, (1.5, 1.5)), linewidth=1.2)
    _draw_estimates(ax, forecast, [s.throughput for s in forecast.parallel], gpu_color(0))
    ax.scatter([forecast.now], [forecast.rate.value], marker="D", s=44, color=ACCENT, zorder=5)
    ax.set(ylabel="throughput [trials/h]", ylim=(0, 1.12 * max(top, forecast.rate.value)))
    handles: list[Artist] = [
        Line2D([], [], color=ACCENT, marker="D", markersize=6, linestyle="none", label="measured now"),
        Patch(facecolor=RULE, alpha=0.6, label="bounds without a model"),
        Line2D([], [], color=MUTED, linestyle=(0, (1.5, 1.5)), label="linear"),
    ]
    if any(s.throughput.known for s in forecast.parallel):
        handles.insert(0, Line2D([], [], color=gpu_color(0), marker="o", markersize=6, label="forecast, 90 %"))
    legend_above(ax, handles, columns=2)


def _draw_estimates(ax: Axes, forecast: Forecast, estimates: list[Estimate], color: str) -> None:
    """A dot and an interval where there is a value, a box where there are only bounds."""
    for scenario, estimate in zip(forecast.parallel, estimates, strict=True):
        if not (np.isfinite(estimate.low) and np.isfinite(estimate.high)):
            continue
        if estimate.known:
            ax.vlines(scenario.k, estimate.low, estimate.high, color=color, linewidth=2)
            hollow = scenario.beyond
            ax.scatter(
                [scenario.k], [estimate.value], s=36, zorder=4, color="white" if hollow else color, edgecolor=color
            )
        else:
            height = estimate.high - estimate.low
            ax.bar(
                scenario.k, height, bottom=estimate.low, width=WIDTH, facecolor="none", edgecolor=color, linewidth=1.2
            )
    ticks = [s.k for s in forecast.parallel]
    ax.set_xticks(ticks, [str(k) for k in ticks])
    ax.set(xlabel="trials at once [count]", xlim=(min(ticks) - 0.5, max(ticks) + 0.5))
    if forecast.now in ticks:
        ax.axvline(forecast.now, color=INK, linewidth=0.6, alpha=0.4, zorder=0)


def alt_throughput(forecast: Forecast) -> str:
    """What :func:`plot_throughput` shows."""
    parts = []
    for s in forecast.parallel:
        value = f"{number(s.throughput.value)}, " if s.throughput.known else ""
        parts.append(f"{s.k} at once: {value}between {number(s.throughput.low)} and {number(s.throughput.high)}")
    now = f"{plural(forecast.now, 'trial')} at once now reach {number(forecast.rate.value)} trials per hour"
    return f"Throughput in trials per hour against trials at once. {now}. " + "; ".join(parts) + "."


THROUGHPUT = Plot(
    plot_throughput,
    alt_throughput,
    "Dots with bars are forecasts with their interval, hollow beyond what was observed; open boxes are bounds where no "
    "value is known. The gray band holds without any model. Linear is what is often assumed.",
)
