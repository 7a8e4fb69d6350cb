"""What a process takes: its CPU time and that of the processes it waited for, wall time, and its largest memory.

CPU time counts wherever others may use the cores; wall time is told beside it, with the load.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

LAUNCHER = """
import json, os, sys, time
began = time.perf_counter()
_, status, used = os.wait4(os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ), 0)
wall_s, cpu_s = time.perf_counter() - began, used.ru_utime + used.ru_stime
json.dump([os.waitstatus_to_exitcode(status), cpu_s, wall_s, used.ru_maxrss], open(sys.argv[1], "w"))
"""
"""A small process starts the one that is measured: Linux counts what its parent held as memory of a new process too."""


class Taken(NamedTuple):
    """One run of a process. ``peak_mib`` is that of the largest process, not a sum over processes."""

    cpu_s: float
    wall_s: float
    peak_mib: float


def taken(arguments: Sequence[str]) -> Taken:
    """What Python takes with these arguments, imports included.

    Raises:
        SystemExit: it failed; with the end of what it said.
    """
    with tempfile.TemporaryFile() as said, tempfile.NamedTemporaryFile() as told:
        launcher = [sys.executable, "-S", "-c", LAUNCHER, told.name, sys.executable, *arguments]
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        subprocess.run(launcher, stdout=said, stderr=said, env=kept, check=True)  # compiled once, as for users
        code, cpu_s, wall_s, peak = json.load(told)
        if code:
            said.seek(0)
            raise SystemExit(f"{arguments[:4]} ended with {code}:\n{said.read().decode()[-2000:]}")
    return Taken(cpu_s, wall_s, peak / (1024 if sys.platform != "darwin" else 1024**2))  # KiB, on macOS bytes


def in_turn(sides: Sequence[Sequence[str]], rounds: int) -> list[list[Taken]]:
    """The runs of each side, taken one side after the other, so that all meet the same load."""
    found = [[taken(side) for side in sides] for _ in range(rounds)]
    return [list(runs) for runs in zip(*found, strict=True)]
