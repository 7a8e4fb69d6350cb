"""From a diagnosis to ranked recommendations, and to what they bring together."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gpudiag.advice import REMEDIES
from gpudiag.advice._engine.gains import BETWEEN_TRIALS, IDLE, NOTHING, Combined, GainBounds, combine, is_nothing
from gpudiag.advice._engine.misreadings import corrections
from gpudiag.advice._engine.proposal import Proposal
from gpudiag.advice._engine.ranking import rank
from gpudiag.advice._engine.recommendation import Recommendation, Recommendations
from gpudiag.advice._engine.remedy import Remedy
from gpudiag.advice._engine.situation import Situation
from gpudiag.analysis import Analysis
from gpudiag.errors import ConfigError, nearest
from gpudiag.faults import Fault, attempt
from gpudiag.measures.base import Profile
from gpudiag.measures.causes import CAUSES
from gpudiag.plain_data import clean
from gpudiag.report.format import share
from gpudiag.rules._engine.verdict import Status, Verdict, worst_of
from gpudiag.shown import Shown

if TYPE_CHECKING:
    import pandas as pd

EXCLUSIVE = (
    ("warm-worker", "isolate-trials"),
    ("more-workers", "fewer-workers"),
    ("pruner-patience", "pruner-min-resource"),
)
"""Remedies that contradict each other, or do the same: of these a plan takes the one ranked first."""


@dataclass(frozen=True, eq=False, repr=False)
class Advice(Shown):
    """``recommendations``: remedies, best first, then what rules advise themselves for findings that no remedy answers.

    ``corrections``: sentences on what the numbers of this run refute. ``errors``: remedies that failed by a fault of
    gpudiag.
    """

    recommendations: Recommendations
    corrections: tuple[str, ...]
    bounds: GainBounds
    errors: tuple[Fault, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """The options ranked by safety, a row each, with what is predicted for memory, utilization and trial time."""
        return self.recommendations.to_frame()

    def choose(self, ids: Iterable[str] | None = None) -> tuple[Recommendation, ...]:
        """Those named, in the order of the ranking; by default all that need not be verified first and do not
        exclude each other, and where these only observe, the first of the others whose gain a measured wait bounds:
        the plan is its test. Raises ConfigError for an unknown id.
        """
        if ids is None:
            ready = [one for one in self.recommendations if not (one.verify_first or one.is_the_rules_own)]
            if all(one.gain == NOTHING for one in ready):
                ready += [one for one in self.recommendations if one.verify_first and one.is_bounded][:1]
            return tuple(one for one in ready if not _excluded(one, ready))
        wanted = list(ids)
        known = {one.id for one in self.recommendations}
        for name in wanted:
            if name not in known:
                hint = nearest(name, known) if known else "nothing is recommended for this run."
                raise ConfigError(f"no remedy '{name}' is recommended for this run; {hint}")
        return tuple(one for one in self.recommendations if one.id in wanted)

    def combined(self, chosen: Iterable[Recommendation]) -> Combined | None:
        """What these bring together; None where utilization is unknown."""
        return combine([one.gain for one in chosen], self.bounds)


def advise(
    analysis: Analysis,
    profiles: Mapping[str, Profile],
    verdicts: Iterable[Verdict],
    remedies: Iterable[Remedy] = REMEDIES,
) -> Advice:
    """Every remedy that answers a finding or fills idle time worth filling, ranked. Nothing for a healthy run.

    ``verdicts``: the findings in their order; checks that passed may be among them, and refute remedies.
    """
    verdicts = tuple(verdicts)
    findings = tuple(v for v in verdicts if v.status is Status.FOUND)
    now = Situation.of(analysis, profiles, verdicts)
    bounds = attempt("bounds of gains", lambda: now.bounds)
    if isinstance(bounds, Fault):
        return Advice(Recommendations(_own(findings)), (), GainBounds(), (bounds,))
    made = [attempt(f"remedy {item.id}", partial(_recommend, item, now)) for item in remedies]
    found = [one for one in made if isinstance(one, Recommendation)]
    refuted = attempt("corrections", lambda: corrections(now) if findings or now.worth_filling else ())
    place = worst_of((v.rule, v.severity.value, v.caused_by) for v in findings)
    answered = {rule for one in found for rule in one.rules}
    ranked = rank(found, bounds, None if place is None else findings[place].rule)
    return Advice(
        Recommendations((*ranked, *_own(findings, answered))),
        () if isinstance(refuted, Fault) else refuted,
        bounds,
        tuple(one for one in (*made, refuted) if isinstance(one, Fault)),
    )


def _own(findings: Iterable[Verdict], answered: Container[str] = ()) -> Iterator[Recommendation]:
    """What the rules of the other findings advise themselves."""
    return (Recommendation.own(v) for v in findings if v.rule not in answered and v.remedy)


def _recommend(item: Remedy, now: Situation) -> Recommendation | None:
    rules = tuple(rule for rule in now.found if rule in item.answers)
    if not rules and not (item.fills_idle and now.worth_filling):
        return None
    proposal = item.propose(now)
    if proposal is None or is_nothing(proposal.gain):
        return None
    rules = tuple(rule for rule in rules if rule not in proposal.leaves)
    if not rules and not (item.fills_idle and now.worth_filling):
        return None
    why = " ".join(now.found[rule].summary for rule in rules) or (
        f"Mean utilization {now.at_work} was {share(now.bounds.busy_pct, exact=True)}: the rest may be filled."
    )
    proposal, gain = _known(proposal), proposal.gain
    if not rules:
        proposal = proposal.doubted("No finding asks for it, only idle time: measure what a trial waits for.")
    if (
        gain is not None
        and gain.unit == "x"
        and gain.source in (IDLE, BETWEEN_TRIALS, *CAUSES)
        and not now.bounds.covered
    ):
        seen = f"Only {share(now.bounds.coverage_pct)} of the run was observed, so its utilization is not known well."
        proposal = proposal.doubted(seen)
    return Recommendation.of(item, proposal, rules, why)


def _known(proposal: Proposal) -> Proposal:
    """Without checks and predictions of numbers that this run does not have, and with None for an end not known."""
    return replace(
        proposal,
        verify=tuple(check for check in proposal.verify if math.isfinite(check.value)),
        predictions=tuple(
            replace(p, low=clean(p.low), high=clean(p.high))
            for p in proposal.predictions
            if p.baseline is not None and math.isfinite(p.baseline)
        ),
    )


def _excluded(one: Recommendation, ready: list[Recommendation]) -> bool:
    """True if a remedy that is ranked before this one contradicts it."""
    before = {other.id for other in ready[: ready.index(one)]}
    return any(one.id in group and before & set(group) for group in EXCLUSIVE)
