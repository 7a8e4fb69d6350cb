"""Figures of a fleet: what is drawn is what the frames hold, and no text covers another."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from gpudiag.errors import NotMeasurable
from gpudiag.fleets.frames import MOST_OWNERS, owners_frame
from gpudiag.measures._time.timeline import CELLS
from gpudiag.plots.fleet import FLEET_PLOTS
from gpudiag.plots.fleet_owners import plot_owners
from gpudiag.report._render.show import SMALL_IN
from gpudiag.report.fleet.document import RunRow


def held(index: list[str], name: str = "user") -> pd.DataFrame:
    """GPU-hours that fall from row to row, busy first."""
    out = pd.DataFrame(0.0, index=pd.Index(index, name=name), columns=[*CELLS, "util_pct"])
    out["busy"] = np.linspace(9000, 1, len(index))
    out["unobserved"] = out["busy"] / 10
    out["util_pct"] = np.linspace(99, 1, len(index))
    return out


def texts(figure: Figure) -> list[Text]:
    """All that are drawn: not the labels of ticks that lie beyond an axis."""
    figure.draw_without_rendering()
    out: list[Text] = []
    for ax in figure.axes:
        legend = ax.get_legend()
        out += [ax.xaxis.label, ax.yaxis.label, *ax.texts, *(legend.get_texts() if legend else [])]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            out += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [one for one in out if one.get_text() and one.get_visible()]


def overlaps(figure: Figure) -> list[tuple[str, str]]:
    """Texts of which one covers another."""
    boxes = [(one.get_text(), one.get_window_extent().padded(-0.5)) for one in texts(figure)]
    return [(a, b) for (a, box), (b, other) in itertools.combinations(boxes, 2) if box.overlaps(other)]


def run(user: str, hours: float) -> RunRow:
    return RunRow(user, user, "diagnosed", user=user, gpu_s=3600 * hours, busy_gpu_s=3600 * hours, util_pct=80.0)


@pytest.mark.slow
@pytest.mark.parametrize("width", [9.0, SMALL_IN])
@pytest.mark.parametrize("n", [2, 7])
def test_bars_of_owners_are_their_hours_and_no_text_covers_another(n: int, width: float) -> None:
    frame = held([f"user{at} of a long name" for at in range(n)])
    figure = plot_owners(frame, width_in=width)
    (ax,) = figure.axes
    drawn = [bar.get_width() for bar in ax.patches]
    assert sum(drawn) == pytest.approx(frame[["busy", "unobserved"]].to_numpy().sum())
    assert {one.get_text() for one in ax.texts} >= {"99 %", "1 %"}
    assert overlaps(figure) == []
    box = figure.bbox
    for text in texts(figure):
        extent = text.get_window_extent()
        assert box.x0 - 1 <= extent.x0 and extent.x1 <= box.x1 + 1, text.get_text()
    assert "8,000" in {one.get_text() for one in ax.get_xticklabels()}


def test_one_owner_is_no_picture() -> None:
    with pytest.raises(NotMeasurable, match="only one part"):
        plot_owners(held(["ann"]))


def test_further_owners_are_one_bar_and_nothing_is_lost() -> None:
    rows = [run(f"u{at:02d}", at + 1) for at in range(12)]
    frame = owners_frame(rows, "project")
    assert len(frame) == MOST_OWNERS and frame.index.name == "user"
    assert frame.index[0] == "u11" and frame.index[-1] == "6 others"
    assert frame["busy"].sum() == pytest.approx(sum(range(1, 13)))
    assert frame["busy"].iloc[-1] == pytest.approx(sum(range(1, 7)))
    assert owners_frame([run("ann", 2)], "project").index.name == "project"


def test_many_small_users_give_way_to_their_projects() -> None:
    rows = [replace(run(f"u{at:02d}", 1), project="vision" if at < 20 else "speech") for at in range(30)]
    frame = owners_frame(rows, "project")
    assert frame.index.name == "project" and list(frame.index) == ["vision", "speech"]
    assert list(frame["busy"]) == [20.0, 10.0]


def test_without_trials_an_idle_gpu_waits_for_nothing_known() -> None:
    frame = held(["ann", "bob"])
    frame["idle_no_trial"] = 3000.0
    labels = [one.get_text() for one in plot_owners(frame).axes[0].get_legend().get_texts()]
    frame["stalled"] = 3000.0
    within = [one.get_text() for one in plot_owners(frame).axes[0].get_legend().get_texts()]
    assert "idle" in labels and "idle, no trial" in within


def test_the_words_of_the_picture_name_each_owner() -> None:
    said = FLEET_PLOTS["owners"].alt(held(["ann", "bob"]))
    assert said == "GPU time by user: ann 9,900 GPU-h at 99 % utilization, bob 1.1 GPU-h at 1 % utilization."


def hosts(n: int, step_days: int, start: str = "2025-10-30") -> pd.DataFrame:
    """Two hosts with a silence of half the time."""
    days = [f"{day:%Y-%m-%d}" for day in pd.date_range(start, periods=n, freq=f"{step_days}D")]
    values = np.full((2, n), 50.0)
    values[:, n // 4 : 3 * n // 4] = np.nan
    return pd.DataFrame(values, index=["gpu01", "a host of a very long name indeed"], columns=days)


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize("width", [9.0, 6.0, SMALL_IN])
@pytest.mark.parametrize("n", [2, 14, 29, 60, 113, 120])
@pytest.mark.parametrize("step_days", [1, 7])
def test_days_of_hosts_have_labels_that_do_not_touch(n: int, step_days: int, width: float) -> None:
    figure = FLEET_PLOTS["hosts"].paint(hosts(n, step_days), width_in=width)
    assert overlaps(figure) == []


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize("width", [9.0, SMALL_IN])
@pytest.mark.parametrize("hours", [1, 6, 24, 168])
@pytest.mark.parametrize("n", [2, 25, 60, 96])
def test_times_of_gpus_have_labels_that_do_not_touch(n: int, hours: int, width: float) -> None:
    columns = pd.date_range("2025-12-20", periods=n, freq=pd.Timedelta(hours=hours))
    heat = pd.DataFrame(np.full((40, n), 30.0), index=[f"node{at:02d}/0" for at in range(40)], columns=columns)
    heat.iloc[3, n // 2 :] = np.nan
    assert overlaps(FLEET_PLOTS["heat"].paint(heat, width_in=width)) == []


@pytest.mark.many
@pytest.mark.slow
@pytest.mark.parametrize("width", [9.0, SMALL_IN])
@pytest.mark.parametrize("n", [2, 9, 12, 26, 53, 105])
def test_weeks_have_labels_that_touch_neither_each_other_nor_a_bar(n: int, width: float) -> None:
    weeks = held([f"2025-W{at:02d}" for at in range(n)])
    weeks["busy"] = np.random.default_rng(1).uniform(1, 40, n)
    weeks.iloc[n // 2, :] = 0.0
    weeks.iloc[n // 2, -1] = np.nan
    figure = FLEET_PLOTS["weeks"].paint(weeks, width_in=width)
    assert overlaps(figure) == []
    bars = [bar.get_window_extent() for ax in figure.axes for bar in ax.patches if bar.get_height()]
    for text in texts(figure):
        assert not any(text.get_window_extent().overlaps(bar) for bar in bars), text.get_text()
