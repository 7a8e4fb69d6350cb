"""Every painter on every kind of profile: no warning, units on every axis, inputs unchanged, equal bytes."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import pickle
import re
from typing import Any

import matplotlib
import pandas as pd
import pytest
from handmade import Size, toy_parallelism, toy_profiles, toy_pruning
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from gpudiag.errors import NotMeasurable
from gpudiag.plots import PLOTS, Picture, draw, draw_all
from gpudiag.plots._draw.picture import painter
from gpudiag.plots._draw.render import house_style, png, svg
from gpudiag.report._render.show import encoded

SIZES = {
    "faulty": Size(samples=500, open_trials=3, fail_share=0.3),
    "one sample": Size(trials=1, workers=1, samples=1, open_trials=0, gap=False),
    "two healthy GPUs": Size(trials=40, gpus=2, samples=300, open_trials=0, fail_share=0.0, gap=False),
    "64 GPUs": Size(trials=200, workers=64, gpus=64, samples=200),
    "dense": Size(trials=10_000, workers=16, gpus=16),
}
UNIT = re.compile(r"\[.+\]$|\[.+\];")
NEVER_DRAWN = {
    ("parallel_coordinates", "two healthy GPUs"),  # three COMPLETE trials
    *((name, "one sample") for name in ("gaps", "ledger", "waterfall", "progress")),
    *(("ranks", size) for size in ("faulty", "one sample")),  # one GPU
    *((name, "one sample") for name in ("duration_ecdf", "parallel_coordinates", "memory_by_trial")),
}


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, marks=[pytest.mark.slow] if kind in ("64 GPUs", "dense") else []) for kind in SIZES],
)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def profiles(kind: str) -> dict[str, Any]:
    return toy_profiles(SIZES[kind])


@pytest.fixture(scope="module")
def pictures(profiles: dict[str, Any]) -> dict[str, Picture]:
    """Drawn once a kind; what a painter must leave as it is, is looked at on the way."""
    before = {key: frame.copy() for key, frame in frames(profiles).items()}
    settings = dict(matplotlib.rcParams)
    drawn = draw_all(profiles, timezone="Europe/Berlin")
    assert dict(matplotlib.rcParams) == settings
    for key, frame in frames(profiles).items():
        pd.testing.assert_frame_equal(frame, before[key], obj=f"{key}, which no painter may change")
    with house_style():
        for picture in drawn.values():
            picture.figure.draw_without_rendering()  # where the letters of a legend stand is known when it is drawn
    return drawn


@pytest.fixture(scope="module")
def written(pictures: dict[str, Picture]) -> dict[str, str]:
    return {name: picture.svg() for name, picture in pictures.items()}


def frames(profiles: dict[str, Any]) -> dict[str, pd.DataFrame]:
    return {
        f"{topic}.{spec.name}": value
        for topic, profile in profiles.items()
        for spec in (dataclasses.fields(profile) if profile is not None else ())
        if isinstance(value := getattr(profile, spec.name), pd.DataFrame)
    }


def axes_of(pictures: dict[str, Picture]) -> list[tuple[str, Axes]]:
    """The axes, with letters where they are at the figure's own size, whatever file was written of it last."""
    for figure in (picture.figure for picture in pictures.values()):
        if any(ax.xaxis.label._renderer.dpi != figure.dpi for ax in figure.axes):
            with house_style():
                figure.draw_without_rendering()
    return [(name, ax) for name, picture in pictures.items() for ax in picture.figure.axes]


@pytest.mark.slow
def test_all_but_the_impossible_are_drawn(kind: str, pictures: dict[str, Picture]) -> None:
    assert set(pictures) == {name for name in PLOTS if (name, kind) not in NEVER_DRAWN}


@pytest.mark.slow
def test_what_can_be_drawn_is_known_without_drawing(pictures: dict[str, Picture], profiles: dict[str, Any]) -> None:
    assert {name for name, plot in PLOTS.items() if plot.allowed_by(profiles)} == set(pictures)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["faulty", "dense"], indirect=True, scope="module")
def test_equal_profiles_give_equal_bytes(
    kind: str, profiles: dict[str, Any], pictures: dict[str, Picture], written: dict[str, str]
) -> None:
    """Every figure with each mark by itself, and again those whose marks are so many that they are rasterised."""
    equal, compared = copy.deepcopy(profiles), set()
    for name, first in pictures.items():
        if kind == "faulty" or any(artist.get_rasterized() for artist in first.figure.findobj()):
            compared.add(name)
            again = draw(name, equal, timezone="Europe/Berlin")
            assert written[name] == again.svg(), name  # what is rasterised lies in it as a PNG
            assert name != "timeline" or draw(name, profiles, timezone="Europe/Berlin").png(60) == again.png(60)
    assert compared >= {"timeline", "gaps", "utilization_map"}


def test_a_figure_is_laid_out_once_and_drawn_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    for owner, name in ((ConstrainedLayoutEngine, "execute"), (Figure, "draw")):
        real = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *a, n=name, r=real: [done.append(n), r(*a)][1])
    picture = draw("utilization", toy_profiles(SIZES["faulty"]))
    assert done == ["execute"]
    picture.svg()
    assert done == ["execute", "draw"]


