"""Remedies on the machine itself."""

from __future__ import annotations

from gpudiag.advice._engine.proposal import Change, Proposal
from gpudiag.advice._engine.remedy import remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.measures.throttle import ThrottleProfile

POWER_LIMIT = "power limit of GPU"
"""How the change of one begins, with the boards behind it."""


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
    limits = lowered.assign(limit_w=lowered["limit_w"].round(), default_w=lowered["default_w"].round())
    alike = sorted(limits.groupby(["limit_w", "default_w"], sort=False), key=lambda group: -len(group[1]))
    return Proposal(
        tuple(
            _restored([str(gpu) for gpu in boards.index], int(now_w), int(own_w)) for (now_w, own_w), boards in alike
        ),
        None,
        "The gain follows from the clocks under load: compare them.",
        verify_first="Ask whoever runs this machine.",
    )


def _restored(gpus: list[str], limit_w: int, own_w: int) -> Change:
    """Boards of one limit, each by itself: others may have another limit, or need none."""
    places = [gpu.rpartition("/")[2] for gpu in gpus]
    code = ["nvidia-smi -q -d POWER   # note the limits first"]
    code += [f"sudo nvidia-smi -i {index} -pl {own_w}" for index in places]
    return Change(f"{POWER_LIMIT}{'s' if gpus[1:] else ''} {', '.join(gpus)}, W", limit_w, own_w, "\n".join(code))
