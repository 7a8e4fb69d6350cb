"""Where trials or logged steps fit telemetry of which nothing says how far from them it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpudiag.alignment.judge import (
    BETWEEN_MAX_CHANCE,
    CLEAR_FROM_FAR,
    CLEAR_OF_QUARTERS,
    LOBE_S,
    MAX_CHANCE,
    MIN_OBSERVED_S,
    ObservedTime,
)
from gpudiag.alignment.scan import Scan, noise_at, responses_within, scan_offsets
from gpudiag.alignment.signals import Grid, SampleTimes, Signal, covered_s, make_grid, starts_and_ends, trial_signals
from gpudiag.run import Run

MIN_INTERVALS = 3
MOST_STEPS = 1 << 19
"""Offsets that are tried at most; a study of months beside telemetry of seconds has more, and is not tried."""


class Place(NamedTuple):
    """intervals + ``offset_s`` = telemetry; its fit, that of the best other place, and of which signals."""

    offset_s: float
    fit: float
    rival_fit: float
    signals: list[str]


@dataclass(frozen=True)
class FarPlaces:
    """The fit at every offset at which the two meet, as a scan around ``middle_s``, where their middles do."""

    middle_s: float
    scan: Scan
    signals: list[Signal]
    grid: Grid
    observed: ObservedTime
    start_s: np.ndarray
    end_s: np.ndarray

    @classmethod
    def of(cls, run: Run, samples: SampleTimes, intervals: pd.DataFrame) -> FarPlaces | None:
        """None where too little begins or ends, or nothing in the telemetry changes."""
        start, end = starts_and_ends(intervals)
        if len(start) < MIN_INTERVALS or not {"util_pct", "mem_used_mib"} & set(run.gpu.columns):
            return None
        trial_s = float(np.median(end - start))
        grid = make_grid(samples, -np.inf, np.inf, trial_s)
        if grid is None:
            return None
        low, high = float(start.min()), float(end.max())
        lasts_s = grid.n * grid.step_s
        middle, reach = grid.start_s + lasts_s / 2 - (low + high) / 2, (lasts_s + high - low) / 2
        signals, _ = trial_signals(run, samples, grid)
        if not signals or 2 * reach / grid.step_s > MOST_STEPS:
            return None
        start, end, responses = start + middle, end + middle, responses_within(trial_s)
        observed = ObservedTime(covered_s(samples, -np.inf, np.inf), high - low, samples.period_s, trial_s)
        scan = scan_offsets(signals, grid, start, end, responses, reach)
        return cls(middle, scan, signals, grid, observed, start, end)

    def of_days(self, offsets_s: Sequence[float]) -> Place | None:
        """The one of these offsets that fits as clearly as a whole quarter of an hour must."""
        fits = np.array([self.scan.near(one - self.middle_s, self.observed.tolerance_s)[0] for one in offsets_s])
        at = int(np.argmax(fits))
        rival = float(np.delete(fits, at).max())
        clear = rival <= CLEAR_OF_QUARTERS * fits[at]
        chance = self._chance(offsets_s[at], float(fits[at]), len(offsets_s), self.observed.tolerance_s)
        return self._place(offsets_s[at], float(fits[at]), rival) if clear and chance <= MAX_CHANCE else None

    def anywhere(self) -> Place | None:
        """The place that fits twice as well as all others, and that chance does not explain."""
        at = int(np.argmax(self.scan.fit))
        fit, place = float(self.scan.fit[at]), float(self.scan.offset_s[at])
        rival = float(np.where(np.abs(self.scan.offset_s - place) > LOBE_S, self.scan.fit, -1.0).max())
        if not self.observed.allows_all or self.observed.covered_s < MIN_OBSERVED_S or rival > CLEAR_FROM_FAR * fit:
            return None
        meet_s = self.scan.step_s * float(self.scan.meets(self.scan.offset_s).sum())
        unlikely = self._chance(place + self.middle_s, fit, 1, meet_s / 2) <= BETWEEN_MAX_CHANCE
        return self._place(place + self.middle_s, fit, rival) if unlikely else None

    def _chance(self, offset_s: float, fit: float, offsets: int, within_s: float) -> float:
        """How likely chance fits so well at any of so many offsets, or so near to them."""
        at = self.scan.near(offset_s - self.middle_s, self.observed.tolerance_s)[1]
        responses = responses_within(self.observed.trial_s)
        n_events = self.scan.n_edges(at)
        noise = noise_at(at, n_events, self.signals, self.grid, self.start_s, self.end_s, responses)
        return noise.chance_of(fit, offsets, within_s, len(responses))

    def _place(self, offset_s: float, fit: float, rival_fit: float) -> Place:
        first, *others = self.scan.signals
        return Place(offset_s, fit, max(rival_fit, 0.0), [first.capitalize(), *others])
