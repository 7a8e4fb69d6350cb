"""A history as a page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from gpudiag.errors import NotMeasurable
from gpudiag.plain_data import json_text
from gpudiag.plots import WIDTH_IN, Picture
from gpudiag.plots.history import HISTORY_PLOTS, HistoryPanel
from gpudiag.report._notebook import pages
from gpudiag.report._render.show import Show
from gpudiag.report.fleet.history import SECTIONS, History, HistoryQuantity, Scale, scale_in

if TYPE_CHECKING:
    from nbformat import NotebookNode

HEADINGS = {
    "overview": "",
    "course": "## Run by run\n\nThe gray band is where the newest run was expected.",
    "expected": "## The newest run",
    "runs": "## All runs",
}
"""What stands over the sections of the page."""
MORE = "*All runs: the same history as .html.*"


def save_history(held: History, path: str | Path) -> Path:
    """Write the history where ``path`` says: .html (self-contained), .md (its picture beside it) or .json.

    Raises ConfigError for any other suffix.
    """
    return pages.save(Path(path), lambda: _notebook(held), lambda: json_text(held), MORE)


def _notebook(held: History) -> NotebookNode:
    import nbformat

    def draw(name: str, width_in: float = WIDTH_IN) -> Picture | None:
        try:
            return HISTORY_PLOTS[name].picture(name, {"history": panels_of(held)}, width_in=width_in)
        except NotMeasurable:
            return None

    show, cells = Show(held, draw, SECTIONS), []
    for name, heading in HEADINGS.items():
        if heading:
            cells.append(nbformat.v4.new_markdown_cell(heading, id=f"{name}-words"))
        shown = [
            nbformat.v4.new_output("display_data", data, metadata=metadata)
            for data, metadata in getattr(show, name).outputs()
        ]
        cells.append(nbformat.v4.new_code_cell("", outputs=shown, id=name))
    return nbformat.v4.new_notebook(cells=cells)


def panels_of(held: History) -> list[HistoryPanel]:
    """What the figure draws: a panel a quantity."""
    return [_panel(held, one, scale_in(held, one)) for one in held.quantities]


def _panel(held: History, one: HistoryQuantity, scale: Scale) -> HistoryPanel:
    """In the unit that the tables have."""
    return HistoryPanel(
        one.title,
        scale.unit,
        tuple(run.values.get(one.name, math.nan) * scale.factor for run in held.runs),
        None if one.low is None else one.low * scale.factor,
        None if one.high is None else one.high * scale.factor,
        one.n_earlier,
        one.verdict,
        tuple(step.at for step in one.steps),
    )
