"""A warm process that diagnoses runs within limits: what hangs or grows is ended, and costs itself alone."""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gpudiag.fleets.found import FoundRun
from gpudiag.fleets.parts import Part, part_from
from gpudiag.fleets.row import from_plain, not_diagnosed
from gpudiag.interpreter import memory_mib, module_command
from gpudiag.plain_data import plain
from gpudiag.report.fleet.document import RunRow
from gpudiag.report.format import duration, quantity

LOOK_S = 0.25
"""How often a busy process is looked at."""
START_S = 120.0
"""Time that a process may take to start, on the busiest disk; it does not count as that of its first run."""
ONE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
}
"""There is a process for each processor: more threads in each only wait for each other. Who sets one of these names
has it as set.
"""


@dataclass(frozen=True)
class Limits:
    """What one run may take."""

    time_s: float = 300.0
    memory_mib: float = 4096.0


@dataclass(frozen=True)
class Job:
    """A run and how it is to be read and judged: small, and the same on any machine. ``call`` differs between fleets:
    what has no fingerprint is read anew in each.
    """

    found: FoundRun
    options: Mapping[str, Mapping[str, Any]]
    limits: Limits = Limits()
    call: str = ""


@dataclass(frozen=True)
class Outcome:
    """A row, and the diagnosis as JSON text; '' where there is none. Where several runs lie in one place there is no
    row, and ``parts`` are the runs. ``passing``: another try may end otherwise, since a limit or a lost process ended
    this one.
    """

    found: FoundRun
    row: RunRow | None
    document: str = ""
    parts: tuple[Part, ...] = ()
    passing: bool = False


def diagnosed(job: Job) -> Outcome:
    """What any executor calls: one run, in the warm process of this thread."""
    worker = getattr(_LOCAL, "worker", None)
    if worker is None:
        worker = _LOCAL.worker = Worker()
    return worker.diagnosed(job)


class Worker:
    """A process of its own for the runs of one thread; it is started again after one that ended it."""

    def __init__(self, command: tuple[str, ...] = ()) -> None:
        self._command = command or tuple(module_command("gpudiag.fleets.child"))
        self._child: subprocess.Popen[bytes] | None = None
        self._pending = b""

    def diagnosed(self, job: Job) -> Outcome:
        """The outcome of one run, whatever becomes of the process."""
        request = {"found": plain(job.found), "options": job.options, "call": job.call}
        held = self._answer(json.dumps(request).encode() + b"\n", job.limits)
        if "parts" in held:
            return Outcome(job.found, None, parts=tuple(part_from(one) for one in held["parts"]))
        if "row" not in held:
            passing = bool(held.get("passing"))
            return Outcome(job.found, not_diagnosed(job.found, held["error"]), passing=passing)
        return Outcome(job.found, from_plain(held["row"]), held["document"])

    def close(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        _RUNNING.discard(self)
        if child is not None:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                with suppress(OSError):
                    pipe and pipe.close()

    def _answer(self, request: bytes, limits: Limits) -> dict[str, Any]:
        try:
            child = self._started(limits)
        except _Exceeded as reason:
            self.close()
            return {"error": f"the process that was to diagnose it did not start: {reason}", "passing": True}
        assert child.stdin is not None
        try:
            child.stdin.write(request)
            child.stdin.flush()
            line = self._line(child, limits, " (--time-limit)")
        except OSError:
            line = b""
        except _Exceeded as reason:
            self.close()
            return {"error": str(reason), "passing": True}
        if not line:
            code = child.wait()
            self.close()
            return {"error": f"the process that diagnosed it ended ({_ended(code)}).", "passing": True}
        if memory_mib(child.pid) > limits.memory_mib / 2:
            self.close()  # what earlier runs left in it shall not cost a later one
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _started(self, limits: Limits) -> subprocess.Popen[bytes]:
        """The process, ready. Raises _Exceeded where it does not become so."""
        if self._child is None or self._child.poll() is not None:
            self.close()
            self._pending = b""
            # A session of its own: Ctrl-C goes to us alone, and the end of its stdin ends it.
            self._child = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                start_new_session=True, env=ONE_THREAD | os.environ,
            )  # fmt: skip
            _RUNNING.add(self)
            self._line(self._child, Limits(START_S, limits.memory_mib))
        return self._child

    def _line(self, child: subprocess.Popen[bytes], limits: Limits, option: str = "") -> bytes:
        """A line of the process, b'' where it ended. Raises _Exceeded."""
        assert child.stdout is not None
        began, place = time.monotonic(), child.stdout.fileno()
        parts = [self._pending]
        while b"\n" not in parts[-1]:
            left_s = max(limits.time_s - (time.monotonic() - began), 0.0)
            if select.select([place], [], [], min(LOOK_S, left_s))[0]:
                parts.append(os.read(place, 1 << 20))
                if not parts[-1]:
                    return b""
                continue
            if time.monotonic() - began > limits.time_s:
                raise _Exceeded(f"it took longer than {duration(limits.time_s)}{option}.")
            if memory_mib(child.pid) > limits.memory_mib:
                raise _Exceeded(f"it took more than {quantity(limits.memory_mib, 'MiB')} of memory (--memory-limit).")
        line, _, self._pending = b"".join(parts).partition(b"\n")
        return line


class _Exceeded(Exception):
    """A limit was."""


def _ended(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


_LOCAL = threading.local()
_RUNNING: set[Worker] = set()
"""Those with a process: a thread that ends drops its worker, and somebody must still end the process."""


@atexit.register
def close_all() -> None:
    """End the processes of all threads."""
    for worker in list(_RUNNING):
        worker.close()
