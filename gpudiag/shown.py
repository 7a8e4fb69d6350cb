"""Results that show themselves. They hold numbers; what they look like is known to ``gpudiag.report`` alone, which
is imported when something is shown.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast


class Shown:
    """A mixin: an object of a kind that ``gpudiag.report.kinds`` knows shows itself in a terminal, in a notebook and
    in Markdown. A dataclass that takes it needs ``repr=False``, for its own ``__repr__`` would go first.
    """

    def __repr__(self) -> str:
        return cast(str, words().text(self))

    def _repr_html_(self) -> str:
        return cast(str, words().html(self))

    def _repr_markdown_(self) -> str:
        return cast(str, words().markdown(self))


def words() -> Any:
    """The module that puts objects into words; named as text, for it imports what is shown."""
    return import_module("gpudiag.report._render.shown")
