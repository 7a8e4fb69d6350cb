"""The unit that a name carries, and what units are to each other."""

from __future__ import annotations

from functools import lru_cache

SECOND_US = 1_000_000
MIB_PER_GIB = 1024
BYTES_PER_MIB = 2**20
MIB_PER_BYTE = 1 / BYTES_PER_MIB
DAY_S = 86_400.0
FIRST_YEAR, LAST_YEAR = 1990, 2200
"""Timestamps outside are no dates: GPU logs start with CUDA, earlier ones count from the beginning of their log, and a
torn '026/02/15' is the year 26.
"""

UNITS = {
    "_pct_h": "%/h", "_pct": "%", "_mib_s": "MiB/s", "_mib": "MiB", "_gib": "GiB", "_w": "W", "_kwh": "kWh", "_c": "°C",
    "_mhz": "MHz", "_gpu_h": "GPU-h", "_gpu_s": "GPU-s", "_worker_s": "worker-s", "_worker_h": "worker-h",
    "_h": "h", "_ms": "ms", "_s": "s", "_j": "J", "_tflops": "TFLOP/s",
}  # fmt: skip


@lru_cache(4096)
def unit_of(name: str) -> str:
    """The unit that a name carries: ``mean_power_w`` is in W; '1' where it carries none."""
    for suffix in sorted(UNITS, key=len, reverse=True):
        if name.endswith(suffix):
            return UNITS[suffix]
    return "1"
