"""What the names of a trace stand for: work of the GPU, and work of the host."""

from __future__ import annotations

import re
from typing import Final

COMPUTE, COMMUNICATION, COPY = "compute", "communication", "copy"
"""Work of a GPU: a kernel, a kernel of a communication library, a copy or a fill of memory."""
QUEUED = "queued"
"""Between work that was launched before the gap began, so that no host held it up."""
DATA, PAGEABLE, SYNC, MEMORY, SETUP = "data", "pageable", "sync", "memory", "setup"
OPTIMIZER, OPERATOR = "optimizer", "operator"
"""Work of the host: waiting for the next batch, copying pageable memory to where the GPU can fetch it, blocking calls,
taking or freeing memory, setting CUDA up (a context, modules), preparing the kernels of the optimizer, preparing other
kernels."""
SETUP_US = 1000.0
"""A call of CUDA that takes as long while the GPU is idle sets something up: a launch takes 5 to 20 microseconds."""
STEP, STEP_ON_GPU = "step", "step_on_gpu"
ON_GPU = "gpu_user_annotation"
"""Category in which Kineto says where on a GPU the kernels of a user's range lie."""
GPU_CATEGORIES: Final = {
    "kernel": COMPUTE, "gpu_memcpy": COPY, "memcpy": COPY, "gpu_memset": COPY, "memset": COPY,
}  # fmt: skip
RUNTIME_CATEGORIES: Final = ("cuda_runtime", "cuda_driver", "runtime", "hip_runtime")
HOST_CATEGORIES: Final = (*RUNTIME_CATEGORIES, "cpu_op", "operator", "user_annotation")
PYTHON_CATEGORY = "python_function"
"""As torch.profiler writes them since 1.8, in small letters; of Python functions (``with_stack``) nothing is read."""
COMMUNICATES = (
    r"(?is)^(?!triton_).*(?:nccl|rccl|nvshmem|mscclpp|msccl|deep_ep::|userbuffers|cross_device_reduce|"
    r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|all2all)"
)
"""Kernels whose bare name is that of a collective (those of PyTorch's symmetric memory, vLLM, TensorRT-LLM, FlashInfer,
SGLang), or of NCCL, RCCL, MSCCL, NVSHMEM, DeepEP or userbuffers. Inductor calls a kernel ``triton_...`` and then all
that is fused in it, with the collective whose result it reads."""
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
BLOCKS: Final = {r"^Memcpy DtoH .*-> Pageable": SYNC, r"^Memcpy HtoD .*Pageable ->": PAGEABLE}
"""Such a copy blocks its call, ``cudaMemcpyAsync`` too. One to the host, as of ``.item()`` and ``.cpu()``, waits for
the GPU; of one to the GPU, the host first copies what it sends into pinned memory (CUDA, "API synchronization
behavior")."""
TAKES_MEMORY = (
    r"^(?:cuda|hip|cu)(?:Malloc(?:Host|Managed|Pitch)?|Free(?:Host)?|HostAlloc|HostRegister|HostUnregister|"
    r"Mem(?:Alloc|Free|Create|Map|Unmap|SetAccess))(?:_v\d+)?(?:_pt[sd][zs])?$"
)
LAUNCHES = r"(?i)launch"
OPTIMIZES = r"^Optimizer\."
STEP_NAME = re.compile(r"ProfilerStep#?\s?(\d+)")


def communicates(name: str) -> bool:
    """Whether a kernel of this name communicates. Types among its template arguments say nothing of it."""
    return re.search(COMMUNICATES, bare(name)) is not None


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
