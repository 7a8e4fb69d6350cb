"""The table of trials on a page: its style and scripts, and the element that holds its data."""

from __future__ import annotations

from functools import cache
from importlib import resources

from gpudiag.report.timeline import page as timeline

SCRIPTS = ("columns.js", "filter.js", "table.js")
MARK = 'class="gd-trials"'
"""What a page has where it holds the table."""


@cache
def asset(name: str) -> str:
    """A file of ours."""
    return resources.files("gpudiag").joinpath(f"report/trial_table/assets/{name}").read_text(encoding="utf-8")


@cache
def style() -> str:
    """The style sheet."""
    return asset("table.css")


@cache
def script() -> str:
    """The scripts; ``copied()``, which puts text on the clipboard, has to stand before them."""
    shared = (timeline.asset(name) for name in ("words.js", "packed.js"))
    return "\n".join([*shared, *map(asset, SCRIPTS)])


def element(packed: str) -> str:
    """The place of the table with its data, hidden until a script shows it."""
    return timeline.element(packed, MARK)
