"""A picture: a figure together with the words that stand for it, and the plot that makes one."""

from __future__ import annotations

import functools
import inspect
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from matplotlib.backend_bases import FigureCanvasBase

from gpudiag.errors import NotMeasurable
from gpudiag.plots._draw.fit import fit_width
from gpudiag.plots._draw.render import house_style, png, svg
from gpudiag.plots._draw.width import WIDTH_IN

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Picture:
    """A drawn figure. ``alt`` says in a sentence or two what is seen, with numbers; ``caption`` how to read it.

    ``lanes``: data of a timeline that takes the figure's place on a page with scripts; "" for all other pictures.
    """

    name: str
    figure: Figure
    alt: str
    caption: str
    lanes: str = ""

    def svg(self) -> str:
        """The figure as SVG; the same text for the same profiles."""
        return svg(self.figure)

    def png(self, dpi: float = 150) -> bytes:
        """The figure as PNG."""
        return png(self.figure, dpi)

    def _repr_html_(self) -> str:
        source = b64encode(self.svg().encode()).decode()
        width, _ = self.figure.get_size_inches()
        return (
            f'<figure class="gpudiag-picture" id="picture-{self.name}" '
            f'style="margin:1em 0;max-width:{round(width * 96)}px">'
            f'<img style="width:100%;height:auto;background:#fff" alt="{escape(self.alt)}"'
            f' src="data:image/svg+xml;base64,{source}">'
            f"<figcaption>{escape(self.caption)}</figcaption></figure>"
        )

    def __repr__(self) -> str:
        return f"{self.name}: {self.alt}"


@dataclass(frozen=True)
class Plot:
    """How one kind of picture is made: ``paint`` and ``alt`` take the same profiles, by topic, and refuse the same.

    ``in_report`` is False for one that is drawn when asked for and stands in no section of a report. ``without``: a
    topic, and the caption where its profile is absent.
    """

    paint: Callable[..., Figure]
    alt: Callable[..., str]
    caption: str
    in_report: bool = True
    without: tuple[str, str] | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        """Topics of the profiles it cannot do without: the parameters of ``paint`` that have no default."""
        return tuple(name for name, p in self._parameters() if p.default is inspect.Parameter.empty)

    @property
    def accepts(self) -> tuple[str, ...]:
        """Topics of all the profiles it can use."""
        return tuple(name for name, p in self._parameters() if p.kind is not inspect.Parameter.KEYWORD_ONLY)

    @property
    def timed(self) -> bool:
        """True if it has a time axis, and therefore takes ``timezone``."""
        return "timezone" in dict(self._parameters())

    def picture(
        self, name: str, profiles: Mapping[str, object], *, timezone: str = "UTC", width_in: float = WIDTH_IN
    ) -> Picture:
        """Draw it from the profiles, whose keys are topics; None counts as absent. ``width_in``: inches.

        Raises NotMeasurable if a profile it needs is absent, or holds nothing to draw.
        """
        given = self._given(name, profiles)
        options: dict[str, Any] = {"timezone": timezone} if self.timed else {}
        absent = self.without is not None and self.without[0] not in given
        caption = self.without[1] if self.without is not None and absent else self.caption
        return Picture(name, self.paint(**given, **options, width_in=width_in), self.alt(**given), caption)

    def allowed_by(self, profiles: Mapping[str, object]) -> bool:
        """Whether :meth:`picture` would draw it, found out without drawing."""
        try:
            self.alt(**self._given("", profiles))
        except NotMeasurable:
            return False
        return True

    def _given(self, name: str, profiles: Mapping[str, object]) -> dict[str, Any]:
        """The profiles that it uses. Raises NotMeasurable if one that it needs is absent."""
        given = {topic: profiles[topic] for topic in self.accepts if profiles.get(topic) is not None}
        missing = [topic for topic in self.needs if topic not in given]
        if missing:
            raise NotMeasurable(f"The figure {name} needs the measure {' and '.join(missing)}.")
        return given

    def _parameters(self) -> list[tuple[str, inspect.Parameter]]:
        return list(inspect.signature(self.paint).parameters.items())


def painter(paint: Callable[..., Figure]) -> Callable[..., Figure]:
    """Paint in the house style, settle the layout once, and freeze it: then every rendering is equal.

    What comes out also takes ``width_in``, the width of the figure in inches.
    """

    @functools.wraps(paint)
    def painted(*args: Any, width_in: float = WIDTH_IN, **kwargs: Any) -> Figure:
        with house_style():
            figure = paint(*args, **kwargs)
            if width_in != WIDTH_IN:
                fit_width(figure, width_in)
            if (engine := figure.get_layout_engine()) is not None:
                engine.execute(figure)  # a draw without rendering would do the same and then lay out every letter again
            figure.set_layout_engine(None)  # "none" would keep a stand-in, for which every rendering draws twice
            # The layout solver's last digits differ from run to run.
            for ax in figure.axes:
                left, bottom, width, height = (round(float(x), 5) for x in ax.get_position(original=True).bounds)
                ax.set_position((left, bottom, width, height))
            FigureCanvasBase(figure)  # whatever it was laid out on
        # IPython shows a bare Figure only where pyplot was imported; there, its own way comes before this one.
        vars(figure)["_repr_png_"] = functools.partial(_displayed, figure)
        return figure

    return painted


def _displayed(figure: Figure) -> tuple[bytes, dict[str, int]]:
    """For IPython: the figure as PNG, and the size in CSS pixels at which it is as large as on paper."""
    width, height = (round(inch * 96) for inch in figure.get_size_inches())
    return png(figure), {"width": width, "height": height}
