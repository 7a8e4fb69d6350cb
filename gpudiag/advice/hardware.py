"""Remedies on the machine itself."""

from __future__ import annotations

from gpudiag.advice._engine.proposal import Change, Proposal
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.measures.throttle import ThrottleProfile


@remedy(
    title="Restore the power limit",
    answers=("power-throttling",),
    tier=4,
    effort="an hour",
    pros=("full clocks",),
    cons=("a higher limit makes more heat and noise", "needs root, and changes it for all users"),
    refute="Clocks stay low at the board's default limit.",
    rollback="nvidia-smi -pl with the limit that nvidia-smi -q -d POWER gave before.",
)
def power_limit(now: Situation) -> Proposal | None:
    """A board whose limit was lowered runs below its clocks. At its own limit there is nothing to restore, and no limit
    cools a hot board but a lower one.
    """
    throttle = now.profile(ThrottleProfile)
    if throttle is None:
        return None
    lowered = throttle.per_gpu[throttle.per_gpu["is_lowered"] == True]  # noqa: E712 - NaN is unknown
    if lowered.empty:
        return None
    return Proposal(
        tuple(_restored(str(gpu), *map(float, row)) for gpu, row in lowered[["limit_w", "default_w"]].iterrows()),
        None,
        "The gain follows from the clocks under load: compare them.",
        verify_first="Ask whoever runs this machine.",
    )


def _restored(gpu: str, limit_w: float, default_w: float) -> Change:
    """One board by itself: others may have another limit, or need none."""
    index = gpu.rpartition("/")[2]
    own_w = round(default_w)
    code = f"nvidia-smi -i {index} -q -d POWER   # note the limit first\nsudo nvidia-smi -i {index} -pl {own_w}"
    return Change(f"power limit of GPU {gpu}, W", round(limit_w), own_w, code)
