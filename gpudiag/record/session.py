"""A recording from the command line: around a command, or until Ctrl-C."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from contextlib import suppress
from typing import TextIO

from gpudiag.record.command import Command, ended, exit_code
from gpudiag.record.recorder import Recorder

ENDINGS = ("SIGINT", "SIGTERM", "SIGHUP")


def record_command(recorder: Recorder, arguments: list[str]) -> int:
    """Run a command and record till it ends. Returns the exit code that a shell would report.

    Raises NoDriver or ConfigError before the command is started, ConfigError where it cannot be.
    """
    command = Command(arguments)
    command.hold()
    try:
        recorder.open(command.text)
        try:
            command.start()
            recorder.mark("command_start", f"pid {command.pid}")
            recorder.start()
            code = command.wait(lambda name: recorder.mark("signal", name))
            recorder.mark(*ended(code))
        finally:
            recorder.stop()
    finally:
        command.release()
    return exit_code(code)


def afterwards(recorder: Recorder) -> str:
    """What was written, and what to do with it."""
    return f"{recorder.path}: recorded. Next: gpudiag diagnose {shlex.quote(str(recorder.path))}"


def record_until_interrupt(recorder: Recorder, interval_s: float, screen: TextIO | None) -> None:
    """Record till a signal of ``ENDINGS``, which are one request in three ways; ``screen`` shows the status."""
    asked = threading.Event()
    known = [getattr(signal, name) for name in ENDINGS if hasattr(signal, name)]
    taken = [number for number in known if signal.getsignal(number) != signal.SIG_IGN]  # nohup ignores one
    before = {number: signal.signal(number, lambda *_: asked.set()) for number in taken}
    try:
        with recorder:
            while not asked.wait(interval_s):
                if screen is not None:
                    _write(screen, f"\r\x1b[K{recorder.status_line()}")
        _write(sys.stderr, f"{'' if screen is None else chr(10)}{afterwards(recorder)}\n")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _write(stream: TextIO, text: str) -> None:
    """Say it where somebody still listens: the terminal is gone after a hangup."""
    with suppress(OSError):
        stream.write(text)
        stream.flush()
