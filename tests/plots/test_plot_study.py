"""The figures of a study hold the numbers of their profiles: ECDF, curves, parallel coordinates, memory, power."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from handmade import (
    Size,
    toy_costs,
    toy_memory,
    toy_parallelism,
    toy_power,
    toy_profiled,
    toy_pruning,
    toy_run,
    toy_steps,
    toy_trials,
)
from matplotlib.collections import LineCollection, QuadMesh

from gpudiag.errors import NotMeasurable
from gpudiag.measures.costs import CostsProfile
from gpudiag.plots._draw.palette import STATE_COLORS
from gpudiag.plots.duration_ecdf import MAX_STEPS, plot_duration_ecdf
from gpudiag.plots.learning_curves import MOST_CURVES, alt_learning_curves, plot_learning_curves
from gpudiag.plots.memory_by_trial import alt_memory_by_trial, plot_memory_by_trial
from gpudiag.plots.parallel_coordinates import alt_parallel_coordinates, plot_parallel_coordinates
from gpudiag.plots.power_use import alt_power_use, plot_power_use
from gpudiag.plots.ranks import alt_ranks, plot_ranks
from gpudiag.plots.steps import alt_step_time, plot_step_time
from gpudiag.schema import STATES

BIG = Size(trials=200)


def costs(size: Size = BIG) -> CostsProfile:
    found = toy_costs(toy_run(size))
    assert found is not None
    return found


def line_of(ax: object, state: str) -> object:
    (line,) = [line for line in ax.lines if line.get_color() == STATE_COLORS[state]]  # type: ignore[attr-defined]
    return line


@pytest.mark.parametrize("n", [200, 4000])
def test_an_ecdf_runs_from_the_shortest_to_the_longest_and_is_right_in_between(n: int) -> None:
    profile = toy_trials(Size(trials=n))
    seconds = np.sort(profile.durations.loc[profile.durations["state"] == "PRUNED", "duration_s"].to_numpy())
    x, y = line_of(plot_duration_ecdf(profile).axes[0], "PRUNED").get_data()  # type: ignore[attr-defined]
    assert (x[0], y[0], x[-1], y[-1]) == (seconds[0], 0, seconds[-1], 100)
    assert len(x) <= MAX_STEPS + 1
    assert y[1:] == pytest.approx(100 * np.searchsorted(seconds, x[1:], side="right") / len(seconds))


def test_two_of_a_state_are_no_distribution() -> None:
    profile = toy_trials(Size(trials=60))
    few = profile.durations.groupby("state").head(2)
    with pytest.raises(NotMeasurable, match="3 trials"):
        plot_duration_ecdf(dataclasses.replace(profile, durations=few))


def drawn_curves(ax: object, state: str) -> list[np.ndarray]:
    (lines,) = [c for c in ax.collections if isinstance(c, LineCollection) and c.get_label() == state]  # type: ignore[attr-defined]
    return [path.vertices for path in lines.get_paths()]


def test_curves_are_the_reports_and_a_mark_is_where_a_trial_was_pruned() -> None:
    profile = toy_pruning(n=30)
    ax = plot_learning_curves(profile).axes[0]
    complete = profile.curves[profile.curves["state"] == "COMPLETE"]
    wanted = [part[["step", "value"]].to_numpy() for _, part in complete.groupby("trial")]
    drawn = drawn_curves(ax, "COMPLETE")
    assert len(drawn) == len(wanted) and all((a == b).all() for a, b in zip(drawn, wanted, strict=True))
    (marks,) = [c for c in ax.collections if not isinstance(c, LineCollection)]
    ends = profile.curves[profile.curves["state"] == "PRUNED"].groupby("trial").last()
    assert marks.get_offsets().tolist() == ends[["step", "value"]].to_numpy().tolist()


@pytest.mark.slow
def test_thinned_curves_keep_the_extremes_and_say_so() -> None:
    profile = toy_pruning(n=3 * MOST_CURVES)
    value = profile.curves["value"].to_numpy().copy()
    least, most = np.flatnonzero(profile.curves["trial"] == 7)[0], np.flatnonzero(profile.curves["trial"] == 11)[-1]
    value[[least, most]] = -0.5, 1.6
    ax = plot_learning_curves(dataclasses.replace(profile, curves=profile.curves.assign(value=value))).axes[0]
    drawn = np.concatenate(drawn_curves(ax, "PRUNED"))[:, 1]
    assert (drawn.min(), drawn.max()) == (-0.5, 1.6)
    assert f"of {3 * MOST_CURVES + 5} trials drawn" in ax.get_xlabel()
    assert f"{3 * MOST_CURVES} PRUNED" in alt_learning_curves(profile)


def test_one_diverged_report_does_not_squeeze_all_others() -> None:
    profile = toy_pruning(n=170)
    value = profile.curves["value"].to_numpy().copy()
    value[3] = 1e9
    ax = plot_learning_curves(dataclasses.replace(profile, curves=profile.curves.assign(value=value))).axes[0]
    assert ax.get_ylim()[1] < 10 and ax.get_ylabel().endswith("few beyond the scale")


def test_a_single_report_is_no_curve() -> None:
    profile = toy_pruning()
    single = profile.curves.drop_duplicates(["study", "trial"])
    with pytest.raises(NotMeasurable, match="two values"):
        plot_learning_curves(dataclasses.replace(profile, curves=single))


@pytest.mark.slow
def test_lines_of_parallel_coordinates_stand_where_the_values_are() -> None:
    profile = costs()
    ax = plot_parallel_coordinates(profile).axes[0]
    (lines,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    done = profile.trials[profile.trials["outcome"] == "COMPLETE"].sort_values("duration_s")
    given = profile.parameters.loc[done.index]
    place = np.array([path.vertices[:, 1] for path in lines.get_paths()])
    assert [tick.get_text().split("\n")[0] for tick in ax.get_xticklabels()][:3] == ["lr", "model", "duration"]
    lr = np.log(given["params.lr"].to_numpy())
    assert place[:, 0] == pytest.approx((lr - lr.min()) / (lr.max() - lr.min()))
    order = {name: i / 2 for i, name in enumerate(["base", "large", "small"])}
    assert place[:, 1] == pytest.approx(given["params.model"].map(order).to_numpy(float))
    seconds = done["duration_s"].to_numpy()
    assert place[:, 2] == pytest.approx((seconds - seconds[0]) / (seconds[-1] - seconds[0]))
    memory = done["freed_mib"].to_numpy()
    wanted = (memory - np.nanmin(memory)) / (np.nanmax(memory) - np.nanmin(memory))
    assert place[:, 3] == pytest.approx(wanted, nan_ok=True)


@pytest.mark.slow
def test_parallel_coordinates_need_ten_trials_with_parameters_that_vary() -> None:
    profile = costs()
    names = [name for name in profile.parameters if name.startswith("params.")]
    with pytest.raises(NotMeasurable, match="Only 0 COMPLETE trials"):
        plot_parallel_coordinates(dataclasses.replace(profile, parameters=profile.parameters.drop(columns=names)))
    same = profile.parameters.assign(**dict.fromkeys(names, "one"))
    with pytest.raises(NotMeasurable, match="varies"):
        plot_parallel_coordinates(dataclasses.replace(profile, parameters=same))


@pytest.mark.slow
def test_many_parameters_and_names_of_any_kind_fit() -> None:
    profile = costs()
    n = len(profile.parameters)
    odd = pd.Series([None if i % 5 == 0 else f"$x_{i}$ <b>" for i in range(n)], dtype=object)
    many = {f"params.p{i}": np.arange(n) % (i + 2) for i in range(9)}
    more = profile.parameters.assign(**{"params.flag": np.arange(n) % 2 == 0, "params.odd": odd}, **many)
    wide = dataclasses.replace(profile, parameters=more)
    assert len(plot_parallel_coordinates(wide).axes[0].get_xticks()) == 6 + 2
    assert "7 not drawn" in alt_parallel_coordinates(wide)


def stacked_gib(ax: object, when: float) -> float:
    """Height of all areas of trials at that instant."""
    colors = {tuple(np.round(matplotlib_rgb(STATE_COLORS[state]), 3)) for state in STATES}
    total = 0.0
    for area in ax.collections:  # type: ignore[attr-defined]
        if len(area.get_facecolor()) and tuple(np.round(area.get_facecolor()[0][:3], 3)) in colors:
            total += sum(_height_at(path.vertices, when) for path in area.get_paths())
    return total


def matplotlib_rgb(color: str) -> np.ndarray:
    return np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])


def _height_at(outline: np.ndarray, when: float) -> float:
    """Height of a step area at an instant that is no corner: the distance of the two horizontal edges over it."""
    crossing = [
        one[1] for one, other in itertools.pairwise(outline)
        if one[1] == other[1] and min(one[0], other[0]) < when < max(one[0], other[0])
    ]  # fmt: skip
    return max(crossing) - min(crossing) if crossing else 0.0


@pytest.mark.slow
@pytest.mark.parametrize("gpus", [1, 2])
def test_the_stack_is_the_memory_of_the_trials_that_run(gpus: int) -> None:
    size = Size(trials=40, gpus=gpus, open_trials=0)
    profile, workers = costs(size), toy_parallelism(size)
    figure = plot_memory_by_trial(toy_memory(size), workers, profile)
    assert len(figure.axes) == gpus
    merged = workers.placed.merge(profile.trials[["study", "trial", "gpu", "freed_mib"]], on=["study", "trial"])
    for gpu, ax in zip([str(i) for i in range(gpus)], figure.axes, strict=True):
        for share in (0.2, 0.63):
            instant = workers.placed["start"].min() + share * (
                workers.placed["end"].max() - workers.placed["start"].min()
            )
            here = merged[(merged["gpu"] == gpu) & (merged["start"] <= instant) & (merged["end"] > instant)]
            day = instant.timestamp() / 86400
            assert stacked_gib(ax, day) == pytest.approx(here["freed_mib"].sum() / 1024)
        capacity = [line for line in ax.lines if len(set(line.get_ydata())) == 1]
        assert [line.get_ydata()[0] for line in capacity] == [size.total_mib / 1024]


@pytest.mark.slow
def test_trials_of_unknown_memory_are_counted_not_invented() -> None:
    size = Size(trials=40, open_trials=0)
    profile = costs(size)
    figure = plot_memory_by_trial(toy_memory(size), toy_parallelism(size), profile)
    texts = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    lacking = int(profile.trials["freed_mib"].isna().sum())
    assert texts[-1] == f"no trial's own, or one of {lacking} not known"
    assert f"of {40 - lacking} of 40 trials" in alt_memory_by_trial(toy_memory(size), toy_parallelism(size), profile)
    nothing = dataclasses.replace(profile, trials=profile.trials.assign(freed_mib=np.nan))
    with pytest.raises(NotMeasurable, match="no single trial"):
        plot_memory_by_trial(toy_memory(size), toy_parallelism(size), nothing)


@pytest.mark.slow
@pytest.mark.parametrize(("gpus", "panels"), [(1, 1), (3, 3), (8, 1)])
def test_power_use_holds_the_time_of_each_bin(gpus: int, panels: int) -> None:
    profile = toy_power(Size(gpus=gpus))
    figure = plot_power_use(profile)
    meshes = [c for ax in figure.axes for c in ax.collections if isinstance(c, QuadMesh) and c.get_array().size > 300]
    assert len(meshes) == panels
    share = np.ma.filled(meshes[0].get_array(), 0.0)
    assert {(int(row), int(column)): share[row, column] for row, column in zip(*np.nonzero(share), strict=True)} == {
        (1, 0): pytest.approx(25), (6, 19): pytest.approx(50), (16, 19): pytest.approx(25),
    }  # fmt: skip
    mean = figure.axes[0].lines[0].get_data()
    assert list(mean[0]) == [2.5, 97.5] and list(mean[1]) == pytest.approx([7.5, (2 * 32.5 + 82.5) / 3])
    assert "67 % of the time at 50 % or more" in alt_power_use(profile)


def test_power_use_needs_power_and_utilization_together() -> None:
    power = toy_power()
    with pytest.raises(NotMeasurable, match="beside it"):
        plot_power_use(dataclasses.replace(power, load=power.load.iloc[:0]))
    idle = dataclasses.replace(power, load=power.load.iloc[:1])
    assert alt_power_use(idle).endswith("never reached 50 %.")
    assert [text.get_text() for text in plot_power_use(idle).axes[0].get_legend().get_texts()] == ["GPU 0, mean"]


def test_step_time_holds_the_course_and_marks_each_pause() -> None:
    profile = toy_steps()
    ax = plot_step_time(profile).axes[0]
    course, median, pauses = ax.get_lines()
    assert ax.get_ylabel() == "time of one step [s]"
    assert course.get_ydata()[[0, 99]].tolist() == [0.5, 1.0] and median.get_ydata()[0] == 0.75
    assert list(pauses.get_xdata()) == [510, 505], "each pause of the training that is drawn, two in one stretch"
    assert ax.get_legend().get_texts()[-1].get_text() == "2 pauses, 1 min 35 s in all"
    assert "2× as long in the last fifth" in alt_step_time(profile)
    with pytest.raises(NotMeasurable):
        plot_step_time(dataclasses.replace(profile, course=profile.course.iloc[:1]))


def test_the_map_of_ranks_has_a_column_a_rank_and_names_the_late_one() -> None:
    profile = toy_profiled(4, late=2)
    ax = plot_ranks(profile).axes[0]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0", "1", "2", "3"]
    states = ["Computing", "Communicating alone", "Idle: launching"]
    assert [text.get_text() for text in ax.get_yticklabels()] == states, "nobody waited for data"
    assert ax.images[0].get_array()[:, 2].tolist() == [92.0, 6.0, 2.0]
    assert [text.get_text() for text in ax.texts][2] == "92 %"
    assert "Rank 2 spent 6 % of it in collectives, others up to 28 %." in alt_ranks(profile)
    assert not plot_ranks(toy_profiled(40)).axes[0].texts, "numbers would not fit"
    with pytest.raises(NotMeasurable):
        plot_ranks(toy_profiled(1))
