"""Runs a command beside the recorder: its input, output, signals and exit code pass as if we were not there."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterable, Sequence

from gpudiag.errors import ConfigError
from gpudiag.record.command_line import shown

FORWARDED = tuple(
    getattr(signal, name)
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")
    if hasattr(signal, name)
)


class Command:
    """One process with our stdin, stdout and stderr. Its children are its own affair: nobody waits for them."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.text = shown(arguments)
        self._arguments = list(arguments)
        self._process: subprocess.Popen[bytes] | None = None
        self._mask: set[signal.Signals | int] = set()

    def hold(self) -> None:
        """Keep signals for :meth:`wait`. Call from the main thread before any other thread is started."""
        if hasattr(signal, "sigwaitinfo"):
            self._mask = set(signal.pthread_sigmask(signal.SIG_BLOCK, {*FORWARDED, signal.SIGCHLD}))

    def start(self) -> None:
        """Start it with the signal mask that we were given. Raises ConfigError if it cannot run."""
        restore = (lambda: _set_mask(self._mask)) if hasattr(signal, "sigwaitinfo") else None
        try:
            self._process = subprocess.Popen(self._arguments, preexec_fn=restore)
        except OSError as error:
            raise ConfigError(f"{self._arguments[0]}: cannot be started ({error.strerror or error}).") from error

    def release(self) -> None:
        """Take signals again as before :meth:`hold`."""
        if hasattr(signal, "sigwaitinfo"):
            _set_mask(self._mask)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def wait(self, heard: Callable[[str], None]) -> int:
        """Wait for its end, passing on what we are sent. Returns its exit code, or minus the signal that killed it.

        ``heard`` is given each signal that asks a program to end, by name: an exit code alone does not tell of it.
        """
        return self._wait_for_signals(heard) if hasattr(signal, "sigwaitinfo") else self._wait_plainly(heard)

    def _wait_for_signals(self, heard: Callable[[str], None]) -> int:
        process = self._process
        assert process is not None
        while process.poll() is None:
            info = signal.sigwaitinfo({*FORWARDED, signal.SIGCHLD})
            if info.si_signo not in (signal.SIGCHLD, signal.SIGWINCH):
                heard(signal_name(info.si_signo))
            # What the terminal sends (code > 0: from the kernel) reaches the whole group, the command with us.
            if info.si_signo != signal.SIGCHLD and info.si_code <= 0:
                process.send_signal(info.si_signo)
        return int(process.returncode)

    def _wait_plainly(self, heard: Callable[[str], None]) -> int:
        assert self._process is not None
        while True:
            try:
                return self._process.wait()
            except KeyboardInterrupt:  # the console has sent it to the command as well
                heard(signal_name(signal.SIGINT))


def _set_mask(mask: Iterable[int]) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def ended(code: int) -> tuple[str, str]:
    """Kind and detail of the event that tells how a command ended."""
    if code >= 0:
        return "command_end", f"exit code {code}"
    return "killed", f"killed by {signal_name(-code)}"


def exit_code(code: int) -> int:
    """What a shell would report: 128 + signal for a command that was killed."""
    return code if code >= 0 else 128 - code


def signal_name(number: int) -> str:
    try:
        return f"{signal.Signals(number).name} ({number})"
    except ValueError:
        return f"signal {number}"
