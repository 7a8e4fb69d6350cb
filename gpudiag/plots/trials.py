"""How long trials took, by what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gpudiag.errors import NotMeasurable
from gpudiag.measures.trials import TrialsProfile
from gpudiag.plots._draw.axes import SHORTEST_S, duration_scale, legend_above
from gpudiag.plots._draw.palette import INK, MUTED, STATE_COLORS, STATE_MARKERS
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import count, duration, plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

FEWEST_BOXED = 4
FAINT = 0.6
MAX_DOTS = 200
"""Trials of a state up to which each is a dot; dots of more would cover each other."""


@painter
def plot_durations(trials: TrialsProfile) -> Figure:
    """Duration of every trial by state, with quartiles and median, on a logarithmic axis; beyond 200 as a density.

    Durations below 10 ms stand at the left edge. Raises NotMeasurable if no trial has a known duration.
    """
    durations = trials.durations
    if durations.empty:
        raise NotMeasurable("No trial has a known start and end.")
    states = [str(state) for state in trials.by_state.index if trials.by_state.loc[state, "n_timed"] > 0]
    figure = Figure(figsize=(9, 1.3 + 0.75 * len(states)), layout="constrained")
    ax = figure.add_subplot()
    seconds = durations["duration_s"].clip(lower=SHORTEST_S)
    duration_scale(ax, "x", seconds.min(), seconds.max())
    for row, state in enumerate(states):
        own = durations.loc[durations["state"] == state, "duration_s"]
        (_draw_points if len(own) <= MAX_DOTS else _draw_density)(ax, row, state, own)
        _draw_box(ax, row, trials.by_state.loc[state])
    ax.set(xlabel="duration [log scale]", ylim=(len(states) - 0.5, -0.5))
    ax.set_yticks(range(len(states)), [_label(state, trials.by_state.loc[state]) for state in states])
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")
    counts = durations["state"].value_counts()
    dot = Line2D([], [], color=MUTED, marker="o", markersize=4, linestyle="none", label="a trial")
    density = Patch(facecolor=MUTED, alpha=FAINT, edgecolor=INK, label="density of many trials")
    legend_above(
        ax,
        [
            *([dot] if counts.min() <= MAX_DOTS else []),
            *([density] if counts.max() > MAX_DOTS else []),
            Patch(facecolor="none", edgecolor=INK, label="middle half of the trials"),
            Line2D([], [], color=INK, marker="|", markersize=10, markeredgewidth=2, linestyle="none", label="median"),
        ],
    )
    return figure


def _draw_points(ax: Axes, row: int, state: str, seconds: pd.Series) -> None:
    """Points spread over the row's height by the golden ratio: no two neighbours in time at one height."""
    height = row + 0.6 * ((np.arange(len(seconds)) * 0.6180339887498949) % 1 - 0.5)
    ax.scatter(
        seconds.clip(lower=SHORTEST_S),
        height,
        marker=STATE_MARKERS[state],
        s=20,
        color=STATE_COLORS[state],
        edgecolor="none",
        alpha=0.85,
        zorder=4,
        label=state,
    )


def _draw_density(ax: Axes, row: int, state: str, seconds: pd.Series) -> None:
    """The outline of a kernel density of the logarithms: of many trials it shows several typical durations apart."""
    import seaborn  # brings pyplot along, which nothing here draws through

    shown = seconds.clip(lower=SHORTEST_S).to_numpy()
    seaborn.violinplot(
        x=shown, y=np.full(len(shown), row), orient="h", native_scale=True, width=0.66, cut=0, inner=None,
        color=STATE_COLORS[state], saturation=1, linewidth=0.8, alpha=FAINT, ax=ax, zorder=2,
    )  # fmt: skip


def _draw_box(ax: Axes, row: int, stats: pd.Series) -> None:
    low, middle, high = (max(float(stats[name]), SHORTEST_S) for name in ("p25_s", "median_s", "p75_s"))
    if stats["n_timed"] >= FEWEST_BOXED:
        ax.barh(row, high - low, left=low, height=0.66, facecolor="none", edgecolor=INK, linewidth=1.0, zorder=3)
    ax.plot([middle, middle], [row - 0.33, row + 0.33], color=INK, linewidth=2.2, zorder=3)


def _label(state: str, stats: pd.Series) -> str:
    n, timed = int(stats["n"]), int(stats["n_timed"])
    return f"{state}\nn = {n}" if timed == n else f"{state}\n{timed} of {n} timed"


def alt_durations(trials: TrialsProfile) -> str:
    """What :func:`plot_durations` shows."""
    timed = trials.by_state[trials.by_state["n_timed"] > 0]
    medians = ", ".join(
        f"{state} {duration(row['median_s'])} (n = {count(row['n_timed'])})" for state, row in timed.iterrows()
    )
    return f"Durations of {plural(len(trials.durations), 'trial')} by state, with medians: {medians}."


DURATIONS = Plot(
    plot_durations,
    alt_durations,
    "Each dot is a trial; of more than 200 of a state a filled outline is drawn, wide where many trials took so long. "
    "The box holds the middle half of its state and the thick stroke is the median.",
)
