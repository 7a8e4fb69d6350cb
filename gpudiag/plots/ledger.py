"""Where the GPU time went: in total, over time, and from all of it down to what was used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from gpudiag.errors import NotMeasurable
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.plots._draw.axes import day_numbers, gpu_rows, legend_above, time_axis
from gpudiag.plots._draw.cell_names import DRAWN, cell_label
from gpudiag.plots._draw.cells import cell_handles, draw_shares, edge
from gpudiag.plots._draw.palette import CELL_COLORS, CELL_HATCHES, ink_on
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import plural, quantity, share

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_APART = 4
LEGIBLE_PCT = 7.0
LEAST_PCT = 0.05


@painter
def plot_ledger(ledger: LedgerProfile, *, timezone: str = "UTC") -> Figure:
    """Share of each cell per GPU in total, and over time: a panel a GPU up to four, else all GPUs together.

    Raises NotMeasurable if no time is accounted for.
    """
    _need_time(ledger)
    gpus = [str(gpu) for gpu in ledger.per_gpu.index]
    parts = [[gpu] for gpu in gpus] if len(gpus) <= MAX_APART else [gpus]
    inch = 0.34 * len(gpus) + 0.4 if len(gpus) <= 16 else 0.14 * len(gpus) + 1.5
    heights = [min(inch, 6.0), *([1.15 if len(parts) > 1 else 2.0] * len(parts))]
    figure = Figure(figsize=(9, sum(heights) + 1.5), layout="constrained")
    axes = figure.subplots(len(heights), 1, height_ratios=heights)
    _draw_totals(axes[0], ledger.cells, gpus)
    legend_above(axes[0], cell_handles(_present(ledger), has_trials=ledger.has_trials), 4)
    low = float(day_numbers(ledger.windows["start"])[0])
    high = float(day_numbers(ledger.windows["end"])[-1])
    for ax, part in zip(axes[1:], parts, strict=True):
        draw_shares(ax, ledger.bins[ledger.bins["gpu"].isin(part)], ledger.bin_s)
        time_axis(ax, low, high, timezone)
        name = f"GPU {part[0]}" if len(parts) > 1 else "all GPUs" if len(gpus) > 1 else "share of time"
        ax.set(ylim=(0, 100), yticks=[0, 50, 100], ylabel=f"{name} [%]")
        ax.grid(visible=False, axis="x")
    for ax in axes[1:-1]:
        ax.set_xlabel("")
        ax.tick_params(labelbottom=False)
    return figure


def alt_ledger(ledger: LedgerProfile) -> str:
    """What :func:`plot_ledger` shows."""
    totals = ledger.totals[ledger.totals["share_pct"] >= LEAST_PCT].sort_values("share_pct", ascending=False)
    shares = ", ".join(
        f"{cell_label(cell, has_trials=ledger.has_trials)} {share(pct)}"
        for cell, pct in zip(totals["cell"], totals["share_pct"], strict=True)
    )
    return f"{quantity(ledger.total_gpu_s, 'GPU-s')} of {plural(ledger.n_gpus, 'GPU')}: {shares}."


LEDGER = Plot(
    plot_ledger,
    alt_ledger,
    "Every second of every GPU is in exactly one cell. Stalled: a trial was past its start-up and the GPU idle. "
    "Start-up or tail only: every trial on the GPU was then starting up or winding down.",
)


def _need_time(ledger: LedgerProfile) -> None:
    if ledger.windows.empty or not ledger.total_gpu_s > 0:
        raise NotMeasurable("There is no GPU time to account for.")


def _present(ledger: LedgerProfile) -> list[str]:
    return ledger.cells.loc[ledger.cells["gpu_s"] > 0, "cell"].astype(str).unique().tolist()


def _draw_totals(ax: Axes, cells: pd.DataFrame, gpus: list[str]) -> None:
    shares = cells.pivot(index="gpu", columns="cell", values="share_pct").reindex(gpus)
    left = np.zeros(len(gpus))
    for name in DRAWN:
        width = shares[name].fillna(0.0).to_numpy(float)
        if not width.any():
            continue
        ax.barh(
            np.arange(len(gpus)), width, left=left, height=0.7, color=CELL_COLORS[name], hatch=CELL_HATCHES[name],
            edgecolor=edge(name), linewidth=0,
        )  # fmt: skip
        for row in np.flatnonzero(width >= LEGIBLE_PCT).tolist() if len(gpus) <= 16 else ():
            _inside(ax, left[row] + width[row] / 2, row, share(width[row]), name)
        left = left + width
    ax.set(xlim=(0, 100), xlabel="share of GPU time [%]")
    gpu_rows(ax, gpus)


def _inside(ax: Axes, x: float, y: float, text: str, cell: str) -> None:
    """A number on a bar; on a hatch it gets a plate of the bar's own colour."""
    plate = (
        {"boxstyle": "round,pad=0.15", "facecolor": CELL_COLORS[cell], "edgecolor": "none"}
        if CELL_HATCHES[cell]
        else None
    )
    ax.text(x, y, text, ha="center", va="center", fontsize=9, color=ink_on(CELL_COLORS[cell]), bbox=plate)
