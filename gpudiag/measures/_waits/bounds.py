"""Seconds of waiting by cause: the likeliest value between two bounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Share:
    """GPU-seconds that waited for one cause, by one source: at least ``low_s``, at most ``high_s``, likeliest ``s``."""

    cause: str
    source: str
    s: float
    low_s: float
    high_s: float


@dataclass
class Waits:
    """Several causes by one source, added up."""

    source: str
    s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    low_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    high_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, cause: str, s: float, low_s: float, high_s: float) -> float:
        """So much more of a cause, none of it below nothing; returns what was added to its likeliest value."""
        high_s = max(high_s, 0.0)
        likely_s = min(max(s, 0.0), high_s)
        self.high_s[cause] += high_s
        self.s[cause] += likely_s
        self.low_s[cause] += min(max(low_s, 0.0), likely_s)
        return likely_s

    def at_least(self, cause: str, low_s: float) -> None:
        """Another source is sure of so much of a cause."""
        self.low_s[cause] = min(max(self.low_s[cause], low_s), self.s[cause])

    @property
    def total_s(self) -> float:
        return sum(self.s.values())

    def shares(self) -> Iterator[Share]:
        """Those that may hold time."""
        for cause, high_s in self.high_s.items():
            if high_s > 0:
                yield Share(cause, self.source, self.s[cause], self.low_s[cause], high_s)
