"""What Hugging Face's Trainer printed into one file, as trainings one after another."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

from gpudiag.readers._steps.other_work import tells_of_break
from gpudiag.readers._steps.trainer_line import EPOCH_ROUNDED, ROUNDED, TrainerLine, trainer_line
from gpudiag.readers._steps.trainer_losses import holds_more
from gpudiag.readers._steps.trainer_session import Session

MOST_GOING_BACK = 2
"""Epochs fall more often where trainings print side by side (a default without a published source)."""


class TrainerOutput:
    """Takes the lines of one file in their order; what several processes print of one moment counts once.

    A training ends with its own time, or where epochs fall. Where a line between tells of a failure or a resumption, or
    losses do, it is open what its time holds. An evaluation behind its end is of it if its epoch is no less; one before
    any step may lie before the training, and is left out.
    """

    def __init__(self) -> None:
        self._closed: list[Session] = []
        self._open: Session | None = None
        self._heard = set[tuple[object, ...]]()  # in the session that is open, and behind the last
        self._last: TrainerLine | None = None
        self._n_back = 0
        self._mixed, self._is_broken = False, False

    def take(self, count: int, text: str, stamp: str) -> bool:
        """Look at one line; True if the Trainer prints such."""
        line = trainer_line(text)
        if line is None:
            self._is_broken |= self._open is not None and tells_of_break(text)
            return False
        line = replace(line, number=count, stamp=stamp)
        if line.kind == "whole":
            self._end(line)
        elif self._goes_back(line) or not self._is_heard(line):
            self._add(line)
        self._last = line
        return True

    def sessions(self) -> list[Session]:
        """Without their times where trainings print side by side: what is part of which is then unclear."""
        every = [*self._closed, *([self._open] if self._open else [])]
        if self._mixed or self._n_back > MOST_GOING_BACK or any(_goes_on_beside(*two) for two in pairwise(every)):
            return [session.undated() for session in every]
        return every

    def _goes_back(self, line: TrainerLine) -> bool:
        return self._open is not None and line.epoch < self._open.lines[-1].epoch

    def _is_heard(self, line: TrainerLine) -> bool:
        return (line.kind, line.results) in self._heard or (self._last is not None and self._last.is_rounded(line))

    def _add(self, line: TrainerLine) -> None:
        behind = self._closed[-1].whole if self._closed and not self._open else None
        if line.kind == "evaluation" and behind and line.epoch >= behind.epoch:
            self._closed[-1].behind.append(line)
        elif line.kind == "step" or self._open or line.epoch > 0:
            if self._goes_back(line):
                self._n_back += 1
                self._close()
            if self._open is None:
                self._open = Session()
                self._heard.clear()
            self._open.lines.append(line)
        self._heard.add((line.kind, line.results))

    def _close(self) -> None:
        if self._open:
            self._closed.append(self._open)
        self._open, self._is_broken = None, False
        self._heard.clear()

    def _end(self, line: TrainerLine) -> None:
        if self._open or not self._closed:
            self._open = self._open or Session()
            self._open.whole = line
            if self._is_broken or holds_more(self._open):
                self._open = self._open.undated()
            self._close()
        elif not _is_same(self._closed[-1].whole, line):
            self._mixed = True  # of two side by side the second ends, or no line tells what is part of it


def _is_same(one: TrainerLine | None, other: TrainerLine) -> bool:
    """Whether two lines, of which one may be rounded, tell of the end of one training."""
    if one is None:
        return False
    alike = math.isclose(one.said["train_loss"], other.said["train_loss"], rel_tol=ROUNDED)
    return alike and math.isclose(one.epoch, other.epoch, rel_tol=ROUNDED, abs_tol=EPOCH_ROUNDED)


def _goes_on_beside(before: Session, after: Session) -> bool:
    """Whether what follows the end of a training was begun before that: it is not at the beginning of another, and
    behind the end of none.
    """
    epochs, others = ([*dict.fromkeys(line.epoch for line in one.every)] for one in (after, before))
    if before.whole is None or epochs[0] > before.whole.epoch:
        return False
    if len(epochs) == 1:
        return len(others) > 1
    return epochs[0] > 1.5 * (epochs[1] - epochs[0]) + 2 * EPOCH_ROUNDED
