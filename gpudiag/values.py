"""Values by name: what evidence holds, and what the template of a sentence may name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Protocol, TypeGuard


class Worded(Protocol):
    """A sentence that is not in words yet: a :class:`gpudiag.statement.Statement`, which lies above this file."""

    @property
    def template(self) -> str: ...


Value = bool | int | float | str | date | Worded | Iterable["Value"] | Mapping[str, "Value"] | None
"""NaN and None are unknown; a time has a zone; several values are named in a list."""
Values = Mapping[str, Value]


def is_number(value: object) -> TypeGuard[float]:
    """True for a number; in Python, true and false are some too."""
    return isinstance(value, int | float) and not isinstance(value, bool)
