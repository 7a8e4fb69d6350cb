"""At the width of one column letters stay legible, and nothing leaves the card or touches."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from handmade import Size, toy_memory, toy_parallelism, toy_profiles
from matplotlib.text import Text

from gpudiag.errors import NotMeasurable
from gpudiag.plots import PLOTS, draw
from gpudiag.plots.memory import plot_memory

COLUMN_IN = 3.4


@pytest.fixture(scope="module")
def profiles() -> dict[str, Any]:
    return toy_profiles(Size(trials=120, gpus=2, samples=500))


NAMES = [
    name if name in ("timeline", "parallel_coordinates", "concurrency") else pytest.param(name, marks=pytest.mark.slow)
    for name in PLOTS
]


@pytest.mark.slow
@pytest.mark.many
@pytest.mark.parametrize("name", NAMES)
def test_a_column_of_a_paper(name: str, profiles: dict[str, Any]) -> None:
    figure = draw(name, profiles, width_in=COLUMN_IN).figure
    assert figure.get_size_inches()[0] == COLUMN_IN
    card = figure.bbox.padded(1.5)
    for ax in figure.axes:
        texts = [ax.xaxis.label, ax.yaxis.label, *(ax.get_legend().get_texts() if ax.get_legend() else [])]
        boxes = [text.get_window_extent() for text in texts if text.get_text()]
        assert all(card.x0 <= box.x0 and box.x1 <= card.x1 and card.y0 <= box.y0 and box.y1 <= card.y1 for box in boxes)
        for axis, low, high in ((ax.xaxis, "x0", "x1"), (ax.yaxis, "y0", "y1")):
            labels = [tick.label1 for tick in axis.get_major_ticks() if tick.label1.get_visible()]
            if any(label.get_rotation() for label in labels):
                continue  # slanted names pass each other
            boxes = (label.get_window_extent() for label in labels if label.get_text())
            ticks = sorted(boxes, key=lambda box, low=low: getattr(box, low))
            assert all(getattr(one, high) <= getattr(other, low) + 1 for one, other in pairwise(ticks)), name
    sizes = [text.get_fontsize() for text in figure.findobj(Text) if isinstance(text, Text) and text.get_text()]
    assert min(sizes) >= 5.5, "too small for print"


@pytest.mark.slow
def test_a_legend_keeps_its_words() -> None:
    profiles = {"parallelism": toy_parallelism(Size(trials=60, open_trials=2))}

    def words(width_in: float) -> list[str]:
        legend = draw("concurrency", profiles, width_in=width_in).figure.axes[0].get_legend()
        return [text.get_text() for text in legend.get_texts()]

    assert words(COLUMN_IN) == words(9) != []


@pytest.mark.slow
def test_a_wide_slide_has_larger_letters_and_the_house_width_changes_nothing() -> None:
    memory = toy_memory(Size(trials=0, samples=50))
    wide = draw("memory", {"memory": memory}, width_in=13).figure
    assert wide.axes[0].xaxis.label.get_fontsize() == pytest.approx(10 * 13 / 9)
    same = draw("memory", {"memory": memory}, width_in=9).figure
    assert (same.get_size_inches() == plot_memory(memory).get_size_inches()).all()
    with pytest.raises(ValueError, match="at least 2 inches; got 1"):
        draw("memory", {"memory": memory}, width_in=1)


def test_what_is_missing_is_missing_at_any_width() -> None:
    with pytest.raises(NotMeasurable):
        draw("memory", {}, width_in=COLUMN_IN)
