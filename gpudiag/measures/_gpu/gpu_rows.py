"""Where the rows of each GPU stand."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.schema import gpu_index

MANY_GPUS = 64


def by_gpu(samples: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each GPU of :func:`cells`, in its order."""
    return [(gpu, samples.iloc[own]) for gpu, own in slices(samples)]


def slices(samples: pd.DataFrame) -> list[tuple[str, slice]]:
    """Where the rows of each GPU of :func:`cells` lie, for columns as arrays: of hundreds of GPUs far quicker."""
    edges = _edges(samples["gpu"])
    labels = samples["gpu"].iloc[edges[:-1]].tolist()
    return [(str(gpu), slice(low, high)) for gpu, (low, high) in zip(labels, pairwise(edges), strict=True)]


def of_its_gpu(samples: pd.DataFrame, per_gpu: pd.Series) -> np.ndarray:
    """For each row of :func:`cells` the number that its GPU has in ``per_gpu``; NaN where it has none."""
    known = per_gpu.astype(float).to_dict()
    parts = [np.full(own.stop - own.start, known.get(gpu, np.nan)) for gpu, own in slices(samples)]
    return np.concatenate(parts) if parts else np.empty(0)


def edges_of_codes(code: np.ndarray) -> list[int]:
    """Where each stretch of equal codes begins, and the end; nothing for no code."""
    return [0, *(np.flatnonzero(code[1:] != code[:-1]) + 1).tolist(), len(code)] if len(code) else []


def _edges(column: pd.Series) -> list[int]:
    """Where each run of equal labels begins, and the end. Few are looked for one by one, many by a look at each row."""
    labels, edges = column.array, [0] if len(column) else []
    while edges and edges[-1] < len(labels):
        if len(edges) > MANY_GPUS:
            return edges_of_codes(pd.factorize(column)[0])
        edges.append(_end(labels, edges[-1]))
    return edges


def _end(labels: Any, low: int) -> int:
    """Where the run of equal labels that begins at ``low`` ends; equal labels stand together."""
    label = labels[low]
    if labels[-1] == label:  # the last run, mostly the only one
        return len(labels)
    return bisect_left(range(len(labels)), True, lo=low, key=lambda at: bool(labels[at] != label))


def gpu_order(names: Iterable[object]) -> list[str]:
    """GPU names in the order a person expects: 0, 1, 2, 10, then text."""
    return sorted(map(str, names), key=lambda name: ((index := gpu_index(name)) is None, index or 0, name))
