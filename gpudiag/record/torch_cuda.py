"""CUDA as this process's PyTorch sees it, where it is in use."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from gpudiag.units import BYTES_PER_MIB


def torch_cuda() -> Any:
    """``torch.cuda`` if this process has imported torch and uses a GPU already; it is never imported here."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    with suppress(Exception):
        return cuda if cuda is not None and cuda.is_initialized() else None
    return None


def peak_reserved_mib() -> float | None:
    """Most memory that PyTorch has reserved on its present GPU since the peak was last reset; None where unknown."""
    cuda = torch_cuda()
    if cuda is None:
        return None
    with suppress(RuntimeError):
        return float(cuda.max_memory_reserved()) / BYTES_PER_MIB
    return None
