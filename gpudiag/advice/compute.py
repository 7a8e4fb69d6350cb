"""Remedies for the work that one step gives the GPU."""

from __future__ import annotations

import math

from gpudiag.advice._engine.capacity import FULL_PCT, growth_of_memory
from gpudiag.advice._engine.gains import BATCH, LEAST, WORK, without_causes
from gpudiag.advice._engine.proposal import Change, Gain, Prediction, Proposal, SuccessCheck
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import INPUT_WAITS, MIN_FILL, Situation
from gpudiag.measures.feed import FeedProfile
from gpudiag.measures.memory import MemoryProfile
from gpudiag.report.format import at_most

LIGHT = "gpu-busy-but-light"
LITTLE_WORK = "batch-or-kernels-small"
SMALL = (LITTLE_WORK, "launch-bound", "steps-launch", "sm-activity-low", LIGHT)
NO_TENSOR = "tensor-cores-unused"
MAX_FACTOR = 8
NOT_EXCLUDED = (
    "Nothing shows that steps are small: a slow input looks alike. Time 100 steps on one batch that stays in memory: "
    "if they are faster than now, the input is slow."
)
TWO_MINUTES = "Time two batch sizes for two minutes each: samples per second that do not rise refute it."


@remedy(
    title="Try a larger batch",
    answers=(*SMALL, "gpu-low-utilization", "memory-headroom"),
    tier=2,
    effort="minutes",
    apply="next study",
    pros=("fewer steps an epoch", "two short measurements decide it"),
    cons=("accuracy and learning rate change with the batch", "memory is not proportional to the batch"),
    refute=TWO_MINUTES,
    rollback="Restore the batch size; trials run with the larger one are not comparable.",
    fills_idle=True,
)
def batch_size(now: Situation) -> Proposal | None:
    """Free memory permits a larger batch; it does not make anything faster.

    A batch B' in place of B brings 1 <= G <= B'/B (METHODS 10): nothing where the time of a sample on the CPU
    dominates, B'/B where a step takes as long as before. Utilization does not bound it: kernels that are too small for
    the GPU count as busy, and take hardly longer for more samples. Memory bounds the factor, 8 at most. Not proposed
    where the GPU is seen to wait for its input: what feeds it sets the pace, whatever the batch; nor for free memory
    alone where less than a tenth of the time is without a kernel.
    """
    present = now.dataloader.batch_size
    growth = _growth(now)
    if present is None or growth < 2 or now.has(*INPUT_WAITS):
        return None
    if not now.has(*SMALL, "gpu-low-utilization") and (now.bounds.fill < MIN_FILL or not now.has("memory-headroom")):
        return None
    factor = min(MAX_FACTOR, 2 ** int(math.log2(growth)))
    proposed = present * factor
    used = growth_of_memory(now.profiles, factor)
    return Proposal(
        (
            Change(
                "batch size",
                present,
                proposed,
                f"DataLoader(..., batch_size={proposed})  # was {present}; double up to it while samples/s rise",
            ),
        ),
        Gain(1.0, factor, source=BATCH),
        f"Memory has room for {factor} times the batch. The gain is at most {at_most(factor)}, if a step takes no "
        "longer than now, and none where each sample costs the same CPU time. Accuracy may change.",
        (*now.busier(factor), *now.no_new_failures()),
        (*now.busier_by(factor), *_memory(now, used)),
        "" if now.has(*SMALL) and not _may_wait(now) else NOT_EXCLUDED,
    )


@remedy(
    title="Compute in mixed precision",
    answers=("memory-near-limit", "failures-out-of-memory", NO_TENSOR, "sm-activity-low", LIGHT),
    tier=2,
    effort="an hour",
    apply="next study",
    pros=("activations take about half the memory", "tensor cores are used"),
    cons=("results change slightly, and a model can diverge", "no help where the GPU waits"),
    refute="Time 100 steps and read the peak memory with and without autocast.",
    rollback="Remove autocast.",
)
def mixed_precision(now: Situation) -> Proposal | None:
    """It makes the GPU's own work smaller, so only the busy part of the time can shrink: at most 1/(1-u)."""
    if not now.torch:
        return None
    busy = now.bounds.busy_pct
    gain = Gain(1.0, 100 / (100 - busy), "x", WORK) if busy < 100 else None
    less_memory = (SuccessCheck.of(MemoryProfile.max_used_pct, "<", FULL_PCT),)
    full = now.fact(MemoryProfile.max_used_pct) >= FULL_PCT
    verify = (*(less_memory if full else ()), *now.no_new_failures())
    code = 'with torch.autocast("cuda", dtype=torch.bfloat16):\n    loss = model(batch)  # was: float32 throughout'
    return Proposal(
        (Change("precision", None, "bfloat16", code),),
        gain,
        now.unless_unknown("Only the busy time of the GPU can shrink; by how much is unknown."),
        verify,
        verify_first="Whether the model trains as well in bfloat16 must be seen on one trial.",
    )


