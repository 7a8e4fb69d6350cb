"""Durations of the trials of each state as cumulative shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gpudiag.errors import NotMeasurable
from gpudiag.measures.trials import TrialsProfile
from gpudiag.plots._draw.axes import SHORTEST_S, duration_scale, legend_above
from gpudiag.plots._draw.palette import MUTED, STATE_COLORS, Dash
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import duration, plural
from gpudiag.schema import OUTCOMES

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 3
MAX_STEPS = 1000
DASHES: dict[str, Dash] = {
    "COMPLETE": "solid",
    "PRUNED": (0, (5, 1.5)),
    "FAIL": (0, (1.5, 1)),
    "STOPPED": (0, (3, 1, 1, 1)),
    "RUNNING": (0, (6, 1.5, 1.5, 1.5)),
    "ABANDONED": (0, (8, 3)),
    "WAITING": (0, (1, 3)),
}
"""Dash of a state's curve, so that curves can be told apart in grey."""


@painter
def plot_duration_ecdf(trials: TrialsProfile) -> Figure:
    """Share of the trials of each state that took at most so long, on a logarithmic axis of durations.

    Durations below 10 ms stand at the left edge. Raises NotMeasurable if no state has three trials of known duration.
    """
    states = _states(trials.durations)
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    ax = figure.add_subplot()
    handles = []
    for state, seconds in states:
        x, share = _steps(seconds)
        color, dash = STATE_COLORS[state], DASHES[state]
        ax.step(x, share, where="post", color=color, linestyle=dash, linewidth=2)
        label = f"{state} (n = {len(seconds)})"
        handles.append(Line2D([], [], color=color, linestyle=dash, linewidth=2, label=label))
    everything = np.concatenate([seconds for _, seconds in states])
    duration_scale(ax, "x", everything.min(), everything.max())
    ax.axhline(50, color=MUTED, linestyle=(0, (2, 2)), linewidth=0.9)
    ax.set(xlabel="duration [log scale]", ylabel="trials that took at most that long [%]")
    ax.set(ylim=(0, 102), yticks=[0, 25, 50, 75, 100])
    legend_above(ax, handles)
    return figure


def _states(durations: pd.DataFrame) -> list[tuple[str, np.ndarray]]:
    """Durations of each state that has enough, in order; NotMeasurable where none has."""
    parts = {
        state: np.sort(durations.loc[durations["state"] == state, "duration_s"].clip(lower=SHORTEST_S).to_numpy(float))
        for state in OUTCOMES
    }
    found = [(state, seconds) for state, seconds in parts.items() if len(seconds) >= FEWEST]
    if not found:
        raise NotMeasurable("No state has {n_needed:trial} with a known start and end.", n_needed=FEWEST)
    return found


def _steps(seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the curve from 0 to 100 %; of many trials every n-th, and always the first and the last."""
    n = len(seconds)
    at = np.arange(n) if n <= MAX_STEPS else np.unique(np.linspace(0, n - 1, MAX_STEPS).astype(int))
    return np.append(seconds[0], seconds[at]), np.append(0.0, 100 * (at + 1) / n)


def alt_duration_ecdf(trials: TrialsProfile) -> str:
    """What :func:`plot_duration_ecdf` shows."""
    parts, states = [], _states(trials.durations)
    for state, seconds in states:
        middle, late = np.quantile(seconds, [0.5, 0.95])
        parts.append(f"half of {len(seconds)} {state} within {duration(middle)}, 95 % within {duration(late)}")
    n = sum(len(seconds) for _, seconds in states)
    return f"Cumulative durations of {plural(n, 'trial')} by state: {'; '.join(parts)}."


DURATION_ECDF = Plot(
    plot_duration_ecdf,
    alt_duration_ecdf,
    "Share of the trials of a state that took at most so long. A curve that climbs at once at the left is trials "
    "that end as soon as they begin; a long foot at the top right is a few that hold up the rest.",
)
