"""The ledger over time: for each GPU unbroken stretches in one category."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpudiag.measures._gpu.gpu_rows import gpu_order
from gpudiag.measures._time.ledger_frames import coarser
from gpudiag.measures._time.microseconds import microseconds
from gpudiag.measures._time.timeline import CELLS
from gpudiag.measures.ledger import LedgerProfile

LEAST_STEPS = 200


@dataclass(frozen=True, eq=False)
class Ribbon:
    """One GPU: borders (µs) of its stretches, and the place of each one's category in CELLS."""

    gpu: str
    start_us: np.ndarray
    end_us: np.ndarray
    cell: np.ndarray


def ribbons(ledger: LedgerProfile, most: int) -> tuple[Ribbon, ...]:
    """The stretches of each GPU; where all are more than ``most``, even steps, each with what held most of it."""
    spans = ledger.spans
    steps = max(most // max(ledger.n_gpus, 1), LEAST_STEPS)
    parts = {str(gpu): part for gpu, part in spans.groupby("gpu", sort=False)}
    made = []
    for gpu in gpu_order(parts):
        start, end = microseconds(parts[gpu]["start"]), microseconds(parts[gpu]["end"])
        cell = np.array([CELLS.index(name) for name in parts[gpu]["cell"]], np.int8)
        if len(spans) > most and len(start) > steps:
            start, end, cell = coarser(start, end, cell, steps)
        made.append(Ribbon(gpu, start, end, cell.astype(np.uint8)))
    return tuple(made)
