"""What the lines of a training's own log say: the classes of failure, kept apart, and what else can be measured.

The failure texts are those of PyTorch, TensorFlow, cuBLAS, NCCL, Ray, the NVIDIA driver and Linux, and what Slurm, PBS,
LSF, HTCondor, Flux and launchers write as a job ends. A device-side assert is a logic error and no lack of memory;
"Killed" (exit code 137) is the host running out of memory, not the GPU.
"""

from __future__ import annotations

from gpudiag.patterns import late

TRIAL_FAILED = "trial_failed"
_PATTERNS = {
    TRIAL_FAILED: r"\bTrial \d{1,9} failed\b.*\bbecause of the following error: (?P<why>.+)",
    "xid": r"\bXid\s{0,9}\([^)]{0,80}\)\s{0,9}:\s{0,9}\d+",
    "sxid": r"\bSXid\s{0,9}\([^)]{0,80}\)\s{0,9}:\s{0,9}\d{1,6}\b(?!\s{0,9},\s{0,9}(?:Severity|Data)\b)",
    "gpu_lost": r"fallen off the bus|\bGPU is lost\b|[Uu]nable to determine the device handle",
    "cublas_alloc": r"CUBLAS_STATUS_ALLOC_FAILED",
    "device_assert": r"device-side assert(?!ion)|CUDA_ERROR_ASSERT|cudaErrorAssert",
    "illegal_access": r"illegal memory access|CUDA_ERROR_ILLEGAL_ADDRESS|cudaErrorIllegalAddress",
    "killed": (
        r"\bexit(?:ed)?[ _-]?(?:with )?(?:code|status)?\s*[:=]?\s*(?:137|-9)\b|\b(?:return)?code\s*[:=]\s*(?:137|-9)\b"
        r"|\bSIGKILL\b|killed by signal: Killed|Killed process \d+|oom[-_]kill|\bOOM Killed\b"
        r"|: line \d+: +\d+ Killed\b|^\s*Killed\b|\bOOMKilled\b|\btasks? [\d,-]{1,999}: Out Of Memory\b"
        r"|\bPBS: job killed: p?v?mem\b|\bTERM_(?:MEM|SWAP)LIMIT: |\bkilled due to memory pressure \(OOM\)"
        r"|\bray\.exceptions\.OutOfMemoryError\b|\bkilled due to the node running low on memory\b"
    ),
    "oom": (
        r"CUDA (?:error: )?out of memory|HIP out of memory|\bOutOfMemoryError\b|CUDA_ERROR_OUT_OF_MEMORY"
        r"|cudaErrorMemoryAllocation|RESOURCE_EXHAUSTED|\bResourceExhaustedError\b|CUDNN_STATUS_ALLOC_FAILED"
    ),
    "nccl": (
        r"\bNCCL (?:error|timeout)|\bnccl(?:System|Internal|Remote|UnhandledCuda|InvalidUsage|InvalidArgument)Error\b"
        r"|Watchdog caught collective operation timeout|DistBackendError"
    ),
    "nccl_status": r"\b[Ll]ast enqueued (?:\w{1,9} )?work: -?\d+",
    "time_limit": (
        r"\bDUE TO TIME LIMIT\b|\bPBS: job killed: (?:walltime|cput)\b|\bTERM_(?:RUN|CPU|PROCESS)\w{0,20}LIMIT: "
    ),
    "canceled": (
        r"\b(?:CANCELLED|STEPD TERMINATED ON \S{1,255}) AT \d{4}-\d\d-\d\dT\S{1,20}|\bsrun: error: Node failure on\b"
        r"|\bsrun: error: \S{1,255}: tasks? [\d,-]{1,999}: Terminated\b|\bPBS: job killed: |\bTERM_[A-Z_]{1,40}: job\b"
        r"|\bJob was evicted\b"
    ),
    "exited": (
        r"\bsrun: error: \S{1,255}: tasks? [\d,-]{1,999}: (?:Exited with exit code (?!0\b)\d|Killed|Aborted|Bus error"
        r"|Floating point exception|Illegal instruction)|^Exited with exit code (?!0\b)\d{1,3}\.?\s*$"
        r"|\bflux-job: task\(s\) exited with exit code (?!0\b)\d|^command terminated with exit code (?!0\b)\d"
        r"|\bexited on signal \d{1,3}\b|\bexited with non-zero status\b|\bexits with return code = -?(?!0\b)\d"
        r"|\bfailed \(exitcode: -?(?!0\b)\d"
    ),
    "raised": (
        r"^(?:\[\w+\]:\s{0,4})?(?:[A-Za-z_]\w{0,60}\.){0,9}[A-Z]\w{0,60}(?:Error|Exception|Interrupt)(?::\s|\s*$)"
        r"|\bSegmentation fault\b"
    ),
    "diverged": r"\b[Ll]oss is (?:nan|[-+]?inf)\b, stopping training",
    "loader": r"DataLoader avg:\s*[\d.]+\s*ms\b",
    "loader_workers": (
        r"This DataLoader will create \d+ worker processes in total\. Our suggested max number of worker in current "
        r"system is \d+"
    ),
    "gpu_assigned": (
        r"(?i:\btrial\s*#?\s*(?P<trial>\d+)\]?:?\s+(?:is\s+)?(?:(?:using|uses|on|running on|assigned to|->)\s+)?"
        r"(?:device\s*[:=]?\s*)?(?:gpu|cuda)\s*[:#=]?\s*(?P<gpu>\d+)\b(?!\s*[%.]))"
    ),
    "gpus_given": r"\b(?:CUDA_VISIBLE_DEVICES|SLURM_JOB_GPUS)\b\W{0,3}[=:]\W{0,3}(?:GPU-[0-9a-f]|\d)",
    "worker": (
        r"(?i:\b(?P<worker>(?:worker|slot|process|proc|rank|w)[ _#:-]?\d{1,5})\b.{0,60}?\btrial\s*#?\s*\d+\b"
        r".{0,20}?\b(?:start|began|begin|launch|running))"
    ),
    "monitor": r"\bGPU:\s*[\d.]+\s*%\s*\|\s*VRAM:\s*[\d.]+\s*/\s*[\d.]+\s*GB",
    "epoch": (
        r"(?i:\bepoch(?![a-z]).{0,200}?(?<![a-z])(?:time|took|elapsed|duration)\b\s*[:=]?\s*"
        r"(?:\d+:\d\d(?::\d\d)?|(?:\d{1,9} ?(?:d|h|hrs?|hours?|m|mins?|minutes?)(?=,? ?\d),? ?){0,3}"
        r"[\d.]+\s*(?:ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)\b))"
    ),
    "model": (
        r"(?i:\b(?:total|all|trainable|num|number of)[ _.]{1,2}(?:trainable |shared |model ){0,2}param(?:eter)?s?\b"
        r"[^\d\n]{0,60}\d|\btotal number of parameters in billions: {0,4}\d|\bsize: [\d,]+ total parameters\b"
        r"|^\s{0,9}\d[\d.,]{0,18} {1,9}(?:[KMBT] {1,9})?(?:trainable|total) params\s*$"
        r"|\btotal parameter count: dense\b|^\W{0,9}(?:num|n)_(?:local_|routed_)?experts\W{1,60}\d"
        r"|\btokens per iteration will be: \d|\busing \w+(?: native)? automatic mixed precision \(AMP\)"
        r"|^\| precision {1,30}\| (?:bf16|fp16|fp32)\b)"
    ),
}
KINDS = {kind: late(pattern) for kind, pattern in _PATTERNS.items()}
"""The kinds in the order in which they are tried: a line is of the first that fits."""
FAILURES = ("xid", "gpu_lost", "cublas_alloc", "device_assert", "illegal_access", "killed", "oom", "nccl")
ENDINGS = (*FAILURES[1:], "time_limit", "canceled", "exited", "raised", "diverged")
"""What a program may end with. ``canceled``: by a scheduler; ``exited``: how a launcher saw a process end, which tells
no cause; ``diverged``: as the recipes of torchvision, DETR and MAE print it; ``raised``: any exception as Python prints
it, be it caught or not."""

