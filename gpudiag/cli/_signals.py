"""What ends gpudiag from outside: it tidies up what it began, says one line, and its exit code tells which it was."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

NAMES = ("SIGTERM", "SIGHUP")
"""What ends a process by itself at once, so that it leaves its children and its temporary files behind."""


class Interrupted(BaseException):
    """A KeyboardInterrupt that is to reach the entry point; click would end the process at one."""


class Terminated(KeyboardInterrupt):
    """A class of its own, for Python kills itself with SIGINT where a KeyboardInterrupt has passed through exec()."""


class Ended:
    """Which signal has ended this process; Ctrl-C if none of NAMES."""

    def __init__(self) -> None:
        self.number = int(signal.SIGINT)

    @property
    def code(self) -> int:
        """What a shell would report."""
        return 128 + self.number

    def __str__(self) -> str:
        return f"ended by {'Ctrl-C' if self.number == signal.SIGINT else signal.Signals(self.number).name}."


@contextmanager
def as_interrupt() -> Iterator[Ended]:
    """Within it, a signal of NAMES is a KeyboardInterrupt, as Ctrl-C is; one that is ignored (nohup) stays so."""
    ended = Ended()

    def end(number: int, frame: FrameType | None) -> None:
        ended.number = number
        signal.signal(number, signal.SIG_DFL)  # the second one ends it at once
        raise Terminated

    known = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    taken = [number for number in known if signal.getsignal(number) == signal.SIG_DFL]
    try:
        for number in taken:
            signal.signal(number, end)
    except ValueError:  # not the main thread
        taken = []
    try:
        yield ended
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
