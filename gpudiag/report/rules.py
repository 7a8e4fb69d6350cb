"""The rules as lines and JSON: what code and docstrings say, written nowhere else."""

from __future__ import annotations

import json
from collections.abc import Sequence

from gpudiag.report._render.lines import WIDTH, folded
from gpudiag.rules._engine.rule import Rule


def rules_text(rules: Sequence[Rule], width: int = WIDTH) -> str:
    """One line a rule, which a narrow terminal continues below its words."""
    first = max(len(rule.id) for rule in rules)
    rows = (folded(f"{rule.id:<{first}}  {rule.severity.value:<8}  {rule.checks}", width, first + 12) for rule in rules)
    return "\n".join(rows) + "\n\nExplain one with: gpudiag rules explain ID"


def rules_json(rules: Sequence[Rule]) -> str:
    """The rule catalogue for machines."""
    return json.dumps([_entry(rule) for rule in rules], indent=2, ensure_ascii=False)


def _entry(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.id,
        "title": rule.title,
        "checks": rule.checks,
        "topic": rule.topic,
        "severity": rule.severity.value,
        "why": rule.why,
        "thresholds": rule.thresholds,
        "remedy": rule.remedy,
        "refuted_by": rule.refuted_by,
    }
