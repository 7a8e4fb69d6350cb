"""What a process takes: its CPU time and that of the processes it waited for, wall time, and its largest memory.

CPU time counts wherever others may use the cores; wall time is told beside it, with the load.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import NamedTuple


class Taken(NamedTuple):
    """One run of a process. ``peak_mib`` is that of the largest process, not a sum over processes."""

    cpu_s: float
    wall_s: float
    peak_mib: float


def taken(arguments: Sequence[str], allowed: Sequence[int] = (0,)) -> Taken:
    """What Python takes with these arguments, imports included.

    Raises:
        SystemExit: it ended with another exit code than those allowed; with the end of what it said.
    """
    with tempfile.TemporaryFile() as said:
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, *arguments], stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in allowed:
            said.seek(0)
            raise SystemExit(f"{arguments[:4]} ended with {process.returncode}:\n{said.read().decode()[-2000:]}")
    unit = 1024 if sys.platform != "darwin" else 1024**2  # Linux counts in KiB, macOS in bytes
    return Taken(used.ru_utime + used.ru_stime, wall_s, used.ru_maxrss / unit)


def in_turn(sides: Sequence[Sequence[str]], rounds: int) -> list[list[Taken]]:
    """The runs of each side, taken one side after the other, so that all meet the same load."""
    found = [[taken(side) for side in sides] for _ in range(rounds)]
    return [list(runs) for runs in zip(*found, strict=True)]
