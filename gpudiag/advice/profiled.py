"""Remedies for what a GPU waited for in profiled steps."""

from __future__ import annotations

import math

from gpudiag.advice._engine.gains import fill_gain, without_causes
from gpudiag.advice._engine.proposal import Change, Gain, Proposal, SuccessCheck
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.facts import Fact
from gpudiag.measures.profiled import ProfiledProfile

PROFILE_AGAIN = "Profile the same steps again with the change: the share must fall."
LIMITS = {"sync": 5.0, "memory": 5.0, "communication": 10.0}
"""The limits of the checks, below which the change has worked."""


@remedy(
    title="Read values off the GPU less often",
    answers=("steps-blocked", "steps-launch"),
    tier=1,
    effort="minutes",
    apply="next study",
    pros=("the host can run ahead of the GPU", "the same values come out"),
    cons=("the loss is printed and checked less often",),
    refute=PROFILE_AGAIN,
    rollback="Read the value in each step again.",
    fills_idle=True,
)
def read_less_often(now: Situation) -> Proposal | None:
    """``.item()``, ``.cpu()`` and ``print(loss)`` wait for the GPU, which then idles until the next launch."""
    if not now.torch or not now.has("steps-blocked"):
        return None
    code = "if step % 50 == 0:                  # was: in each step\n    print(step, loss.item())"
    return _proposal(
        now, Change("values read off the GPU", None, "every 50 steps", code), "Blocking calls in each step.",
        ProfiledProfile.sync_pct, LIMITS["sync"], "sync", "launch",
    )  # fmt: skip


@remedy(
    title="Take memory once, not in each step",
    answers=("steps-allocation",),
    tier=1,
    effort="minutes",
    apply="next study",
    pros=("no call that waits for the GPU", "the same values come out"),
    cons=("the process keeps its memory",),
    refute=PROFILE_AGAIN,
    rollback="Restore the lines.",
    fills_idle=True,
)
def keep_buffers(now: Situation) -> Proposal | None:
    """The caching allocator asks the driver once for each size; ``empty_cache`` and new shapes make it ask again."""
    if not now.torch or not now.has("steps-allocation"):
        return None
    code = (
        "# no torch.cuda.empty_cache() within the loop\n"
        "DataLoader(..., drop_last=True)       # batches of one shape\n"
        'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # before torch is imported'
    )
    return _proposal(
        now, Change("memory of a step", None, "kept", code), "Memory is asked of the driver in each step.",
        ProfiledProfile.memory_pct, LIMITS["memory"], "memory", "setup",
    )  # fmt: skip


@remedy(
    title="Begin to communicate while computing",
    answers=("steps-communication",),
    tier=1,
    effort="an hour",
    apply="next study",
    pros=("gradients travel while earlier layers are computed",),
    cons=("many small messages cost latency: time a few sizes",),
    refute=PROFILE_AGAIN,
    rollback="Restore the bucket size.",
)
def hide_communication(now: Situation) -> Proposal | None:
    """DistributedDataParallel sends a bucket as soon as it is full; gradients that accumulate need one exchange."""
    if not now.torch or not now.has("steps-communication"):
        return None
    code = (
        "model = DistributedDataParallel(model, bucket_cap_mb=10, gradient_as_bucket_view=True)  # default 25\n"
        "with model.no_sync():                 # in all but the last step of an accumulation\n    loss.backward()"
    )
    check = SuccessCheck.of(ProfiledProfile.communication_pct, "<", LIMITS["communication"])
    return Proposal(
        (Change("exchange of gradients", None, "in small buckets", code),),
        None,
        "How much of it can be hidden depends on the model: try three sizes.",
        (check,),
    )


@remedy(
    title="Compare the late rank with the others",
    answers=("rank-behind",),
    tier=0,
    effort="minutes",
    pros=("changes nothing",),
    cons=("only finds the cause",),
    refute="The same rank is not late in a second profile.",
    rollback="Nothing to undo.",
)
def compare_ranks(now: Situation) -> Proposal | None:
    """Lock-step training runs at the pace of its slowest rank; a hot GPU, a busy host or more data make one slow."""
    if not now.has("rank-behind"):
        return None
    code = (
        "nvidia-smi --query-gpu=index,clocks.sm,temperature.gpu,power.draw,clocks_event_reasons.active --format=csv\n"
        "gpudiag record --host -o late-rank.csv -- sleep 60     # on its host, while it trains"
    )
    low, high = ProfiledProfile.communication_low_pct, now.fact(ProfiledProfile.communication_high_pct)
    late_gpu_h = now.fact(ProfiledProfile.late_gpu_h)
    gain = Gain(0.0, late_gpu_h, "GPU-h", "ranks") if late_gpu_h > 0 else None
    return Proposal(
        (Change("host of the late rank", None, "looked at", code),),
        gain,
        "One rank is slower than the others.",
        (SuccessCheck.of(low, ">=", round(high - 10.0, 1)),),
    )


def _proposal(
    now: Situation, change: Change, assumption: str, share: Fact[float], limit_pct: float, *causes: str
) -> Proposal:
    """A change that rids the run of these causes at best."""
    gain = fill_gain(now.bounds, without_causes(now.profiles, *causes), causes[0])
    checks = (SuccessCheck.of(share, "<", limit_pct),)
    high = gain.high if gain else math.nan
    return Proposal((change,), gain, now.unless_unknown(assumption), checks, now.busier_by(high))
