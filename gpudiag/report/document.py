"""A diagnosis as one JSON document (schema ``gpudiag.diagnosis/1``), and how renderers read it.

The document holds no user attribute of a trial, no NaN and no time of writing: the same run gives
the same document.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any

from gpudiag import __version__
from gpudiag.advice.engine import Advice
from gpudiag.advice.export import advice_entry, recommendation_entries
from gpudiag.errors import NotMeasurable
from gpudiag.faults import Fault, attempt
from gpudiag.measures._time.window import ORPHAN
from gpudiag.measures.base import clean, facts
from gpudiag.report.headline import headline
from gpudiag.rules.engine import Rule, Status, Verdict
from gpudiag.rules.suppression import Applied
from gpudiag.schema import STATES

if TYPE_CHECKING:
    from gpudiag.run import Run

SCHEMA = "gpudiag.diagnosis/1"
PACKAGES = ("numpy", "pandas", "polars", "scipy", "matplotlib", "optuna", "papermill", "nbconvert")

NO_ADVICE: dict[str, Any] = {
    "busy_pct": None, "ceiling": None, "plan": [], "combined": None, "saved_gpu_h": None, "corrections": []
}  # fmt: skip

Document = Mapping[str, Any]


def build(
    run: Run,
    *,
    findings: Sequence[Verdict],
    verdicts: Sequence[Verdict],
    rules: Iterable[Rule],
    profiles: Mapping[str, Any],
    missing: Mapping[str, NotMeasurable],
    advice: Advice,
    preset: str = "",
    suppressions: Sequence[Applied] = (),
    errors: Sequence[Fault] = (),
) -> dict[str, Any]:
    """The document of one diagnosis: findings first, in their order, then the other verdicts in theirs."""
    by_id = {rule.id: rule for rule in rules}
    others = [v for v in verdicts if v.status is not Status.FOUND]
    failed = list(errors)

    def part(name: str, make: Callable[[], Any], otherwise: Any = None) -> Any:
        """A part of the document; ``otherwise`` where it fails by a fault of gpudiag."""
        made = attempt(f"document's {name}", make)
        if isinstance(made, Fault):
            failed.append(made)
            return otherwise
        return made

    measured = {topic: part(f"measure {topic}", partial(facts, profile)) for topic, profile in profiles.items()}
    document = {
        "schema": SCHEMA,
        "version": __version__,
        "run": _run(run),
        "headline": None,
        "inputs": [_plain(asdict(record)) for record in run.info.inputs],
        "clock": _clock(run),
        "measures": {topic: values for topic, values in measured.items() if values is not None},
        "not_measured": {topic: {"reason": gap.reason, "remedy": gap.remedy} for topic, gap in missing.items()},
        "ledger": part("ledger", lambda: _ledger(profiles.get("ledger"))),
        "costs": part("costs", lambda: _costs(profiles.get("costs"))),
        "preset": preset or None,
        "verdicts": [_verdict(v, by_id[v.rule]) for v in (*findings, *others)],
        "suppressions": [_suppression(one) for one in suppressions],
        "recommendations": part("recommendations", lambda: _plain(recommendation_entries(advice)), []),
        "advice": part("advice", lambda: _plain(advice_entry(advice)), NO_ADVICE),
        "errors": [fault.to_dict() for fault in failed],
        "environment": environment(),
    }
    document["headline"] = headline(document)
    return document


def to_json(document: Document) -> str:
    """The document as text. A NaN in it would be a bug and raises ValueError."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, as shipped in the package."""
    text = resources.files("gpudiag").joinpath("schemas/diagnosis-1.json").read_text(encoding="utf-8")
    return json.loads(text)


def of_status(document: Document, status: str) -> list[dict[str, Any]]:
    """The verdicts of that status, in the document's order."""
    return [verdict for verdict in document["verdicts"] if verdict["status"] == status]


@cache
def environment() -> dict[str, Any]:
    """Versions of Python and of the libraries that numbers depend on."""
    installed = {name: metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), "packages": installed}


