"""How many workers each GPU has: as the log shows it, and with other workers beside them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpudiag.forecast.parallelism.handover import Handover, handovers
from gpudiag.measures._time.window import TimedTrials
from gpudiag.run import Run

Placement = tuple[int, ...]
"""Workers by GPU, in the order of the log's GPUs."""
MAJORITY = 0.5
"""Workers stay where most of their time had them; where no placement had that, trials go wherever there is room."""


def evenly(workers: int, gpus: int) -> Placement:
    """As many on each GPU, the first ones with what is over."""
    return tuple(workers // gpus + (gpu < workers % gpus) for gpu in range(gpus))


def with_workers(now: Placement, workers: int) -> Placement:
    """The nearest placement of so many: each further one joins the GPU with the fewest, of fewer the fullest loses one.

    A placement that is even stays so.
    """
    placed = list(now)
    while sum(placed) < workers:
        placed[placed.index(min(placed))] += 1
    while sum(placed) > workers:
        last_fullest = len(placed) - 1 - placed[::-1].index(max(placed))
        placed[last_fullest] -= 1
    return tuple(placed)


def gpu_of_workers(placed: Placement) -> np.ndarray:
    """The GPU of each worker: dealt out in turn, as far as each GPU has room."""
    turns = [(turn, gpu) for gpu, number in enumerate(placed) for turn in range(number)]
    return np.array([gpu for _, gpu in sorted(turns)], np.int64)


def usual_placements(
    run: Run, trials: TimedTrials, places: Mapping[str, np.ndarray], handover: Handover
) -> dict[int, Placement]:
    """By number of workers the placement that most of the time with so many had; none where none did.

    ``places``: positions of the trials on each GPU. A trial on several GPUs counts on each, and then no number is that
    of the workers.
    """
    each = [handovers(run, trials.at(some)) for some in places.values()]
    times = np.unique(np.concatenate([one.workers_us for one in each]))
    numbers = np.stack([one.workers_at(times[:-1]) for one in each], axis=1)
    kinds, which = np.unique(numbers, axis=0, return_inverse=True)
    held_us = np.bincount(which.ravel(), np.diff(times), len(kinds))
    out: dict[int, Placement] = {}
    for kind, us in zip(kinds.tolist(), held_us.tolist(), strict=True):
        low, high = handover.periods(sum(kind))
        if us > MAJORITY * float((high - low).sum()) > 0:
            out[sum(kind)] = tuple(kind)
    return out
