"""Mean value analysis: the queueing model of ten lines, for comparison (METHODS 10)."""

from __future__ import annotations

STEPS = 60


def mva_throughput(workers: float, busy_s: float, other_s: float) -> float:
    """Trials per second of ``workers`` trials that each need ``busy_s`` of the GPU and ``other_s`` elsewhere.

    Exact MVA of one queueing station and one delay (Reiser and Lavenberg, JACM 27 (1980) 313); between whole numbers
    of workers it is linear.
    """
    queue, rate, whole = 0.0, 0.0, int(workers)
    rates = [0.0]
    for k in range(1, whole + 2):
        response = busy_s * (1.0 + queue)
        rate = k / (other_s + response)
        queue = rate * response
        rates.append(rate)
    return rates[whole] + (workers - whole) * (rates[whole + 1] - rates[whole])


def calibrated_other(workers: float, busy_s: float, rate: float) -> float:
    """Seconds elsewhere at which ``workers`` reach ``rate`` (trials per second); NaN where even none is too slow."""
    low, high = 0.0, workers / rate
    if mva_throughput(workers, busy_s, low) < rate:
        return float("nan")
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if mva_throughput(workers, busy_s, middle) > rate else (low, middle)
    return (low + high) / 2
