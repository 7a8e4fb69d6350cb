"""Advice as plain data: for the JSON document, and as a table of options."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gpudiag.advice.engine import Advice
from gpudiag.advice.ranking import Recommendation
from gpudiag.advice.remedy import TIERS, Gain
from gpudiag.advice.resources import MEMORY, TRIAL_TIME, UTILIZATION
from gpudiag.measures.base import clean
from gpudiag.rules.engine import Verdict

if TYPE_CHECKING:
    import pandas as pd


def advice_entry(advice: Advice) -> dict[str, Any]:
    """``advice`` of the document: what bounds all gains, what the plan brings, and what the numbers refute."""
    chosen = advice.choose()
    combined = advice.combined(chosen)
    return {
        "busy_pct": clean(advice.bounds.busy_pct),
        "ceiling": clean(combined.ceiling) if combined else None,
        "plan": [one.id for one in chosen],
        "combined": None
        if combined is None
        else {"low": combined.low, "high": combined.high, "unit": "x", "clipped": combined.clipped},
        "saved_gpu_h": clean(combined.saved_gpu_h) if combined else None,
        "corrections": list(advice.corrections),
    }


def recommendation_entries(advice: Advice) -> list[dict[str, Any]]:
    """``recommendations`` of the document: remedies best first, then the rules' own advice where no remedy applies."""
    return [*map(recommendation_entry, advice.recommendations), *map(_unanswered, advice.unanswered)]


def recommendation_entry(one: Recommendation) -> dict[str, Any]:
    """One remedy as the document and the plan hold it."""
    item, proposal = one.remedy, one.proposal
    return {
        "id": item.id,
        "title": item.title,
        "rules": list(one.rules),
        "why": one.why,
        "safety": item.safety,
        "tier": item.tier,
        "safety_reason": TIERS[item.tier][1],
        "effort": item.effort,
        "apply": item.apply,
        "verify_first": proposal.verify_first,
        "gain": gain_entry(proposal.gain),
        "assumption": proposal.assumption,
        "changes": [asdict(change) for change in proposal.changes],
        "predictions": [
            {name: clean(value) for name, value in asdict(prediction).items()} for prediction in proposal.predictions
        ],
        "verify": [asdict(check) for check in proposal.verify],
        "refute": item.refute,
        "rollback": item.rollback,
        "pros": list(item.pros),
        "cons": list(item.cons),
    }


def gain_entry(gain: Gain | None) -> dict[str, Any] | None:
    """low, high, unit; None where the assumption says why nobody can tell."""
    return None if gain is None else {"low": clean(gain.low), "high": clean(gain.high), "unit": gain.unit}


def options_frame(advice: Advice) -> pd.DataFrame:
    """The options ranked by safety, one row each: id, title, tier, safety, apply, verify_first, present, proposed,
    gain_low, gain_high, gain_unit, and memory_, util_, trial_time_ with _now, _low, _high where they are predicted.
    """
    import pandas as pd

    rows = []
    for one in sorted(advice.recommendations, key=lambda one: one.remedy.tier):
        gain, first = one.proposal.gain, one.proposal.changes[0]
        row: dict[str, Any] = {
            "id": one.id,
            "title": one.remedy.title,
            "tier": one.remedy.tier,
            "safety": one.remedy.safety,
            "apply": one.remedy.apply,
            "verify_first": one.proposal.verify_first,
            "present": f"{first.what}: {'unknown' if first.present is None else first.present}",
            "proposed": str(first.proposed),
            "gain_low": gain.low if gain else float("nan"),
            "gain_high": gain.high if gain else float("nan"),
            "gain_unit": gain.unit if gain else "",
        }
        rows.append(row | _resources(one))
    return pd.DataFrame(rows)


def _resources(one: Recommendation) -> dict[str, Any]:
    """Predicted memory, utilization and trial time; NaN where nothing is predicted."""
    out: dict[str, Any] = {}
    for name, keys in (("memory", MEMORY), ("util", UTILIZATION), ("trial_time", TRIAL_TIME)):
        found = next((p for p in one.proposal.predictions if p.measure in keys), None)
        for part, value in (("now", "baseline"), ("low", "low"), ("high", "high")):
            number = getattr(found, value, None)
            out[f"{name}_{part}"] = float("nan") if number is None else number
    return out


def _unanswered(finding: Verdict) -> dict[str, Any]:
    """What the rule itself advises. Safety, effort and gain are absent: nothing has computed them."""
    return {
        "id": f"remedy-{finding.rule}",
        "title": finding.title,
        "rule": finding.rule,
        "text": finding.remedy,
    }
