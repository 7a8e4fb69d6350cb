"""``gpudiag`` as a process that another gpudiag started, which runs one command after another: what is imported once is
there for all of them, in a kernel too.

A request is a line on stdin, the arguments as JSON; the exit code of the command is a line on stdout. It ends, tidily,
when stdin does: the other gpudiag has ended, however it ended.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from queue import SimpleQueue

from gpudiag.cli import main
from gpudiag.cli._signals import as_interrupt
from gpudiag.report._notebook.kernel import keeping_kernel

BY_SIGNAL = 128
"""An exit code above is that of a signal: the process itself was to end."""


class _Requests:
    """Lines of stdin, a pipe that only the other process holds; when it ends, so does what is being done."""

    def __init__(self) -> None:
        self._lines: SimpleQueue[str] = SimpleQueue()
        self.busy = False
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            self._lines.put(line)
        self._lines.put("")
        if self.busy:
            os.kill(os.getpid(), signal.SIGTERM)

    def __iter__(self) -> Iterator[list[str]]:
        return map(json.loads, iter(self._lines.get, ""))


def serve() -> int:
    """Run the commands that are asked for, until there are no more. Returns the exit code."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a command prints is not for the other gpudiag
    requests = _Requests()
    with keeping_kernel():
        for arguments in requests:
            requests.busy = True
            code = _run(arguments)
            requests.busy = False
            if code > BY_SIGNAL:
                return code
            gc.collect()
            gc.freeze()  # what is left are libraries, which would be looked through again and again
            out.write(f"{code}\n")
            out.flush()
    return 0


def _run(arguments: list[str]) -> int:
    """The exit code of the command."""
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _served() -> int:
    """The exit code, also where a signal comes between two commands: the kernel that is kept ends then too."""
    with as_interrupt() as ended:
        try:
            return serve()
        except KeyboardInterrupt:
            return ended.code


if __name__ == "__main__":
    sys.exit(_served())
