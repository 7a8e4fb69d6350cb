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

A plot is a constant ``NAME = Plot(paint, alt, caption)`` in the file of its topic; ``PLOTS`` holds those of
``TOPICS`` by name in the order of a report, and ``PLOTS[name].needs`` says which profiles one cannot do without.
Painters compute nothing but layout, change no profile and no global state, and draw without pyplot (which seaborn
imports).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpudiag.errors import NotMeasurable
from gpudiag.plots._draw.width import WIDTH_IN

if TYPE_CHECKING:
    from gpudiag.plots._draw.picture import Picture, Plot

    PLOTS: dict[str, Plot]
    """Kinds of picture in the order of a report."""

__all__ = ["PLOTS", "WIDTH_IN", "Picture", "Plot", "draw", "draw_all"]

TOPICS = (
    "overview",
    "timeline",
    "ledger",
    "causes",
    "utilization",
    "utilization_map",
    "memory",
    "memory_by_trial",
    "parallelism",
    "trials",
    "duration_ecdf",
    "parallel_coordinates",
    "pruning",
    "learning_curves",
    "power",
    "power_use",
    "steps",
    "ranks",
    "costs",
    "clock",
)


def __getattr__(name: str) -> Any:
    """Import matplotlib, and what draws with it, when it is first asked for: most of a diagnosis is text."""
    if name not in ("PLOTS", "Picture", "Plot"):
        raise AttributeError(f"module 'gpudiag.plots' has no attribute '{name}'")
    picture = importlib.import_module("gpudiag.plots._draw.picture")
    globals().update(Picture=picture.Picture, Plot=picture.Plot)
    if name == "PLOTS":
        modules = [importlib.import_module(f"gpudiag.plots.{topic}") for topic in TOPICS]
        named = ((key, value) for module in modules for key, value in vars(module).items())
        globals()["PLOTS"] = {key.lower(): value for key, value in named if isinstance(value, picture.Plot)}
    return globals()[name]


def _plots() -> dict[str, Plot]:
    found: dict[str, Plot] = globals().get("PLOTS") or __getattr__("PLOTS")
    return found


def draw(name: str, profiles: Mapping[str, Any], *, timezone: str = "UTC", width_in: float = WIDTH_IN) -> Picture:
    """The picture of that name from profiles by topic; ``timezone`` is an IANA name for its time axis.

    ``width_in`` is its width in inches: 9 for a page or a slide, 3.4 for one of two columns.

    Raises KeyError for a name that PLOTS does not have, and NotMeasurable if a profile is missing or
    holds nothing to draw.
    """
    return _plots()[name].picture(name, profiles, timezone=timezone, width_in=width_in)


def draw_all(profiles: Mapping[str, Any], *, timezone: str = "UTC") -> dict[str, Picture]:
    """Every picture that these profiles allow, by name, in the order of a report."""
    pictures: dict[str, Picture] = {}
    for name in _plots():
        try:
            pictures[name] = draw(name, profiles, timezone=timezone)
        except NotMeasurable:
            continue
    return pictures
