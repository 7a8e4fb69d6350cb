"""Planted faults of the course: waits within the work, idle ends, memory held without work, a fall for good."""

from __future__ import annotations

import numpy as np

from gpudiag.rules._engine.verdict import Severity, Status
from gpudiag.run import Run
from planted.base import TOTAL_MIB, Edge, blocks, fault, log, run, ticks, trials

PERIOD_S = 100.0


@fault(
    "stalls-periodic",
    edges={
        "min_acf_ratio": Edge({"noise_pct": 18.0}, {"noise_pct": 15.0}, limit=0.7),
        "min_regular_pct": Edge({"noise_pct": 22.0}, {"noise_pct": 18.0}),
        "min_lost_pct": Edge({"low_pct": 47.0}, {"low_pct": 45.0}),
        "max_sampling_s": Edge({"low_pct": 47.0}, {"low_pct": 45.0}, Status.NOT_ASSESSED, limit=0.1),
        "severe_lost_pct": Edge(
            {"low_pct": 37.0, "width": 3}, {"low_pct": 27.0, "width": 3}, Severity.NOTE, Severity.WARNING
        ),
        "min_periods": Edge({"n_dips": 4}, {"n_dips": 5}),
    },
    bigger=({"low_pct": 30.0}, {"low_pct": 0.0}, {"low_pct": 0.0, "width": 4}, {"low_pct": 0.0, "width": 8}),
)
def periodic(*, low_pct: float = 30.0, width: int = 2, n_dips: int = 20, noise_pct: float = 0.0) -> Run:
    """Utilization dips to ``low_pct`` for ``width`` samples of 5 s every 100 s."""
    rng = np.random.default_rng(1)
    at = ticks((n_dips + 0.5) * PERIOD_S)
    util = np.full(len(at), 95.0)
    for dip in range(n_dips):
        util[10 + dip * 20 : 10 + dip * 20 + width] = low_pct
    util = np.clip(util + noise_pct * rng.standard_normal(len(at)), 0, 100)
    return run(log(at, util_pct=util), trials=trials([("COMPLETE", 0.0, at[-1] + 2.5)]))


WAITS = (127, 67, 149, 113, 172, 39, 5, 100, 159, 32, 185, 77)
"""First samples of waits, of 200, that no period explains, whichever first few are taken."""


@fault(
    "stalls-aperiodic",
    edges={
        "min_stalled_pct": Edge({"lengths": (4, 4, 4, 4, 3)}, {"lengths": (4, 4, 4, 4, 4)}),
        "min_peak_pct": Edge({"peak_pct": 49.0}, {"peak_pct": 50.0}),
        "max_sampling_s": Edge({"peak_pct": 49.0}, {"peak_pct": 50.0}, Status.NOT_ASSESSED, limit=0.1),
        "min_periods": Edge({"lengths": (6, 6, 6, 6)}, {"lengths": (5, 5, 5, 5, 5)}),
    },
    bigger=({"lengths": (5,) * 8}, {"lengths": (6,) * 12}),
)
def aperiodic(*, lengths: tuple[int, ...] = (5, 5, 5, 5, 5), peak_pct: float = 90.0) -> Run:
    """The GPU waits five times for 25 s, at uneven times within 1,000 s."""
    # lengths are in samples of 5 s
    at = ticks(1000.0)
    util = np.full(len(at), peak_pct)
    for first, length in zip(WAITS, lengths, strict=False):
        util[first : first + length] = 0.0
    return run(log(at, util_pct=util), trials=trials([("COMPLETE", 0.0, 1000.0)]))


@fault(
    "idle-before-work",
    edges={"max_lead_s": Edge({"lead_s": 1200.0}, {"lead_s": 1205.0})},
    bigger=({"lead_s": 2400.0}, {"lead_s": 7200.0}),
)
def lead(*, lead_s: float = 1500.0) -> Run:
    """A process has the GPU, which is idle for ``lead_s`` before ten minutes of work."""
    at = ticks(lead_s + 600.0)
    idle = at < lead_s
    return run(log(at, util_pct=np.where(idle, 0.0, 95.0), mem_used_mib=np.where(idle, 1200.0, 9000.0)))


@fault(
    "idle-after-work",
    edges={"max_trail_s": Edge({"trail_s": 600.0}, {"trail_s": 605.0})},
    bigger=({"trail_s": 1200.0}, {"trail_s": 7200.0}),
)
def trail(*, trail_s: float = 800.0) -> Run:
    """A process has the GPU, which is idle for ``trail_s`` after ten minutes of work."""
    at = ticks(600.0 + trail_s)
    idle = at > 600.0
    return run(log(at, util_pct=np.where(idle, 0.0, 95.0), mem_used_mib=np.where(idle, 1200.0, 9000.0)))


@fault(
    "gpu-allocated-idle",
    edges={"max_idle_s": Edge({"idle_s": 600.0}, {"idle_s": 605.0})},
    bigger=({"idle_s": 1200.0}, {"idle_s": 7200.0}, {"idle_s": 7200.0, "held_mib": TOTAL_MIB}),
)
def allocated(*, idle_s: float = 800.0, held_mib: float = 9000.0) -> Run:
    """The GPU is at 0 % for ``idle_s``, with ``held_mib`` of memory in use, and never works."""
    return run(log(ticks(idle_s), util_pct=0.0, mem_used_mib=held_mib))


@fault(
    "idle-between-work",
    edges={
        "max_pause_s": Edge({"idle_s": 600.0}, {"idle_s": 605.0}),
        "max_sampling_s": Edge({"idle_s": 600.0}, {"idle_s": 605.0}, Status.NOT_ASSESSED, limit=0.1),
        "severe_pause_pct": Edge({"idle_s": 1195.0}, {"idle_s": 1200.0}, Severity.NOTE, Severity.WARNING),
    },
    bigger=({"idle_s": 1000.0}, {"idle_s": 2400.0}, {"idle_s": 7200.0}, {"idle_s": 7200.0, "n_pauses": 3}),
)
def between(*, idle_s: float = 800.0, n_pauses: int = 1) -> Run:
    """The GPU is idle for ``idle_s`` in the middle of three hours of work, and its memory is free meanwhile."""
    at = ticks(10_800.0 + n_pauses * idle_s)
    cycle_s = 10_800.0 / (n_pauses + 1) + idle_s
    idle = at % cycle_s > cycle_s - idle_s
    return run(log(at, util_pct=np.where(idle, 0.0, 95.0), mem_used_mib=np.where(idle, 350.0, 9000.0)))


@fault(
    "gpu-level-shift",
    edges={
        "min_fall_pct": Edge({"fall_pct": 19.5}, {"fall_pct": 20.5}),
        "min_share_pct": Edge({"share": 0.09}, {"share": 0.11}),
    },
    bigger=({"fall_pct": 40.0}, {"fall_pct": 70.0}, {"fall_pct": 70.0, "share": 0.6}),
)
def shift(*, fall_pct: float = 30.0, share: float = 0.4) -> Run:
    """The GPU is at 90 % for two hours, but lower by ``fall_pct`` of a whole GPU in the last ``share`` of them."""
    at = ticks(7200.0)
    wobble = 1.0 * np.sin(np.arange(len(at)) * 2.4)
    return run(log(at, util_pct=blocks(len(at), share, 90.0 - fall_pct, 90.0) + wobble))
