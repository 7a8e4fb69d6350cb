"""Files of others become tables. One folder a kind, one file a dialect, one registry a kind.

Each kind has its ``READERS``: ``gpudiag.readers.telemetry``, ``.trials`` and ``.artifacts``. A :class:`Reader` is a
name, a test on the head of a file, and a function from file to :class:`Telemetry` or :class:`Trials`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpudiag.readers.base import Reader as Reader
    from gpudiag.readers.base import ReadOptions as ReadOptions
    from gpudiag.readers.base import Telemetry as Telemetry
    from gpudiag.readers.base import Trials as Trials

__all__ = ["ReadOptions", "Reader", "Telemetry", "Trials"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'gpudiag.readers' has no attribute '{name}'")
    return getattr(importlib.import_module("gpudiag.readers.base"), name)
