"""The steps of a training, timed as they pass and written as JSON Lines; ``gpudiag`` reads them as table ``steps``.

    {"timestamp": "2026-03-01T10:00:00.25+00:00", "phase": "training", "step": 7, "epoch": 0, "step_time": 0.251,
     "data_time": 0.032, "rank": 0}
    {"timestamp": "2026-03-01T10:00:04.50+00:00", "phase": "evaluation", "rank": 0}

``step_time`` and ``data_time`` are the means of the steps since the line before, in seconds. A line of other work is
written when that ends. No line holds a text of anybody's: words in it would be taken for what the training does.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Literal

from gpudiag.record.own_file import refuse_others

OtherWork = Literal["evaluation", "checkpoint"]
AT_FIRST = 100
EVERY_S = 1.0
"""Each of the first hundred steps has its line; later one is written each second, which keeps a long training's file
small."""


class StepWriter:
    """Appends to ``path``; for the thread that trains, and no other.

    All time is divided at the calls: what passed since the last one was a wait for data, work on a step, or neither.
    ``step`` is how many are done. Raises OSError where the file cannot be written, ConfigError where it is another's.
    """

    def __init__(
        self,
        path: Path,
        rank: int | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
        wall: Callable[[], float] = time.time,
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        refuse_others(path, b'{"timestamp": "', "the steps of a training")
        self._file = FileIO(path, "a")
        self._rank = {} if rank is None else {"rank": rank}
        self._clock, self._wall = clock, wall
        self._mark_s = clock()
        self.step = self._n_lines = 0
        self._epoch: int | None = None
        self._written_s = self._ended_s = 0.0
        self._wait_is_known = True
        self._clear()

    def begin(self, step: int = 0, *, goes_on: bool = False) -> None:
        """The training begins behind ``step`` steps; it ``goes_on`` where these ended as they were meant to."""
        self.step = step
        self._put("resumed" if step and not goes_on else "start", self._wall())
        self._mark_s = self._clock()

    def batch_begins(self) -> float | None:
        """What has passed was a wait for data. Returns its seconds; None where other work may be among them."""
        waited_s = self._passed_s()
        self._n_batches += 1
        if not self._wait_is_known:
            self._wait_is_known = True
            return None
        self._wait_s += waited_s
        self._n_waits += 1
        return waited_s

    def batch_ended(self, step: int, epoch: int | None = None) -> None:
        """What has passed was work, by which ``step`` steps are done; several batches may make one step."""
        self._work_s += self._passed_s()
        if step <= self.step:
            return
        self._n_steps += step - self.step
        self.step, self._epoch = step, epoch
        self._ended_s = self._wall()
        if self._n_lines < AT_FIRST or self._mark_s - self._written_s >= EVERY_S:
            self._write_steps()

    def other_work(self, work: OtherWork, *, goes_on: bool = False) -> None:
        """What has passed was this; it ``goes_on`` where only its beginning is known, and no wait is, up to the next
        batch.
        """
        self._write_steps()
        self._put(work, self._wall())
        self.leave_out()
        self._wait_is_known &= not goes_on

    def leave_out(self) -> None:
        """What has passed was neither a wait for data nor work on a step."""
        self._passed_s()

    def wait_is_unknown(self) -> None:
        """What passes up to the next batch is not all a wait for data, or the wait is elsewhere."""
        self._wait_is_known = False

    def close(self) -> None:
        """Write what is left; may be called twice."""
        if self._file.closed:
            return
        with self._file:
            self._write_steps()

    def _passed_s(self) -> float:
        before, self._mark_s = self._mark_s, self._clock()
        return self._mark_s - before

    def _write_steps(self) -> None:
        if not self._n_steps:
            return
        line: dict[str, float | int] = {"step": self.step}
        if self._epoch is not None:
            line["epoch"] = self._epoch
        wait_s = 0.0
        if self._n_waits:  # where some are unknown, the mean of the others stands for them
            wait_s = self._wait_s / self._n_waits * self._n_batches
            line["data_time"] = round(wait_s / self._n_steps, 6)
        line["step_time"] = round((wait_s + self._work_s) / self._n_steps, 6)
        self._put("training", self._ended_s, line)
        self._n_lines += 1
        self._written_s = self._mark_s
        self._clear()

    def _clear(self) -> None:
        self._wait_s = self._work_s = 0.0
        self._n_steps = self._n_batches = self._n_waits = 0

    def _put(self, phase: str, at_s: float, values: dict[str, float | int] | None = None) -> None:
        """One line, one write: a kill leaves no half of it."""
        said = {"timestamp": datetime.fromtimestamp(at_s, UTC).isoformat(), "phase": phase, **(values or {})}
        self._file.write((json.dumps(said | self._rank) + "\n").encode())
