"""What the names of a trace stand for: work of the GPU, and work of the host."""

from __future__ import annotations

import re
from typing import Final

COMPUTE, COMMUNICATION, COPY = "compute", "communication", "copy"
"""Work of a GPU: a kernel, a kernel of a communication library, a copy or a fill of memory."""
DATA, SYNC, MEMORY, SETUP, OPTIMIZER, OPERATOR = "data", "sync", "memory", "setup", "optimizer", "operator"
"""Work of the host: waiting for the next batch, blocking calls, taking or freeing memory, setting CUDA up (a context,
modules), preparing the kernels of the optimizer, preparing other kernels."""
SETUP_US = 1000.0
"""A call of CUDA that takes as long while the GPU is idle sets something up: a launch takes 5 to 20 microseconds."""
STEP = "step"
GPU_CATEGORIES: Final = {
    "kernel": COMPUTE, "gpu_memcpy": COPY, "memcpy": COPY, "gpu_memset": COPY, "memset": COPY,
}  # fmt: skip
RUNTIME_CATEGORIES: Final = ("cuda_runtime", "cuda_driver", "runtime", "hip_runtime")
HOST_CATEGORIES: Final = (*RUNTIME_CATEGORIES, "cpu_op", "operator", "user_annotation")
"""As torch.profiler writes them since 1.8, in small letters; Python functions (``with_stack``) are left out."""
COMMUNICATES = r"(?i)nccl|rccl|nvshmem|cross_device_reduce|multimem_all_reduce"
"""Kernels of NCCL, RCCL, NVSHMEM, and the all-reduces of vLLM and PyTorch's symmetric memory."""
WAITS_FOR_DATA = (
    r"^enumerate\(Data(?:Loader|Pipe)\)|DataLoaderIter\.__next__|train_dataloader_next|"
    r"(?i)^(?:load|get|fetch|next|read)_?(?:next_?)?(?:batch|data)$|(?i)^data_?(?:load|loading|loader|wait|time)$"
)
"""``enumerate(DataLoader)#...__next__`` of PyTorch, ``train_dataloader_next`` of Lightning, plain names of users."""
SYNCHRONIZES = (
    r"^(?:cuda|hip|cu)(?:(?:Device|Stream|Event|Ctx)Synchronize|MemcpyWithStream|"
    r"Memcpy(?:HtoD|DtoH|DtoD|2D|3D|ToSymbol|FromSymbol)?)(?:_v\d+)?(?:_pt[sd][zs])?$"
)
"""Calls that return when the GPU is done: synchronizations, and the copies that are not asynchronous by name."""
BLOCKS = r"^Memcpy DtoH .*-> Pageable"
"""Such a copy blocks its call, ``cudaMemcpyAsync`` too: of ``.item()`` and ``.cpu()`` (CUDA, "API synchronization
behavior")."""
TAKES_MEMORY = (
    r"^(?:cuda|hip|cu)(?:Malloc(?:Host|Managed|Pitch)?|Free(?:Host)?|HostAlloc|HostRegister|HostUnregister|"
    r"Mem(?:Alloc|Free|Create|Map|Unmap|SetAccess))(?:_v\d+)?(?:_pt[sd][zs])?$"
)
LAUNCHES = r"(?i)launch"
OPTIMIZES = r"^Optimizer\."
STEP_NAME = re.compile(r"ProfilerStep#?\s?(\d+)")


def bare(name: str) -> str:
    """The name of a kernel without its template arguments and parameters, which tell two of one kind apart."""
    rest = name.removeprefix("void ").replace("(anonymous namespace)::", "").replace("operator()", "operator")
    out, depth = "", 0
    for letter in rest:
        depth += letter == "<"
        if letter == "(" and not depth and not out.startswith("Mem"):
            break
        out += letter if not depth else ""
        depth -= letter == ">" and depth > 0
    return out.strip() or name
