"""A recording from the command line: around a command, or until Ctrl-C."""

from __future__ import annotations

import shlex
import signal
import threading
from typing import TextIO

from gpudiag.record.command import Command, ended, exit_code
from gpudiag.record.recorder import Recorder


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
    """Record till SIGINT or SIGTERM; ``screen`` shows the status."""
    asked = threading.Event()
    before = {number: signal.signal(number, lambda *_: asked.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with recorder:
            while not asked.wait(interval_s):
                if screen is not None:
                    screen.write(f"\r\x1b[K{recorder.status_line()}")
                    screen.flush()
        if screen is not None:
            screen.write(f"\n{afterwards(recorder)}\n")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
