"""Typed results as JSON's own containers and scalars, and as JSON text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from typing import Any

from gpudiag.statement import Statement

Scalar = bool | int | float | str | None

LEFT_OUT = {"exclude": True}
"""Metadata of a field that stays out of JSON, and of its schema."""
NAN_IS_NULL: dict[str, Any] = {"json_schema_extra": {"type": ["number", "null"]}}
"""Metadata of a number that is NaN where it is unknown: null in JSON."""


def meaning(text: str) -> dict[str, Any]:
    """Metadata of a field that says what it means, for the schema."""
    return {"description": text}


def plain(value: Any) -> Any:
    """Dataclasses, containers and scalars of any library as JSON's own; fields keep their order, unknown is None, and
    a statement is its words.
    """
    if isinstance(value, Statement):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        shown = (field.name for field in fields(value) if not field.metadata.get("exclude"))
        return {name: plain(getattr(value, name)) for name in shown}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, Enum):
        return value.value
    if getattr(value, "ndim", None):  # an array or a column
        return plain(value.tolist())
    value = clean(value)
    return value.isoformat() if isinstance(value, date) else value


def clean(value: Any) -> Any:
    """A value that JSON can hold: numpy scalars become Python's, NaN/NaT/infinity become None."""
    import numpy as np
    import pandas as pd

    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, pd.Timestamp):
        return value.isoformat()
    if isinstance(value, pd.Timedelta):
        return value.total_seconds()
    return value


def json_text(document: Any) -> str:
    """A document as text. A NaN in it would be a bug and raises ValueError."""
    return json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
