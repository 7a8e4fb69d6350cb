"""From a scan of offsets to an offset and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gpudiag._run.tables import Confidence
from gpudiag.alignment.scan import REACH_S, Scan
from gpudiag.statement import Statement

QUARTER_S = 900.0
"""Every zone of the world is a multiple of 15 minutes from UTC."""
TOLERANCE_S = 60.0
LOBE_S = 150.0
CLEAR_OF_ALL = 0.8
CLEAR_OF_QUARTERS = 0.6
"""An offset is strong if every other offset, whole quarters of an hour or not, fits at most 0.8 times as
well, or every other whole quarter at most 0.6 times. Measured: no wrong one in 2,000 runs (benchmarks/accuracy.md)."""
LEADS = 0.95
MIN_COVERAGE = 1 / 3
"""All quarters of an hour are searched only where telemetry covers a third of the study (METHODS 2)."""
MIN_OBSERVED_S = 600.0
"""Even likely offsets need ten minutes of telemetry (METHODS 2)."""
FAR_S = 30.0
CLEAR_FROM_FAR = 0.5
"""The best fit lies within 30 s of the quarter (standard deviation 6 s) unless start-ups are long or the clocks differ
by seconds as well. The two look alike, so that only whole quarters are ever applied, and such a fit must be clearer."""
BEYOND_CHANCE = 4.0
LIKELY_BEYOND_CHANCE = 2.5
"""The statistic r / sqrt((1 - r^2) / (n - 2)) of the correlation r, n the starts and ends that fall into the telemetry.
Over all offsets the best of it is above 4 in 11 of 2,100 runs of noise (white, drifting, spikes, waves), and in none of
them are the rivals clear. An offset that a zone suggests is one of few and needs less. Below it none is told."""

BEST_FIT = (
    "{signals} fit the trials best at {best_s:as shift} (correlation {fit:as ratio}; next best {rival_s:as shift} with "
    "{rival_fit:as ratio}); telemetry covers {coverage_pct} of the study."
)
BEST_FITS = BEST_FIT.replace(" fit ", " fits ")
"""Of one signal."""
TOO_LITTLE = "{evidence} That is less than a third, too little to trust an offset that no time zone suggests."
CHANCE = "{evidence} That is no more than chance gives with so few trials, or with a load of its own."


@dataclass(frozen=True)
class Judgement:
    """``confidence`` as in ClockRecord; ``evidence`` has the numbers; without candidates nothing was compared."""

    offset_s: float
    confidence: Confidence
    evidence: Statement
    candidates: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class ObservedTime:
    """For how long there is telemetry, how long the study took, and the sampling period."""

    covered_s: float
    study_s: float
    period_s: float

    @property
    def coverage(self) -> float:
        """Share of the study for which there is telemetry."""
        return min(self.covered_s / self.study_s, 1.0)

    @property
    def allows_all(self) -> bool:
        """True if every quarter of an hour may be considered, not only the likely offsets."""
        return self.coverage >= MIN_COVERAGE


def judge(scan: Scan, prior_s: Iterable[float], observed: ObservedTime) -> Judgement:
    """The offset that the data show; ``prior_s`` are likely beforehand: none, and the zone's own."""
    most = int(REACH_S // QUARTER_S)
    quarters = QUARTER_S * np.arange(-most, most + 1)
    fits = np.array([scan.near(quarter, TOLERANCE_S)[0] for quarter in quarters])
    candidates = tuple(zip(quarters.tolist(), np.round(fits, 4).tolist(), strict=True))
    likely = np.isin(quarters, QUARTER_S * np.round(np.array(list(prior_s)) / QUARTER_S))
    at = int(np.argmax(fits))
    if not fits[at] > 0:
        return Judgement(0.0, "undetermined", Statement("No offset makes telemetry and trials fit."), candidates)
    rival = int(np.argmax(np.where(np.arange(len(fits)) != at, fits, -np.inf)))
    evidence = Statement(
        BEST_FITS if len(scan.signals) == 1 else BEST_FIT,
        signals=[scan.signals[0].capitalize(), *scan.signals[1:]],
        best_s=float(quarters[at]),
        fit=float(fits[at]),
        rival_s=float(quarters[rival]),
        rival_fit=float(fits[rival]),
        coverage_pct=100 * observed.coverage,
    )
    if not (likely[at] or observed.allows_all):
        return Judgement(0.0, "undetermined", Statement(TOO_LITTLE, evidence=evidence), candidates)
    if fits[rival] > LEADS * fits[at]:
        return Judgement(
            0.0, "undetermined", Statement("Several offsets fit alike. {evidence}", evidence=evidence), candidates
        )
    n_edges = scan.n_edges(float(quarters[at]))
    if _statistic(float(fits[at]), n_edges) < (LIKELY_BEYOND_CHANCE if likely[at] else BEYOND_CHANCE):
        return Judgement(0.0, "undetermined", Statement(CHANCE, evidence=evidence), candidates)
    place = scan.near(quarters[at], TOLERANCE_S)[1]
    others = np.abs(scan.offset_s - place) > LOBE_S
    clear = _clear(
        float(scan.fit[others].max() / fits[at]), fits[rival] / fits[at], place - float(quarters[at]), observed
    )
    return Judgement(float(quarters[at]), "strong" if clear else "weak", evidence, candidates)


def _statistic(fit: float, n: int) -> float:
    """Student's t of a correlation over n values."""
    if n <= 2:
        return 0.0
    return fit / math.sqrt((1 - fit**2) / (n - 2)) if fit < 1 else math.inf


def _clear(any_rival: float, quarter_rival: float, away_s: float, observed: ObservedTime) -> bool:
    """True if the rivals, as shares of the best fit, leave no doubt."""
    if observed.covered_s < MIN_OBSERVED_S:
        return False
    if abs(away_s) > FAR_S:
        return any_rival <= CLEAR_FROM_FAR
    return any_rival <= CLEAR_OF_ALL or (observed.allows_all and quarter_rival <= CLEAR_OF_QUARTERS)
