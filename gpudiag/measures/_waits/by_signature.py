"""What the samples beside a GPU's make likely where no source says what it waited for."""

from __future__ import annotations

import numpy as np

from gpudiag.measures._gpu.signatures import signatures
from gpudiag.measures._time.work import stretches
from gpudiag.measures._waits.bounds import Waits
from gpudiag.measures._waits.pieces import UnusedTime
from gpudiag.run import Run

CLASSES = ("io_wait", "cpu_bound", "launch_bound", "small_work")
"""Signatures of an idle GPU that name a cause; the others are those of a busy one."""


def signature_waits(run: Run, gpu: str, part: UnusedTime, free: float) -> Waits:
    """The time without a kernel of the samples with such a signature, as far as other sources leave some: ``free``
    seconds. At least nothing, for what is busy beside an idle GPU need not be what it waits for.
    """
    waits, found = Waits("signature"), signatures(run).get(gpu)
    if found is None or not len(part.start_us):
        return waits
    low, high = np.searchsorted(found.work.end_us, part.start_us[0], "right"), part.end_us[-1]
    own = slice(int(low), int(np.searchsorted(found.work.start_us, high)))
    start_us, end_us = found.work.start_us[own], found.work.end_us[own]
    for name in CLASSES:
        first, last = stretches(found.of_class(name)[own], start_us, end_us)
        unused, _ = part.between(start_us[first], end_us[last])
        idle_s = min(float(np.sum(unused)), max(free, 0.0))
        free -= waits.add(name, idle_s, 0.0, idle_s)
    return waits
