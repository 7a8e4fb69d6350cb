"""``gpudiag`` as a process that another gpudiag started: it ends, tidily, when that one has ended, however it ended."""

from __future__ import annotations

import os
import signal
import threading

from gpudiag.cli import main


def _watch() -> None:
    """Wait for the end of stdin, a pipe that only the other process holds and into which nobody writes."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_watch, daemon=True).start()
    main()
