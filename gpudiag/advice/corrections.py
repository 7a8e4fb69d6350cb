"""What is often concluded from a run like this, and what its own numbers say (METHODS 0.1)."""

from __future__ import annotations

from gpudiag.advice.parallelism import START_UP_SHARE_PCT
from gpudiag.advice.situation import Situation


def corrections(now: Situation) -> tuple[str, ...]:
    """Sentences, each with its numbers; only those that apply to this run."""
    return tuple(filter(None, (_ceiling(now), _startup(now), _headroom(now), _proportion(now))))


def _ceiling(now: Situation) -> str:
    if not now.bounds.fill > 0:
        return ""
    return (
        f"GPUs at work were {now.bounds.busy_pct:.1f} % busy, so that filling every idle second brings at most "
        f"x{now.bounds.fill:.2f}, however many changes are combined: factors multiply up to that, and percentages do "
        "not add."
    )


def _startup(now: Situation) -> str:
    share, k = now.bounds.startup_pct, now.bounds.parallel
    if not (share >= START_UP_SHARE_PCT > now.bounds.startup_only_pct):
        return ""
    only, law = now.bounds.startup_only_pct, now.bounds.startup_law_pct
    return (
        f"Start-up does not dominate GPU time: it takes F = {share:.1f} % of the slots, but with k = {k:.2f} trials "
        f"at once others train meanwhile. Nothing but start-ups were on the GPU for {only:.1f} % of the time "
        f"(F^k = {law:.1f} % if starts were independent). Removing them all brings at most x{now.bounds.startup:.2f}."
    )


def _headroom(now: Situation) -> str:
    if not now.has("memory-headroom"):
        return ""
    return (
        "Free memory says what fits, not what is faster: a batch B' in place of B brings between nothing and "
        "min(B'/B, 1/u)."
    )


def _proportion(now: Situation) -> str:
    if not now.has("memory-near-limit", "failures-out-of-memory") or not (now.parallel or 0) > 1:
        return ""
    return (
        "Throughput is not in proportion to trials at once: on one GPU they slow each other down, and failed trials "
        "and restarts cost time too. Fewer at once lose less than their number."
    )
