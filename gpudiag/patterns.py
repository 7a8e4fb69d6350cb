"""Regular expressions that are compiled when they are first used: a run needs few of those that readers know."""

from __future__ import annotations

import re
from typing import Any, cast


def late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """What :func:`re.compile` makes, made when it is first asked for something."""
    return cast("re.Pattern[str]", _Late(pattern, flags))


class _Late:
    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    def __getattr__(self, name: str) -> Any:
        """An attribute of the compiled pattern, kept: from the second time on it is found without a call."""
        value = getattr(re.compile(*self._given), name)
        setattr(self, name, value)
        return value