@pytest.mark.slow
def test_labels_carry_units_and_words_carry_numbers(pictures: dict[str, Picture]) -> None:
    for name, ax in axes_of(pictures):
        labels = [label for label in (ax.get_xlabel(), ax.get_ylabel()) if label]
        assert labels, f"an axes of {name} without any label"
        assert all(UNIT.search(label) for label in labels), labels
    for picture in pictures.values():
        assert re.search(r"\d", picture.alt)
        assert picture.alt.endswith(".") and "nan" not in picture.alt
        assert picture.caption.endswith(".")


def test_nothing_leaves_the_card_and_no_labels_touch(pictures: dict[str, Picture]) -> None:
    for name, ax in axes_of(pictures):
        card = ax.figure.bbox.padded(1.5)
        for text in [ax.xaxis.label, ax.yaxis.label, *(ax.get_legend().get_texts() if ax.get_legend() else [])]:
            if text.get_text():
                box = text.get_window_extent()
                assert card.x0 <= box.x0 and box.x1 <= card.x1, (text.get_text(), box)
                assert card.y0 <= box.y0 and box.y1 <= card.y1, (text.get_text(), box)
        for axis, low, high in ((ax.xaxis, "x0", "x1"), (ax.yaxis, "y0", "y1")):
            labels = [tick.label1 for tick in axis.get_major_ticks() if tick.label1.get_visible()]
            boxes = [label.get_window_extent() for label in labels if label.get_text()]
            boxes.sort(key=lambda box: getattr(box, low))
            for one, other in itertools.pairwise(boxes):
                assert getattr(one, high) <= getattr(other, low) + 1, (name, axis.axis_name)


def test_legends_lie_above_the_data_and_within_their_share_of_the_card(pictures: dict[str, Picture]) -> None:
    for name, ax in axes_of(pictures):
        if ax.get_legend() is not None:
            box = ax.get_legend().get_window_extent()
            assert box.y0 >= ax.get_window_extent().y1 - 1, name
            others = [other.get_legend() for other in ax.figure.axes if other is not ax and other.get_legend()]
            assert not any(box.overlaps(other.get_window_extent()) for other in others), name


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense"], indirect=True, scope="module")
def test_a_report_of_the_largest_run_stays_small(
    kind: str, pictures: dict[str, Picture], written: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Picture, "svg", lambda picture: written[picture.name])  # to write them again takes longest
    size = sum(len(base64) for _, base64 in map(encoded, pictures.values()))
    assert list(pictures) == list(PLOTS)
    assert size < 3_500_000, "beside the timeline it is to stay a report below 5 MB"


def test_needs_and_accepts_are_read_from_the_signature() -> None:
    assert PLOTS["timeline"].needs == () and PLOTS["prune_steps"].needs == ("pruning",)
    assert PLOTS["timeline"].accepts == ("parallelism", "utilization", "memory", "ledger")
    assert PLOTS["timeline"].timed and not PLOTS["power"].timed


def test_a_missing_profile_is_named() -> None:
    with pytest.raises(NotMeasurable, match="figure memory needs the measure memory"):
        draw("memory", {"memory": None})
    assert draw_all({}) == {}


@pytest.mark.slow
def test_an_optional_profile_may_be_missing() -> None:
    profiles = toy_profiles(Size(trials=20))
    alone = draw("timeline", {"parallelism": profiles["parallelism"]})
    both = draw("timeline", {**profiles, "utilization": None, "ledger": None})
    assert len(alone.figure.axes) == 1 and len(both.figure.axes) == 2
    assert len(draw("timeline", profiles).figure.axes) == 4
    assert "utilization" not in alone.alt


def test_unknown_name_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        draw("pie", {})


def test_html_carries_words_and_loads_nothing() -> None:
    html = draw("prune_steps", {"pruning": toy_pruning()})._repr_html_()
    assert 'alt="Histogram of the last step of 170 pruned trials' in html
    assert "http" not in re.sub(r"base64,[^\"]+", "", html)


@pytest.mark.slow
def test_the_users_style_does_not_reach_a_figure() -> None:
    profiles = {"parallelism": toy_parallelism(Size(trials=10))}
    plain = draw("concurrency", profiles).svg()
    with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30, "lines.linewidth": 9}):
        styled = draw("concurrency", profiles)
        assert isinstance(styled.figure, Figure)
        assert styled.svg() == plain


@pytest.mark.slow
def test_a_bare_figure_shows_itself_where_nothing_else_would_show_it() -> None:
    figure = PLOTS["prune_steps"].paint(toy_pruning())
    shown, known = InteractiveShell().display_formatter.format(figure)
    assert shown["image/png"].startswith(b"\x89PNG") and "<Figure" in shown["text/plain"]
    assert known["image/png"] == {
        "width": round(figure.get_figwidth() * 96),
        "height": round(figure.get_figheight() * 96),
    }
    assert pickle.loads(pickle.dumps(figure)).get_figwidth() == figure.get_figwidth()


@pytest.mark.parametrize(("name", "drawn"), [("batch", True), ("größe", True), ("日本語", False), ("한국어 3", False)])
def test_letters_that_the_font_lacks_are_left_to_who_shows_them(
    name: str, drawn: bool, recwarn: pytest.WarningsRecorder
) -> None:
    @painter
    def paint() -> Figure:
        figure = Figure(layout="constrained")
        figure.subplots().set_xlabel(name)
        return figure

    figure = paint()
    text, _ = svg(figure), png(figure)
    assert (f">{name}<" not in text) is drawn and ("sans-serif" in text) is not drawn
    assert text == svg(figure) and not [str(one.message) for one in recwarn if "Glyph" in str(one.message)]