@remedy(
    title="Let matrix products use TF32",
    answers=(NO_TENSOR,),
    tier=2,
    effort="minutes",
    apply="next study",
    pros=("one line", "range of float32, and tensor cores are used"),
    cons=("products are rounded to 10 bits of mantissa", "no help in float16 or bfloat16"),
    refute="Time 100 steps with and without.",
    rollback="Remove the line.",
)
def tf32(now: Situation) -> Proposal | None:
    """PyTorch computes matrix products of float32 without tensor cores unless it is told otherwise; convolutions use
    them (https://docs.pytorch.org/docs/stable/notes/cuda.html, TF32). Only the busy time can shrink: at most 1/(1-u).
    """
    if not now.torch:
        return None
    busy = now.bounds.busy_pct
    gain = Gain(1.0, 100 / (100 - busy), "x", WORK) if busy < 100 else None
    code = 'torch.set_float32_matmul_precision("high")  # was: "highest"; once, before the first step'
    return Proposal(
        (Change("float32 matrix products", None, "TF32", code),),
        gain,
        now.unless_unknown("Only the busy time of the GPU can shrink; by how much is unknown."),
        now.no_new_failures(),
        verify_first="Whether the model trains as well must be seen on one trial.",
    )


@remedy(
    title="Compile the model into fewer, larger kernels",
    answers=SMALL,
    tier=2,
    effort="an hour",
    apply="next study",
    pros=("removes Python and launch time from every step",),
    cons=("compiling takes a minute a model and shape", "rounding differs slightly", "changing shapes compile again"),
    refute="Time 100 steps after 20 for warming up, with and without.",
    rollback="Remove torch.compile.",
)
def compile_model(now: Situation) -> Proposal | None:
    """Where steps are short, the GPU waits for kernels to be launched; CUDA graphs launch a whole step at once.

    What it brings is unknown: 1/u, or the waits for launches in a trace, bound what launching the same kernels faster
    brings, and fused kernels take less time than those of now. Not proposed where nothing waits for launches, nor where
    steps that wait for storage look like small ones.
    """
    most = min(without_causes(now.profiles, "launch"), now.bounds.fill)
    if not now.torch or most < LEAST or _may_wait(now):
        return None
    code = 'model = torch.compile(model, mode="reduce-overhead")  # CUDA graphs; keep shapes fixed (drop_last=True)'
    return Proposal(
        (Change("execution", None, "CUDA graphs", code),),
        None,
        now.unless_unknown(
            "Launching is what the GPU waits for: without it the same kernels take the time at most "
            f"{at_most(most)}. Fewer, larger kernels may bring more."
        ),
        now.busier(),
        verify_first="Compiled kernels are others than those of now: what they bring must be timed.",
    )


def _growth(now: Situation) -> float:
    """How often the memory of the work fits below the limit, on the GPU that has least room; 1 where unknown."""
    memory = now.profile(MemoryProfile)
    if memory is None:
        return 1.0
    table = memory.per_gpu[memory.per_gpu["max_mib"] > memory.per_gpu["min_mib"]]
    room = (FULL_PCT / 100 * table["total_mib"] - table["min_mib"]) / (table["max_mib"] - table["min_mib"])
    return float(room.min()) if len(room) and room.notna().all() else 1.0


def _memory(now: Situation, high: float) -> tuple[Prediction, ...]:
    used = now.fact(MemoryProfile.max_used_pct)
    if not used > 0:
        return ()
    note = "Upper end: all memory above the baseline grows with the batch."
    return (Prediction.of(MemoryProfile.max_used_pct, used, used, max(used, high), note),)


def _may_wait(now: Situation) -> bool:
    """Whether little work beside an idle host is all that shows small steps: it may as well be a slow storage, but
    where a log states how long steps wait.
    """
    shown = [rule for rule in SMALL if now.has(rule)]
    return shown == [LITTLE_WORK] and not now.fact(FeedProfile.stated_wait_pct) >= 0
