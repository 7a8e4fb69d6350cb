"""Planted faults of the hardware: heat, power, clocks, readings that cannot be, errors in the logs."""

from __future__ import annotations

import numpy as np

from gpudiag.rules._engine.verdict import Severity, Status
from gpudiag.run import Run
from planted.base import CLOCK_MHZ, LIMIT_W, Edge, blocks, events, fault, log, run, ticks

SECONDS = 1000.0


@fault(
    "power-implausible",
    edges={
        "": Edge({"peak_w": 1.29 * LIMIT_W}, {"peak_w": 1.31 * LIMIT_W}, Status.OK, Severity.NOTE),
        "frozen_s": Edge({"n": 11, "peak_w": 900.0}, {"n": 12, "peak_w": 900.0}, Severity.NOTE, Severity.WARNING),
        "max_over_limit_pct": Edge(
            {"n": 10, "peak_w": 1.2 * LIMIT_W}, {"n": 11, "peak_w": 1.2 * LIMIT_W}, Status.OK, Severity.WARNING
        ),
    },
    bigger=({"peak_w": 800.0}, {"peak_w": 2000.0, "n": 5}, {"peak_w": 2000.0, "n": 100}),
)
def implausible(*, peak_w: float = 700.0, n: int = 6) -> Run:
    """On a board of 450 W whose sensor averages, ``n`` readings in a row are ``peak_w``."""
    at = ticks(SECONDS)
    return run(log(at, power_w=np.where((np.arange(len(at)) >= 50) & (np.arange(len(at)) < 50 + n), peak_w, 380.0)))


def _bits(share: float, bit: int) -> np.ndarray:
    return blocks(round(SECONDS / 5), share, bit, 0)


@fault(
    "thermal-throttling",
    edges={"max_share_pct": Edge({"share": 0.05}, {"share": 0.055})},
    bigger=({"share": 0.3}, {"share": 1.0}),
)
def thermal(*, share: float = 0.1) -> Run:
    """Thermal slow-down lowers the clock to 80 % for ``share`` of the time."""
    bits = _bits(share, 0x20)
    clock = np.where(bits > 0, 0.8 * CLOCK_MHZ, CLOCK_MHZ)
    return run(log(ticks(SECONDS), throttle_reasons=bits, sm_clock_mhz=clock, temp_c=84.0))


@fault(
    "hardware-slowdown",
    edges={"max_share_pct": Edge({"share": 0.05}, {"share": 0.055})},
    bigger=({"share": 0.3}, {"share": 1.0}, {"share": 1.0, "bit": 0x8}),
)
def braked(*, share: float = 0.1, bit: int = 0x80) -> Run:
    """The power brake of the machine halves the clock for ``share`` of the time."""
    bits = _bits(share, bit)
    return run(log(ticks(SECONDS), throttle_reasons=bits, sm_clock_mhz=np.where(bits > 0, CLOCK_MHZ / 2, CLOCK_MHZ)))


LOWERED_W = 0.9 * LIMIT_W


@fault(
    "power-throttling",
    edges={
        "max_share_pct": Edge({"share": 0.05}, {"share": 0.055}, past_gives=Severity.WARNING),
        "min_capped_pct": Edge(
            {"share": 0.495, "clock_mhz": CLOCK_MHZ, "limit_w": LOWERED_W},
            {"share": 0.505, "clock_mhz": CLOCK_MHZ, "limit_w": LOWERED_W},
            past_gives=Severity.NOTE,
        ),
    },
    bigger=({"share": 0.3}, {"share": 0.9}, {"share": 0.9, "clock_mhz": 900.0}),
)
def capped(*, share: float = 0.1, clock_mhz: float = 0.79 * CLOCK_MHZ, limit_w: float = LIMIT_W) -> Run:
    """The power cap lowers the clock to ``clock_mhz`` for ``share`` of the time; the board's own limit is 450 W."""
    at = ticks(SECONDS)
    bits = _bits(share, 0x4)
    clock = np.where(bits > 0, clock_mhz, CLOCK_MHZ)
    return run(log(at, throttle_reasons=bits, sm_clock_mhz=clock, power_limit_w=limit_w))


