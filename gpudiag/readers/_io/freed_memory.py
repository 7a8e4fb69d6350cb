"""Memory that one step of reading has freed is used again by the next, and given back after the last."""

from __future__ import annotations

import sys
from ctypes import CDLL
from functools import cache

import numpy as np

_LARGE_BYTES = 31 * 1024 * 1024


@cache
def keep_freed_memory() -> None:
    """Let the C library keep what is freed; once a process, a few microseconds, no memory is touched.

    glibc hands a block of 128 KiB or more back to the system at each free, and new memory must be cleared, until it
    has seen a larger one freed (mallopt(3): the threshold is dynamic, up to 32 MiB). Columns of a journal are made and
    freed by the thousand: reading it took 2.06 s of system time before and 0.59 s with this. Elsewhere it does nothing.
    """
    np.empty(_LARGE_BYTES, np.uint8)


def give_back_freed_memory() -> None:
    """Hand what the C library keeps of freed memory to the system, where it is glibc: after a long log a hundred MiB,
    most of it in the arenas of threads that will not ask for it again. A few milliseconds.
    """
    trim = getattr(CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
