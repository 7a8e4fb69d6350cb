"""How many trials fit into a GPU's memory, and which take how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gpudiag.errors import NotMeasurable
from gpudiag.plots._draw.axes import legend_above
from gpudiag.plots._draw.fit import label_places
from gpudiag.plots._draw.palette import ACCENT, INK, MUTED, RULE, STATE_COLORS, gpu_color
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import count, quantity, share
from gpudiag.units import MIB_PER_GIB

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpudiag.forecast.memory.capacity import MemoryCapacity

MAX_BARS = 14
MAX_LABEL = 26
BEYOND = 1.6
"""The scale ends at so many times the memory of the GPU: more does not fit anyhow."""
ARROW_FROM, ARROW_AT, BESIDE = 0.97, 0.965, 0.12
"""A marker would be cut from this share of the scale on; an arrow stands at this one, beside the other one."""
ABOVE = "above the scale"
AT_MOST = "\n≤ {most}"


@painter
def plot_memory_capacity(memory_capacity: MemoryCapacity) -> Figure:
    """Memory against trials at once, with the chance of an overflow; beside it peaks by combination of parameters.

    Raises NotMeasurable if the memory of single trials is not known.
    """
    if memory_capacity.reason:
        raise NotMeasurable(memory_capacity.reason)
    bars = memory_capacity.combinations.head(MAX_BARS)
    figure = Figure(figsize=(9, max(3.8, 1.6 + 0.26 * len(bars))), layout="constrained")
    if len(bars):
        left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
        _draw_peaks(right, memory_capacity)
    else:
        left = figure.subplots()
    _draw_levels(left, memory_capacity)
    return figure


def _draw_levels(ax: Axes, capacity: MemoryCapacity) -> None:
    """A place a number of trials, as many as there are; what is above the scale stands at its end as an arrow."""
    table, room = capacity.table, capacity.room
    at = np.arange(len(table), dtype=float)
    gib = {name: table[name].to_numpy(float) / MIB_PER_GIB for name in table if str(name).endswith("_mib")}
    ceiling = BEYOND * room.total_mib / MIB_PER_GIB
    ax.axhspan(room.usable_mib / MIB_PER_GIB, ceiling, color=RULE, alpha=0.5, linewidth=0)
    ax.axhline(room.total_mib / MIB_PER_GIB, color=MUTED, linestyle=(0, (4, 2)), linewidth=1.0)
    ax.vlines(at, gib["typical_mib"], gib["p95_mib"], color=gpu_color(0), alpha=0.45, linewidth=9)
    handles = [
        Line2D([], [], color=gpu_color(0), marker="o", markersize=5, linestyle="none", label="typical"),
        Patch(facecolor=gpu_color(0), alpha=0.45, label="to 1 in 20"),
        Line2D([], [], color=STATE_COLORS["FAIL"], marker="v", markersize=5, linestyle="none", label="largest"),
        Line2D([], [], color=INK, linewidth=2, label="seen"),
    ]
    levels = (("typical_mib", "o", 30, gpu_color(0), -BESIDE), ("worst_mib", "v", 34, STATE_COLORS["FAIL"], BESIDE))
    for name, marker, size, color, aside in levels:
        above = gib[name] > ARROW_FROM * ceiling
        ax.scatter(at[~above], gib[name][~above], marker=marker, s=size, color=color, zorder=3)
        top = np.full(above.sum(), ARROW_AT * ceiling)
        ax.scatter(at[above] + aside, top, marker="^", s=size, facecolor="none", edgecolor=color, zorder=3)
        if above.any():
            handles = [one for one in handles if one.get_label() != ABOVE] + [
                Line2D([], [], color=MUTED, marker="^", markerfacecolor="none", linestyle="none", label=ABOVE)
            ]
    ax.scatter(at, gib["seen_max_mib"], marker="_", s=160, linewidth=2, color=INK, zorder=4)
    ax.set(xlabel="trials at once on the GPU, and chance of an overflow", ylabel="memory [GiB]", ylim=(0, ceiling))
    ax.set_xlim(-0.6, len(at) - 0.4)
    legend_above(ax, handles, 3 if len(handles) > 4 else None)
    chances = zip(table["k"], table["p_overflow_pct"], table["p_high_pct"], strict=True)
    label_places(ax, at.tolist(), [f"{count(k)}\n{share(p)}{_most(p, most, AT_MOST)}" for k, p, most in chances])


def _draw_peaks(ax: Axes, capacity: MemoryCapacity) -> None:
    rows = capacity.combinations.head(MAX_BARS)
    y = np.arange(len(rows))
    gib = {name: rows[name].to_numpy(float) / MIB_PER_GIB for name in ("peak_mib", "low_mib", "high_mib")}
    beyond = [one for one in capacity.constraints if one.k > max(capacity.hard_fit_k, 1.0)][:1]
    limit = beyond[0].limit_mib / MIB_PER_GIB if beyond else np.inf
    colors = np.where(gib["peak_mib"] > limit, STATE_COLORS["FAIL"], gpu_color(0))
    ax.barh(y, gib["peak_mib"], height=0.7, color=colors, alpha=0.55)
    reach = np.maximum([gib["peak_mib"] - gib["low_mib"], gib["high_mib"] - gib["peak_mib"]], 0.0)
    ax.errorbar(gib["peak_mib"], y, xerr=reach, fmt="none", ecolor=INK, elinewidth=1.1, capsize=2.5)
    names = [name for name in capacity.parameters if name in rows]
    labels = [", ".join(str(row[name]) for name in names) for row in rows.to_dict("records")]
    ax.set_yticks(y, [_label(text, int(n)) for text, n in zip(labels, rows["n_trials"], strict=True)], fontsize=8)
    ax.set_ylim(len(rows) - 0.3, -0.6)
    ax.set_xlim(0, None)
    ax.set(xlabel="peak of a trial [GiB], by parameters (trials)")
    if beyond:
        ax.axvline(limit, color=ACCENT, linestyle=(0, (4, 2)), linewidth=1.1)
        label = f"equal share of {beyond[0].k}: {quantity(limit, 'GiB')}"
        legend_above(ax, [Line2D([], [], color=ACCENT, linestyle=(0, (4, 2)), label=label)])


def _label(text: str, n: int) -> str:
    short = text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"
    return f"{short} ({n})"


def _most(pct: float, most_pct: float, template: str) -> str:
    """The upper end of a chance, where it is another one."""
    return "" if share(most_pct) == share(pct) else template.format(most=share(most_pct))


def alt_memory_capacity(memory_capacity: MemoryCapacity) -> str:
    """What :func:`plot_memory_capacity` shows."""
    table, room = memory_capacity.table, memory_capacity.room
    levels = ", ".join(
        f"{row.k} typically {quantity(row.typical_mib, 'MiB')} with {share(row.p_overflow_pct)} overflow"
        f"{_most(row.p_overflow_pct, row.p_high_pct, ', at most {most}')}"
        for row in table.itertuples()
    )
    text = f"Memory by trials at once on a GPU of {quantity(room.total_mib, 'MiB')}: {levels}."
    if len(memory_capacity.combinations):
        top = memory_capacity.combinations.iloc[0]
        names = [str(top[name]) for name in memory_capacity.parameters if name in memory_capacity.combinations]
        text += f" The largest combination, {', '.join(names)}, takes {quantity(top['peak_mib'], 'MiB')}."
    return text


MEMORY_CAPACITY = Plot(
    plot_memory_capacity,
    alt_memory_capacity,
    "Left: memory of so many trials on one GPU, from the median to what one set in twenty reaches, and of the largest "
    "together; above the dashed line none is left. Below each number stands the chance of an overflow, and the most "
    "that it may be. Right: what a trial takes by its parameters, with the limit at which one more than fits now would "
    "fit.",
)
