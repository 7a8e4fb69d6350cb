"""Snapshots of PyTorch's memory allocator: known by their first bytes, and never opened."""

from __future__ import annotations

import re
from pathlib import Path

from gpudiag.errors import InputError
from gpudiag.readers._io.source import Source

_FIRST_KEYS = 256
"""``segments`` is the first key of what ``torch.cuda.memory._snapshot()`` returns."""
_JSON = re.compile(r'\A[\ufeff\s]*\{\s*"(?:segments|device_traces)"\s*:\s*\[')


def is_memory_snapshot(source: Source) -> bool:
    """True for the pickle of ``torch.cuda.memory._dump_snapshot``, and for JSON made of one."""
    head = source.head
    if source.is_pickle:
        return b"segments" in head[:_FIRST_KEYS] and (b"device_traces" in head or b"segment_type" in head)
    if not head or source.is_binary or not _JSON.match(source.text):
        return False
    return '"segments"' in source.text and ('"device_traces"' in source.text or '"segment_type"' in source.text)


def refuse_memory_snapshot(path: Path) -> InputError:
    """It holds who took memory, not what a GPU did when; and to open a pickle is to run what it holds."""
    return InputError(
        f"{path}: is a memory snapshot of PyTorch (torch.cuda.memory), which is not read: it says what held memory, "
        "not what a GPU did, and gpudiag opens no pickle, since one can run code. Drop torch's pickle on "
        "https://pytorch.org/memory_viz; for how full each GPU was, record the run with gpudiag record."
    )
