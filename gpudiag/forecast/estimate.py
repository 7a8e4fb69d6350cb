"""One number of a forecast: its value, its interval, and why it may have no value.

The conventions that every forecast keeps:

* no number without an interval: ``low`` and ``high`` are what the data support, the value lies between;
* where the data do not identify the value it is NaN, ``bounds_only`` is True and ``reason`` says why in one
  sentence; the interval then holds bounds that need no model;
* unknown ends are NaN (None in JSON), never 0 and never -1;
* ``unit`` is written out ('trials/h', '%', 'MiB', 'h'), '' for a ratio.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from gpudiag.plain_data import NAN_IS_NULL

NAN = float("nan")


@dataclass(frozen=True)
class Estimate:
    """A forecast number. NaN is unknown; ``reason`` says why a value or an end is missing, or '' where none is."""

    value: float = field(default=NAN, metadata=NAN_IS_NULL)
    low: float = field(default=NAN, metadata=NAN_IS_NULL)
    high: float = field(default=NAN, metadata=NAN_IS_NULL)
    unit: str = ""
    bounds_only: bool = False
    reason: str = ""

    def __post_init__(self) -> None:
        if not math.isnan(self.low) and not math.isnan(self.high) and self.low > self.high:
            raise ValueError(f"an interval must not end before it starts, but got {self.low} to {self.high}")

    @classmethod
    def bounds(cls, low: float, high: float, unit: str, reason: str) -> Estimate:
        """Bounds without a value, and the sentence that says why there is none."""
        return cls(NAN, low, high, unit, True, reason)

    @classmethod
    def unknown(cls, unit: str, reason: str) -> Estimate:
        """Nothing is known, not even bounds."""
        return cls(unit=unit, bounds_only=True, reason=reason)

    @property
    def known(self) -> bool:
        """Whether there is a value, not bounds alone."""
        return not math.isnan(self.value)

    def scaled(self, factor: float, unit: str) -> Estimate:
        """The same in another unit: value and interval times ``factor`` (> 0)."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor, unit, self.bounds_only, self.reason)

    def bounded(self) -> Estimate:
        """Without its value, as bounds; for a forecast whose back-test failed."""
        return Estimate(NAN, self.low, self.high, self.unit, True, self.reason)
