"""The timeline's artists hold the profile's data, and gaps stay blank."""

from __future__ import annotations

import numpy as np
import pytest
from handmade import Size, build, toy_memory, toy_parallelism, toy_utilization
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.dates import date2num

from gpudiag.errors import NotMeasurable
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.plots._draw.palette import STATE_COLORS
from gpudiag.plots.timeline import plot_timeline

SMALL = Size(trials=30, gpus=2, samples=200)


def boxes(ax: object) -> dict[tuple[float, float, float], tuple[float, ...]]:
    """Colour of each bar by its start, end and lane."""
    out = {}
    for bars in (c for c in ax.collections if isinstance(c, PolyCollection)):  # type: ignore[attr-defined]
        for path in bars.get_paths():
            x, y = path.vertices[:4, 0], path.vertices[:4, 1]
            out[(x.min(), x.max(), round(float(y.mean()), 6))] = tuple(bars.get_facecolor()[0][:3])
    return out


@pytest.mark.slow
def test_bars_are_the_workers() -> None:
    profile = toy_parallelism(SMALL)
    drawn = boxes(plot_timeline(profile).axes[0])
    workers = profile.placed
    wanted = {
        (date2num(row.start.tz_convert(None)), date2num(row.end.tz_convert(None)), float(row.worker)): to_rgba(
            STATE_COLORS[row.state]
        )[:3]
        for row in workers.itertuples()
    }
    assert len(drawn) == len(workers)
    for (start, end, lane), color in wanted.items():
        near = [key for key in drawn if np.allclose(key, (start, end, lane), rtol=0, atol=1e-7)]
        assert len(near) == 1 and drawn[near[0]] == pytest.approx(color)


def test_open_trials_are_hatched_and_said_so() -> None:
    ax = plot_timeline(toy_parallelism(SMALL)).axes[0]
    hatched = [bars for bars in ax.collections if bars.get_hatch() == "////"]
    assert sum(len(bars.get_paths()) for bars in hatched) == SMALL.open_trials
    assert "RUNNING (2)" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_lines_are_the_series_and_break_at_the_gap() -> None:
    use = toy_utilization(SMALL)
    ax = plot_timeline(toy_parallelism(SMALL), use).axes[1]
    assert len(ax.lines) == 2
    for gpu, line in zip(("0", "1"), ax.lines, strict=True):
        rows = use.series[use.series["gpu"] == gpu]
        assert line.get_ydata() == pytest.approx(rows["util_pct"].to_numpy(), nan_ok=True)
        assert line.get_xdata() == pytest.approx(date2num(rows["time"].dt.tz_convert(None).to_numpy()))
        assert np.isnan(line.get_ydata()).sum() == 1


def test_memory_stands_in_gib_under_its_capacity() -> None:
    mem = toy_memory(SMALL)
    ax = plot_timeline(toy_parallelism(SMALL), None, mem).axes[1]
    first = mem.series[mem.series["gpu"] == "0"]["mem_used_mib"].to_numpy() / 1024
    assert ax.lines[0].get_ydata() == pytest.approx(first, nan_ok=True)
    assert list(ax.lines[-1].get_ydata()) == pytest.approx([24564 / 1024] * 2)
    assert ax.get_ylim()[0] == 0 and ax.get_ylim()[1] > 24564 / 1024


@pytest.mark.slow
def test_many_gpus_become_one_band_with_a_mean() -> None:
    size = Size(trials=30, gpus=8, samples=100)
    ax = plot_timeline(toy_parallelism(size), toy_utilization(size)).axes[1]
    assert len(ax.lines) == 1 and len(ax.collections) == 1
    assert np.nanmin(ax.collections[0].get_paths()[0].vertices[:, 1]) < 20  # the idle GPU shows


@pytest.mark.slow
def test_many_trials_have_no_dark_edges_and_are_rasterised() -> None:
    few = plot_timeline(toy_parallelism(Size(trials=50))).axes[0].collections[0]
    many = plot_timeline(toy_parallelism(Size(trials=1500))).axes[0].collections[0]
    assert not few.get_rasterized() and many.get_rasterized()
    assert tuple(many.get_edgecolor()[0]) == tuple(many.get_facecolor()[0])
    assert tuple(few.get_edgecolor()[0]) != tuple(few.get_facecolor()[0])


@pytest.mark.slow
def test_trials_keep_the_page_where_telemetry_is_far_longer() -> None:
    trials = toy_parallelism(Size(trials=5, open_trials=0))
    use = toy_utilization(Size(trials=2000))
    ax = plot_timeline(trials, use).axes[0]
    low, high = ax.get_xlim()
    span = (trials.placed["end"].max() - trials.placed["start"].min()).total_seconds() / 86400
    assert span < high - low < 2 * span
    assert "telemetry far from the trials is not shown" in ax.figure.axes[-1].get_xlabel()


def test_no_trials_is_not_measurable() -> None:
    empty = build(ParallelismProfile, placed=toy_parallelism(Size(trials=3)).placed.iloc[:0])
    with pytest.raises(NotMeasurable, match="No trial has a start"):
        plot_timeline(empty)
