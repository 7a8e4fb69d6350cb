"""Many runs of one training: each quantity run by run, with the band in which the newest was expected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gpudiag.errors import NotMeasurable
from gpudiag.plots._draw.palette import INK, MUTED
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import plural, precise

MARKERS = {"worse": "v", "better": "^", "lower": "s", "within the noise": "o", "not assessed": "D"}
"""The newest run by what was found: never told by color alone."""


@dataclass(frozen=True)
class HistoryPanel:
    """A quantity in the order of the runs, NaN where unknown; the band of the newest rests on ``n_earlier`` runs before
    it, None where there are too few. ``steps``: numbers of runs, from 1 on, from which on the level was another.
    """

    title: str
    unit: str
    values: tuple[float, ...]
    low: float | None
    high: float | None
    n_earlier: int
    verdict: str
    steps: tuple[int, ...]


@painter
def plot_history(history: Sequence[HistoryPanel]) -> Figure:
    """A panel a quantity: value by number of the run, the band over the runs that it rests on, the newest marked.

    Raises NotMeasurable where no quantity is known.
    """
    if not history:
        raise NotMeasurable("No quantity is known of the newest run.")
    figure = Figure(figsize=(9, 0.7 + 1.5 * len(history)), layout="constrained")
    axes = figure.subplots(len(history), 1, sharex=True, squeeze=False)[:, 0]
    for ax, one in zip(axes, history, strict=True):
        n = len(one.values)
        finite = [value if math.isfinite(value) else math.nan for value in one.values]
        if one.low is not None and one.high is not None:
            first = max(n - one.n_earlier, 1) - 0.4
            ax.fill_between([first, n + 0.4], one.low, one.high, color=MUTED, alpha=0.25, linewidth=0)
        ax.plot(range(1, n), finite[:-1], "o-", color=INK, markersize=3, linewidth=0.8)
        ax.plot([n], finite[-1:], MARKERS[one.verdict], color=INK, markersize=9)
        for at in one.steps:
            ax.axvline(at - 0.5, color=INK, linestyle="--", linewidth=0.8)
        ax.set_title(f"{one.title} [{one.unit}]: {one.verdict}", loc="left", fontsize=9)
    axes[-1].set_xlabel("number of the run")
    axes[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def alt_history(history: Sequence[HistoryPanel]) -> str:
    """What :func:`plot_history` shows."""
    said = [
        f"{one.title} {'without a result' if math.isinf(one.values[-1]) else precise(one.values[-1], one.unit)}, "
        f"{one.verdict}"
        for one in history
    ]
    return f"{plural(len(history[0].values), 'run')}; the newest: {'; '.join(said)}."


HISTORY = Plot(
    plot_history,
    alt_history,
    "Band: where the newest run was expected, over the runs that this rests on. Large mark: the newest run, a triangle "
    "if it is worse (down) or better (up). Dashed: where the level changed.",
)

HISTORY_PLOTS = {"history": HISTORY}
