"""Concurrency, gaps, durations and prune steps hold the profile's numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from handmade import Size, toy_parallelism, toy_pruning, toy_trials
from matplotlib.dates import date2num
from scipy import stats

from gpudiag.errors import NotMeasurable
from gpudiag.plots.parallelism import _means, alt_gaps, plot_concurrency, plot_gaps
from gpudiag.plots.pruning import plot_prune_steps
from gpudiag.plots.trials import plot_durations

TEN = Size(trials=10, workers=2, open_trials=1)


def legend(ax: object) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]  # type: ignore[attr-defined]


def test_steps_levels_and_configured() -> None:
    profile = toy_parallelism(TEN)
    left, right = plot_concurrency(profile).axes
    closed = left.collections[0].get_paths()[0].vertices
    assert set(closed[:, 1]) == set(profile.concurrency["n_closed"]) | {0}
    assert set(closed[:, 0]) == set(date2num(profile.concurrency["time"].dt.tz_convert(None).to_numpy()))
    assert [bar.get_width() for bar in right.patches] == pytest.approx(profile.levels["share_pct"].tolist())
    assert legend(left) == ["end known", "end inferred (1 trial)", "configured: 2"]


def test_unknown_configuration_draws_no_line() -> None:
    profile = dataclasses.replace(toy_parallelism(TEN), configured=float("nan"))
    left, _ = plot_concurrency(profile).axes
    assert not left.lines and "configured" not in "".join(legend(left))


def test_columns_of_a_step_function_keep_its_area() -> None:
    time, level = np.array([0.0, 1, 3, 4, 10]), np.array([2.0, 0, 5, 1, 0])
    edges = np.linspace(0, 10, 7)
    means = _means(time, level, edges)
    assert (means[:-1] * np.diff(edges)).sum() == pytest.approx((level[:-1] * np.diff(time)).sum())
    assert means[0] == pytest.approx((2 * 1 + 0 * (2 / 3)) / (10 / 6))


def test_gaps_are_points_and_three_are_the_fewest() -> None:
    profile = toy_parallelism(TEN)
    points = plot_gaps(profile).axes[0].collections[0].get_offsets()
    assert points[:, 1].tolist() == pytest.approx(profile.gaps["gap_s"].clip(lower=0.01).tolist())
    with pytest.raises(NotMeasurable, match="Only 2 gaps"):
        plot_gaps(dataclasses.replace(profile, gaps=profile.gaps.iloc[:2]))


def test_gaps_of_no_length_stand_at_the_edge() -> None:
    profile = toy_parallelism(TEN)
    seconds = [0.0] * (len(profile.gaps) - 1) + [1.0]
    touching = dataclasses.replace(profile, gaps=profile.gaps.assign(gap_s=seconds), median_gap_s=0.0)
    assert set(plot_gaps(touching).axes[0].collections[0].get_offsets()[:, 1]) == {0.01, 1.0}
    none = dataclasses.replace(profile, gaps=profile.gaps.assign(gap_s=0.0), median_gap_s=0.0)
    with pytest.raises(NotMeasurable, match="longer than 10 ms"):
        plot_gaps(none)


def test_an_unknown_median_gap_is_neither_drawn_nor_said() -> None:
    profile = dataclasses.replace(toy_parallelism(TEN), median_gap_s=float("nan"))
    ax = plot_gaps(profile).axes[0]
    assert legend(ax) == [f"a gap ({len(profile.gaps)})"] and not ax.lines
    assert "nan" not in alt_gaps(profile) and "median" not in alt_gaps(profile)


def test_durations_are_points_by_state() -> None:
    profile = toy_trials(Size(trials=60))
    ax = plot_durations(profile).axes[0]
    for points in ax.collections:
        wanted = profile.durations.loc[profile.durations["state"] == points.get_label(), "duration_s"]
        assert points.get_offsets()[:, 0].tolist() == pytest.approx(wanted.tolist())
    assert ax.get_yticklabels()[0].get_text().startswith("COMPLETE\nn = ")


@pytest.mark.slow
def test_many_durations_are_an_outline_as_high_as_their_density() -> None:
    profile = toy_trials(Size(trials=2000))
    own = np.log10(profile.durations.loc[profile.durations["state"] == "PRUNED", "duration_s"].to_numpy())
    row = profile.by_state.index[profile.by_state["n_timed"] > 0].get_loc("PRUNED")
    (outline,) = [
        path.vertices
        for drawn in plot_durations(profile).axes[0].collections
        for path in drawn.get_paths()
        if len(path) > 50 and abs(path.vertices[:, 1].mean() - row) < 0.1
    ]
    density = stats.gaussian_kde(own)
    x, half = np.log10(outline[:, 0]), np.abs(outline[:, 1] - row)
    away = half > 0  # the path is closed on the axis of the row
    assert (x.min(), x.max()) == pytest.approx((own.min(), own.max()), abs=1e-6)
    assert half[away] == pytest.approx(0.33 * density(x[away]) / density(x[away]).max(), rel=1e-6)
    assert "density of many trials" in legend(plot_durations(profile).axes[0])


def test_many_equal_durations_are_drawn() -> None:
    profile = toy_trials(Size(trials=2000))
    equal = dataclasses.replace(profile, durations=profile.durations.assign(duration_s=60.0))
    assert plot_durations(equal).axes[0].collections


def test_durations_of_untimed_trials_are_said() -> None:
    profile = toy_trials(Size(trials=60))
    more = profile.by_state.assign(n=profile.by_state["n"] + 5)
    ax = plot_durations(dataclasses.replace(profile, by_state=more)).axes[0]
    timed, n = int(more.loc["COMPLETE", "n_timed"]), int(more.loc["COMPLETE", "n"])
    assert ax.get_yticklabels()[0].get_text() == f"COMPLETE\n{timed} of {n} timed"


def test_histogram_counts_the_steps() -> None:
    profile = toy_pruning()
    ax = plot_prune_steps(profile).axes[0]
    counts = profile.steps["last_step"].value_counts()
    drawn = {bar.get_x() + bar.get_width() / 2: bar.get_height() for bar in ax.patches if bar.get_height()}
    assert drawn == counts.to_dict()


def test_the_first_step_that_may_prune_is_marked_on_the_axis_of_steps() -> None:
    profile = toy_pruning(earliest=4)
    from_zero = dataclasses.replace(profile, steps=profile.steps.assign(last_step=profile.steps["last_step"] - 1))
    ax = plot_prune_steps(from_zero).axes[0]
    assert "earliest possible: step 3 (report 4)" in legend(ax)
    assert list(ax.lines[1].get_xdata()) == [3, 3]


@pytest.mark.slow
def test_the_mark_is_left_out_where_it_cannot_be_placed() -> None:
    profile = toy_pruning(earliest=4)
    sparse = dataclasses.replace(profile, steps=profile.steps.assign(last_step=profile.steps["last_step"] * 5))
    assert "earliest" not in "".join(legend(plot_prune_steps(sparse).axes[0]))
    unknown = dataclasses.replace(profile, config_first_report=float("nan"))
    assert "earliest" not in "".join(legend(plot_prune_steps(unknown).axes[0]))


def test_no_reports_no_histogram() -> None:
    profile = toy_pruning()
    with pytest.raises(NotMeasurable, match="intermediate value"):
        plot_prune_steps(dataclasses.replace(profile, steps=profile.steps.iloc[:0]))


def test_nothing_timed_no_durations() -> None:
    profile = toy_trials(Size(trials=5))
    with pytest.raises(NotMeasurable, match="known start and end"):
        plot_durations(dataclasses.replace(profile, durations=pd.DataFrame(columns=profile.durations.columns)))
