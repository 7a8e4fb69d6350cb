"""Other processes of this Python, which import nothing from the folder they are started in.

People start gpudiag inside the folder of their data. A file ``pandas.py`` or ``warnings.py`` that lies there is data,
but ``python -m`` puts the working folder first on the search path, so that it would run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import Self

MOST_MIB = 1024
"""Memory with which a process is not kept: what earlier requests left in it shall not cost a later one."""
COLLECT_AFTER = (500_000, 20, 20)
"""For ``gc.set_threshold``: objects after which Python looks for circles, instead of 700. It would look through the
million of the libraries too often; who runs one request after another looks between two.
"""


def module_command(module: str, arguments: Sequence[str] = ()) -> list[str]:
    """The command that runs a module with this interpreter, with the working folder kept off its search path."""
    return [sys.executable, "-P", "-m", module, *arguments]


class Children:
    """Processes that run one request after another, and do not outlive this one: the stdin of each is a pipe that
    closes when this one ends, and each has to end then.

    A request is a line on stdin, a list of texts as JSON; its exit code is a line on stdout. A process is kept for the
    next request, so that it imports once; for one that ended there is another. Used as a context, all are ended when it
    is left: those at work only by an exception.
    """

    def __init__(self, module: str) -> None:
        self._command = module_command(module)
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        self._ending = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *more: object) -> None:
        if error is not None:
            self._ending = True
            for child in list(self._busy):
                child.process.terminate()
        while self._idle:
            self._idle.pop().close()

    def run(self, arguments: Sequence[str]) -> tuple[int, str]:
        """Run a request to its end, from any thread. Returns its exit code and what was written on stderr meanwhile."""
        try:
            child = self._idle.pop()
        except IndexError:
            child = _Child(self._command)
        self._busy.add(child)
        if self._ending:
            child.process.terminate()
        code, said, stays = child.run(arguments)
        self._busy.discard(child)
        if stays and not self._ending:
            self._idle.append(child)
        else:
            child.close()
        return code, said


class _Child:
    """One process, and what it writes on stderr."""

    def __init__(self, command: Sequence[str]) -> None:
        self._said = TemporaryFile("a+b")  # noqa: SIM115  closed with the process
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True, bufsize=1
        )

    def run(self, arguments: Sequence[str]) -> tuple[int, str, bool]:
        """Exit code, what was written on stderr, and whether the process can take another request."""
        assert self.process.stdin is not None and self.process.stdout is not None
        before = os.fstat(self._said.fileno()).st_size
        try:
            self.process.stdin.write(json.dumps(arguments) + "\n")
            answer = self.process.stdout.readline()
        except OSError:
            answer = ""
        code = int(answer) if answer else self.process.wait()
        self._said.seek(before)  # of two processes, but the other one appends
        said = self._said.read().decode(errors="replace")
        return code, said, bool(answer) and memory_mib(self.process.pid) < MOST_MIB

    def close(self) -> None:
        """Let it end, and wait until it has."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with suppress(OSError):  # it has ended before it took a request
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self._said.close()


def memory_mib(pid: int | None) -> float:
    """Memory that a process takes, MiB; 0 where it has ended, or there is none."""
    import psutil

    if pid is None:
        return 0.0
    try:
        return float(psutil.Process(pid).memory_info().rss) / 2**20
    except psutil.Error:
        return 0.0
