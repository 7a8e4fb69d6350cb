"""What is recommended for one run: a remedy with its numbers, or what a rule itself advises."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from gpudiag.advice._engine.proposal import TIERS, Apply, Change, Gain, Prediction, Proposal, Safety, SuccessCheck
from gpudiag.advice._engine.remedy import Remedy
from gpudiag.advice._engine.resources import MEMORY, TRIAL_TIME, UTILIZATION
from gpudiag.measures.causes import CAUSES
from gpudiag.rules._engine.verdict import Verdict
from gpudiag.shown import Shown

if TYPE_CHECKING:
    import pandas as pd

OWN_TIER = 2
"""Of what a rule advises: whether trials stay comparable is not known, so it counts as if they did not."""
RESOURCES = (("memory", MEMORY), ("util", UTILIZATION), ("trial_time", TRIAL_TIME))


@dataclass(frozen=True, eq=False, repr=False)
class Recommendation(Shown):
    """One thing to do, as the JSON holds it.

    ``rule``: the first of ``rules``, the findings that it answers; None where it fills idle time. ``why``: what they
    say. ``text``: what to do, in words. ``safety``: by ``tier`` (0 to 4), because of ``safety_reason``.
    ``verify_first``: why it must be tested before it is applied; empty where nothing speaks against it. ``gain``: None
    where ``assumption`` says why it is unknown. ``verify``: statements on the numbers of the next run. ``refute``:
    the cheapest test that would show that it does not help. What a rule advises itself has a title, a text and no more:
    it is in no plan unless it is named.
    """

    id: str
    title: str
    rule: str | None
    rules: tuple[str, ...]
    why: str
    text: str
    safety: Safety
    tier: int
    safety_reason: str
    effort: str
    apply: Apply
    verify_first: str
    gain: Gain | None
    assumption: str
    changes: tuple[Change, ...]
    predictions: tuple[Prediction, ...]
    verify: tuple[SuccessCheck, ...]
    refute: str
    rollback: str
    pros: tuple[str, ...]
    cons: tuple[str, ...]

    @classmethod
    def of(cls, item: Remedy, proposal: Proposal, rules: tuple[str, ...], why: str) -> Recommendation:
        """A remedy proposed for a run in which these rules found something."""
        return cls(
            id=item.id,
            title=item.title,
            rule=rules[0] if rules else None,
            rules=rules,
            why=why,
            text=proposal.changes[0].text,
            safety=item.safety,
            tier=item.tier,
            safety_reason=TIERS[item.tier][1],
            effort=item.effort,
            apply=item.apply,
            verify_first=proposal.verify_first,
            gain=proposal.gain,
            assumption=proposal.assumption,
            changes=proposal.changes,
            predictions=proposal.predictions,
            verify=proposal.verify,
            refute=item.refute,
            rollback=item.rollback,
            pros=item.pros,
            cons=item.cons,
        )

    @classmethod
    def own(cls, finding: Verdict) -> Recommendation:
        """What the rule itself advises for its finding, where no remedy applies: words, and nothing made up around
        them.
        """
        advised = "\n".join(textwrap.wrap(finding.remedy, 88, initial_indent="# ", subsequent_indent="# "))
        return cls(
            id=f"remedy-{finding.rule}",
            title=finding.remedy.partition(". ")[0].removesuffix("."),
            rule=finding.rule,
            rules=(finding.rule,),
            why=finding.summary,
            text=finding.remedy,
            safety=TIERS[OWN_TIER][0],
            tier=OWN_TIER,
            safety_reason="",
            effort="",
            apply="next study",
            verify_first="",
            gain=None,
            assumption="",
            changes=(Change("what the rule advises", None, finding.remedy, advised),),
            predictions=(),
            verify=(),
            refute="",
            rollback="",
            pros=(),
            cons=(),
        )

    @property
    def is_the_rules_own(self) -> bool:
        """True where no remedy applies, so that it repeats what the rule advises."""
        return self.id == f"remedy-{self.rule}"

    @property
    def is_bounded(self) -> bool:
        """True where the time that a known cause took bounds the gain, and not idle time of whatever cause."""
        gain = self.gain
        return gain is not None and gain.unit == "x" and gain.source in CAUSES and math.isfinite(gain.high)

    def predicted(self, keys: Collection[str]) -> Prediction | None:
        """What is predicted for one of these facts; None where nothing is."""
        return next((p for p in self.predictions if p.measure in keys), None)

    def to_frame(self) -> pd.DataFrame:
        """What is predicted: measure, baseline, low, high, unit, note."""
        import pandas as pd

        names = [field.name for field in fields(Prediction)]
        return pd.DataFrame([[getattr(p, name) for name in names] for p in self.predictions], columns=names)


class Recommendations(Shown, tuple[Recommendation, ...]):
    """Recommendations, best first: a tuple that shows the options."""

    def to_frame(self) -> pd.DataFrame:
        """The options ranked by safety, one row each: id, title, tier, safety, apply, verify_first, present, proposed,
        gain_low, gain_high, gain_unit, and memory_, util_, trial_time_ with _now, _low, _high where they are predicted.
        """
        import pandas as pd

        return pd.DataFrame([_option(one) for one in by_safety(self)])


def by_safety(given: Iterable[Recommendation]) -> list[Recommendation]:
    """The safest first; those of one tier in the given order."""
    return sorted(given, key=lambda one: one.tier)


def _option(one: Recommendation) -> dict[str, object]:
    first, gain = one.changes[0], one.gain
    row: dict[str, object] = {
        "id": one.id,
        "title": one.title,
        "tier": one.tier,
        "safety": one.safety,
        "apply": one.apply,
        "verify_first": one.verify_first,
        "present": f"{first.what}: {'unknown' if first.present is None else first.present}",
        "proposed": str(first.proposed),
        "gain_low": gain.low if gain else math.nan,
        "gain_high": gain.high if gain else math.nan,
        "gain_unit": gain.unit if gain else "",
    }
    for name, keys in RESOURCES:
        found = one.predicted(keys)
        for part, value in (("now", "baseline"), ("low", "low"), ("high", "high")):
            number = getattr(found, value, None)
            row[f"{name}_{part}"] = math.nan if number is None else number
    return row
