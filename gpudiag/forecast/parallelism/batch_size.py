"""What a larger batch could bring, and the two-minute experiment that tells (METHODS 10)."""

from __future__ import annotations

from dataclasses import dataclass

from gpudiag.forecast.document import BatchEntry, BatchGain
from gpudiag.forecast.estimate import Estimate

FACTORS = (2, 4, 8)
DESIGN = (
    "Train for two minutes with the present batch B and two minutes with 2 B, nothing else on the GPU, and note the "
    "seconds per step t(B) and t(2B) without the first 20 s. The line through both, t = c0 + c1 B, gives the gain at "
    "any B': (B'/B) t(B)/t(B'). If t(2B) is t(B), a larger batch is free; if it is 2 t(B), it brings nothing."
)
REASON = (
    "One batch size does not tell how much of a step is fixed cost, nor utilization how full the GPU is while a kernel "
    "runs: a larger batch brings between nothing and its factor, as far as memory allows."
)


@dataclass(frozen=True)
class BatchTest:
    """``gains``: by factor of the batch, samples per second over now, 1 <= G <= B'/B. ``design``: a test."""

    gains: tuple[tuple[int, Estimate], ...]
    design: str = DESIGN

    @property
    def document(self) -> BatchEntry:
        """As the document of a forecast holds it."""
        return BatchEntry(tuple(BatchGain(factor, gain) for factor, gain in self.gains), self.design)


def batch_test() -> BatchTest:
    """Bounds that hold whatever a step costs. Accuracy is another matter."""
    return BatchTest(tuple((factor, Estimate.bounds(1.0, float(factor), "", REASON)) for factor in FACTORS))