def _run(run: Run) -> dict[str, Any]:
    stamps = [s for table, column in ((run.gpu, "time"), (run.trials, "start"), (run.trials, "end"))
              for s in (table[column].min(), table[column].max())]  # fmt: skip
    known = [stamp for stamp in map(clean, stamps) if stamp]
    return {
        "name": run.info.name,
        "timezone": run.info.timezone,
        "start": min(known, default=None),
        "end": max(known, default=None),
        "gpus": [_plain(row) for row in run.gpus.to_dict("records")],
        "n_samples": len(run.gpu),
        "n_trials": len(run.trials),
        "studies": [str(name) for name in run.trials["study"].unique()],
        "settings": _given(run.info.settings.model_dump()),
        "dataloader": _given(run.info.dataloader.model_dump()),
        "stated": _plain(run.info.stated),
        "notes": list(run.info.notes),
    }


def _ledger(profile: Any) -> dict[str, Any] | None:
    """Every cell of every GPU; None where the time of the GPUs could not be accounted for."""
    if profile is None:
        return None
    columns = ("gpu", "cell", "gpu_s")
    rows = zip(*(profile.cells[name] for name in columns), strict=True)
    cells = [{name: clean(value) for name, value in zip(columns, row, strict=True)} for row in rows]
    return {"total_gpu_s": clean(profile.total_gpu_s), "cells": cells}


def _costs(profile: Any) -> dict[str, Any] | None:
    """Slot time, GPU time, energy and money of each outcome; None without timed trials."""
    if profile is None:
        return None
    rows = profile.slots.drop(columns="share_pct").merge(
        profile.outcomes.drop(columns=["share_pct", "n_trials"]), on="outcome", how="outer", sort=False
    )
    order = [*profile.outcomes["outcome"], *profile.slots["outcome"]]
    rows = rows.set_index("outcome").loc[list(dict.fromkeys(order))].reset_index()
    # What lies between trials has a number of gaps, or none at all, but no number of trials.
    ran = rows["outcome"].isin([*STATES, ORPHAN])
    rows["n_trials"] = rows["n_trials"].astype("Int64").where(ran)
    return {"currency": profile.currency, "outcomes": [_plain(row) for row in rows.to_dict("records")]}


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """What run.toml says; a currency without a price says nothing."""
    given = {name: value for name, value in values.items() if value is not None}
    if "price_per_gpu_h" not in given:
        given.pop("currency", None)
    return given


def _clock(run: Run) -> dict[str, Any]:
    clock = run.info.clock
    return {
        "offset_s": clean(clock.offset_s),
        "confidence": clock.confidence,
        "method": clock.method,
        "evidence": clock.evidence,
        "applied_s": clean(clock.applied_s),
        "joined": clock.joined,
    }


def _verdict(verdict: Verdict, rule: Rule) -> dict[str, Any]:
    return {
        "rule": verdict.rule,
        "topic": rule.topic,
        "title": verdict.title,
        "status": verdict.status.value,
        "severity": verdict.severity.value,
        "summary": verdict.summary,
        "reason": verdict.reason,
        "evidence": _plain(verdict.evidence),
        "thresholds": _plain(verdict.thresholds),
        "changed": sorted(n for n, v in verdict.thresholds.items() if v != rule.thresholds.get(n)),
        "where": _plain(verdict.where),
        "lost_gpu_h": clean(verdict.lost_gpu_h),
        "margin": clean(verdict.margin),
        "caused_by": verdict.caused_by,
        "remedy": verdict.remedy,
        "refuted_by": rule.refuted_by,
        "why": rule.why,
    }


def _suppression(one: Applied) -> dict[str, Any]:
    return {**one.entry.model_dump(mode="json"), "state": one.state}


def _plain(value: Any) -> Any:
    """Containers and scalars of any library as JSON's own."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if getattr(value, "ndim", None):  # an array or a column
        return _plain(value.tolist())
    return clean(value)
