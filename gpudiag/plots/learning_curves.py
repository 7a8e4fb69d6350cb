"""What trials reported on their way, and where they were pruned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gpudiag.errors import NotMeasurable
from gpudiag.measures.pruning import PruningProfile
from gpudiag.plots._draw.axes import count_axis, legend_above, padded, short
from gpudiag.plots._draw.palette import STATE_COLORS, STATE_MARKERS, darker
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import plural

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_CURVES = 400
MAX_VECTOR = 6000
TAIL, ROOM = 0.005, 4.0
DRAWN = ("RUNNING", "STOPPED", "FAIL", "PRUNED", "COMPLETE")
"""States in the order of painting: those that ran to the end lie on top."""
ENDS = ("PRUNED", "FAIL", "STOPPED")
"""States whose last report is marked."""


@painter
def plot_learning_curves(pruning: PruningProfile) -> Figure:
    """Every reported value against its step, a line a trial, with a mark where a trial was pruned or failed.

    Of the study with most reports; of more than 400 trials every n-th, and those with the least and the greatest value.
    Raises NotMeasurable if no trial reported twice.
    """
    curves, _ = _one_study(pruning.curves)
    keys = curves["trial"].to_numpy()
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    shown = _chosen(curves["value"].to_numpy(float), starts)
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    ax = figure.add_subplot()
    ends = np.append(starts[1:], len(curves))
    points, state = curves[["step", "value"]].to_numpy(float), curves["state"].to_numpy(object)[starts]
    handles = []
    for name in DRAWN:
        mine = np.flatnonzero(state == name)
        if not len(mine):
            continue
        lines = [points[starts[i] : ends[i]] for i in mine if i in shown]
        _draw(ax, name, lines)
        end = STATE_MARKERS[name] if name in ENDS else ""
        color = STATE_COLORS[name]
        handles.append(Line2D([], [], color=color, linewidth=2, marker=end, label=f"{name} ({len(mine)})"))
    low, high = _limits(points[:, 1])
    steps = points[:, 0]
    ax.set(xlim=padded(steps.min(), steps.max()), ylim=padded(low, high))
    beyond = "; few beyond the scale" if low > points[:, 1].min() or high < points[:, 1].max() else ""
    thinned = f"; {len(shown)} of {len(starts)} trials drawn" if len(shown) < len(starts) else ""
    ax.set(xlabel=f"step [index]{thinned}", ylabel=f"reported value [objective]{beyond}")
    count_axis(ax, "x", 12)
    legend_above(ax, handles[::-1])
    return figure


def _one_study(curves: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The reports of the study that has most of them, and its name where there are several."""
    if not len(curves) or not curves.duplicated(["study", "trial"]).any():
        raise NotMeasurable("No trial reported two values or more, so there is no curve to draw.")
    counts = curves["study"].value_counts()
    most = counts.index[0]
    return (curves, "") if len(counts) == 1 else (curves[curves["study"] == most], str(most))


def _chosen(value: np.ndarray, starts: np.ndarray) -> set[int]:
    """Numbers of the curves to draw: every n-th, and those that hold the extremes."""
    every = -(-len(starts) // MOST_CURVES)
    extremes = np.searchsorted(starts, [int(np.argmin(value)), int(np.argmax(value))], side="right") - 1
    return set(range(0, len(starts), every)) | set(extremes.tolist())


def _limits(value: np.ndarray) -> tuple[float, float]:
    """The whole range, or without the outermost 0.5 % where those would squeeze all others."""
    low, high = float(value.min()), float(value.max())
    inner_low, inner_high = np.quantile(value, [TAIL, 1 - TAIL])
    room = ROOM * (inner_high - inner_low)
    return (low if inner_low - low <= room else float(inner_low)), (
        high if high - inner_high <= room else float(inner_high)
    )


def _draw(ax: Axes, state: str, lines: list[np.ndarray]) -> None:
    color, few = STATE_COLORS[state], len(lines) <= 40
    edge = darker(color) if state == "PRUNED" else color
    dense = sum(len(line) for line in lines) > MAX_VECTOR
    curves = [line for line in lines if len(line) > 1]
    ax.add_collection(
        LineCollection(curves, colors=color, linewidths=1.2 if few else 0.7, alpha=0.9 if few else 0.5, label=state,
                       rasterized=dense),
        autolim=False,
    )  # fmt: skip
    ends = np.array([line[-1] for line in lines if state in ENDS or len(line) == 1]).reshape(-1, 2)
    if len(ends):
        ax.scatter(
            ends[:, 0], ends[:, 1], marker=STATE_MARKERS[state], s=20 if few else 12, color=edge, linewidths=0,
            zorder=3, alpha=0.9, rasterized=dense,
        )  # fmt: skip


def alt_learning_curves(pruning: PruningProfile) -> str:
    """What :func:`plot_learning_curves` shows."""
    curves, study = _one_study(pruning.curves)
    last = curves.drop_duplicates(["study", "trial"], keep="last")
    count = last["state"].value_counts()
    states = ", ".join(f"{count[state]} {state}" for state in reversed(DRAWN) if state in count)
    name = f" of {short(study, 28)}" if study else ""
    text = f"Learning curves of {plural(len(last), 'trial')}{name} up to step {curves['step'].max():g}: {states}."
    cut = last.loc[last["state"] == "PRUNED", "step"].median()
    return text + (f" Half of the pruned trials end by step {cut:g}." if cut == cut else "")


LEARNING_CURVES = Plot(
    plot_learning_curves,
    alt_learning_curves,
    "Each line is a trial as it reported; a triangle is where it was pruned, a cross where it failed. Pruned "
    "curves that were still moving like those of COMPLETE trials speak for a more patient pruner.",
    in_report=False,
)
