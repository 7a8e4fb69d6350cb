"""The run on one time axis, small enough for the top of a page: trials, GPU utilization and what the time went into."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from gpudiag.errors import NotMeasurable
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.plots._draw.axes import legend_above, time_axis
from gpudiag.plots._draw.cells import cell_handles, draw_shares
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.plots._draw.telemetry import draw_mean, traces
from gpudiag.plots.timeline import draw_trials, window
from gpudiag.report.format import plural, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRIALS_INCH, USE_INCH, BAND_INCH = 0.75, 0.75, 0.22
ROOM_INCH = 0.95
"""Time axis and two legends."""
LEAST_PCT = 0.5
"""Categories that hold less than this could not be seen in the band, and have no place in its legend."""


@painter
def plot_overview(
    parallelism: ParallelismProfile | None = None,
    utilization: UtilizationProfile | None = None,
    ledger: LedgerProfile | None = None,
    *,
    timezone: str = "UTC",
) -> Figure:
    """Trials by worker, the shares of the ledger's categories, and the mean utilization of all GPUs.

    Raises NotMeasurable if there is neither a trial with a start nor utilization.
    """
    workers = parallelism.placed if parallelism is not None and not parallelism.placed.empty else None
    use = traces(utilization.series, "util_pct", "mean_pct") if utilization is not None else []
    if workers is None and not use:
        raise NotMeasurable("There is no trial with a start time and no utilization.")
    band = ledger if ledger is not None and use and not ledger.bins.empty else None
    heights = [TRIALS_INCH] * (workers is not None) + [BAND_INCH] * (band is not None) + [USE_INCH] * bool(use)
    figure = Figure(figsize=(9, sum(heights) + ROOM_INCH), layout="constrained")
    axes: list[Axes] = list(figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0])
    low, high, note = window(workers, use)
    time_axis(axes[-1], low, high, timezone)
    axes[-1].set_xlabel(axes[-1].get_xlabel() + note)
    rows = iter(axes)
    if workers is not None:
        ax = next(rows)
        draw_trials(ax, workers, numbers=False)
        ax.set_ylabel("workers\n[a row each]")
        ax.set_yticks([])
    if band is not None:
        ax = next(rows)
        draw_shares(ax, band.bins, band.bin_s, band.n_gpus)
        shown = band.totals.loc[band.totals["share_pct"] >= LEAST_PCT, "cell"]
        legend_above(ax, cell_handles(shown, has_trials=band.has_trials), 5)
        ax.set(yticks=[], ylim=(0, 100), ylabel="[%]")
        ax.grid(visible=False)
    if use:
        ax = next(rows)
        draw_mean(ax, use)
        ax.set(ylabel="GPU\n[%]", ylim=(0, 103), yticks=[0, 100])
    for ax in axes[:-1]:
        ax.tick_params(labelbottom=False)
    figure.align_ylabels(axes)
    return figure


def alt_overview(
    parallelism: ParallelismProfile | None = None,
    utilization: UtilizationProfile | None = None,
    ledger: LedgerProfile | None = None,
) -> str:
    """What :func:`plot_overview` shows."""
    seen = []
    if parallelism is not None and not parallelism.placed.empty:
        seen.append(f"{plural(len(parallelism.placed), 'trial')} on {plural(parallelism.n_workers, 'worker')}")
    if utilization is not None and np.isfinite(utilization.mean_pct):
        within = ledger.mean_util_pct if ledger is not None else float("nan")
        mean = within if np.isfinite(within) else utilization.mean_pct
        seen.append(f"the mean utilization of {plural(utilization.n_gpus, 'GPU')}, {share(mean)} on average")
    if ledger is not None:
        worked = share(ledger.pct("busy", "busy_low"))
        seen.append(f"a band of what the GPU time went into, {worked} of it work for trials" if ledger.has_trials else
                    f"a band of what the GPU time went into, {worked} of it work")  # fmt: skip
    return f"On one time axis: {'; '.join(seen)}."


OVERVIEW = Plot(
    plot_overview,
    alt_overview,
    "Trials by worker; a band of what the GPU time went into; the mean utilization of all GPUs.",
)
