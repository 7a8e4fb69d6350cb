"""Blocks as Markdown that reads well in a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from gpudiag.report._render.blocks import (
    MARKS,
    SYMPTOMS,
    Banner,
    Block,
    Chip,
    Figure,
    FindingBlock,
    Folded,
    Heading,
    Masthead,
    Note,
    Number,
    RecommendationBlock,
    TableBlock,
    TableCell,
    TextWithId,
    Tiles,
)
from gpudiag.report.format import safe

_SPECIAL = re.compile(r"([\\*_{}\[\]<>#|~$])")


def render(blocks: Sequence[Block]) -> str:
    """The blocks as Markdown, with an empty line between them."""
    return "\n\n".join(part for part in map(_render, blocks) if part)


def inline(text: str) -> str:
    """Text with Markdown's own characters escaped; `code` stays code."""
    parts = safe(text).split("`")
    if len(parts) % 2 == 0 or "" in parts[1:-1]:  # an open end, or several in a row, which close in other places
        return _SPECIAL.sub(r"\\\1", "'".join(parts))
    return "`".join(part if i % 2 else _SPECIAL.sub(r"\\\1", part) for i, part in enumerate(parts))


def _render(block: Block) -> str:
    match block:
        case Masthead(title, facts):
            return f"# {inline(title)}\n\n" + " · ".join(f"{inline(k)}: {inline(v)}" for k, v in facts)
        case Banner(level, verdict, sentences, chips):
            lines = [f"**{MARKS[level]} {inline(verdict)}**", ""]
            lines += [f"- **{inline(head)}:** {inline(text)}" for head, text in sentences]
            lines += ["", " · ".join(_cell(chip) for chip in chips)]
            return "\n".join(lines)
        case FindingBlock():
            return _finding(block)
        case RecommendationBlock():
            return _remedy(block)
        case TableBlock():
            return _table(block)
        case Tiles(items):
            return "\n".join(f"- **{inline(number)}** {inline(name)}" for name, number in items)
        case Note(text, "error"):
            return f"**{_cell(Chip('error'))}:** {inline(text)}"
        case Note(text, level):
            return f"*{inline(text)}*" if level and "`" not in text else inline(text)
        case Heading(text):
            return f"### {inline(text)}"
        case Folded(summary, blocks):
            said = escape(safe(summary).replace("`", "")).replace("$", "&#36;")
            return f"<details>\n<summary>{said}</summary>\n\n{render(blocks)}\n\n</details>"
        case Figure():
            return ""


def _finding(finding: FindingBlock, level: int = 3) -> str:
    """A finding under a heading of that level, its symptoms under it."""
    cost = f" · {inline(finding.cost)}" if finding.cost else ""
    lines = [
        f"{'#' * level} {_cell(Chip(finding.level))}: {inline(finding.title)}{cost}",
        "",
        inline(finding.summary),
        "",
    ]
    if finding.advice:
        lines.append(f"- **Do:** {inline(finding.advice)}")
    if finding.facts:
        lines.append("- **Evidence:** " + "; ".join(f"{inline(name)} {inline(value)}" for name, value in finding.facts))
    if finding.limits:
        lines.append("- **Limits:** " + "; ".join(f"`{name}` {inline(value)}" for name, value in finding.limits))
    if finding.refuted_by:
        lines.append(f"- **Would be refuted by:** {inline(finding.refuted_by)}")
    if finding.why:
        lines.append(f"- **Why it matters:** {inline(finding.why)}")
    lines.append(f"- **Rule:** `{finding.id}`")
    if finding.symptoms:
        lines += ["", SYMPTOMS, *(f"\n{_finding(symptom, level + 1)}" for symptom in finding.symptoms)]
    return "\n".join(lines)


def _remedy(remedy: RecommendationBlock) -> str:
    lines = [f"### {inline(remedy.title)} · {inline(remedy.mark)}", "", inline(remedy.summary), ""]
    fence = "`" * max([2, *map(len, re.findall("`+", remedy.code))]) + "`"
    lines += [fence, *(safe(line) for line in remedy.code.splitlines()), fence, ""]
    lines += [f"- **{inline(name)}:** {inline(text)}" for name, text in remedy.notes]
    return "\n".join([*lines, f"- **Remedy:** `{remedy.id}`"])


def _table(table: TableBlock) -> str:
    if not table.rows:
        return ""
    numeric = [all(isinstance(row[i], Number) for row in table.rows) for i in range(len(table.columns))]
    rule = "|".join("--:" if right else "---" for right in numeric)
    lines = ["| " + " | ".join(inline(name) for name in table.columns) + " |", f"|{rule}|"]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in table.rows]
    if table.caption:
        lines += ["", f"*{inline(table.caption)}*" if "`" not in table.caption else inline(table.caption)]
    return "\n".join(lines)


def _cell(cell: TableCell) -> str:
    match cell:
        case Chip(level):
            return f"{MARKS[level]} {inline(cell.words)}"
        case Number(text):
            return inline(text)
        case TextWithId(text, id):
            return f"{inline(text)} (`{id}`)"
        case str():
            return inline(cell)
