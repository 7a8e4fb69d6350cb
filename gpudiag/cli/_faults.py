"""What the terminal says of a fault of gpudiag itself, and the exit code that goes with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from gpudiag.cli._stderr import complain
from gpudiag.faults import ERROR, REPORT, Fault, heard

FAULT = 3
"""Exit code: with --strict a part was ERROR, or gpudiag itself failed altogether. 1 would say that --fail-on is met."""


@contextmanager
def telling(*, debug: bool, strict: bool) -> Iterator[list[Fault]]:
    """Within it, faults are kept; after it, each is a line on stderr, and with ``strict`` the exit code is 3."""
    with heard() as faults:
        code = 0
        try:
            yield faults
        except typer.Exit as end:
            code = end.exit_code
        finally:
            for fault in faults:
                say(fault, debug=debug)
    if strict and faults:
        code = FAULT
    if code:
        raise typer.Exit(code)


def say(fault: Fault, *, debug: bool) -> None:
    """One line on stderr; with ``debug`` the traceback after it."""
    complain(f"gpudiag: {ERROR}: {fault}\n")
    if debug:
        complain(fault.traceback or "".join(f"  {frame}\n" for frame in fault.trace))


def last_resort(error: BaseException, *, debug: bool) -> int:
    """A sentence on stderr for an exception that nobody expected anywhere; returns the exit code."""
    fault = Fault.of("gpudiag", error)
    if isinstance(error, MemoryError):
        complain(f"gpudiag: the memory of this machine is full ({fault.place}); give fewer inputs.\n")
    else:
        complain(f"gpudiag: failed with {fault.type} at {fault.place}. {REPORT}\n")
    if debug:
        complain(fault.traceback)
    return FAULT