@fault(
    "clocks-low",
    edges={
        "max_clock_pct": Edge({"ratio": 0.60}, {"ratio": 0.59}),
        "min_share_pct": Edge({"share": 0.495, "ratio": 0.3}, {"share": 0.505, "ratio": 0.3}),
    },
    bigger=({"ratio": 0.4}, {"ratio": 0.1, "share": 0.95}),
)
def slow(*, ratio: float = 0.5, share: float = 0.9) -> Run:
    """The clock is at ``ratio`` times its maximum for ``share`` of the time."""
    at = ticks(SECONDS)
    return run(log(at, sm_clock_mhz=blocks(len(at), share, ratio * CLOCK_MHZ, CLOCK_MHZ)))


@fault(
    "temperature-high",
    edges={"max_hot_s": Edge({"hot_s": 60.0}, {"hot_s": 65.0})},
    bigger=({"hot_s": 300.0}, {"hot_s": 1000.0, "temp_c": 95.0}),
)
def hot(*, hot_s: float = 120.0, temp_c: float = 87.0) -> Run:
    """The GPU is at ``temp_c``, where it slows down, for ``hot_s``."""
    at = ticks(SECONDS)
    return run(log(at, temp_c=np.where(at < hot_s, temp_c, 80.0)))


@fault(
    "power-fault-throttling",
    edges={"max_frozen_s": Edge({"frozen_s": 60.0}, {"frozen_s": 65.0})},
    bigger=({"frozen_s": 300.0}, {"frozen_s": 900.0}),
)
def frozen(*, frozen_s: float = 120.0) -> Run:
    """The GPU reports 900 W, the power cap and its lowest clock for ``frozen_s``."""
    at = ticks(SECONDS)
    stuck = at < frozen_s
    return run(
        log(at, power_w=np.where(stuck, 900.0, 380.0), throttle_reasons=np.where(stuck, 4, 0),
            sm_clock_mhz=np.where(stuck, 210.0, CLOCK_MHZ))
    )  # fmt: skip


BENIGN = ("xid", "NVRM: Xid (PCI:0000:01:00): 31, pid=1, MMU Fault")


@fault("gpu-lost", edges={"max_events": Edge({"n": 0}, {"n": 1})}, bigger=({"n": 3}, {"n": 50}))
def lost(*, n: int = 1) -> Run:
    """Beside an Xid that a program caused, nvidia-smi says of ``n`` GPUs twice that each is lost."""
    told = [
        (
            "gpu_lost",
            f"Unable to determine the device handle for GPU 0000:{bus:02x}:00.0: GPU is lost. Reboot the system",
        )
        for bus in range(1, n + 1)
    ]
    return run(log(ticks(SECONDS)), events=events([BENIGN, *told, *told]))


@fault(
    "gpu-hardware-errors",
    edges={
        "max_events": Edge({"n": 0}, {"n": 1}),
        "": Edge({"n": 0, "ecc": (5.0, 5.0)}, {"n": 0, "ecc": (5.0, 6.0)}, Severity.WARNING, Severity.CRITICAL),
    },
    bigger=({"n": 3}, {"n": 50}, {"n": 0, "ecc": (0.0, 12.0)}),
)
def broken(*, n: int = 1, ecc: tuple[float, float] = (0.0, 0.0)) -> Run:
    """A kernel log holds an Xid that a program caused, and ``n`` of the GPU's memory; its counter of uncorrectable
    ECC errors goes from the first number to the second.
    """
    told = ("xid", "NVRM: Xid (PCI:0000:01:00): 63, pid=1, row remapper")
    at = ticks(SECONDS)
    counter = np.where(at < SECONDS / 2, *ecc)
    return run(log(at, ecc_uncorrected=counter), events=events([BENIGN, *[told] * n]))
