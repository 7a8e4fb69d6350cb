"""Standard output and standard error: they take every character, and what nobody reads any more is lost in silence."""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
from typing import Any

PLAIN = {"→": "->", "–": "-", "·": "-", "×": "x", "≤": "<=", "≥": ">=", "…": "...", "✓": "+", "✗": "x", "█": "#"}
"""Characters of ours that an encoding may lack, in letters that none does."""


def write_any_text() -> None:
    """Let both take every character, whatever their encoding: one that it lacks becomes JSON's escape.

    After ``| head`` has read enough, a command goes on as if all were read, so that its files and its exit code are
    what they would have been.
    """
    codecs.register_error("gpudiag", _escaped)
    sys.stdout, sys.stderr = _lasting(sys.stdout), _lasting(sys.stderr)


def _lasting(stream: Any) -> Any:
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.reconfigure(errors="gpudiag")
    if stream not in (sys.__stdout__, sys.__stderr__) or stream.isatty():  # put there by somebody, as by a test
        return stream
    raw = _UntilClosed(stream.fileno(), "w", closefd=False)
    return io.TextIOWrapper(
        raw if stream.write_through else io.BufferedWriter(raw),
        stream.encoding,
        "gpudiag",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


class _UntilClosed(io.FileIO):
    """Once the other end of a pipe is closed, nothing is written to it."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return super().write(data)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(PLAIN.get(one) or json.dumps(one)[1:-1] for one in text), error.end
