"""JSON values of somebody else, without what no table can hold."""

from __future__ import annotations

import json
from typing import Any

from gpudiag.readers._io.surrogates import without_halves

INT_DIGITS = 300
"""Of the largest integer: a longer one is beyond all floats, and no table can hold it."""
DECODER = json.JSONDecoder(parse_int=lambda digits: int(digits) if len(digits) <= INT_DIGITS else float(digits))


def read_json(text: str) -> Any:
    """One document, without halves of characters and integers that nothing can hold. Raises ValueError."""
    return DECODER.decode(without_halves(text))


def json_object(text: str) -> dict[str, Any] | None:
    """The object that a text holds; None where it holds none."""
    try:
        found = read_json(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
