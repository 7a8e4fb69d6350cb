"""The table as one text for a page."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpudiag.analysis import Analysis
from gpudiag.measures.failures import measure_failures
from gpudiag.measures.parallelism import measure_parallelism
from gpudiag.plots._draw.palette import STATE_COLORS
from gpudiag.report.format import FORMULA
from gpudiag.report.noun import noun_of
from gpudiag.report.timeline.packed import MOST_TICKS, tick_of, zone_offsets
from gpudiag.report.timeline.sealed import sealed
from gpudiag.report.trial_table.columns import Column, SecondsColumn, columns_of
from gpudiag.schema import family

MOST_CHARS = 800_000
"""Of the packed text: 10,000 trials of 12 parameters stay below it, and their report below 5 MB."""
MOST_PARAMETERS = 64


def packed(analysis: Analysis) -> str:
    """All trials with as many parameters as fit; "" where not even the trials alone do."""
    run, most = analysis.run, MOST_PARAMETERS
    known = analysis.get(measure_parallelism), analysis.get(measure_failures)
    while True:
        content = {"noun": noun_of(run)} | _content(columns_of(run, *known, most), run.info.timezone)
        left_out = max(len(family(run.trials.columns, ("params.",))) - most, 0)
        text = sealed({**content, "left_out": left_out})
        if len(text) <= MOST_CHARS:
            return text
        if not most:
            return ""
        most //= 2


def _content(columns: list[Column], timezone: str) -> dict[str, Any]:
    moments = [one.seconds for one in columns if isinstance(one, SecondsColumn) and one.kind == "start"]
    known = np.concatenate([*moments, []])
    known = known[np.isfinite(known)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    return {
        "start": low,
        "zone": zone_offsets(timezone, round(low * 1e6), round(high * 1e6)),
        "states": STATE_COLORS,
        "formula": "".join(FORMULA),
        "columns": [_column(one, low) for one in columns],
    }


def _column(column: Column, origin: float) -> dict[str, Any]:
    if isinstance(column, SecondsColumn):
        seconds = column.seconds - (origin if column.kind == "start" else 0.0)
        known = np.isfinite(seconds) & (seconds >= 0)
        tick_us = tick_of(round(1e6 * float(seconds[known].max(initial=0.0))) + 1)
        ticks = np.where(known, np.round(np.where(known, seconds, 0.0) * 1e6 / tick_us), MOST_TICKS)
        return {"name": column.kind, "kind": column.kind, "tick": tick_us / 1e6, "ticks": ticks.astype(np.uint32)}
    cells = column.cells
    return {"name": cells.name, "kind": "number" if column.number else "text", "texts": cells.texts, "at": cells.at}
