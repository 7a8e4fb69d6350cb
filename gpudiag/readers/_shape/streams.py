"""The order in which rows were written, where GPUs take turns in a log or one follows the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from gpudiag.readers._shape.coded import Coded


def streams(lines: np.ndarray | None, gpus: Any, size: int) -> list[np.ndarray]:
    """Positions of rows in the order of their lines: those of GPUs that take turns together, others by themselves.

    Args:
        lines: line numbers; None if rows are given in the order in which they were written.
        gpus: the GPU of each row; None in a table of the machine.
        size: how many rows there are.
    """
    order = np.arange(size) if lines is None else np.argsort(lines, kind="stable")
    if gpus is None:
        return [order]
    code = (gpus.codes if isinstance(gpus, Coded) else pd.factorize(np.asarray(gpus))[0])[order]
    last = np.empty(int(code.max()) + 2, dtype=np.int64)
    last[code] = np.arange(size)  # of several rows of one GPU the last is written last
    ends = np.maximum.accumulate(last[code]) == np.arange(size)
    return np.split(order, np.flatnonzero(ends[:-1]) + 1)
