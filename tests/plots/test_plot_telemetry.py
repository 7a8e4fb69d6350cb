"""Utilization, memory and power figures hold the profile's numbers; columns keep extremes, means and gaps."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from handmade import Size, toy_memory, toy_power, toy_profiles, toy_utilization
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex
from toyrun import toy_run

from gpudiag.errors import NotMeasurable
from gpudiag.measures.causes import measure_causes
from gpudiag.plots import draw
from gpudiag.plots._draw.palette import CELL_COLORS, GPU_COLORS
from gpudiag.plots._draw.telemetry import MAP_COLORS, Trace, reduce, traces
from gpudiag.plots.causes import alt_waterfall, plot_waterfall
from gpudiag.plots.memory import plot_memory
from gpudiag.plots.power import plot_power
from gpudiag.plots.utilization import plot_utilization
from gpudiag.plots.utilization_map import plot_utilization_map

values = st.floats(0, 100) | st.just(float("nan"))


@given(arrays(float, st.integers(1, 60), elements=values), st.integers(1, 20))
def test_columns_keep_extremes_and_invent_nothing(value: np.ndarray, n: int) -> None:
    time = np.arange(len(value), dtype=float)
    edges = np.linspace(0, max(len(value) - 1, 1), n + 1)
    view = reduce(Trace("0", 0, time, value, value), edges)
    if np.isnan(value).all():
        assert np.isnan(view.mean).all()
        return
    assert np.nanmin(view.low) == np.nanmin(value) and np.nanmax(view.high) == np.nanmax(value)
    seen = np.isfinite(view.mean)
    assert (view.low[seen] <= view.mean[seen] + 1e-9).all() and (view.mean[seen] <= view.high[seen] + 1e-9).all()


def test_a_column_within_a_gap_stays_empty_and_one_between_samples_does_not() -> None:
    value = np.array([1.0, 1, np.nan, 5, 5])
    time = np.array([0.0, 30, 50, 70, 100])
    view = reduce(Trace("0", 0, time, value, value), np.linspace(0, 100, 11))
    assert list(np.isnan(view.mean)) == [False] * 4 + [True] * 3 + [False] * 3
    assert list(view.mean[[0, 1, 2, 3, 7, 8, 9]]) == [1, 1, 1, 1, 5, 5, 5]


def test_the_mean_is_that_of_the_profile_not_of_the_extremes() -> None:
    value, mean = np.array([0.0, 100.0]), np.array([95.0, 95.0])
    view = reduce(Trace("0", 0, np.array([0.0, 1.0]), value, mean), np.array([0.0, 2.0]))
    assert (view.low[0], view.mean[0], view.high[0]) == (0, 95, 100)


def test_gpus_are_in_natural_order() -> None:
    series = toy_utilization(Size(trials=0, gpus=12, samples=5)).series
    assert [trace.gpu for trace in traces(series, "util_pct", "mean_pct")] == [str(i) for i in range(12)]


def test_long_names_of_gpus_are_shortened_not_cut_off() -> None:
    size = Size(trials=0, gpus=2, samples=50)
    use = toy_utilization(size)
    names = {"0": "GPU-5d4b2f0e-1111-2222-3333-abcdef012345", "1": "GPU-5d4b2f0e-1111-2222-3333-abcdef099999"}
    long = dataclasses.replace(
        use, per_gpu=use.per_gpu.rename(index=names), series=use.series.assign(gpu=use.series["gpu"].map(names))
    )
    ax = plot_utilization(long).axes[0]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["GPU-5d4…012345", "GPU-5d4…099999"]


def bar_spans(ax: object, label: str) -> tuple[list[float], list[float]]:
    (container,) = [c for c in ax.containers if c.get_label() == label]  # type: ignore[attr-defined]
    return [bar.get_x() for bar in container], [bar.get_width() for bar in container]


@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_shares_fill_the_observed_time(gpus: int) -> None:
    profile = toy_utilization(Size(trials=0, gpus=gpus, samples=300))
    ax = plot_utilization(profile).axes[0]
    assert bar_spans(ax, "idle_no_trial")[1] == pytest.approx(profile.per_gpu["idle_pct"].tolist())
    assert bar_spans(ax, "busy")[1] == pytest.approx(profile.per_gpu["busy_pct"].tolist())
    widths = [bar_spans(ax, name)[1] for name in ("idle_no_trial", "busy_low", "busy")]
    assert np.sum(widths, axis=0) == pytest.approx(100)


@pytest.mark.slow
def test_spread_holds_quantiles_and_mean() -> None:
    profile = toy_utilization(Size(trials=0, gpus=3, samples=300))
    ax = plot_utilization(profile).axes[1]
    bars = list(ax.patches)
    assert [bar.get_x() for bar in bars] == pytest.approx(profile.per_gpu["p5_pct"].tolist())
    assert [bar.get_x() + bar.get_width() for bar in bars] == pytest.approx(profile.per_gpu["p95_pct"].tolist())
    median, mean = ax.collections
    assert median.get_offsets()[:, 0].tolist() == pytest.approx(profile.per_gpu["p50_pct"].tolist())
    assert mean.get_offsets()[:, 0].tolist() == pytest.approx(profile.per_gpu["mean_pct"].tolist())


def test_map_has_a_row_a_gpu_and_a_hole_at_the_gap() -> None:
    figure = plot_utilization_map(toy_utilization(Size(trials=0, gpus=8, samples=1000)))
    (mesh,) = [c for c in figure.axes[0].collections if isinstance(c, QuadMesh)]
    grid = mesh.get_array()
    assert grid.shape[0] == 8
    assert grid.mask.all(axis=0).mean() == pytest.approx(0.15, abs=0.02)
    assert grid[5].mean() < 20 < grid[4].mean()


def test_memory_bars_in_gib() -> None:
    profile = toy_memory(Size(trials=0, gpus=2, samples=50))
    ax = plot_memory(profile).axes[0]
    assert bar_spans(ax, "capacity")[1] == pytest.approx([24564 / 1024] * 2)
    assert bar_spans(ax, "max")[1] == pytest.approx((profile.per_gpu["max_mib"] / 1024).tolist())


def test_memory_of_unknown_capacity() -> None:
    profile = toy_memory(Size(trials=0, gpus=2, samples=50))
    unknown = dataclasses.replace(profile, per_gpu=profile.per_gpu.assign(total_mib=np.nan))
    figure = plot_memory(unknown)
    labels = [text.get_text() for ax in figure.axes if ax.get_legend() for text in ax.get_legend().get_texts()]
    assert "max" in labels and not any("capacity" in label for label in labels)


def test_a_rejected_reading_does_not_stretch_the_scale() -> None:
    ax = plot_power(toy_power(Size(gpus=2), rejected=21)).axes[0]
    assert ax.get_xlim()[1] < 120
    assert [text.get_text() for text in ax.texts] == ["21 × up to 590 W"]
    (cross,) = ax.lines
    assert cross.get_marker() == "x" and list(cross.get_ydata()) == [0]


def test_power_bars_are_the_plausible_maxima() -> None:
    profile = toy_power(Size(gpus=12), rejected=0)
    ax = plot_power(profile).axes[0]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(profile.per_gpu["max_w"].tolist())
    assert not ax.lines and not ax.texts


def test_without_readings_there_is_no_figure() -> None:
    power = toy_power()
    unknown = dataclasses.replace(power, per_gpu=power.per_gpu.assign(max_w=np.nan))
    with pytest.raises(NotMeasurable, match="plausible"):
        plot_power(unknown)
    use = toy_utilization(Size(trials=0))
    with pytest.raises(NotMeasurable, match="utilization"):
        plot_utilization(dataclasses.replace(use, series=use.series.iloc[:0]))
    memory = toy_memory(Size(trials=0))
    with pytest.raises(NotMeasurable, match="memory"):
        plot_memory(dataclasses.replace(memory, series=memory.series.iloc[:0]))


@pytest.mark.parametrize("gpus", [1, 3])
def test_bars_and_dots_of_memory_are_the_profile_s_numbers_in_gib(gpus: int) -> None:
    profile = toy_memory(Size(trials=0, gpus=gpus, samples=300))
    ax = plot_memory(profile).axes[0]
    gib = profile.per_gpu[["total_mib", "max_mib", "mean_mib"]] / 1024
    assert len({tuple(row) for row in profile.per_gpu[["p99_mib", "max_mib", "mean_mib"]].to_numpy()}) == gpus
    assert bar_spans(ax, "capacity") == ([0.0] * gpus, pytest.approx(gib["total_mib"].tolist()))
    assert bar_spans(ax, "max") == ([0.0] * gpus, pytest.approx(gib["max_mib"].tolist()))
    (dots,) = ax.collections
    assert dots.get_offsets()[:, 0].tolist() == pytest.approx(gib["mean_mib"].tolist())


def overview_use(gpus: int) -> Axes:
    return draw("overview", toy_profiles(Size(trials=40, gpus=gpus, samples=300))).figure.axes[-1]


def legend_of(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()] if ax.get_legend() else []


@pytest.mark.slow
@pytest.mark.parametrize("gpus", [2, 8])
def test_the_overview_has_a_line_a_gpu_so_that_an_idle_one_is_seen(gpus: int) -> None:
    ax = overview_use(gpus)
    assert [line.get_color() for line in ax.lines] == list(GPU_COLORS[:gpus])
    assert legend_of(ax) == [f"GPU {i}" for i in range(gpus)]
    series = toy_utilization(Size(trials=40, gpus=gpus, samples=300)).series
    for i, line in enumerate(ax.lines):
        mine = series.loc[series["gpu"] == str(i), "mean_pct"]
        assert np.nanmean(line.get_ydata()) == pytest.approx(mine.mean(), abs=3)
    assert not ax.collections


@pytest.mark.slow
def test_the_overview_of_many_gpus_is_a_band_from_the_least_to_the_most_used() -> None:
    ax = overview_use(9)
    (band,), (line,) = ax.collections, ax.lines
    series = toy_utilization(Size(trials=40, gpus=9, samples=300)).series
    means = series.groupby("gpu")["mean_pct"].mean()
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() <= means.min() and heights.max() >= means.max()
    assert np.nanmean(line.get_ydata()) == pytest.approx(means.mean(), abs=3)
    assert legend_of(ax) == ["mean of 9 GPUs", "lowest to highest GPU"]


def test_lines_that_would_cover_each_other_are_one_with_a_band() -> None:
    """Two GPUs alike are drawn as their mean; where one is idle for a quarter of the time, each has its line."""
    use = toy_utilization(Size(trials=0, gpus=2, samples=300))
    one = use.series[use.series["gpu"] == "0"].assign(util_pct=90.0, mean_pct=90.0)
    alike = pd.concat([one, one.assign(gpu="1", mean_pct=93.0)])
    quarter = np.arange(len(one)) < len(one) // 4
    differ = pd.concat([one, one.assign(gpu="1", mean_pct=np.where(quarter, 0.0, 90.0))])
    for series, n_lines in ((alike, 1), (differ, 2)):
        ax = draw("overview", {"utilization": dataclasses.replace(use, series=series)}).figure.axes[-1]
        assert len(ax.lines) == n_lines
    assert legend_of(ax) == ["GPU 0", "GPU 1"]


@pytest.mark.slow
def test_the_overview_of_memory_shows_the_memory_in_use_and_the_capacity() -> None:
    profiles = toy_profiles(Size(trials=40, samples=300))
    picture = draw("overview_memory", profiles)
    (lane,) = [ax for ax in picture.figure.axes if ax.get_ylabel().startswith("memory")]
    course, capacity = lane.lines
    gib = profiles["memory"].series["mean_mib"] / 1024
    assert np.nanmean(course.get_ydata()) == pytest.approx(gib.mean(), rel=0.05)
    assert list(capacity.get_ydata()) == pytest.approx([24564 / 1024] * 2) and lane.get_ylim()[1] > 24564 / 1024
    assert "the memory in use, at most" in picture.alt


def test_the_fuller_the_color_of_a_map_the_higher_as_in_the_timeline() -> None:
    low, high = MAP_COLORS(0.0), MAP_COLORS(1.0)
    assert to_hex(high) == CELL_COLORS["busy"] and sum(low[:3]) > sum(MAP_COLORS(0.5)[:3]) > sum(high[:3])


@pytest.mark.slow
def test_the_overview_of_one_gpu_needs_no_legend() -> None:
    ax = overview_use(1)
    assert (len(ax.lines), len(ax.collections), legend_of(ax)) == (1, 1, [])


def test_the_overview_says_which_gpu_was_used_least() -> None:
    use = toy_utilization(Size(gpus=2, samples=300))
    use = dataclasses.replace(use, per_gpu=use.per_gpu.assign(mean_pct=[90.4, 0.3]), mean_pct=45.35)
    said = draw("overview", {"utilization": use}).alt
    assert "the utilization of 2 GPUs, 45 % on average, from 0.3 % (GPU 1) to 90 % (GPU 0)" in said


def test_without_trials_a_gpu_that_was_never_used_had_no_work() -> None:
    """GPU 0 is at 80 % for all the hour, GPU 1 at 0: 60 % of the time has no kernel, 50 points of them no work."""
    causes = measure_causes(toy_run(trials=0))
    said = alt_waterfall(causes)
    assert "mean utilization of 40 %: no work on the GPU 50 %, unknown 10 % taken away" in said
    assert "before" not in said and "after" not in said
    labels = [text.get_text() for text in plot_waterfall(causes).axes[0].get_yticklabels()]
    assert "no work on the GPU" in labels
