"""What kind of failure a text tells of (METHODS 6)."""

from __future__ import annotations

import re

import pandas as pd

from gpudiag.patterns import late

CLASSES = (
    "oom",
    "shm",
    "host_killed",
    "device_assert",
    "illegal_access",
    "gpu_lost",
    "nccl",
    "time_limit",
    "nan",
    "stopped",
    "other",
    "unknown",
)
"""``shm``: the shared memory through which loader workers hand over batches was full; ``stopped``: by hand, canceled,
or by the scheduler, as with a node that failed, which is no failure of a trial; ``other``: a text that names
none of these; ``unknown``: no text, or a class of exceptions that may be any of these."""
_PATTERNS = {
    "device_assert": r"device-side assert|device_assert|CUDA_ERROR_ASSERT",
    "oom": r"CUDA out of memory|(?<!ray\.exceptions\.)OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY|"
    r"CUBLAS_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED|cudaErrorMemoryAllocation|\bHIP out of memory|^oom$",
    "illegal_access": r"illegal memory access|misaligned address|CUDA_ERROR_ILLEGAL_ADDRESS",
    "gpu_lost": r"GPU is lost|fallen off the bus|CUDA_ERROR_DEVICE_UNAVAILABLE|uncorrectable ECC",
    "nccl": r"\bNCCL\b",
    "shm": r"\b(?:insufficient|out of) shared memory\b|\bshared memory limit\b|\bshared memory ?\(shm\)|"
    r"\bunable to write to file </torch_|\bcreating shared memory segment\b",
    "host_killed": r"(?<!job )\bKilled\b|job killed: p?v?mem\b|TERM_(?:MEM|SWAP)LIMIT|ray\.exceptions\.OutOfMemory|"
    r"tasks? [\d,-]+: Out Of Memory|OOMKilled|oom[-_]kill|Out of memory: Kill|"
    r"exit(?:ed)?(?: with)?(?: code| status)?[ :=]*137\b|"
    r"\bSIGKILL\b|signal 9\b|\bMemoryError\b|Cannot allocate memory|^OUT_OF_MEMORY\b",
    "time_limit": r"DUE TO TIME LIMIT|^TIMEOUT\b|^DEADLINE\b|\btime ?limit\b|\bwall[- ]?time\b|\bTimeoutExpired\b",
    "nan": r"\b(?:loss|losses|values?|gradients?|grads?|weights|outputs?|contains?|returned|became)\b.{0,30}\bnan\b|"
    r"\bnan (?:loss|values?|gradients?)\b|\bnon-?finite\b|\bloss(?:es)?\b.{0,20}\binf(?:inite|inity)?\b",
    "stopped": r"\b(?:KeyboardInterrupt|\w*Cancell?(?:ed|ation)(?:Error|Exception)|SIGINT|scancel)\b|\bsignal:? 2\b|"
    r"\bexit(?:ed)?(?: with)?(?: code| status)?[ :=]*130\b|\binterrupted by (?:the )?user\b|"
    r"\A(?:cancell?ed|aborted|interrupted|preempted|requeued|node_fail|boot_fail)\b",
}
_RAISED = late(r"(?:[\w.]+\.)?(?:KeyboardInterrupt|\w*Cancell?(?:ed|ation)(?:Error|Exception))\b")
_ANY_FAULT = late(
    r"(?:[\w.]+\.)?(?:(?:Runtime|Accelerator|System|Internal|Unknown|XlaRuntime|JaxRuntime|CUDARuntime|Cuda)?Error"
    r"|(?:Base)?Exception)"
)
"""A class alone that libraries raise for whatever a GPU fails with, out of memory as well as a device-side assert."""
_COMPILED = {name: late(pattern, re.IGNORECASE) for name, pattern in _PATTERNS.items()}
_ATTRIBUTE = late(r"user_attrs\.(?:.*[._-])?(?:error|exception|traceback|fail\w*|reason)(?:[._-].*)?$", re.I)


def classify(text: object) -> str:
    """One of CLASSES. A device-side assert is a logic error and never counts as out of memory."""
    if not isinstance(text, str) or not text.strip() or _ANY_FAULT.fullmatch(text.strip()):
        return "unknown"
    if _RAISED.match(text.strip().splitlines()[-1].strip()):  # a traceback ends with what was raised
        return "stopped"
    return next((name for name, pattern in _COMPILED.items() if pattern.search(text)), "other")


def is_failure_text(column: str) -> bool:
    """True for a column of trials that may hold the text of a failure."""
    return column == "detail" or _ATTRIBUTE.fullmatch(column) is not None


def failure_classes(trials: pd.DataFrame) -> pd.Series:
    """The class of each trial's text: its detail, else the first user attribute that names an error."""
    names = [name for name in trials.columns if is_failure_text(str(name))]
    out = pd.Series("unknown", index=trials.index, dtype=object)
    for name in names:
        found = trials[name].map(classify)
        out = out.where((out != "unknown") & ~((out == "other") & ~found.isin(["unknown", "other"])), found)
    return out