_WORDS = {
    TRIAL_FAILED: "because of the following error",
    "xid": "xid",
    "sxid": "sxid",
    "gpu_lost": "bus|lost|handle",
    "cublas_alloc": "cublas_status_alloc",
    "device_assert": "assert",
    "illegal_access": "illegal",
    "killed": "kill|137|-9|out of memory|outofmemory|term_",
    "oom": "memory|resource|alloc_failed",
    "nccl": "nccl|watchdog|distbackend",
    "nccl_status": "last enqueued",
    "time_limit": "due to time limit|job killed|term_",
    "canceled": "cancelled at|stepd terminated|node failure|terminated|job killed|term_|evicted",
    "exited": "exit|srun: error",
    "raised": "error|exception|interrupt|segmentation",
    "diverged": "stopping training",
    "loader": "dataloader avg",
    "loader_workers": "suggested max number of worker",
    "gpu_assigned": "trial",
    "gpus_given": "cuda_visible_devices|slurm_job_gpus",
    "worker": "trial",
    "monitor": "vram",
    "epoch": "time|took|elapsed|duration",
    "model": "param|_experts|tokens per iteration|mixed precision|precision  ",
}
_TESTS = tuple((kind, tuple(words.split("|")), KINDS[kind]) for kind, words in _WORDS.items())
"""A line of a kind holds one of its words in lower case: looking for these is ten times faster than the patterns."""

