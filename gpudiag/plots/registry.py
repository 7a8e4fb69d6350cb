"""Every kind of picture by name, and drawing them from the profiles of a diagnosis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudiag.errors import NotMeasurable
from gpudiag.plots.picture import Picture, Plot
from gpudiag.plots.pruning import alt_prune_steps, plot_prune_steps

PLOTS: dict[str, Plot] = {
    "prune_steps": Plot(
        plot_prune_steps, alt_prune_steps, "How far pruned trials came. A pile at the left edge is a strict pruner."
    ),
}
"""Kinds of picture in the order of a report."""


def draw(name: str, profiles: Mapping[str, Any], *, timezone: str = "UTC") -> Picture:
    """The picture of that name from profiles by topic; ``timezone`` is an IANA name for its time axis.

    Raises KeyError for a name that PLOTS does not have, and NotMeasurable if a profile is missing or
    holds nothing to draw.
    """
    return PLOTS[name].picture(name, profiles, timezone=timezone)


def draw_all(profiles: Mapping[str, Any], *, timezone: str = "UTC") -> dict[str, Picture]:
    """Every picture that these profiles allow, by name, in the order of a report."""
    pictures: dict[str, Picture] = {}
    for name in PLOTS:
        try:
            pictures[name] = draw(name, profiles, timezone=timezone)
        except NotMeasurable:
            continue
    return pictures
