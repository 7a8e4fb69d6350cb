"""A GPU that several trials share: U(k), and progress in virtual time."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable
from math import prod

from gpudiag.simulation.spec import Gpu


def busy_share(gpu: Gpu, shares: Iterable[float]) -> float:
    """U: the share of time with a kernel running when loads of these solo shares run at once."""
    if gpu.sharing == "saturating":
        return min(gpu.ceiling_pct / 100.0, sum(shares))
    return min(gpu.ceiling_pct / 100.0, 1.0 - prod(1.0 - share for share in shares))


def speed(gpu: Gpu, shares: Iterable[float]) -> float:
    """Progress per second of each load, 1 when alone: U / sum of shares, less the overhead of company."""
    present = list(shares)
    return _speed(gpu, present, busy_share(gpu, present))


def _speed(gpu: Gpu, shares: Collection[float], busy: float) -> float:
    if not shares:
        return 0.0
    company = (1.0 - gpu.overhead_pct / 100.0) ** (len(shares) - 1)
    return busy / sum(shares) * company


class SharedGpu:
    """Processor sharing: all loads progress at one common speed, so that one clock of work serves them all.

    ``trace`` holds (time_s, busy share) at each change.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.trace: list[tuple[float, float]] = []
        self._shares: dict[int, float] = {}
        self._targets: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []
        self._work = 0.0
        self._at = 0.0
        self._speed = 0.0

    def join(self, at: float, key: int, share: float, work_s: float | None) -> None:
        """Load ``key`` starts; ``work_s`` None is a load that stays until :meth:`leave`."""
        self._advance(at)
        self._shares[key] = share
        if work_s is not None:
            self._targets[key] = self._work + work_s
            heapq.heappush(self._heap, (self._targets[key], key))
        self._changed()

    def leave(self, at: float, key: int) -> float:
        """Load ``key`` stops; returns the solo seconds of work it had left."""
        self._advance(at)
        self._shares.pop(key)
        left = max(self._targets.pop(key, self._work) - self._work, 0.0)
        self._changed()
        return left

    def holds(self, key: int) -> bool:
        """True while load ``key`` is on the GPU."""
        return key in self._shares

    def next_end(self) -> tuple[float, int] | None:
        """When the next load finishes its work, and which; None where none will."""
        while self._heap and self._targets.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        if not self._heap:
            return None
        target, key = self._heap[0]
        return self._at + max(target - self._work, 0.0) / self._speed, key

    def _advance(self, at: float) -> None:
        self._work += (at - self._at) * self._speed
        self._at = at

    def _changed(self) -> None:
        present = self._shares.values()
        busy = busy_share(self.gpu, present)
        self._speed = _speed(self.gpu, present, busy)
        self.trace.append((self._at, busy))
