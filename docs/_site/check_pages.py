"""The page of each check and the list of them, as Markdown for Sphinx."""

from __future__ import annotations

from planted_cases import Case

from gpudiag.advice import REMEDIES
from gpudiag.report._render.markdown import inline
from gpudiag.report.check_page import check_markdown
from gpudiag.rules import RULES
from gpudiag.rules._engine.rule import Rule

PLACES = {one.id: f"../../remedies.md#{one.id}" for one in REMEDIES} | {rule.id: f"{rule.id}.md" for rule in RULES}
"""Where a page of a check finds a recommendation or another check, by id."""

AREAS = {
    "GPU use": ("utilization", "ledger", "balance", "stalls", "idleness", "shift", "feed", "loader"),
    "Steps and ranks": ("steps", "profiled", "collectives"),
    "Memory": ("memory", "leak"),
    "Hardware": ("power", "throttle", "events"),
    "Trials": ("trials", "failures", "failure_rates", "parallelism", "costs", "search"),
    "Pruning": ("pruning", "agreement"),
    "What was recorded": ("clock", "sampling", "recorder", "inputs"),
}
"""Topics by what a reader looks for; one that is not named stands under OTHERS."""
OTHERS = "Others"
_AREA = {topic: area for area, topics in AREAS.items() for topic in topics}


def page_of_check(rule: Rule, case: Case) -> str:
    """What is known about it, then its planted case with what gpudiag says and the figure that shows it."""
    known = check_markdown(rule, {name: place for name, place in PLACES.items() if name != rule.id}, "../../methods.md")
    parts = [
        f"# {inline(rule.checks)}",
        f"`{rule.id}` · {known}",
        "## In a run",
        f"{case.planted} `gpudiag diagnose --all` says:",
        f"```text\n{case.said}\n```",
    ]
    if case.alt:
        words = f":alt: {_line(case.alt)}\n:target: ../../_images/{rule.id}.svg\n\n{inline(case.caption)}"
        parts.append(f":::{{figure}} ../../_build/planted/{rule.id}.svg\n{words}\n:::")
    return "\n\n".join(parts) + "\n"


def list_of_checks() -> str:
    """Every check by area, in the order of a report."""
    parts = [
        "# Checks",
        f"The {len(RULES)} checks that gpudiag makes of a run. Each page says why it matters, at which limits it is "
        "found, where these are from, what to do, and shows it in a run. On the command line: `gpudiag rules list` "
        "and `gpudiag rules explain ID`; rules of your own: [](../../own-rules.md).",
    ]
    by_area = {area: [rule for rule in RULES if _AREA.get(rule.topic, OTHERS) == area] for area in (*AREAS, OTHERS)}
    for area, rules in by_area.items():
        rows = [
            f"| [{inline(one.checks)}]({one.id}.md) | {inline(one.title)} | {one.severity.value} |" for one in rules
        ]
        if rows:
            parts.append("\n".join([f"## {area}\n", "| Check | Finds | Severity |", "|---|---|---|", *rows]))
    entries = "\n".join(rule.id for rules in by_area.values() for rule in rules)
    parts.append(f"```{{toctree}}\n:hidden:\n\n{entries}\n```")
    return "\n\n".join(parts) + "\n"


def _line(text: str) -> str:
    return " ".join(text.split())
