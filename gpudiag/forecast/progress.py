"""What a long forecast calls as it goes on; whatever such a function raises ends the forecast."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]
"""Called with the name of the part that begins."""

ReplayProgress = Callable[[int, int], None]
"""Called with (events done, events in all)."""
