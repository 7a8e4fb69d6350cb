"""A comparison as one JSON document (schema ``gpudiag.comparison/1``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib import resources
from typing import TYPE_CHECKING, Any

from gpudiag import __version__
from gpudiag.comparison.check import reasons
from gpudiag.plain_data import clean
from gpudiag.report.comparison import headline

if TYPE_CHECKING:
    from gpudiag.comparison.compare import Comparison
    from gpudiag.comparison.side import Side

SCHEMA = "gpudiag.comparison/1"
SCHEMA_SEVERAL = "gpudiag.comparisons/1"


def build(pair: Comparison) -> dict[str, Any]:
    """The document of one baseline and one experiment; unknown numbers are null, and the same runs give the same."""
    document = {
        "schema": SCHEMA,
        "version": __version__,
        "verdict": pair.verdict,
        "leader": pair.leader.name if pair.leader else None,
        "headline": None,
        "baseline": _side(pair.baseline),
        "experiment": _side(pair.experiment),
        "gate": [
            {
                "check": c.check,
                "title": c.title,
                "status": c.status,
                "evidence": c.evidence,
                "fault": c.fault if c.status == "fail" else "",
            }
            for c in pair.gate
        ],
        "reasons": [check.check for check in reasons(pair.gate)],
        "items": _items(pair),
        "consistency": [_plain(asdict(one)) for one in pair.consistency],
        "quantities": [_quantity(asdict(quantity)) for quantity in pair.quantities],
        "ledger": [_plain(asdict(cell)) for cell in pair.ledger],
        "differences": [_plain(asdict(one)) for one in pair.differences],
        "plan_of": _plan_of(pair),
        "plan": [_plain(asdict(outcome)) for outcome in pair.plan],
        "errors": [fault.to_dict() for fault in pair.errors],
    }
    document["headline"] = headline(document)
    return document


def to_json(document: Mapping[str, Any]) -> str:
    """The document as text. A NaN in it would be a bug and raises ValueError."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, as shipped in the package."""
    text = resources.files("gpudiag").joinpath("schemas/comparison-1.json").read_text(encoding="utf-8")
    return json.loads(text)


def _side(side: Side) -> dict[str, Any]:
    states = side.items["state"].value_counts()
    return {
        "name": side.name,
        "timezone": side.run.info.timezone,
        "n_items": len(side.items),
        "states": {str(state): int(n) for state, n in states.items()},
        "start": clean(side.items["start"].min()),
        "end": clean(side.items["end"].max()),
        "wall_s": clean(side.wall_s),
        "gpus": sorted({str(name) for name in side.run.gpus["name"].dropna()}) if "name" in side.run.gpus else [],
        "n_gpus": len(side.run.gpus),
        "inputs": [{"path": record.path, "sha256": record.sha256} for record in side.run.info.inputs],
    }


def _items(pair: Comparison) -> dict[str, Any]:
    held = pair.matched
    return {
        "paired": held.named and len(held.both_complete) > 0,
        "n_baseline": held.n_baseline,
        "n_experiment": held.n_experiment,
        "n_shared": held.n_shared,
        "n_succeeded_in_both": len(held.both_complete),
        "jaccard": clean(held.jaccard),
    }


def _quantity(values: dict[str, Any]) -> dict[str, Any]:
    for name in ("whole", "tested", "follows"):
        values.pop(name)
    return _plain(values)


def _plan_of(pair: Comparison) -> dict[str, Any] | None:
    plan = pair.plan_made
    if plan is None:
        return None
    return {
        "run": plan.run,
        "inputs": [{"path": one.path, "sha256": one.sha256} for one in plan.inputs],
        "remedies": [remedy.id for remedy in plan.remedies],
        "note": pair.plan_note,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return clean(value)
