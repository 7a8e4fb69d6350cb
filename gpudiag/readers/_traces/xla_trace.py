"""Traces of the profiler of TensorFlow and JAX (XLA): known by the names of their planes, and not read."""

from __future__ import annotations

import re
from pathlib import Path

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source

_NUMBER = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_XSPACE = re.compile(
    rb"\A\x0a" + _NUMBER + rb"(?:\x08" + _NUMBER + rb")?\x12" + _NUMBER + rb"(?:/host:|/device:|Task Environment)"
)
"""An XSpace of xplane.proto begins with a plane (field 1), and that with its number and name (fields 1 and 2)."""
_PROCESS = re.compile(r'"name"\s*:\s*"/(?:host:CPU|device:[A-Z_]+:\d+)')


def is_xplane(source: Source) -> bool:
    """True for ``*.xplane.pb``, plain or compressed."""
    return bool(_XSPACE.match(source.head))


def names_xla_processes(source: Source) -> bool:
    """True for a Chrome trace (``*.trace.json.gz``) whose processes are called as XLA calls them."""
    return '"traceEvents"' in source.text and bool(_PROCESS.search(source.text))


def refuse_xla_trace(path: Path) -> InputError:
    """What the host did has no names in it that say what a GPU waited for."""
    return InputError(
        f"{path}: is a trace of TensorFlow's or JAX's profiler, whose work of the host has no names that gpudiag "
        "knows. Open it in TensorBoard, XProf or Perfetto, or profile the run with Nsight Systems and give gpudiag "
        "what nsys export --type sqlite makes of it."
    )
