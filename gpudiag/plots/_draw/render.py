"""Figures to bytes, the same bytes every time: fixed ids, no date, no influence of the user's own style."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO, StringIO
from typing import TYPE_CHECKING

import matplotlib
from matplotlib.font_manager import findfont, get_font
from matplotlib.text import Text

from gpudiag.plots._draw.palette import CARD, INK, MUTED, RULE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RASTER_DPI = 150
"""Resolution of what is rasterised inside an SVG."""

FONT = "DejaVu Sans"

STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.facecolor": CARD,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "figure.dpi": 100,
    "figure.edgecolor": CARD,
    "figure.facecolor": CARD,
    "font.family": [FONT],
    "font.size": 10,
    "grid.color": RULE,
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.6,
    "legend.borderaxespad": 0.2,
    "legend.columnspacing": 1.6,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "savefig.bbox": None,
    "savefig.dpi": RASTER_DPI,
    "svg.fonttype": "path",
    "svg.hashsalt": "gpudiag",
    "text.color": INK,
    "text.parse_math": False,  # names from inputs are no formulas
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 9,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 9,
}
_FAMILIES = (
    "agg.", "axes.", "boxplot.", "date.", "errorbar.", "figure.", "font.", "grid.", "hatch.", "image.",
    "legend.", "lines.", "markers.", "mathtext.", "patch.", "path.", "savefig.", "svg.", "text.", "xtick.", "ytick.",
)  # fmt: skip


@contextmanager
def house_style() -> Iterator[None]:
    """Matplotlib's defaults and this package's style inside the block; what the user had set comes back after it."""
    defaults = {name: value for name, value in matplotlib.rcParamsDefault.items() if name.startswith(_FAMILIES)}
    with matplotlib.rc_context({**defaults, **STYLE}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from")  # svg() leaves such names to who shows it
        yield


def svg(figure: Figure) -> str:
    """The figure as an SVG document of its own, equal for equal figures; text is drawn as paths. Where the font lacks
    letters of a name, it is text, for which whoever shows it has a font.
    """
    out = StringIO()
    with house_style():
        if _lacks_letters(figure):
            matplotlib.rcParams["svg.fonttype"] = "none"
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": "gpudiag"})
    text = out.getvalue().replace(f"font-family: '{FONT}'", f"font-family: '{FONT}', sans-serif")
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)


def _lacks_letters(figure: Figure) -> bool:
    texts = "".join(text.get_text() for text in figure.findobj(Text) if isinstance(text, Text))
    letters = set(map(ord, texts.replace("\n", "")))
    return not letters <= _letters()


@functools.cache
def _letters() -> frozenset[int]:
    """Code points of the font that figures are drawn in."""
    return frozenset(get_font(findfont(FONT)).get_charmap())


def png(figure: Figure, dpi: float = RASTER_DPI) -> bytes:
    """The figure as PNG at ``dpi`` dots an inch, equal for equal figures."""
    out = BytesIO()
    with house_style():
        figure.savefig(out, format="png", dpi=dpi, metadata={"Software": "gpudiag"})
    return out.getvalue()
