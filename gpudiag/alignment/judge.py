"""From a scan of offsets to an offset and how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from gpudiag._run.tables import Confidence
from gpudiag.alignment.chance import Noise
from gpudiag.alignment.scan import REACH_S, Scan, responses_within
from gpudiag.statement import NOTHING, Statement
from gpudiag.timezones import QUARTER_S, quarters_s

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
by seconds as well. The two look alike here, so that only whole quarters are told, and such a fit must be clearer."""
MAX_CHANCE = 0.003
LIKELY_MAX_CHANCE = 0.01
BETWEEN_MAX_CHANCE = 1e-5
"""Telemetry that has nothing to do with the trials reaches a fit of so small a chance (alignment/chance.py) in at most
so many runs, whatever its load does by itself: jumps, drifts or goes in waves. An offset that a zone suggests is
likelier beforehand, so that less evidence will do. Measured on noise: benchmarks/accuracy.md. Above it none is told."""

BESIDE_S = 10.0
CLEAR_AT_QUARTER = 0.75
"""Within 10 s of the quarter the fit reaches this share of the best one near it, whatever the start-ups are: of 90
healthy simulated runs all that were strong reached 0.79. Where it does not, seconds to minutes may be missing."""

BEST_FIT = (
    "{signals} fit the trials best at {best_s:as shift} (correlation {fit:as ratio}{place}; other whole quarters of an "
    "hour reach {rival_fit:as ratio} at most); telemetry covers {coverage_pct} of the study."
)
RULED_OUT = "{evidence} That rules out another time zone, not a difference of seconds."
PLACE = ", at {place_s:as shift}"
TOO_LITTLE = (
    "Telemetry lasts {coverage_pct} as long as the study, less than a third: too little to trust an offset that no "
    "time zone suggests."
)
ALIKE = "Several offsets fit alike."
CHANCE = "No offset fits better than chance would with so few trials, or with a load of its own."
LITTLE = "{evidence} That is {covered_s} of telemetry from a longer study, too little to rely on."
BESIDE = "{evidence} A better fit lies {away_s} beside it, further than a start-up can be in trials of {trial_s}."
OFF = (
    "{evidence} At {best_s:as shift} itself the correlation is {own_fit:as ratio}: the clocks may differ by about "
    "{beside_s} more."
)
BETWEEN = (
    "{signals} fit the trials best at {place_s:as shift} (correlation {fit:as ratio}; no other place reaches more than "
    "{rival_fit:as ratio}), which no time zone explains. If the clocks differ so, state clock_offset_s = {stated} in "
    "run.toml."
)
UNCLEAR = "{evidence} {other_s:as shift}, which no time zone explains, fits with {other_fit:as ratio}."


@dataclass(frozen=True)
class Judgement:
    """``confidence`` and ``apart_s`` as in ClockRecord; ``evidence`` has the numbers; without candidates nothing was
    compared.
    """

    offset_s: float
    confidence: Confidence
    evidence: Statement
    candidates: tuple[tuple[float, float], ...]
    apart_s: float = 0.0


@dataclass(frozen=True)
class ObservedTime:
    """For how long there is telemetry, how long the study took, the sampling period and the median trial."""

    covered_s: float
    study_s: float
    period_s: float
    trial_s: float

    @property
    def coverage(self) -> float:
        """Share of the study for which there is telemetry."""
        return min(self.covered_s / self.study_s, 1.0)

    @property
    def allows_all(self) -> bool:
        """True if every quarter of an hour may be considered, not only the likely offsets."""
        return self.coverage >= MIN_COVERAGE

    @property
    def tolerance_s(self) -> float:
        """How far beside its offset a fit may lie: trials begin to show after a start-up, and before their end."""
        return min(TOLERANCE_S, self.trial_s)


def judge(
    scan: Scan, prior_s: Iterable[float], observed: ObservedTime, noise_at: Callable[[float, int], Noise]
) -> Judgement:
    """The offset that the data show; ``prior_s`` are likely beforehand: none, and the zone's own.

    It is a whole quarter of an hour, or, where these do not tell, a clear place between them, as a lean.
    ``noise_at``: the noise of the fit at an offset, given the number of starts and ends that telemetry covers there.
    """
    found = _of_quarters(scan, prior_s, observed, noise_at)
    between = _between(scan, observed, noise_at) if found.confidence == "undetermined" else None
    return found if between is None else replace(between, candidates=found.candidates)


