"""Which parameters go with long, large or hungry trials: one line a trial across parallel axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gpudiag.errors import NotMeasurable
from gpudiag.measures.costs import CostsProfile
from gpudiag.plots._draw.axes import natural_unit, short
from gpudiag.plots._draw.palette import INK, MUTED
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import duration, plural, quantity
from gpudiag.units import MIB_PER_GIB

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST_TRIALS = 10
MOST_LINES = 300
MOST_PARAMETERS = 6
MOST_NAMES = 12
WIDE = 100.0
"""A parameter that spans more than this factor is drawn on a logarithmic axis."""
PALE, DEEP = -0.12, 1.4
"""The colour map begins before the shortest trial and ends beyond the longest: its first tenth is too pale on white,
its last quarter too dark on dark paper.
"""
MEMORY = (("process_mem_mib", "own process"), ("peak_mem_mib", "alone"), ("freed_mib", "freed at end"))
"""Columns that hold the memory of a trial, the surest first, and how it is known."""


@dataclass(frozen=True, eq=False)
class Scale:
    """One axis: where each trial stands on it, from 0 to 1 (NaN without a value), and the ticks."""

    name: str
    place: np.ndarray
    ticks: list[float]
    labels: list[str]


@painter
def plot_parallel_coordinates(costs: CostsProfile) -> Figure:
    """COMPLETE trials of one study across their parameters, duration, memory and energy; coloured by duration.

    At most six parameters that vary, in order of their names; at most 300 trials, evenly over the durations and the
    extremes among them. Raises NotMeasurable with fewer than ten COMPLETE trials that have parameters.
    """
    trials, parameters = _chosen(costs)
    scales = [_parameter(name, parameters[name]) for name in _names(parameters)[:MOST_PARAMETERS]]
    n_parameters = len(scales)
    scales += _outcomes(trials)
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    ax = figure.add_subplot()
    seconds = trials["duration_s"].to_numpy(float)
    color = Normalize(PALE, DEEP)
    rank = pd.Series(seconds).rank(method="average").to_numpy()
    ranks = (rank - 1) / max(len(rank) - 1, 1)
    kept = _kept(ranks)
    corners = np.stack([scale.place for scale in scales], axis=1)[kept]
    x = np.arange(len(scales), dtype=float)
    lines = LineCollection(
        [np.column_stack([x, row]) for row in corners], cmap="viridis_r", norm=color, linewidths=1.1 if len(kept) < 200
        else 0.7, alpha=0.8 if len(kept) < 200 else 0.4,
    )  # fmt: skip
    lines.set_array(ranks[kept])
    ax.add_collection(lines, autolim=False)
    for i, scale in enumerate(scales):
        _draw_axis(ax, i, scale)
    ax.axvspan(n_parameters - 0.5, n_parameters - 0.48, color=MUTED, alpha=0.6, linewidth=0)
    ax.set(xlim=(-0.25, len(scales) - 0.4), ylim=(-0.03, 1.03), yticks=[])
    ax.set_xticks(x, [scale.name for scale in scales], fontsize=9)
    ax.set_xlabel(f"left: parameters, right: what a trial took [unit at the axis]; n = {len(trials)} COMPLETE")
    ax.tick_params(axis="x", length=0, pad=6)
    ax.grid(visible=False)
    ax.spines["left"].set_visible(False)
    ax.spines["bottom"].set_visible(False)
    bar = figure.colorbar(ScalarMappable(color, "viridis_r"), ax=ax, pad=0.01, aspect=35)
    bar.set_label("duration [rank]")
    bar.ax.set_ylim(0, 1)
    bar.set_ticks([0, 1], labels=["short", "long"])
    bar.outline.set_visible(False)
    return figure


def _chosen(costs: CostsProfile) -> tuple[pd.DataFrame, pd.DataFrame]:
    """COMPLETE trials of the study with most of them, and their parameters without those that none has."""
    done = (costs.trials["outcome"] == "COMPLETE") & (costs.trials["duration_s"] > 0)
    names = [name for name in costs.parameters if str(name).startswith("params.")]
    done &= costs.parameters[names].notna().any(axis=1) if names else False
    trials = costs.trials[done.to_numpy()]
    if len(trials):
        trials = trials[trials["study"] == trials["study"].value_counts().index[0]]
    if len(trials) < FEWEST_TRIALS:
        raise NotMeasurable(
            "Only {n:COMPLETE trial} with parameters; this figure needs {n_needed}.",
            n=len(trials),
            n_needed=FEWEST_TRIALS,
        )
    parameters = costs.parameters.loc[trials.index, names].rename(columns=lambda name: str(name)[len("params.") :])
    if not _names(parameters):
        raise NotMeasurable("No parameter varies between the COMPLETE trials.")
    return trials, parameters


def _names(parameters: pd.DataFrame) -> list[str]:
    return [name for name in parameters if parameters[name].astype(str)[parameters[name].notna()].nunique() > 1]


def _kept(ranks: np.ndarray) -> np.ndarray:
    """Places of the lines to draw: even in duration, both ends among them; the longest last, hence on top."""
    order = np.argsort(ranks, kind="stable")
    if len(order) <= MOST_LINES:
        return order
    return order[np.unique(np.linspace(0, len(order) - 1, MOST_LINES).astype(int))]


def _parameter(name: str, values: pd.Series) -> Scale:
    """A numeric axis for numbers, else one step a category in the order of names."""
    number = pd.to_numeric(values, errors="coerce").astype(float)
    if number.notna().sum() == values.notna().sum() and not values.map(lambda v: isinstance(v, bool)).any():
        return _numeric(short(name, 18), number.to_numpy())
    text = values.astype(object).where(values.notna()).map(lambda v: v if v is None or v != v else str(v))
    known = sorted(set(text.dropna()))
    step = {category: i / max(len(known) - 1, 1) for i, category in enumerate(known)}
    every = -(-len(known) // MOST_NAMES)
    return Scale(
        short(name, 18),
        text.map(step).to_numpy(float),
        [step[category] for category in known[::every]],
        [short(category, 16) for category in known[::every]],
    )


def _numeric(name: str, value: np.ndarray) -> Scale:
    low, high = float(np.nanmin(value)), float(np.nanmax(value))
    if low > 0 and high / low > WIDE:
        ticks = [10.0**e for e in range(int(np.ceil(np.log10(low))), int(np.floor(np.log10(high))) + 1)]
        place, at = (np.log(np.asarray(part) / low) / np.log(high / low) for part in (value, ticks))
        return Scale(name, place, at.tolist(), [f"{tick:g}" for tick in ticks])
    width = high - low or 1.0
    distinct = np.unique(value[np.isfinite(value)])
    ticks = distinct.tolist() if len(distinct) <= 5 else list(MaxNLocator(5).tick_values(low, high))
    ticks = [tick for tick in ticks if low <= tick <= high]
    at = [(tick - low) / width for tick in ticks]
    return Scale(name, (value - low) / width, at, [f"{tick:.4g}" for tick in ticks])


def _outcomes(trials: pd.DataFrame) -> list[Scale]:
    """Duration, memory and energy: those that half of the trials have."""
    seconds = trials["duration_s"].to_numpy(float)
    unit, size = natural_unit(float(np.median(seconds)))
    out = [_numeric(f"duration\n[{unit}]", seconds / size)]
    memory = _memory(trials)
    if memory is not None:
        out.append(_numeric(f"memory, {memory[1]}\n[GiB]", memory[0].to_numpy(float) / MIB_PER_GIB))
    energy = trials["energy_kwh"].to_numpy(float)
    if 2 * np.isfinite(energy).sum() >= len(energy):
        small = float(np.nanmax(energy)) < 1
        out.append(_numeric("energy\n[Wh]" if small else "energy\n[kWh]", energy * (1000 if small else 1)))
    return out


def _memory(trials: pd.DataFrame) -> tuple[pd.Series, str] | None:
    for column, how in MEMORY:
        if 2 * trials[column].notna().sum() >= len(trials):
            return trials[column], how
    return None


def _draw_axis(ax: Axes, x: int, scale: Scale) -> None:
    ax.plot([x, x], [0, 1], color=INK, linewidth=1.0, zorder=3)
    for place, label in zip(scale.ticks, scale.labels, strict=True):
        ax.plot([x - 0.02, x + 0.02], [place, place], color=INK, linewidth=1.0, zorder=3)
        ax.annotate(
            label, (x, place), (5, 0), textcoords="offset points", va="center", fontsize=9,
            color=INK, zorder=4,
            bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
        )  # fmt: skip


def alt_parallel_coordinates(costs: CostsProfile) -> str:
    """What :func:`plot_parallel_coordinates` shows."""
    trials, parameters = _chosen(costs)
    names = _names(parameters)
    seconds = trials["duration_s"]
    text = (
        f"Parallel coordinates of {plural(len(trials), 'COMPLETE trial')} over {plural(len(names), 'parameter')}"
        f" ({', '.join(short(name, 18) for name in names[:MOST_PARAMETERS])}"
    )
    text += f" and {len(names) - MOST_PARAMETERS} not drawn)" if len(names) > MOST_PARAMETERS else ")"
    text += f": durations run from {duration(seconds.min())} to {duration(seconds.max())}"
    memory = _memory(trials)
    if memory is not None:
        low, high = memory[0].min() / MIB_PER_GIB, memory[0].max() / MIB_PER_GIB
        text += f", memory from {quantity(low, 'GiB')} to {quantity(high, 'GiB')}"
    return text + "."


PARALLEL_COORDINATES = Plot(
    plot_parallel_coordinates,
    alt_parallel_coordinates,
    "Each line is a COMPLETE trial; blue ones took long. A parameter at which blue lines meet in one place is what "
    "makes trials long.",
)
