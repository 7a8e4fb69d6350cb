"""The command line: arguments, one library call, print.

Exit 0 fine, 1 --fail-on met, 2 bad input or usage, 3 a fault of gpudiag itself (in a part of it, or in a rule of
somebody's own, only with --strict); 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP.
"""

from __future__ import annotations

import atexit
import gc
import logging
import sys
from pathlib import Path
from typing import Any

from gpudiag.cli._application import application
from gpudiag.cli._arguments import expand
from gpudiag.cli._faults import last_resort
from gpudiag.cli._home import without_home
from gpudiag.cli._needless import leave_out
from gpudiag.cli._signals import Interrupted, as_interrupt
from gpudiag.cli._stderr import complain
from gpudiag.cli._streams import write_any_text
from gpudiag.errors import GpudiagError
from gpudiag.interpreter import COLLECT_AFTER
from gpudiag.report.format import safe


def __getattr__(name: str) -> Any:
    """``app``, with every command, for whoever tests or documents them."""
    if name != "app":
        raise AttributeError(f"module 'gpudiag.cli' has no attribute '{name}'")
    return application()


def main() -> None:
    """Entry point: every deliberate failure is one sentence on stderr and exit 2, any other one sentence and exit 3."""
    with as_interrupt() as ended:
        try:
            with without_home():
                _run()
        except (KeyboardInterrupt, Interrupted):
            complain(f"gpudiag: {ended}\n")
            sys.exit(ended.code)


def _run() -> None:
    leave_out()
    gc.set_threshold(*COLLECT_AFTER)
    atexit.register(gc.freeze)  # else Python looks through all objects again to end: an eighth of a small diagnosis
    write_any_text()
    logging.getLogger("asyncio").disabled = True  # interrupted, it says which tasks of Jupyter nobody waited for
    try:
        arguments = expand(sys.argv[1:])
        application(*arguments[:1])(arguments)
    except GpudiagError as error:
        complain(f"gpudiag: {safe(error)}\n")
        sys.exit(2)
    except OSError as error:
        complain(f"gpudiag: {_said(error)}\n")
        sys.exit(2)
    except Exception as error:  # whatever nobody thought of: with 1 it would look like --fail-on
        given = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
        sys.exit(last_resort(error, debug="--debug" in given))


def _said(error: OSError) -> str:
    try:
        Path.cwd()
    except FileNotFoundError:
        return "the folder that you are in was deleted; go to another one and run the command again."
    where = f"{error.filename}: " if error.filename else ""
    return f"{safe(where)}{error.strerror or error}; check the path and the room on the disk."
