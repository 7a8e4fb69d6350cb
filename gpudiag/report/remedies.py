"""The remedies as Markdown: what code and docstrings say, written nowhere else."""

from __future__ import annotations

from gpudiag.advice import REMEDIES
from gpudiag.advice._engine.proposal import TIERS, WHEN
from gpudiag.report.check_page import with_id_links
from gpudiag.rules._engine.references import with_links


def remedies_markdown() -> str:
    """The catalogue of remedies, docs/remedies.md."""
    out = [
        "# Recommendations",
        "",
        "Printed by `python -m gpudiag.report.remedies`; the code is the only source. Gains are computed for each run "
        "from its ledger; there are none here.",
        "",
        "| tier | safety | because |",
        "|--:|---|---|",
        *(f"| {tier} | {safety} | {reason} |" for tier, (safety, reason) in enumerate(TIERS)),
        "",
    ]
    for item in REMEDIES:
        out += [
            f"## {item.id}",
            "",
            f"{item.title} ({item.safety}, tier {item.tier}; {item.effort}; {WHEN[item.apply]}).",
            "",
        ]
        out += [with_links(item.docstring), ""]
        if item.answers:
            answers = ", ".join(f"`{rule}`" for rule in item.answers)
            out.append(f"- Answers: {with_id_links(answers, {rule: f'rules.md#{rule}' for rule in item.answers})}")
        if item.fills_idle:
            out.append("- Offered without a finding too, where a GPU has idle time worth filling.")
        out += [f"- For: {'; '.join(item.pros)}"]
        out += [f"- Against: {'; '.join(item.cons)}"] if item.cons else []
        out += [f"- Test it first: {item.refute}"] if item.refute else []
        out += [f"- Undo: {item.rollback}"] if item.rollback and item.tier else []
        out += [""]
    return "\n".join(out).rstrip() + "\n"


if __name__ == "__main__":
    print(remedies_markdown(), end="")
