"""Learning curves, and where a candidate pruner would cut them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gpudiag.errors import NotMeasurable
from gpudiag.forecast.pruning.result import PrunerReplay
from gpudiag.plots._draw.axes import count_axis, legend_above, padded
from gpudiag.plots._draw.palette import ACCENT, INK, MUTED, STATE_COLORS
from gpudiag.plots._draw.picture import Picture, Plot, painter
from gpudiag.report.format import plural

if TYPE_CHECKING:
    import pandas as pd

MOST_CURVES = 400


@painter
def plot_learning_curves(replay: PrunerReplay) -> Figure:
    """Recorded curves by what the candidate makes of them; a cross where it cuts, a bar for each where a record ends.

    At most 400 curves are drawn, every so many. Raises NotMeasurable without two reports to join.
    """
    reports = replay.reports.join(
        replay.trials.set_index(["study", "trial"])[["outcome", "cut_step"]], on=["study", "trial"]
    )
    reports = reports[np.isfinite(reports["value"])]
    curves = [curve for _, curve in reports.groupby(["study", "trial"], sort=False)]
    if not any(len(curve) > 1 for curve in curves):
        raise NotMeasurable("No trial reported two values or more, so there is no curve to draw.")
    shown = curves[:: -(-len(curves) // MOST_CURVES)]
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    ax = figure.add_subplot()
    handles = []
    for outcome, color, width, label in STYLES:
        chosen = [curve for curve in shown if curve["outcome"].iloc[0] == outcome]
        total = int((replay.trials["outcome"] == outcome).sum())
        if not total:
            continue
        lines = [curve[["step", "value"]].to_numpy(float) for curve in chosen]
        ax.add_collection(LineCollection(lines, colors=color, linewidths=width, alpha=0.55))
        handles.append(Line2D([], [], color=color, linewidth=2, label=f"{label} ({total})"))
    ends = [curve.iloc[-1] for curve in shown if curve["outcome"].iloc[0] == "unknown"]
    _points(ax, ends, "|", INK)
    cuts = [curve[curve["step"] == curve["cut_step"]] for curve in shown if curve["outcome"].iloc[0] == "pruned"]
    _points(ax, [cut.iloc[0] for cut in cuts if len(cut)], "x", ACCENT)
    if cuts:
        handles.append(Line2D([], [], color=ACCENT, marker="x", linestyle="", label="cut by the candidate"))
    ax.autoscale()
    values = np.concatenate([curve["value"].to_numpy(float) for curve in shown])
    low, high = np.quantile(values, [0.0, 0.995])
    ax.set(xlabel="step", ylabel="reported value", ylim=padded(low, high))
    count_axis(ax, "x", 12)
    legend_above(ax, handles)
    return figure


STYLES = (
    ("unknown", STATE_COLORS["PRUNED"], 0.8, "record ends too early"),
    ("pruned", MUTED, 0.6, "pruned"),
    ("kept", STATE_COLORS["COMPLETE"], 1.2, "kept to the end"),
)


def _points(ax: object, rows: list[pd.Series], marker: str, color: str) -> None:
    if rows:
        steps, values = ([row[name] for row in rows] for name in ("step", "value"))
        ax.scatter(steps, values, marker=marker, color=color, s=22, linewidths=1.0, zorder=3)  # type: ignore[attr-defined]


def alt_learning_curves(replay: PrunerReplay) -> str:
    """What :func:`plot_learning_curves` shows."""
    count = replay.trials["outcome"].value_counts()
    text = f"Learning curves of {plural(len(replay.trials), 'trial')} with {replay.pruner}: "
    text += f"{int(count.get('pruned', 0))} pruned, {int(count.get('kept', 0))} kept to the end"
    cut = replay.trials["cut_step"].median()
    text += f", cut at step {cut:g} in the median" if cut == cut else ""
    unknown = int(count.get("unknown", 0))
    return text + (f"; of {unknown} the record ends before the candidate decides." if unknown else ".")


LEARNING_CURVES = Plot(
    plot_learning_curves,
    alt_learning_curves,
    "Each line is a trial, as recorded. Crosses: where the candidate cuts. Bars: where the record ends because the "
    "logging pruner cut there, while the candidate would have gone on; what followed is not known.",
)


def learning_curves(replay: PrunerReplay) -> Picture:
    """The figure of a replay with its words. Raises NotMeasurable where no trial reported twice."""
    return LEARNING_CURVES.picture("learning_curves", {"replay": replay})
