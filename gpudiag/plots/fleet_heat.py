"""Every GPU of a cluster over time, as a map of its mean utilization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from gpudiag.errors import NotMeasurable
from gpudiag.plots._draw.axes import short
from gpudiag.plots._draw.cells import edge
from gpudiag.plots._draw.fit import label_places
from gpudiag.plots._draw.palette import CELL_COLORS, CELL_HATCHES
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import number, plural, share
from gpudiag.schema import IDLE_PCT

if TYPE_CHECKING:
    import pandas as pd

MOST_DAYS, MOST_HOURS, MOST_NAMES, LONGEST = 12, 6, 24, 28


@painter
def plot_heat(heat: pd.DataFrame) -> Figure:
    """Mean utilization as a heat map; dotted gray where nothing was observed.

    ``heat``: a row a GPU (or a few neighbors), columns of time with their width as frequency, in percent. Raises
    NotMeasurable where nothing was observed.
    """
    values = heat.to_numpy(float)
    if not np.isfinite(values).any():
        raise NotMeasurable("No GPU was observed.")
    rows, columns = values.shape
    figure = Figure(figsize=(9, min(1.6 + 0.12 * max(rows, 8), 8)), layout="constrained")
    ax = figure.add_subplot()
    if np.isnan(values).any():
        blank: dict[str, Any] = {
            "facecolor": CELL_COLORS["unobserved"],
            "edgecolor": edge("unobserved"),
            "linewidth": 0.0,
        }
        blank["hatch"] = CELL_HATCHES["unobserved"]
        ax.axhspan(-0.5, rows - 0.5, zorder=1, **blank)
        ax.legend([Patch(**blank)], ["not observed"], loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    drawn = ax.imshow(
        np.ma.masked_invalid(values), aspect="auto", cmap="viridis", vmin=0, vmax=100, interpolation="nearest", zorder=2
    )
    most, form = (MOST_DAYS, "%m-%d") if _hours(heat) >= 24 else (MOST_HOURS, "%m-%d %H:%M")
    if heat.columns[0].year != heat.columns[-1].year:
        form = f"%Y-{form}"
    step = -(-columns // most)
    shown = -(-rows // MOST_NAMES)
    ax.set_yticks(range(0, rows, shown), [short(str(name), LONGEST) for name in heat.index[::shown]])
    ax.set(xlabel=f"time (UTC), columns of {_width(heat)}", xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    ax.grid(visible=False)
    bar = figure.colorbar(drawn, ax=ax, shrink=0.9, aspect=14, label="mean utilization [%]")
    bar.outline.set_visible(False)
    borders = [at - 0.5 for at in range(0, columns, step)]  # a column begins at the time that its label says
    label_places(ax, borders, [one.strftime(form) for one in heat.columns[::step]])
    return figure


def alt_heat(heat: pd.DataFrame) -> str:
    """What :func:`plot_heat` shows."""
    values = heat.to_numpy(float)
    quiet = int((heat.max(axis=1) < IDLE_PCT).sum())
    text = f"Mean utilization of GPUs in {plural(len(heat), 'row')} and {plural(values.shape[1], 'column')} of "
    text += f"{_width(heat)}; {plural(quiet, 'row')} below {share(IDLE_PCT)} throughout"
    hidden = 100 * float(np.isnan(values).mean())
    return text + (f"; {share(hidden)} of the map was not observed." if hidden else ".")


def _hours(heat: pd.DataFrame) -> float:
    return heat.columns.freq.nanos / 3.6e12


def _width(heat: pd.DataFrame) -> str:
    """'an hour', '6 hours', 'a day', '2 days'."""
    hours = _hours(heat)
    if hours >= 24:
        return "a day" if hours == 24 else f"{number(hours / 24)} days"
    return "an hour" if hours == 1 else f"{number(hours)} hours"


HEAT = Plot(
    plot_heat,
    alt_heat,
    "Dark was little used, bright was busy, dotted gray was not observed. Rows that stay dark are GPUs nobody uses.",
)