def _of_quarters(
    scan: Scan, prior_s: Iterable[float], observed: ObservedTime, noise_at: Callable[[float, int], Noise]
) -> Judgement:
    """Which whole quarter of an hour the data show."""
    most = int(REACH_S // QUARTER_S)
    quarters = QUARTER_S * np.arange(-most, most + 1)
    fits = np.array([scan.near(quarter, observed.tolerance_s)[0] for quarter in quarters])
    candidates = tuple(zip(quarters.tolist(), np.round(fits, 4).tolist(), strict=True))
    likely = np.isin(quarters, [quarters_s(prior) for prior in prior_s])
    at = int(np.argmax(fits))
    if not fits[at] > 0:
        return Judgement(0.0, "undetermined", Statement("No offset makes telemetry and trials fit."), candidates)
    best = Best(float(quarters[at]), float(fits[at]), float(np.delete(fits, at).max()))
    if not (likely[at] or observed.allows_all):
        return Judgement(0.0, "undetermined", Statement(TOO_LITTLE, coverage_pct=100 * observed.coverage), candidates)
    if best.rival_fit > LEADS * best.fit:
        return Judgement(0.0, "undetermined", Statement(ALIKE), candidates)
    compared = scan.meets(quarters[likely] if likely[at] else quarters)
    noise = noise_at(scan.near(best.offset_s, observed.tolerance_s)[1], scan.n_edges(best.offset_s))
    n_responses = len(responses_within(observed.trial_s))
    chance = noise.chance_of(best.fit, int(compared.sum()), observed.tolerance_s, n_responses)
    if chance > (LIKELY_MAX_CHANCE if likely[at] else MAX_CHANCE):
        return Judgement(0.0, "undetermined", Statement(CHANCE), candidates)
    evidence, apart_s = _evidence(scan, best, observed)
    doubt = _doubt(scan, best, observed, evidence)
    told = doubt or Statement(RULED_OUT, evidence=evidence)
    return Judgement(best.offset_s, "weak" if doubt else "strong", told, candidates, apart_s)


def _between(scan: Scan, observed: ObservedTime, noise_at: Callable[[float, int], Noise]) -> Judgement | None:
    """The place that fits twice as well as all others, where it lies near no whole quarter of an hour."""
    at = int(np.argmax(scan.fit))
    fit, place_s = float(scan.fit[at]), float(scan.offset_s[at])
    other_fit = _other(scan, place_s)[0]
    if not observed.allows_all or observed.covered_s < MIN_OBSERVED_S or other_fit > CLEAR_FROM_FAR * fit:
        return None
    if abs(place_s - quarters_s(place_s)) <= observed.tolerance_s:
        return None
    noise = noise_at(place_s, scan.n_edges(place_s))
    anywhere_s = scan.step_s * float(scan.meets(scan.offset_s).sum())
    if noise.chance_of(fit, 1, anywhere_s / 2, len(responses_within(observed.trial_s))) > BETWEEN_MAX_CHANCE:
        return None
    evidence = Statement(
        _of_one(BETWEEN, scan),
        signals=_named(scan),
        place_s=place_s,
        fit=fit,
        rival_fit=other_fit,
        stated=str(round(place_s)),
    )
    return Judgement(place_s, "weak", evidence, ())


@dataclass(frozen=True)
class Best:
    """The quarter of an hour that fits best, and how well the next best fits."""

    offset_s: float
    fit: float
    rival_fit: float


def _evidence(scan: Scan, best: Best, observed: ObservedTime) -> tuple[Statement, float]:
    """What was measured of the best quarter, and by how much the clocks may differ beside it (s)."""
    fit, place_s = scan.near(best.offset_s, observed.tolerance_s)
    beside_s = place_s - best.offset_s
    evidence = Statement(
        _of_one(BEST_FIT, scan),
        signals=_named(scan),
        best_s=best.offset_s,
        fit=fit,
        place=Statement(PLACE, place_s=place_s) if beside_s else NOTHING,
        rival_fit=best.rival_fit,
        coverage_pct=100 * observed.coverage,
    )
    own_fit = scan.near(best.offset_s, BESIDE_S)[0]
    if own_fit >= CLEAR_AT_QUARTER * fit or _other(scan, place_s)[0] > CLEAR_OF_ALL * fit:
        return evidence, 0.0
    off = Statement(OFF, evidence=evidence, best_s=best.offset_s, own_fit=own_fit, beside_s=abs(beside_s))
    return off, 2 * abs(beside_s)


def _other(scan: Scan, place_s: float) -> tuple[float, float]:
    """The best fit elsewhere than around a place, and where it lies."""
    others = np.where(np.abs(scan.offset_s - place_s) > LOBE_S, scan.fit, -1.0)
    at = int(np.argmax(others))
    return float(others[at]), float(scan.offset_s[at])


def _named(scan: Scan) -> list[str]:
    return [scan.signals[0].capitalize(), *scan.signals[1:]]


def _of_one(template: str, scan: Scan) -> str:
    """The sentence for one signal, or several."""
    return template.replace(" fit ", " fits ", 1) if len(scan.signals) == 1 else template


def _doubt(scan: Scan, best: Best, observed: ObservedTime, evidence: Statement) -> Statement:
    """What speaks against the best offset beyond chance; nothing where it is clear."""
    if observed.covered_s < MIN_OBSERVED_S and not observed.allows_all:
        return Statement(LITTLE, evidence=evidence, covered_s=observed.covered_s)
    nearest_fit, nearest_s = scan.near(best.offset_s, TOLERANCE_S)
    if nearest_fit > best.fit:
        away_s = abs(nearest_s - best.offset_s)
        return Statement(BESIDE, evidence=evidence, away_s=away_s, trial_s=observed.trial_s)
    place_s = scan.near(best.offset_s, observed.tolerance_s)[1]
    other_fit, other_s = _other(scan, place_s)
    if abs(place_s - best.offset_s) > FAR_S:
        clear = other_fit <= CLEAR_FROM_FAR * best.fit
    else:
        apart = observed.allows_all and best.rival_fit <= CLEAR_OF_QUARTERS * best.fit
        clear = apart or other_fit <= CLEAR_OF_ALL * best.fit
    if clear:
        return NOTHING
    return Statement(UNCLEAR, evidence=evidence, other_s=other_s, other_fit=other_fit)
