"""The JSON Schemas of all documents, as shipped, and as the classes of the documents say them.

``python -m gpudiag.schemas`` writes them anew.
"""

from __future__ import annotations

import json
from importlib import resources

from gpudiag.plain_data import JsonObject

NAMES = ("diagnosis-4", "comparison-1", "fleet-1", "history-1", "forecast-2", "plan-1", "inspect-1", "trace-1")


def schema(name: str) -> JsonObject:
    """The schema of that name as shipped in the package, such as ``diagnosis-4``."""
    text = resources.files("gpudiag.schemas").joinpath(f"{name}.json").read_text(encoding="utf-8")
    shipped: JsonObject = json.loads(text)
    return shipped


def derived(name: str) -> JsonObject:
    """The same as the classes say it; the shipped file must be equal."""
    from gpudiag.schemas._derive import derive

    return derive(name)
