"""Many runs in one picture: GPU time week by week, and which host was busy on which day."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from gpudiag.errors import NotMeasurable
from gpudiag.plots._draw.axes import legend_above, short
from gpudiag.plots._draw.cell_names import DRAWN
from gpudiag.plots._draw.cells import cell_handles, edge
from gpudiag.plots._draw.fit import label_places
from gpudiag.plots._draw.palette import CELL_COLORS, CELL_HATCHES
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.plots.fleet_heat import HEAT
from gpudiag.plots.fleet_owners import OWNERS, has_trials
from gpudiag.report.format import plural, quantity, share

if TYPE_CHECKING:
    import pandas as pd

MOST_LABELS, MOST_WEEKS = 14, 10
"""Labels below a figure: days are shorter than weeks."""
MOST_HOSTS = 40
LONGEST = 24


@painter
def plot_weeks(weeks: pd.DataFrame) -> Figure:
    """The mean utilization of each week, over its GPU-hours by category.

    ``weeks``: a row a week in order, its name as index, a column in GPU-hours for each category, and ``util_pct``.
    Raises NotMeasurable with fewer than two weeks.
    """
    if len(weeks) < 2:
        raise NotMeasurable("There are fewer than two weeks.")
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    use, ax = figure.subplots(2, 1, sharex=True, height_ratios=(1, 2))
    place = np.arange(len(weeks))
    use.plot(place, weeks["util_pct"].to_numpy(float), color=CELL_COLORS["busy"], marker="o", markersize=4)
    use.set(ylim=(0, 105), yticks=[0, 50, 100], ylabel="mean\nutilization [%]")
    bottom = np.zeros(len(weeks))
    present = [cell for cell in DRAWN if weeks[cell].sum() > 0]
    for cell in present:
        height = weeks[cell].to_numpy(float)
        ax.bar(
            place,
            height,
            bottom=bottom,
            width=0.8,
            color=CELL_COLORS[cell],
            hatch=CELL_HATCHES[cell],
            edgecolor=edge(cell),
            linewidth=0,
        )
        bottom += height
    ax.set(ylabel="GPU time [GPU-h]", xlabel="week in which a run began (UTC)", ylim=(0, 1.05 * bottom.max()))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda hours, _: f"{hours:,g}"))
    for one in (use, ax):
        one.grid(visible=False, axis="x")
    legend_above(ax, cell_handles(present, has_trials=has_trials(weeks)), 4)
    step = -(-len(weeks) // MOST_WEEKS)
    label_places(ax, place[::step].tolist(), list(weeks.index[::step]))
    return figure


def alt_weeks(weeks: pd.DataFrame) -> str:
    """What :func:`plot_weeks` shows."""
    cells = [cell for cell in DRAWN if cell in weeks]
    of = weeks[cells].sum(axis=1)
    first, last = weeks.index[0], weeks.index[-1]
    ends = f"{quantity(of.iloc[0], 'GPU-h')} in {first}, {quantity(of.iloc[-1], 'GPU-h')} in {last}"
    pct = weeks["util_pct"]
    return f"{plural(len(weeks), 'week')}: {ends}; mean utilization {share(pct.iloc[0])}, then {share(pct.iloc[-1])}."


WEEKS = Plot(
    plot_weeks,
    alt_weeks,
    (
        "The whole time of a run counts in the week it began in. Weeks with less than 1 % of the usual observed time "
        "are left out."
    ),
)


@painter
def plot_hosts(hosts: pd.DataFrame) -> Figure:
    """Mean utilization by host and day, as a heat map; a day without a run is empty.

    ``hosts``: a row a host, a column a day (or a week, by its first day) in order, in percent. Raises NotMeasurable
    with fewer than two columns.
    """
    if hosts.shape[1] < 2 or not np.isfinite(hosts.to_numpy(float)).any():
        raise NotMeasurable("There are fewer than two days.")
    shown = hosts.iloc[:MOST_HOSTS]
    figure = Figure(figsize=(9, 1.5 + 0.26 * len(shown)), layout="constrained")
    ax = figure.add_subplot()
    drawn = ax.imshow(
        np.ma.masked_invalid(shown.to_numpy(float)),
        aspect="auto",
        cmap="viridis",
        vmin=0,
        vmax=100,
        interpolation="nearest",
    )
    ax.set_yticks(range(len(shown)), [short(str(name), LONGEST) for name in shown.index])
    ax.set_xlabel("day (UTC)" if _width(hosts) == "day" else "week from Monday (UTC)")
    ax.grid(visible=False)
    figure.colorbar(drawn, ax=ax, label="mean utilization [%]", shrink=0.9, aspect=12)
    step, years = -(-shown.shape[1] // MOST_LABELS), {str(day)[:4] for day in shown.columns}
    label_places(
        ax, range(0, shown.shape[1], step), [str(day)[5 * (len(years) == 1) :] for day in shown.columns[::step]]
    )
    return figure


def alt_hosts(hosts: pd.DataFrame) -> str:
    """What :func:`plot_hosts` shows."""
    mean = hosts.mean(axis=1).sort_values()
    ends = f"from {share(mean.iloc[0])} on {mean.index[0]} to {share(mean.iloc[-1])} on {mean.index[-1]}"
    return f"Mean utilization of {plural(len(hosts), 'host')} over {plural(hosts.shape[1], _width(hosts))}: {ends}."


def _width(hosts: pd.DataFrame) -> str:
    """What a column is."""
    first, second = (date.fromisoformat(str(day)) for day in hosts.columns[:2])
    return "day" if (second - first).days == 1 else "week"


HOSTS = Plot(
    plot_hosts,
    alt_hosts,
    "A run counts with its mean utilization on each day that it touched, or in each week where there are many days.",
)

FLEET_PLOTS = {"owners": OWNERS, "weeks": WEEKS, "hosts": HOSTS, "heat": HEAT}
