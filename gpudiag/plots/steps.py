"""How long a step took over a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gpudiag.errors import NotMeasurable
from gpudiag.measures.steps import StepsProfile
from gpudiag.plots._draw.axes import count_axis, legend_above, natural_unit
from gpudiag.plots._draw.palette import ACCENT, INK, MUTED
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import duration, plural, share, times

if TYPE_CHECKING:
    from matplotlib.artist import Artist

ROOM = 1.15


@painter
def plot_step_time(steps: StepsProfile) -> Figure:
    """Time of a step against the steps done, with its median, and a mark above where the training paused.

    Raises NotMeasurable for fewer than two stretches.
    """
    course = steps.course
    if len(course) < 2:
        raise NotMeasurable("The log holds too few lines on steps to show a course.")
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    ax = figure.add_subplot()
    unit, seconds = natural_unit(float(course["each_s"].max()))
    each, done = course["each_s"].to_numpy(float) / seconds, course["done"].to_numpy(float)
    ax.plot(done, each, color=INK, linewidth=1.1, drawstyle="steps-pre")
    ax.axhline(steps.step_s / seconds, color=MUTED, linestyle=(0, (5, 2)), linewidth=1.1)
    handles: list[Artist] = [
        Line2D([], [], color=INK, linewidth=1.1, label=f"time of one {steps.unit}"),
        Line2D([], [], color=MUTED, linestyle=(0, (5, 2)), label=f"median: {duration(steps.step_s)}"),
    ]
    top = float(np.nanmax(each)) * ROOM or 1.0
    longest = steps.trainings.loc[steps.trainings["logged_s"].idxmax(), "training"]
    pauses = steps.pauses[steps.pauses["training"] == longest]
    if len(pauses):
        ax.plot(pauses["after_step"], np.full(len(pauses), top * 0.97), "v", color=ACCENT, markersize=5, clip_on=False)
        label = f"{plural(len(pauses), 'pause')}, {duration(float(pauses['paused_s'].sum()))} in all"
        handles.append(Line2D([], [], color=ACCENT, marker="v", markersize=5, linestyle="none", label=label))
    legend_above(ax, handles)
    ax.set(xlabel=f"{steps.unit}s done [{steps.unit}]", ylabel=f"time of one {steps.unit} [{unit}]", ylim=(0, top))
    ax.set_xlim(0, float(done.max()))
    count_axis(ax, "x", 10)
    return figure


def alt_step_time(steps: StepsProfile) -> str:
    """What :func:`plot_step_time` shows."""
    text = f"Time of one {steps.unit} over the training: {duration(steps.step_s)} in the median"
    if steps.late_ratio > 0:
        text += f", {times(steps.late_ratio)} as long in the last fifth as in the first"
    if steps.n_pauses:
        text += f"; {plural(steps.n_pauses, 'pause')} between steps took {share(steps.pauses_pct)} of the time"
    return text + "."


STEP_TIME = Plot(
    plot_step_time,
    alt_step_time,
    "How long a step took, by the training's own log. A level that rises is work that grows; a mark stands where the "
    "training paused, to evaluate, save or wait.",
)
