"""Typed results as JSON's own containers and scalars, and as JSON text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar, cast

from gpudiag.statement import Statement

T = TypeVar("T")

Scalar = bool | int | float | str | None
if TYPE_CHECKING:
    import numpy as np

    Json = Scalar | Sequence["Json"] | Mapping[str, "Json"]
else:
    Json = Any  # schemas are derived from annotations, and say "any" there instead of the recursion
JsonObject = dict[str, Json]
"""What a JSON document is in Python."""

LEFT_OUT = {"exclude": True}
"""Metadata of a field that stays out of JSON, and of its schema."""
TIME: JsonObject = {"json_schema_extra": {"format": "date-time"}}
"""Metadata of a text that is a time in ISO 8601."""
NAN_IS_NULL: JsonObject = {"json_schema_extra": {"type": ["number", "null"]}}
"""Metadata of a number that is NaN where it is unknown: null in JSON."""


def meaning(text: str) -> JsonObject:
    """Metadata of a field that says what it means, for the schema."""
    return {"description": text}


def plain(value: object) -> Json:
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
        return plain(cast("np.ndarray", value).tolist())
    made = clean(value)
    return made.isoformat() if isinstance(made, date) else made


def plain_object(value: object) -> JsonObject:
    """The same of a dataclass or a mapping, which becomes a JSON object."""
    return cast(JsonObject, plain(value))


def entry_of(kind: Callable[..., T], row: Mapping[Hashable, object]) -> T:
    """A dataclass of a document, of the cells of a row by the names of its fields."""
    return kind(**plain_object(row))


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


_HALF = re.compile("[\ud800-\udfff]")
_CI_COMMAND = re.compile(r"##(?=\w*\[)")


def json_text(document: object) -> str:
    """A document as text. A NaN in it would be a bug and raises ValueError.

    A name of a file that is not UTF-8 has its bytes as halves of characters, which JSON cannot hold: they are escaped.
    So is what a CI system obeys wherever it stands in its log (``##vso[``), which JSON reads back as it was.
    """
    text = json.dumps(plain(document), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return _CI_COMMAND.sub(r"#\\u0023", _HALF.sub(lambda half: f"\\\\u{ord(half[0]):04x}", text))
