"""What is said on stderr: without the password of a storage URL, in whichever place one was typed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typer.core import TyperGroup

from gpudiag.cli._signals import Interrupted
from gpudiag.report.format import safe


def complain(text: str) -> None:
    """Write to stderr what may quote an argument or a file."""
    sys.stderr.write("\n".join(map(safe, _hidden(text).split("\n"))))


def _hidden(text: str) -> str:
    from gpudiag.report._notebook.redact import redacted

    return redacted(text, sys.argv[1:])


class Commands(TyperGroup):
    """The commands, whose errors of usage, which typer itself prints, hold no password either."""

    def make_context(self, *args: Any, **more: Any) -> Any:
        """Parse what stands before the command."""
        with _usage_hidden():
            return super().make_context(*args, **more)

    def invoke(self, *args: Any, **more: Any) -> Any:
        """Parse what stands behind the command, and run it."""
        with _usage_hidden():
            return super().invoke(*args, **more)


@contextmanager
def _usage_hidden() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted from error
    except Exception as error:
        if hasattr(error, "format_message"):  # of click, or of the copy of it that typer brings
            error.message = _hidden(error.message)  # type: ignore[attr-defined]
        raise