_OF_ERRORS = late(
    r"(?i)error|exception|traceback|warn|fail|abort|kill|signal|terminat|exit(?!ed with code 0| code 0| status 0)"
    r"|\bdump|wandb|nccl|srun|slurm|elastic|rank|during handling|direct cause|stacktrace|cuda_launch|cuda_dsa|\^\^\^"
)
"""What else a program prints as it dies."""

_LOOKED_AT = 4096
"""Characters of a line in which it says what it is."""
_TRIAL = late(r"(?i)\btrial\s*#?\s*(\d{1,9})\b")
_PROGRESS = late(r"(?i)\b(?:epoch|loss)\b")


def kind_of(line: str) -> str | None:
    """The kind of event that a line tells of, None for an ordinary line."""
    line = line[:_LOOKED_AT]
    lower = line.lower()
    for kind, words, pattern in _TESTS:
        for word in words:
            if word in lower:
                if pattern.search(line):
                    return kind
                break
    return None


def is_ordinary(line: str) -> bool:
    """True for a line that a program which died of an error would hardly print behind it."""
    return line[:1].strip() != "" and _OF_ERRORS.search(line[:_LOOKED_AT]) is None


def trial_of(line: str) -> int | None:
    """The number of the trial that the line names."""
    match = _TRIAL.search(line)
    return int(match[1]) if match else None


def gpu_of(line: str) -> str | None:
    """The GPU that a trial was given. An error message's own GPU counts within the process, so it names no board."""
    match = KINDS["gpu_assigned"].search(line)
    return match["gpu"] if match else None


def why_failed(line: str) -> str | None:
    """The error that ended a trial, where Optuna's own log says so: behind its parameters, which may be many."""
    match = KINDS[TRIAL_FAILED].search(line[:_LOOKED_AT])
    return match["why"] if match else None


def worker_of(line: str) -> str | None:
    """The worker that a line says took a trial."""
    match = KINDS["worker"].search(line)
    return match["worker"] if match else None


def is_progress(line: str) -> bool:
    """True for a line about an epoch or a loss."""
    lower = line[:_LOOKED_AT].lower()
    return ("epoch" in lower or "loss" in lower) and _PROGRESS.search(lower) is not None
