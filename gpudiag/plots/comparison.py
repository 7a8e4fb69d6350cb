"""Two runs in one picture: durations, ledgers, utilization and timelines, the baseline first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gpudiag.errors import NotMeasurable
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.plots._draw.axes import count_axis, duration_scale, legend_above, short
from gpudiag.plots._draw.cell_names import LABELS
from gpudiag.plots._draw.cells import edge
from gpudiag.plots._draw.palette import CELL_COLORS, CELL_HATCHES, INK, MUTED, STATE_COLORS, darker
from gpudiag.plots._draw.picture import Plot, painter
from gpudiag.report.format import duration, number, plural, share
from gpudiag.report.format import ratio as ratio_text
from gpudiag.schema import IDLE_PCT

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SideNames = tuple[str, str]
COLORS = ("#0072b2", "#d55e00")
"""Baseline and experiment."""
DASHES = ("solid", (0, (5, 1.5)))
MAX_POINTS = 4000
LONGEST = 26
MAX_STRETCHES = 400
LEAST_SHARE = 0.002


@painter
def plot_durations(names: SideNames, durations: Sequence[pd.DataFrame], pairs: pd.DataFrame | None = None) -> Figure:
    """Each item's duration in both runs against equality, where items can be paired; else both distributions.

    ``pairs`` has name, baseline_s and experiment_s; each of ``durations`` has state and duration_s. Raises
    NotMeasurable where a run has no COMPLETE item with a duration.
    """
    if pairs is not None and len(pairs):
        return _scatter(names, pairs)
    parts = _complete(durations)
    figure = Figure(figsize=(9, 3.0), layout="constrained")
    ax = figure.add_subplot()
    for row, (seconds, color) in enumerate(zip(parts, COLORS, strict=True)):
        height = row + 0.6 * ((np.arange(len(seconds)) * 0.6180339887498949) % 1 - 0.5)
        ax.scatter(
            seconds,
            height,
            s=8 if len(seconds) > 200 else 18,
            color=color,
            alpha=0.5,
            edgecolor="none",
            rasterized=len(seconds) > MAX_POINTS,
        )
        middle = float(np.exp(np.log(seconds).mean()))
        ax.plot([middle, middle], [row - 0.36, row + 0.36], color=INK, linewidth=2.2, zorder=3)
    everything = np.concatenate(parts)
    duration_scale(ax, "x", everything.min(), everything.max())
    labels = [f"{_label(name)}\nn = {len(part)}" for name, part in zip(names, parts, strict=True)]
    ax.set(xlabel="duration of a COMPLETE trial [log scale]", ylim=(1.6, -0.6))
    ax.set_yticks([0, 1], labels)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")
    legend_above(
        ax,
        [
            Line2D(
                [],
                [],
                color=INK,
                marker="|",
                markersize=10,
                markeredgewidth=2,
                linestyle="none",
                label="geometric mean",
            )
        ],
    )
    return figure


def _scatter(names: SideNames, pairs: pd.DataFrame) -> Figure:
    a, b = pairs["baseline_s"].to_numpy(float), pairs["experiment_s"].to_numpy(float)
    figure = Figure(figsize=(9, 5.0), layout="constrained")
    ax = figure.add_subplot()
    low, high = min(a.min(), b.min()), max(a.max(), b.max())
    duration_scale(ax, "x", low, high)
    duration_scale(ax, "y", low, high)
    line = np.array(ax.get_xlim())
    mean = float(np.exp((np.log(b) - np.log(a)).mean()))
    ax.plot(line, line, color=MUTED, linewidth=1, linestyle=(0, (3, 2)))
    ax.plot(line, line * mean, color=COLORS[1], linewidth=1.4)
    ax.scatter(
        a, b, s=12 if len(a) > 200 else 24, color=COLORS[0], alpha=0.7, edgecolor="none", rasterized=len(a) > MAX_POINTS
    )
    ax.set_ylim(ax.get_xlim())
    ax.set(
        xlabel=f"{_label(names[0])} [s to days, log scale]",
        ylabel=f"{_label(names[1])} [s to days, log scale]",
    )
    legend_above(
        ax,
        [
            Line2D([], [], color=MUTED, linestyle=(0, (3, 2)), label="equal"),
            Line2D([], [], color=COLORS[1], label=f"geometric mean of ratios, {ratio_text(mean)}"),
        ],
    )
    return figure


def _label(name: str, longest: int = LONGEST) -> str:
    """A name that fits; a dollar sign in it is no formula."""
    return short(name, longest)


def alt_durations(names: SideNames, durations: Sequence[pd.DataFrame], pairs: pd.DataFrame | None = None) -> str:
    """What :func:`plot_durations` shows."""
    if pairs is not None and len(pairs):
        ratio = pairs["experiment_s"].to_numpy(float) / pairs["baseline_s"].to_numpy(float)
        return (
            f"Durations of {plural(len(pairs), 'item')} that succeeded in both: {share((ratio < 1).mean() * 100)} were "
            f"shorter in {names[1]}; the geometric mean of the ratios is {ratio_text(np.exp(np.log(ratio).mean()))}."
        )
    means = [float(np.exp(np.log(part).mean())) for part in _complete(durations)]
    return (
        f"Durations of COMPLETE trials: geometric mean {duration(means[0])} in {names[0]} and "
        f"{duration(means[1])} in {names[1]}."
    )


def _complete(durations: Sequence[pd.DataFrame]) -> list[np.ndarray]:
    parts = []
    for frame in durations:
        seconds = frame.loc[frame["state"] == "COMPLETE", "duration_s"].to_numpy(float)
        parts.append(seconds[seconds > 0])
    if not all(len(part) for part in parts):
        raise NotMeasurable("A run has no COMPLETE trial with a duration.")
    return parts


@painter
def plot_ledger_change(names: SideNames, ledger: pd.DataFrame, same_size: bool = True) -> Figure:
    """From the GPU time of the baseline to that of the experiment: what each cell of the ledger adds or takes away.

    ``ledger`` has cell and, of each run, GPU-hours and GPU-seconds per item that did not fail; where the runs are of
    different size (``same_size`` False) it is drawn per item.
    """
    before, after, unit = _columns(ledger, same_size)
    change = after - before
    rows = np.flatnonzero(np.abs(change) > LEAST_SHARE * max(before.sum(), after.sum()))
    labels = [_label(names[0]), *(LABELS[str(ledger["cell"].iloc[i])] for i in rows), _label(names[1])]
    figure = Figure(figsize=(9, 1.2 + 0.38 * len(labels)), layout="constrained")
    ax = figure.add_subplot()
    ax.barh(0, before.sum(), height=0.7, color=COLORS[0])
    level = float(before.sum())
    reach = max(
        float(before.sum()), float(after.sum()), float(before.sum() + np.maximum(change, 0).cumsum().max(initial=0))
    )
    ax.text(level + 0.01 * reach, 0, number(level), va="center", fontsize=9, color=INK)
    for row, i in enumerate(rows.tolist(), 1):
        cell, step = str(ledger["cell"].iloc[i]), float(change[i])
        ax.barh(
            row,
            step,
            left=level,
            height=0.7,
            color=CELL_COLORS[cell],
            hatch=CELL_HATCHES[cell],
            edgecolor=edge(cell),
            linewidth=0,
        )
        ax.plot([level, level], [row - 1 + 0.35, row + 0.35], color=MUTED, linewidth=0.8)
        level += step
        sign = "+" if step > 0 else "−"
        ax.text(
            max(level, level - step) + 0.01 * reach,
            row,
            f"{sign} {number(abs(step))}",
            va="center",
            fontsize=9,
            color=INK,
        )
    last = len(labels) - 1
    ax.plot([level, level], [last - 1 + 0.35, last + 0.35], color=MUTED, linewidth=0.8)
    ax.barh(last, after.sum(), height=0.7, color=COLORS[1])
    ax.text(float(after.sum()) + 0.01 * reach, last, number(float(after.sum())), va="center", fontsize=9, color=INK)
    ax.set(xlim=(0, 1.13 * reach or 1), xlabel=f"GPU time{'' if same_size else ' per item that did not fail'} [{unit}]")
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(last + 0.6, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False, axis="y")
    return figure


def alt_ledger_change(names: SideNames, ledger: pd.DataFrame, same_size: bool = True) -> str:
    """What :func:`plot_ledger_change` shows."""
    before, after, unit = _columns(ledger, same_size)
    change = after - before
    most = np.argsort(-np.abs(change), kind="stable")[:3]
    changes = ", ".join(
        f"{LABELS[str(ledger['cell'].iloc[i])]} {'+' * bool(change[i] > 0)}{number(change[i])}"
        for i in most
        if abs(change[i]) > LEAST_SHARE * max(before.sum(), after.sum())
    )
    per = "" if same_size else " per item that did not fail"
    totals = f"{number(before.sum())} {unit} in {names[0]} to {number(after.sum())} in {names[1]}"
    return f"GPU time{per} from {totals}: {changes or 'no change'}."


def _columns(ledger: pd.DataFrame, same_size: bool) -> tuple[np.ndarray, np.ndarray, str]:
    kind, unit = ("gpu_h", "GPU-h") if same_size else ("item_gpu_s", "GPU-s")
    before, after = (ledger[f"{side}_{kind}"].to_numpy(float) for side in ("baseline", "experiment"))
    if not (np.isfinite(before).all() and np.isfinite(after).all()) or not before.sum() + after.sum() > 0:
        raise NotMeasurable("There is no GPU time to compare.")
    return before, after, unit


@painter
def plot_distributions(names: SideNames, time_series: Sequence[pd.DataFrame]) -> Figure:
    """Share of the job's time at or below each utilization, all GPUs of a run together.

    Each of ``time_series`` has value (utilization) and weight_s. Raises NotMeasurable where a run has no utilization.
    """
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    ax = figure.add_subplot()
    handles = []
    for i, (name, frame) in enumerate(zip(names, time_series, strict=True)):
        value, reached = _ecdf(frame)
        ax.step(value, reached, where="post", color=COLORS[i], linestyle=DASHES[i], linewidth=1.7)
        handles.append(
            Line2D([], [], color=COLORS[i], linestyle=DASHES[i], label=f"{_label(name)}, mean {share(_mean(frame))}")
        )
    ax.set(xlim=(-1, 101), ylim=(0, 101), xlabel="utilization [%]", ylabel="share of time at or below [%]")
    legend_above(ax, handles)
    return figure


def alt_distributions(names: SideNames, time_series: Sequence[pd.DataFrame]) -> str:
    """What :func:`plot_distributions` shows."""
    parts = []
    for name, frame in zip(names, time_series, strict=True):
        value, reached = _ecdf(frame)
        idle = float(reached[np.searchsorted(value, IDLE_PCT, "left") - 1])
        parts.append(f"{name} averaged {share(_mean(frame))} and was below 10 % for {share(idle)} of the time")
    return f"Distribution of GPU utilization during the jobs: {'; '.join(parts)}."


def _ecdf(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    if not len(frame) or not frame["weight_s"].sum() > 0:
        raise NotMeasurable("A run has no utilization during its job.")
    order = np.argsort(frame["value"].to_numpy(float), kind="stable")
    reached = 100 * np.cumsum(frame["weight_s"].to_numpy(float)[order]) / float(frame["weight_s"].sum())
    return np.concatenate([[-1.0], frame["value"].to_numpy(float)[order], [101.0]]), np.concatenate(
        [[0.0], reached, [100.0]]
    )


def _mean(frame: pd.DataFrame) -> float:
    return float(np.average(frame["value"], weights=frame["weight_s"]))


@painter
def plot_timelines(
    names: SideNames, parallelism: Sequence[ParallelismProfile | None], time_series: Sequence[pd.DataFrame]
) -> Figure:
    """Trials by worker and mean utilization of each run, one above the other, in time since the first start.

    Both runs have the same scale, so that a longer run is longer on the page. Raises NotMeasurable unless both have
    trials with starts.
    """
    known = [part for part in parallelism if part is not None and not part.placed.empty]
    if len(known) != len(parallelism):
        raise NotMeasurable("A run has no trial with a start time.")
    lanes = [float(np.clip(0.25 * part.n_workers, 0.7, 2.2)) for part in known]
    has_util = [len(frame) > 0 for frame in time_series]
    heights = [h for lane, util in zip(lanes, has_util, strict=True) for h in ([lane, 0.8] if util else [lane])]
    figure = Figure(figsize=(9, sum(heights) + 0.55 * len(heights) + 0.5), layout="constrained")
    axes = list(figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0])
    longest = max(part.window_s for part in known)
    size, unit = (3600.0, "h") if longest >= 3 * 3600 else (60.0, "min") if longest >= 180 else (1.0, "s")
    at = iter(axes)
    for i, part in enumerate(known):
        origin = part.placed["start"].min()
        _draw_workers(next(at), part, origin, size, names[i])
        if has_util[i]:
            _draw_series(next(at), time_series[i], origin, size, COLORS[i])
    axes[-1].set(xlabel=f"time since the first start [{unit}]", xlim=(-0.01 * longest / size, 1.01 * longest / size))
    states = [s for s in STATE_COLORS if any((part.placed["state"] == s).any() for part in known)]
    legend_above(
        axes[0], [Patch(facecolor=STATE_COLORS[s], edgecolor=darker(STATE_COLORS[s]), label=s) for s in states]
    )
    figure.align_ylabels(axes)
    return figure


def _draw_workers(ax: Axes, part: ParallelismProfile, origin: pd.Timestamp, size: float, name: str) -> None:
    start, end = (
        (part.placed[column] - origin).dt.total_seconds().to_numpy(float) / size for column in ("start", "end")
    )
    lane = part.placed["worker"].to_numpy(float)
    low, high = lane - 0.4, lane + 0.4
    corners = np.stack([np.stack(c, 1) for c in ((start, low), (end, low), (end, high), (start, high))], 1)
    states = part.placed["state"].astype(str)
    few = len(states) <= 300
    ax.add_collection(
        PolyCollection(
            list(corners),
            facecolor=[STATE_COLORS[s] for s in states],
            edgecolor=[darker(STATE_COLORS[s]) if few else STATE_COLORS[s] for s in states],
            linewidth=0.5 if few else 0.3,
            rasterized=len(states) > 1000,
        ),
        autolim=False,
    )
    ax.set(ylim=(float(lane.max()) + 0.6, -0.6), ylabel="worker [index]")
    ax.set_title(_label(name, 60), loc="right", fontsize=10, color=INK)
    count_axis(ax, "y", 5)
    ax.grid(visible=False, axis="y")


def _draw_series(ax: Axes, frame: pd.DataFrame, origin: pd.Timestamp, size: float, color: str) -> None:
    """Mean over GPUs by sampling period, or in 400 stretches of time; a stretch without samples is a gap."""
    seconds = (frame["time"] - origin).dt.total_seconds().to_numpy(float)
    span = max(float(seconds.max() - seconds.min()), 1e-9)
    own = seconds[(frame["gpu"] == frame["gpu"].iloc[0]).to_numpy()]
    period = float(np.median(np.diff(own))) if len(own) > 1 else span
    width = max(span / MAX_STRETCHES, period)
    place = ((seconds - seconds.min()) // width).astype(int)
    total = np.bincount(place, weights=frame["value"].to_numpy(float) * frame["weight_s"].to_numpy(float))
    weight = np.bincount(place, weights=frame["weight_s"].to_numpy(float))
    mean = np.divide(total, weight, out=np.full(len(total), np.nan), where=weight > 0)
    x = (seconds.min() + (np.arange(len(mean)) + 0.5) * width) / size
    ax.plot(x, mean, color=color, linewidth=1.2, drawstyle="steps-mid")
    ax.set(ylim=(-3, 103), yticks=[0, 50, 100], ylabel="util. [%]")


def alt_timelines(
    names: SideNames, parallelism: Sequence[ParallelismProfile | None], time_series: Sequence[pd.DataFrame]
) -> str:
    """What :func:`plot_timelines` shows."""
    parts = [
        f"{name} ran {plural(len(part.placed), 'trial')} in {duration(part.window_s)}, "
        f"{ratio_text(part.effective)} at once"
        for name, part in zip(names, parallelism, strict=True)
        if part is not None
    ]
    return f"Timelines on one scale: {'; '.join(parts)}."


COMPARISON_PLOTS: dict[str, Plot] = {
    "durations": Plot(
        plot_durations,
        alt_durations,
        "Items that can be paired by name stand in one dot each: above the dashed line the experiment took longer. "
        "Without names the trials of each run stand in a row of their own.",
    ),
    "ledger_change": Plot(
        plot_ledger_change,
        alt_ledger_change,
        "What each cell of the ledger adds to the GPU time of the baseline or takes from it, down to that of the "
        "experiment. Runs of different size are drawn per item that did not fail.",
    ),
    "distributions": Plot(
        plot_distributions,
        alt_distributions,
        "Share of the job's time that GPUs spent at or below each utilization. A curve that climbs early belongs to "
        "GPUs that were mostly idle.",
    ),
    "timelines": Plot(
        plot_timelines,
        alt_timelines,
        "Both runs from their first start on, on the same scale: trials by worker, and below them the mean utilization "
        "of all GPUs.",
    ),
}
"""Kinds of picture of a comparison, by name."""
