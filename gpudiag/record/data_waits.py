"""How long a training loop waits for its batches, as events of the recording that are read as a log's lines on it."""

from __future__ import annotations

import time
from collections.abc import Callable

EVERY_S = 60.0
"""One event is of so long at most: a kill loses no more, and the worst stretch of a run is seen."""


class DataWaits:
    """Waits since the last event. A step is what passes from one batch to the next of the same loop."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._before_s: float | None = None
        self._clear()

    def begin(self) -> None:
        """A loop begins: what has passed since the last batch of another was no step."""
        self._before_s = None

    def add(self, wait_s: float) -> None:
        """A batch has come, behind a wait of that long."""
        now_s = self._clock()
        if self._before_s is not None:
            self._steps_s += now_s - self._before_s
            self._n_steps += 1
        self._before_s = now_s
        self._wait_s += wait_s
        self._n += 1

    @property
    def is_due(self) -> bool:
        return self._n > 0 and self._clock() - self._began_s >= EVERY_S

    def take(self) -> str:
        """What was seen, in the words that ``gpudiag`` reads; empty without a batch. The next event begins here."""
        text = ""
        if self._n:
            text = f"DataLoader avg {round(1000 * self._wait_s / self._n, 2)} ms over {self._n} batches"
        if self._steps_s > 0:
            text += f", {round(self._n_steps / self._steps_s, 4)} batch/s"
        self._clear()
        return text

    def _clear(self) -> None:
        self._began_s = self._clock()
        self._n = self._n_steps = 0
        self._wait_s = self._steps_s = 0.0
