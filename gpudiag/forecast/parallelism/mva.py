"""Mean value analysis: the queueing model of ten lines, for comparison (METHODS 10)."""

from __future__ import annotations

from gpudiag.forecast.parallelism.placement import Placement

STEPS = 60


def mva_throughput(workers: int, busy_s: float, other_s: float) -> float:
    """Trials per second of ``workers`` trials that each need ``busy_s`` of the GPU and ``other_s`` elsewhere.

    Exact MVA of one queueing station and one delay (Reiser and Lavenberg, JACM 27 (1980) 313).
    """
    queue, rate = 0.0, 0.0
    for k in range(1, workers + 1):
        response = busy_s * (1.0 + queue)
        rate = k / (other_s + response)
        queue = rate * response
    return rate


def placed_throughput(placed: Placement, busy_s: float, other_s: float) -> float:
    """The same of workers on several GPUs, each GPU by itself."""
    return sum(mva_throughput(workers, busy_s, other_s) for workers in placed)


def calibrated_other(placed: Placement, busy_s: float, rate: float) -> float:
    """Seconds elsewhere at which these workers reach ``rate`` (trials per second); NaN where even none is too slow."""
    low, high = 0.0, sum(placed) / rate
    if placed_throughput(placed, busy_s, low) < rate:
        return float("nan")
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if placed_throughput(placed, busy_s, middle) > rate else (low, middle)
    return (low + high) / 2
