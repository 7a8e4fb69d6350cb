"""What an exit code, a signal or an exception says of how a program ended."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from gpudiag._run.failure_text import classify


class How(Enum):
    """How a recorded program ended."""

    DONE = "done"
    """By itself, with exit code 0."""
    FAILED = "failed"
    BY_HAND = "by hand"
    """Ctrl-C."""
    OUTSIDE = "outside"
    """By a scheduler, a time limit or a user."""
    UNKNOWN = "unknown"


class End(NamedTuple):
    """``by``: "exit_code", "signal" or "exception"; ``kind``: one of CLASSES of failures."""

    how: How
    by: str
    text: str
    kind: str

    @property
    def is_way_down(self) -> bool:
        """Whether a program whose work is done may end so, too: not by a kill, nor out of memory."""
        return self.how is How.FAILED and self.kind in ("other", "unknown")


NOTHING = End(How.UNKNOWN, "", "", "unknown")
BY_HAND = ("SIGINT", "SIGQUIT")
FROM_OUTSIDE = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGXCPU")
"""What schedulers send before a time limit or a preemption, and what a terminal sends that is closed."""
_OF_SHELLS = {
    129: "SIGHUP", 130: "SIGINT", 131: "SIGQUIT", 132: "SIGILL", 134: "SIGABRT", 135: "SIGBUS", 136: "SIGFPE",
    137: "SIGKILL", 138: "SIGUSR1", 139: "SIGSEGV", 140: "SIGUSR2", 141: "SIGPIPE", 143: "SIGTERM", 152: "SIGXCPU",
    3221225786: "SIGINT",
}  # fmt: skip
"""What a shell returns for a signal of Linux, and Windows for Ctrl-C."""
_TIMEOUT = 124
_SIGNAL = re.compile(r"\bSIG[A-Z0-9]+\b")
_EXIT = re.compile(r"(?:exit code|SystemExit:) (\d+)$")
_NO_FAILURE = ("SystemExit", "GeneratorExit", "TrialPruned", "interrupted")
"""What leaves a ``with`` block of a program that may be well: of an exit without its code nothing is known."""
_KINDS = {"SIGKILL": "host_killed", "SIGXCPU": "time_limit"}


def end_of(kind: str, detail: str) -> End:
    """Of an event of a recording: its kind and its detail."""
    code = _EXIT.match(detail)
    if code is not None:
        return _by_code(int(code[1]))
    if kind == "killed":
        name = _SIGNAL.search(detail)
        return End(_of_signal(name[0] if name else ""), "signal", detail.removeprefix("killed by "), _kind(name))
    if kind != "exception" or detail in _NO_FAILURE:
        return NOTHING
    found = classify(detail)
    return End(How.BY_HAND if found == "stopped" else How.FAILED, "exception", detail, found)


def _by_code(code: int) -> End:
    if not code:
        return End(How.DONE, "exit_code", "exit code 0", "unknown")
    if code == _TIMEOUT:
        return End(How.OUTSIDE, "exit_code", "exit code 124 (timeout)", "time_limit")
    name = _OF_SHELLS.get(code, "")
    text = f"exit code {code} ({name})" if name else f"exit code {code}"
    return End(_of_signal(name), "exit_code", text, _kind(_SIGNAL.search(name)))


def _of_signal(name: str) -> How:
    return How.BY_HAND if name in BY_HAND else How.OUTSIDE if name in FROM_OUTSIDE else How.FAILED


def _kind(name: re.Match[str] | None) -> str:
    if name is None:
        return "unknown"
    return "stopped" if name[0] in BY_HAND else _KINDS.get(name[0], "other")
