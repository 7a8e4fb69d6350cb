"""Remedies on the machine itself."""

from __future__ import annotations

from gpudiag.advice._engine.proposal import Change, Proposal
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.measures.power import GpuPower

LIMITED = ("thermal-throttling", "power-throttling", "power-fault-throttling", "clocks-low", "temperature-high")


@remedy(
    title="Cool the GPU, or restore its power limit",
    answers=LIMITED,
    tier=4,
    effort="an hour",
    pros=("full clocks",),
    cons=("a higher limit makes more heat and noise", "needs root, and changes it for all users"),
    refute="Clocks stay low on a cool board at its default limit.",
    rollback="nvidia-smi -pl with the limit that nvidia-smi -q -d POWER gave before.",
)
def power_and_cooling(now: Situation) -> Proposal | None:
    """Too hot, or capped below its default, a board runs below its clocks; an efficient job at its cap does not."""
    limit = now.least(GpuPower.limit_w)
    code = "nvidia-smi -q -d POWER,TEMPERATURE,PERFORMANCE   # note the limits first\nsudo nvidia-smi -pl DEFAULT_WATTS"
    return Proposal(
        (Change("power limit, W", round(limit) if limit > 0 else None, "the board's default", code),),
        None,
        "The gain follows from the clocks under load: compare them.",
        verify_first="Ask whoever runs this machine.",
    )
