"""A figure at another width: for one column of a paper it needs other proportions, not a smaller copy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from gpudiag.plots._draw.axes import legend_above
from gpudiag.plots._draw.width import WIDTH_IN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

SMALLEST = 0.7
"""Letters are never drawn below this share of their size: 9 points become 6.3, which journals still accept."""
TICK_POINTS = 9.0
ROW_POINTS = 14.0
"""Height of a row of a legend whose letters are as large as those of ticks."""
TRIES = 8
SLANT = 40.0


def fit_width(figure: Figure, width_in: float) -> None:
    """Lay a figure out anew for ``width_in`` inches: letters shrink less than the width, legends wrap, ticks thin out.

    Raises ValueError below 2 inches.
    """
    if not width_in >= 2:
        raise ValueError(f"a figure needs a width of at least 2 inches; got {width_in:g}")
    letters = max(SMALLEST, min(width_in / WIDTH_IN, 2.0))
    _, height = figure.get_size_inches()
    figure.set_size_inches(width_in, height * letters)
    ticks = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
    own = {id(label) for axis in ticks for tick in axis.get_major_ticks() for label in (tick.label1, tick.label2)}
    for text in figure.findobj(Text):
        if isinstance(text, Text) and id(text) not in own:
            text.set_fontsize(float(text.get_fontsize()) * letters)
    for axis in ticks:
        axis.set_tick_params(labelsize=TICK_POINTS * letters)
    for ax in figure.axes:
        _thinner(ax, letters)
    for _ in range(TRIES):
        _legends_count(figure, False)  # one that is too wide would leave no room for its axes
        _lay_out(figure)
        changed = [_wrap(ax, letters) for ax in figure.axes]
        changed += [_thin(ax.xaxis, "x") or _thin(ax.yaxis, "y") for ax in figure.axes]
        changed += [_fold(axis.label, figure) for axis in ticks]
        if not any(changed):
            break
    _legends_count(figure, True)
    for _ in range(TRIES):  # counted, they can move their axes and so themselves
        _lay_out(figure)
        if not any([_wrap(ax, letters) for ax in figure.axes]):
            break


def label_places(ax: Axes, places: Sequence[float], labels: Sequence[str]) -> None:
    """Labels of the x axis at these places, every second one, and so on, where they would touch."""
    named = dict(zip(places, labels, strict=True))
    ax.xaxis.set_major_locator(FixedLocator(list(places)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda place, _: named.get(place, "")))
    figure = ax.get_figure(root=True)
    assert figure is not None
    for _ in range(TRIES):
        _lay_out(figure)
        if not _thin(ax.xaxis, "x"):
            break


def _lay_out(figure: Figure) -> None:
    """Put axes, ticks and labels where a draw would put them; without rendering it would still go through all data."""
    if not isinstance(figure.canvas, FigureCanvasAgg):
        FigureCanvasAgg(figure)  # it keeps what it has measured of letters; on another one each layout measures anew
    if engine := figure.get_layout_engine():
        engine.execute(figure)
    for ax in figure.axes:
        if ax.get_visible():
            ax.get_tightbbox(bbox_extra_artists=[])
            if (legend := ax.get_legend()) is not None:
                figure.draw_artist(legend)


def _legends_count(figure: Figure, counts: bool) -> None:
    for ax in figure.axes:
        if (legend := ax.get_legend()) is not None:
            legend.set_in_layout(counts)


def _thinner(ax: Axes, letters: float) -> None:
    """Lines and markers in proportion to the letters."""
    for line in ax.lines:
        line.set(linewidth=line.get_linewidth() * letters, markersize=line.get_markersize() * letters)
    for points in ax.collections:
        if isinstance(points, PathCollection):
            points.set_sizes(points.get_sizes() * letters**2)


def _fold(label: Text, figure: Figure) -> bool:
    """A label of an axis in two lines where one reaches beyond the figure; True if it had to be."""
    box = label.get_window_extent()
    inside = box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
    return not inside and _in_two_lines(label)


def _in_two_lines(label: Text) -> bool:
    """Break a text at the gap nearest to its middle; True if it could be."""
    text = label.get_text()
    gaps = [i for i, letter in enumerate(text) if letter == " "]
    if "\n" in text or not gaps:
        return False
    middle = min(gaps, key=lambda i: abs(i - len(text) / 2))
    label.set_text(f"{text[:middle]}\n{text[middle + 1 :]}")
    return True


def _wrap(ax: Axes, letters: float) -> bool:
    """One column less for a legend that reaches beyond the figure or into its neighbour; True if it had to be."""
    legend = ax.get_legend()
    if legend is None:
        return False
    box, columns = legend.get_window_extent(), len({round(text.get_window_extent().x0) for text in legend.get_texts()})
    if box.x1 <= _room(ax):
        return False
    if columns == 1:
        return any([_in_two_lines(text) for text in legend.get_texts()])
    handles = [handle for handle in legend.legend_handles if handle is not None]
    for handle, text in zip(handles, legend.get_texts(), strict=True):
        handle.set_label(text.get_text())
    legend_above(ax, handles, columns - 1, size=TICK_POINTS * letters)
    rows = -(-len(handles) // (columns - 1)) - -(-len(handles) // columns)
    figure = ax.get_figure(root=True)
    assert figure is not None
    # A row more takes its room from nobody.
    figure.set_figheight(figure.get_figheight() + rows * ROW_POINTS * letters / 72)
    return True


def _room(ax: Axes) -> float:
    """How far to the right a legend may reach: to the next axes that stands beside its own, or to the edge."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    own = ax.get_window_extent()
    others = [other.get_window_extent() for other in figure.axes if other is not ax]
    beside = [box.x0 for box in others if box.x0 >= own.x1 and box.y0 < own.y1 and box.y1 > own.y0]
    return float(min([0.99 * figure.bbox.x1, *(x for x in beside if x > own.x0)]))


def _thin(axis: Axis, which: str) -> bool:
    """Every second tick where labels touch; True if they did. Names that belong to a place each stay."""
    labels = [tick.label1 for tick in axis.get_major_ticks() if tick.label1.get_visible()]
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    low, high = ("x0", "x1") if which == "x" else ("y0", "y1")
    boxes.sort(key=lambda box: float(getattr(box, low)))
    if all(getattr(one, high) + 2 <= getattr(other, low) for one, other in pairwise(boxes)):
        return False
    locator, formatter = axis.get_major_locator(), axis.get_major_formatter()
    if isinstance(formatter, FuncFormatter) and isinstance(formatter.func, partial):
        slanted = any(label.get_rotation() for label in labels)
        axis.set_tick_params(rotation=SLANT)  # names of places, as set_ticks with labels leaves them
        return not slanted
    if isinstance(locator, MaxNLocator):
        locator.set_params(nbins=max(len(boxes) // 2, 1))
        return True
    if isinstance(locator, FixedLocator):
        axis.set_major_locator(FixedLocator([float(place) for place in locator()][::2]))
        return True
    return False
