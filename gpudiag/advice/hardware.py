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
    limit_w, default_w = (round(float(lowered[name].min())) for name in ("limit_w", "default_w"))
    code = f"nvidia-smi -q -d POWER   # note the limits first\nsudo nvidia-smi -pl {default_w}   # add -i for one GPU"
    return Proposal(
        (Change("power limit, W", limit_w, default_w, code),),
        None,
        "The gain follows from the clocks under load: compare them.",
        verify_first="Ask whoever runs this machine.",
    )
