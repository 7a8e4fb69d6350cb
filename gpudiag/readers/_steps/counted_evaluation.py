"""How long an evaluation has run, by lines that say how far it is and when."""

from __future__ import annotations

import math
import re

_COUNT = re.compile(r"\[\s{0,8}(\d{1,9})/\s{0,8}\d{1,9}\]|\bdone (\d{1,9})/\d{1,9}\b")
"""As timm, torchvision, the ImageNet example, mmengine and detectron2 print it."""


def count_of(line: str) -> int | None:
    """How many batches an evaluation has done, as such a line says; None for others."""
    found = list(_COUNT.finditer(line))  # before the last may stand which epoch it is
    return int(found[-1][1] or found[-1][2]) if found else None


class CountedEvaluation:
    """Evaluations one after another; ``s`` is what they took, up to the moment ``until_s``.

    What it took before its first line follows from how fast it went on. A count that falls begins another evaluation.
    """

    def __init__(self) -> None:
        self.s, self.until_s = 0.0, math.nan
        self._before_s, self._since_s, self._n = 0.0, math.nan, 0
        self._first: tuple[int, float] = 0, math.nan

    def take(self, n: int, moment_s: float) -> None:
        """A line says that so many batches were done at a moment, which is NaN where it has no timestamp."""
        first, first_s = self._first
        if not moment_s >= first_s or n < self._n:
            self._first, self._before_s, self._since_s = (n, moment_s), self.s, self.until_s
        elif n > self._n:
            took_s = min((moment_s - first_s) * n / (n - first), _or_inf(moment_s - self._since_s))
            self.s = max(self._before_s + took_s, self.s)
        else:
            return  # another rank, or another number of the same batch
        self._n, self.until_s = n, moment_s


def _or_inf(seconds: float) -> float:
    return math.inf if math.isnan(seconds) else seconds
