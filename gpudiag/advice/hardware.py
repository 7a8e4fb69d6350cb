"""Remedies on the machine itself."""

from __future__ import annotations

from gpudiag.advice._engine.proposal import Change, Proposal
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.measures.power import GpuPower
from gpudiag.measures.throttle import ThrottleProfile
from gpudiag.rules._engine.verdict import Severity

LIMITED = (
    "thermal-throttling",
    "power-throttling",
    "power-fault-throttling",
    "clocks-low",
    "temperature-high",
)


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
    if not now.has(*(set(LIMITED) - {"power-throttling"})) and not _is_below_its_own_limit(now):
        return None
    limit = now.least(GpuPower.limit_w)
    code = "nvidia-smi -q -d POWER,TEMPERATURE,PERFORMANCE   # note the limits first\nsudo nvidia-smi -pl DEFAULT_WATTS"
    return Proposal(
        (Change("power limit, W", round(limit) if limit > 0 else None, "the board's default", code),),
        None,
        "The gain follows from the clocks under load: compare them.",
        verify_first="Ask whoever runs this machine.",
    )


def _is_below_its_own_limit(now: Situation) -> bool:
    """False where the finding on the power limit is a note on a board at its own limit: there is none to restore."""
    found, throttle = now.found.get("power-throttling"), now.profile(ThrottleProfile)
    if found is None or found.severity is not Severity.NOTE or throttle is None:
        return True
    return bool((throttle.per_gpu["is_lowered"] == True).any())  # noqa: E712 - NaN is unknown
