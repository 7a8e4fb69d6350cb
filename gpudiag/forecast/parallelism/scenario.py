"""One number of workers and what it would bring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpudiag.forecast.document import ModelsEntry, ScenarioEntry, ThroughputBounds
from gpudiag.forecast.estimate import Estimate
from gpudiag.plain_data import clean

RISKY_PCT = 5.0
"""Chance of an overflow from which a number of trials is not recommended, by its upper end, and from which no COMPLETE
trials are counted on, by its value (a default)."""


@dataclass(frozen=True)
class Scenario:
    """A forecast for ``k`` trials at once.

    ``placed``: how many of them on each GPU, by its name; empty where the GPUs of the trials are not known.
    ``throughput`` (trials/h), ``complete`` (COMPLETE trials/h), ``gain`` (throughput over the present one), ``util``
    (%), ``overflow`` (%, share of ends of trials at which those at once exceed the memory; at most its upper end),
    ``left`` (h to finish the remaining trials, the restart included where k differs from now).
    ``break_even_trials``: remaining trials from which the restart pays; NaN where it never does, or nobody knows.
    ``queueing`` is what mean value analysis says (trials/h), ``least`` and ``most`` hold without a model. ``beyond``:
    more than was ever observed.
    """

    k: int
    placed: Mapping[str, int]
    throughput: Estimate
    complete: Estimate
    gain: Estimate
    util: Estimate
    overflow: Estimate
    left: Estimate
    break_even_trials: float
    queueing: float
    least: float
    most: float
    beyond: bool

    @property
    def bounds_only(self) -> bool:
        """Whether the throughput has bounds and no value."""
        return not self.throughput.known

    @property
    def document(self) -> ScenarioEntry:
        """As the document of a forecast holds it."""
        return ScenarioEntry(
            k=self.k,
            placed=self.placed,
            throughput_trials_h=self.throughput,
            complete_trials_h=self.complete,
            gain=self.gain,
            util_pct=self.util,
            p_overflow=self.overflow,
            hours_left=self.left,
            break_even_trials=clean(self.break_even_trials),
            models=ModelsEntry(clean(self.queueing), ThroughputBounds(clean(self.least), clean(self.most))),
            extrapolation=self.beyond,
            bounds_only=self.bounds_only,
            reason=self.throughput.reason,
        )
