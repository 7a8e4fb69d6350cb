"""The rules as text, Markdown and JSON: what code and docstrings say, written nowhere else."""

from __future__ import annotations

import json
from collections.abc import Sequence

from gpudiag.report._render.lines import WIDTH, folded, folded_text
from gpudiag.rules._engine.references import with_links
from gpudiag.rules._engine.rule import Rule
from gpudiag.units import unit_of


def rules_text(rules: Sequence[Rule], width: int = WIDTH) -> str:
    """One line a rule, which a narrow terminal continues below its words."""
    first = max(len(rule.id) for rule in rules)
    rows = (folded(f"{rule.id:<{first}}  {rule.severity.value:<8}  {rule.checks}", width, first + 12) for rule in rules)
    return "\n".join(rows) + "\n\nExplain one with: gpudiag rules explain ID"


def rule_text(rule: Rule, width: int = WIDTH) -> str:
    """All that is known about one rule, in lines of that width."""
    finds = f'finds "{rule.title}" ({rule.severity.value}, topic {rule.topic})'
    paragraphs = [
        folded(f"{rule.id}: {rule.checks}", width),
        folded(finds, width),
        "",
        folded_text(rule.why, width),
        "",
    ]
    if rule.thresholds:
        paragraphs.append("Thresholds (change with --set or in run.toml):")
        paragraphs += [f"  {rule.id}.{name} = {value:g}{_unit(name)}" for name, value in rule.thresholds.items()]
        paragraphs.append("")
    paragraphs.append(folded(f"What to do: {rule.remedy}", width))
    if rule.refuted_by:
        paragraphs.append(folded(rule.refuted_by, width))
    return "\n".join(paragraphs)


def rules_markdown(rules: Sequence[Rule]) -> str:
    """The rule catalogue, docs/rules.md."""
    out = [
        "# Rules",
        "",
        "Each check of a run: what it finds, why that matters, and what to do. Printed by",
        "`gpudiag rules list --format md`.",
        "",
    ]
    for rule in rules:
        finds = f"{rule.checks}. Finds: **{rule.title}** ({rule.severity.value}, topic {rule.topic})."
        out += [f"## {rule.id}", "", finds, "", with_links(rule.docstring), ""]
        if rule.thresholds:
            out += ["| threshold | default |", "|---|---|"]
            out += [f"| `{name}` | {value:g}{_unit(name)} |" for name, value in rule.thresholds.items()]
            out.append("")
        out += [f"What to do: {rule.remedy}", ""]
        if rule.refuted_by:
            out += [rule.refuted_by, ""]
    return "\n".join(out).rstrip()


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


def _unit(name: str) -> str:
    unit = unit_of(name)
    return "" if unit == "1" else f" {unit}"
