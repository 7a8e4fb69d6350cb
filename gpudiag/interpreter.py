"""Other processes of this Python, which import nothing from the folder they are started in.

People start gpudiag inside the folder of their data. A file ``pandas.py`` or ``warnings.py`` that lies there is data,
but ``python -m`` puts the working folder first on the search path, so that it would run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Self


def module_command(module: str, arguments: Sequence[str] = ()) -> list[str]:
    """The command that runs a module with this interpreter, with the working folder kept off its search path."""
    return [sys.executable, "-P", "-m", module, *arguments]


class Children:
    """Processes that do not outlive this one: each has as its stdin a pipe that closes when this one ends.

    Used as a context, they are ended when it is left by an exception. Each has to watch its stdin.
    """

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._ending = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *more: object) -> None:
        if error is not None:
            self._ending = True
            for child in list(self._running):
                child.terminate()

    def run(self, command: Sequence[str]) -> tuple[int, str]:
        """Run a command to its end. Returns its exit code and what it wrote on stderr."""
        ours, theirs = os.pipe()
        try:
            with subprocess.Popen(
                command, stdin=ours, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            ) as child:
                self._running.add(child)
                if self._ending:
                    child.terminate()
                said = child.communicate()[1]
                self._running.discard(child)
            return child.returncode, said
        finally:
            os.close(ours)
            os.close(theirs)
