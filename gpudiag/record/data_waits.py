"""How long a training loop waits for its batches, as events of the recording that are read as a log's lines on it."""

from __future__ import annotations

import time
from collections.abc import Callable

EVERY_S = 60.0
"""One event is of so long at most: a kill loses no more, and the worst stretch of a run is seen."""


class DataWaits:
    """Waits since the last event. The time of a loop, between its beginning and its end, is that of its steps."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._before_s: float | None = None
        self._n_loops = 0
        self._at_first = False
        self._clear()

    def begin(self) -> None:
        """A loop begins: what has passed since the end of another was no step. Its first batch comes behind the start
        of the loader's workers.
        """
        self._before_s = self._clock()
        self._n_loops += 1
        self._at_first = True

    def end(self) -> None:
        """The loop has had its last batch, and what passed since was work on it."""
        if self._before_s is not None:
            self._steps_s += self._clock() - self._before_s
        self._before_s = None

    def add(self, wait_s: float) -> None:
        """A batch has come, behind a wait of that long."""
        now_s = self._clock()
        self._steps_s += wait_s if self._before_s is None else now_s - self._before_s
        self._before_s = now_s
        self._wait_s += wait_s
        self._n += 1
        if self._at_first and self._n_loops > 1:
            self._n_again += 1
            self._again_s += wait_s
        self._at_first = False

    @property
    def is_due(self) -> bool:
        return self._n > 0 and self._clock() - self._began_s >= EVERY_S

    def take(self) -> str:
        """What was seen, in the words that ``gpudiag`` reads; empty without a batch. The next event begins here."""
        text = ""
        if self._n:
            text = f"DataLoader avg {round(1000 * self._wait_s / self._n, 2)} ms over {self._n} batches"
            if self._steps_s > 0:
                text += f", {round(self._n / self._steps_s, 4)} batch/s"
            if self._n_loops:
                text += f", {round(self._again_s, 3)} s for the first batches of {self._n_again} loops begun again"
        self._clear()
        return text

    def _clear(self) -> None:
        self._began_s = self._clock()
        self._n = self._n_again = 0
        self._wait_s = self._steps_s = self._again_s = 0.0
