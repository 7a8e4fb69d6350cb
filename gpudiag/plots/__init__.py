"""Figures: a profile (or profiles that share an axis) in, a picture out.

    from gpudiag.plots import PLOTS, draw, draw_all

    picture = draw("timeline", profiles, timezone="Asia/Taipei")   # one, by name
    for name, picture in draw_all(profiles).items(): ...           # all that these profiles allow

``profiles`` maps a topic (``utilization``, ``parallelism`` ...) to its profile; an absent topic or None is
fine. ``width_in=3.4`` lays a picture out for one of two columns of a paper. A picture that lacks a profile it
needs, or has nothing to draw (no pruned trial, fewer than three gaps), raises
:class:`~gpudiag.errors.NotMeasurable`; ``draw_all`` leaves it out.

A :class:`~gpudiag.plots._draw.picture.Picture` has ``name``, ``figure`` (matplotlib Figure), ``alt`` (one or two
sentences with the numbers seen: the text alternative), ``caption`` (how to read it), ``svg() -> str``,
``png(dpi=150) -> bytes``, and shows itself in Jupyter. Bytes are equal for equal profiles; the card is
opaque white, so it reads on a dark page too.

The functions themselves, ``plot_<name>(profile, ...) -> Figure``, live in the file of their topic, and
``PLOTS[name].needs`` says which topics one cannot do without. Painters compute nothing but layout, change
no profile and no global state, and never import pyplot.
"""

from gpudiag.plots._draw.fit import WIDTH_IN
from gpudiag.plots._draw.picture import Picture, Plot
from gpudiag.plots.registry import PLOTS, draw, draw_all

__all__ = ["PLOTS", "WIDTH_IN", "Picture", "Plot", "draw", "draw_all"]
