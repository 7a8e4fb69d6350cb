"""``npu-smi``: Ascend accelerators, whose tables look like nvidia-smi's; recognized in order to say so."""

from __future__ import annotations

import re

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source
from gpudiag.readers.base import Reader, ReadOptions, Telemetry

NAME = "npu-smi"

_BANNER = re.compile(r"\|\s*npu-smi\s+\d")


def recognises(source: Source) -> bool:
    return any(_BANNER.match(line) for line in source.lines)


def read(source: Source, options: ReadOptions) -> Telemetry:
    """Raise InputError: AI-core and HBM figures of an NPU are not the measures this toolkit is about."""
    raise InputError(
        f"{source.path}: is output of npu-smi (Ascend NPUs), which is not supported; "
        "NVIDIA tools, DCGM, rocm-smi and amd-smi are."
    )


READER = Reader(NAME, recognises, read, refuses=True)
