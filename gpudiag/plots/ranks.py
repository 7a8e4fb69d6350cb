"""What each rank did in its profiled steps, as a map with a column a rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from gpudiag.errors import NotMeasurable
from gpudiag.measures.profiled import ProfiledProfile
from gpudiag.plots._draw.axes import short
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.plots._draw.profiled_states import STATES, shown_states
from gpudiag.report.format import count, plural, share

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_NUMBERS, MOST_NAMES, LONGEST = 16, 32, 10


@painter
def plot_ranks(profiled: ProfiledProfile) -> Figure:
    """Shares of the profiled time by state, a column a rank: where one differs, the column differs.

    Raises NotMeasurable where traces are of one rank only, or no share of their time is known.
    """
    table = _table(profiled)
    values = table.to_numpy(float)
    states, ranks = values.shape
    figure = Figure(figsize=(9, 1.2 + 0.42 * states), layout="constrained")
    ax = figure.add_subplot()
    top = float(np.nanmax(values))
    drawn = ax.imshow(np.ma.masked_invalid(values), aspect="auto", cmap="viridis", vmin=0, vmax=top)
    every = -(-ranks // MOST_NAMES)
    ax.set_xticks(range(0, ranks, every), [short(str(rank), LONGEST) for rank in table.columns[::every]])
    ax.set_yticks(range(states), [STATES[str(state)] for state in table.index])
    ax.set_xlabel("profiled time of each rank [%]")
    ax.grid(visible=False)
    ax.tick_params(length=0)
    if ranks <= MOST_NUMBERS:
        _write(ax, values, top)
    bar = figure.colorbar(drawn, ax=ax, pad=0.015, label="share [%]")
    bar.outline.set_visible(False)
    return figure


def _table(profiled: ProfiledProfile) -> pd.DataFrame:
    """A row a state that holds something, a column a rank."""
    rows = profiled.by_rank
    if len(rows) < 2:
        raise NotMeasurable("There are no traces of two ranks or more.")
    states = shown_states(rows.to_dict("records"))
    if not states:
        raise NotMeasurable("The traces say nothing of where their time went.")
    return rows[states].T


def _write(ax: Axes, values: np.ndarray, top: float) -> None:
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            ax.text(
                column, row, share(value), ha="center", va="center", fontsize=8,
                color="black" if value > 0.55 * top else "white",
            )  # fmt: skip


def alt_ranks(profiled: ProfiledProfile) -> str:
    """What :func:`plot_ranks` shows."""
    table = _table(profiled)
    text = f"Map of the profiled time of {plural(table.shape[1], 'rank')} by what its GPU did."
    if not profiled.late_rank >= 0:
        return text
    low, high = share(profiled.communication_low_pct), share(profiled.communication_high_pct)
    return f"{text} Rank {count(profiled.late_rank)} spent {low} of it in collectives, others up to {high}."


RANKS = Plot(
    plot_ranks,
    alt_ranks,
    "A column is a rank. In lock-step all do the same: one that computes longer, or waits for its data, communicates "
    "least, and the others wait for it.",
)
