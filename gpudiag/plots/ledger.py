"""Where the GPU time went: in total, over time, and from all of it down to what was used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from gpudiag.errors import NotMeasurable
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.plots._draw.axes import day_numbers, gpu_rows, legend_above, time_axis
from gpudiag.plots._draw.cells import DRAWN, cell_handles, cell_label, draw_shares, edge
from gpudiag.plots._draw.palette import CELL_COLORS, CELL_HATCHES, INK, MUTED, ink_on
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import plural, quantity, share

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_APART = 4
LEGIBLE_PCT = 7.0
LEAST_PCT = 0.05
LOST = {"busy": "busy, but below 100 %"}


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
        draw_shares(ax, ledger.bins[ledger.bins["gpu"].isin(part)], ledger.bin_s, len(part))
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


@painter
def plot_waterfall(ledger: LedgerProfile) -> Figure:
    """What each cell takes away from all observed time, down to the mean utilization.

    Raises NotMeasurable if nothing was observed.
    """
    _need_time(ledger)
    steps = ledger.waterfall
    if steps.empty:
        raise NotMeasurable("No time was observed.")
    cells = steps[(steps["loss_pct"] >= LEAST_PCT) & steps["step"].isin(DRAWN)]
    names = [
        "all observed time",
        *(LOST.get(name, cell_label(name, has_trials=ledger.has_trials)) for name in cells["step"]),
        "mean utilization",
    ]
    figure = Figure(figsize=(9, 1.2 + 0.36 * len(names)), layout="constrained")
    ax = figure.add_subplot()
    ax.barh(0, 100, height=0.7, color=MUTED)
    ax.barh(len(names) - 1, ledger.mean_util_pct, height=0.7, color=CELL_COLORS["busy"])
    _write(ax, 100, 0, "100 %")
    _write(ax, ledger.mean_util_pct, len(names) - 1, share(ledger.mean_util_pct))
    for row, (name, loss, left) in enumerate(zip(cells["step"], cells["loss_pct"], cells["left_pct"], strict=True), 1):
        hatch = CELL_HATCHES[name]
        ax.barh(
            row, loss, left=left, height=0.7, color=CELL_COLORS[name], hatch=hatch, edgecolor=edge(name), linewidth=0
        )
        _write(ax, left + loss, row, f"− {share(loss)}")
        ax.plot([left, left], [row - 0.35, row + 1.35], color=MUTED, linewidth=0.8)
    ax.set(xlim=(0, 112), xticks=[0, 25, 50, 75, 100], xlabel="share of observed GPU time [%]")
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")
    return figure


def alt_waterfall(ledger: LedgerProfile) -> str:
    """What :func:`plot_waterfall` shows."""
    losses = ledger.waterfall[ledger.waterfall["loss_pct"] >= LEAST_PCT].sort_values("loss_pct", ascending=False)
    taken = ", ".join(
        f"{LOST.get(name, cell_label(name, has_trials=ledger.has_trials))} {share(loss)}"
        for name, loss in zip(losses["step"], losses["loss_pct"], strict=True)
    )
    mean = share(ledger.mean_util_pct)
    return f"From all observed time down to a mean utilization of {mean}: {taken or 'nothing'} taken away."


WATERFALL = Plot(
    plot_waterfall,
    alt_waterfall,
    "What stood between all observed time and the utilization that was measured. A bar is the part of its cell "
    "in which no kernel ran.",
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


def _write(ax: Axes, x: float, row: int, text: str) -> None:
    ax.text(x + 1, row, text, va="center", fontsize=9, color=INK)
