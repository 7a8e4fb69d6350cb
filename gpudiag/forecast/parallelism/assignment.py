"""Which GPU the next trial goes to, where there are several."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

Policy = Literal["round robin", "least loaded", "by memory"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
"""``round robin``: worker i stays on GPU i modulo their number, so that all are spread evenly. ``least loaded``: the
GPU with the fewest trials. ``by memory``: the GPU with the least memory held."""


def choose_gpu(
    policy: Policy, gpu: np.ndarray, worker: np.ndarray, held_mib: np.ndarray | None, gpus: int
) -> np.ndarray:
    """The GPU for the ``worker`` of each row, shape (n,); of equals the first.

    ``gpu`` and ``held_mib`` (n, workers) say where every worker's trial runs and what it holds; the worker's own last
    trial has ended and does not count. Without memory, trials count alike.
    """
    others = np.arange(gpu.shape[1])[None, :] != worker[:, None]
    weight = others.astype(float)
    if policy == "by memory" and held_mib is not None:
        weight = weight * held_mib
    load = np.stack([(weight * (gpu == index)).sum(axis=1) for index in range(gpus)], axis=1)
    return np.asarray(load.argmin(axis=1))
