"""How many trials ran at once, and what lay between the trials of a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gpudiag.errors import NotMeasurable
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.plots._draw.axes import SHORTEST_S, count_axis, day_numbers, duration_scale, legend_above, time_axis
from gpudiag.plots._draw.palette import INK, STATE_COLORS, STATE_HATCHES, darker, gpu_color
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import duration, number, plural, quantity, ratio, share

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

FEWEST_GAPS = 3
MAX_STEPS = 600
COLUMNS = 400
MAX_LABELLED = 12
MAX_VECTOR = 1500


@painter
def plot_concurrency(parallelism: ParallelismProfile, *, timezone: str = "UTC") -> Figure:
    """Trials running at once over time, beside the share of time spent at each level.

    Raises NotMeasurable if no trial has a start.
    """
    steps = parallelism.concurrency
    if steps.empty:
        raise NotMeasurable("No trial has a start time.")
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3.6, 1), sharey=True)
    handles = _draw_steps(left, parallelism)
    if np.isfinite(parallelism.configured):
        left.axhline(parallelism.configured, color=INK, linestyle=(0, (5, 2)), linewidth=1.2)
        label = f"configured: {number(parallelism.configured)}"
        handles.append(Line2D([], [], color=INK, linestyle=(0, (5, 2)), linewidth=1.2, label=label))
    legend_above(left, handles)
    timestamps = day_numbers(steps["time"])
    time_axis(left, timestamps[0], timestamps[-1], timezone, ticks=7)
    left.set(ylabel="trials at once [count]")
    left.set_ylim(0, max(parallelism.peak, np.nan_to_num(parallelism.configured)) + 0.6)
    count_axis(left, "y")
    _draw_levels(right, parallelism)
    return figure


def _draw_steps(ax: Axes, parallelism: ParallelismProfile) -> list[Artist]:
    """Trials with a known end, and on top of them those whose end was inferred."""
    steps = parallelism.concurrency
    time = day_numbers(steps["time"])
    closed, everything = steps["n_closed"].to_numpy(float), steps["n_all"].to_numpy(float)
    if len(steps) > MAX_STEPS:
        edges = np.linspace(time[0], time[-1], COLUMNS + 1)
        closed, everything = _means(time, closed, edges), _means(time, everything, edges)
        time = edges
    known = "end known" + (f" (mean of {COLUMNS} columns)" if len(steps) > MAX_STEPS else "")
    handles: list[Artist] = [
        ax.fill_between(time, closed, step="post", color=gpu_color(0), alpha=0.55, linewidth=0, label=known)
    ]
    if parallelism.n_open:
        color = STATE_COLORS["RUNNING"]
        handles.append(
            ax.fill_between(
                time, closed, everything, step="post", facecolor=color, edgecolor=darker(color), linewidth=0,
                hatch=STATE_HATCHES["RUNNING"], label=f"end inferred ({plural(parallelism.n_open, 'trial')})",
            )
        )  # fmt: skip
    return handles


def _means(time: np.ndarray, level: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Mean of the step function in each column; the last is repeated, as a step needs an end."""
    area = np.concatenate(([0.0], np.cumsum(level[:-1] * np.diff(time))))
    means = np.diff(np.interp(edges, time, area)) / np.diff(edges)
    return np.append(means, means[-1])


def _draw_levels(ax: Axes, parallelism: ParallelismProfile) -> None:
    levels = parallelism.levels
    ax.barh(levels["level"], levels["share_pct"], height=0.6, color=gpu_color(0), alpha=0.55)
    if len(levels) <= MAX_LABELLED:
        for level, part in zip(levels["level"], levels["share_pct"], strict=True):
            ax.annotate(share(part), (part, level), (3, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set(xlabel="share of busy time [%]", xlim=(0, 119), xticks=[0, 50, 100])
    ax.tick_params(axis="y", labelleft=False, length=0)
    ax.grid(visible=False, axis="y")


def alt_concurrency(parallelism: ParallelismProfile) -> str:
    """What :func:`plot_concurrency` shows."""
    text = (
        f"Trials running at once over {duration(parallelism.window_s)}: {ratio(parallelism.effective)} on average "
        f"while any ran, {parallelism.peak} at the peak"
    )
    if np.isfinite(parallelism.configured):
        text += f", where {number(parallelism.configured)} were configured"
    if parallelism.n_open:
        lacking = plural(parallelism.n_open, "trial")
        text += f"; {ratio(parallelism.effective_closed)} without the {lacking} whose end is not known"
    return text + "."


CONCURRENCY = Plot(
    plot_concurrency,
    alt_concurrency,
    "Left: trials that ran at the same time. Right: how much of the time with at least one trial was spent at "
    "each level. Below a dashed line, the number that was configured, workers stood empty.",
)


@painter
def plot_gaps(parallelism: ParallelismProfile, *, timezone: str = "UTC") -> Figure:
    """Each gap between two trials of a worker: when, and how long, on a logarithmic axis.

    Gaps below 10 ms stand at the lower edge. Raises NotMeasurable with fewer than three gaps, or none longer.
    """
    gaps = _gaps(parallelism)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    ax = figure.add_subplot()
    seconds = gaps["gap_s"].clip(lower=SHORTEST_S)
    time = day_numbers(gaps["start"])
    many = len(gaps) > 500
    ax.scatter(
        time, seconds, s=6 if many else 20, color=gpu_color(0), alpha=0.35 if many else 0.7, edgecolor="none",
        rasterized=len(gaps) > MAX_VECTOR,
    )  # fmt: skip
    dot = Line2D([], [], color=gpu_color(0), marker="o", markersize=4, linestyle="none", label=f"a gap ({len(gaps)})")
    handles: list[Artist] = [dot]
    if np.isfinite(parallelism.median_gap_s):
        ax.axhline(max(parallelism.median_gap_s, SHORTEST_S), color=INK, linestyle=(0, (5, 2)), linewidth=1.2)
        label = f"median {duration(parallelism.median_gap_s)}"
        handles.append(Line2D([], [], color=INK, linestyle=(0, (5, 2)), label=label))
    time_axis(ax, time.min(), time.max(), timezone)
    duration_scale(ax, "y", seconds.min(), seconds.max())
    ax.set_ylabel("gap [log scale]")
    legend_above(ax, handles)
    return figure


def _gaps(parallelism: ParallelismProfile) -> pd.DataFrame:
    gaps = parallelism.gaps
    if len(gaps) < FEWEST_GAPS:
        raise NotMeasurable(
            "Only {n:gap} between trials of a worker; a figure needs {n_needed}.", n=len(gaps), n_needed=FEWEST_GAPS
        )
    if not (gaps["gap_s"] > SHORTEST_S).any():
        raise NotMeasurable("No gap between trials of a worker is longer than 10 ms.")
    return gaps


def alt_gaps(parallelism: ParallelismProfile) -> str:
    """What :func:`plot_gaps` shows."""
    gaps = _gaps(parallelism)
    text = f"{plural(len(gaps), 'gap')} between trials of the same worker over time: "
    if np.isfinite(parallelism.median_gap_s):
        text += f"median {duration(parallelism.median_gap_s)}, "
    longest = duration(gaps["gap_s"].max())
    return text + f"longest {longest}, {quantity(parallelism.gap_worker_h, 'worker-h')} in all."


GAPS = Plot(
    plot_gaps,
    alt_gaps,
    "Each dot is the wait between the end of a trial and the start of the next on its worker. Dots that climb "
    "with time point at a sampler or storage that slows down as the study grows.",
)
