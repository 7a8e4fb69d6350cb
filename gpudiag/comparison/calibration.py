"""How often our predictions held: over the plans that were compared with what happened."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gpudiag.comparison.plan_check import CAME_TRUE, CANNOT_TELL, GAIN, MISSED, PREDICTION
from gpudiag.errors import InputError, InputNotFound
from gpudiag.report.comparison.calibration import Calibration, PredictionCounts

PLAN, COMPARISON, COMPARISONS = "gpudiag.plan/1", "gpudiag.comparison/1", "gpudiag.comparisons/1"
MAX_BYTES = 50_000_000


def calibration(folder: str | Path) -> Calibration:
    """Gather every comparison with a plan below a folder (as ``gpudiag compare --plan ... -o DIR`` writes them).

    The same comparison written twice counts once. Raises InputNotFound, or InputError where there is no plan at all.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputNotFound(f"{folder}: no such folder; expected one with plans and comparisons in it.")
    plans, comparisons = _documents(folder)
    rows: dict[str, list[Mapping[str, Any]]] = {}
    checked = []
    seen = set()
    for path, document in comparisons:
        entries = document.get("plan") or []
        key = json.dumps([document.get("baseline"), document.get("experiment"), entries], sort_keys=True)
        if entries and key not in seen:
            seen.add(key)
            checked.append(path)
            rows[path] = [entry for entry in entries if entry.get("kind") in (PREDICTION, GAIN)]
    if not plans and not checked:
        raise InputError(
            f"{folder}: holds no plan and no comparison with a plan; write them with diagnosis.save_plan() and "
            "gpudiag compare A B --plan plan.json -o DIR."
        )
    entries = [entry for part in rows.values() for entry in part]
    answered = {_key(document.get("plan_of") or {}) for path, document in comparisons if path in rows}
    pending = tuple(path for path, document in plans if _key(document) not in answered)
    return Calibration(_tally("all", entries), _by(entries, "remedy"), _by(entries, "measure"), tuple(checked), pending)


def _documents(folder: Path) -> tuple[list[tuple[str, dict[str, Any]]], list[tuple[str, dict[str, Any]]]]:
    """Plans and single comparisons below the folder, by path; other JSON is passed over."""
    plans, comparisons = [], []
    for path in sorted(folder.rglob("*.json")):
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            continue
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError):
            continue
        name = str(path.relative_to(folder))
        schema = document.get("schema") if isinstance(document, dict) else None
        if schema == PLAN:
            plans.append((name, document))
        elif schema == COMPARISON:
            comparisons.append((name, document))
        elif schema == COMPARISONS:
            comparisons += [(f"{name}#{i + 1}", one) for i, one in enumerate(document.get("comparisons") or [])]
    return plans, comparisons


def _key(plan: Mapping[str, Any]) -> str:
    """What tells one plan from another: its run, the contents of its inputs and its remedies."""
    inputs = sorted(str(one.get("sha256")) for one in plan.get("inputs") or [])
    remedies = [one if isinstance(one, str) else str(one.get("id")) for one in plan.get("remedies") or []]
    return json.dumps([plan.get("run"), inputs, remedies])


def _by(entries: Iterable[Mapping[str, Any]], name: str) -> tuple[PredictionCounts, ...]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        groups.setdefault(str(entry.get(name)), []).append(entry)
    tallies = [_tally(key, part) for key, part in groups.items()]
    return tuple(sorted(tallies, key=lambda tally: (-tally.known, tally.name)))


def _tally(name: str, entries: Iterable[Mapping[str, Any]]) -> PredictionCounts:
    statuses = [entry.get("status") for entry in entries]
    return PredictionCounts(name, statuses.count(CAME_TRUE), statuses.count(MISSED), statuses.count(CANNOT_TELL))
