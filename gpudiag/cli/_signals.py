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

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        self.number = number
        signal.signal(number, signal.SIG_DFL)  # the second one ends it at once
        raise Terminated

    @property
    def code(self) -> int:
        """What a shell would report."""
        return 128 + self.number

    def __str__(self) -> str:
        return f"ended by {'Ctrl-C' if self.number == signal.SIGINT else signal.Signals(self.number).name}."


@contextmanager
def as_interrupt() -> Iterator[Ended]:
    """Within it, a signal of NAMES is a KeyboardInterrupt, as Ctrl-C is; one that is ignored (nohup) stays so.

    One within another is told of the signals in its place.
    """
    ended = Ended()
    known = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in known}
    taken = {number: by for number, by in before.items() if by == signal.SIG_DFL or isinstance(by, Ended)}
    try:
        for number in taken:
            signal.signal(number, ended)
    except ValueError:  # not the main thread
        taken = {}
    try:
        yield ended
    finally:
        for number, by in taken.items():
            signal.signal(number, by)
