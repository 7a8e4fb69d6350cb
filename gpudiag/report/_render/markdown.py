"""Blocks as Markdown that reads well in a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
    Pictured,
    RecommendationBlock,
    Summary,
    TableBlock,
    TableCell,
    TextWithId,
    Tiles,
    TrialTable,
    named_symptoms,
)
from gpudiag.report.format import safe

_SPECIAL = re.compile(r"([\\*_{}\[\]<>#|~$])|(?<!\S)(?=::)")
"""Markdown's own characters, and how a command begins that GitHub Actions would obey at the start of a line."""
_LINK = re.compile(r"\b(?:https?:|ftp:)(?=//)|\bwww(?=\.)|(?<![\w.+-])@(?=\w)", re.IGNORECASE)
"""Where an address begins that becomes a link by itself, or a mention (``@everyone``) that calls somebody."""
EVIDENCE = "Evidence, limits and reasons"
"""What the fold of a finding holds."""
FIGURE = "figure:"
"""Where a picture among other blocks lies, until whoever writes the files says where that is."""


def render(blocks: Sequence[Block]) -> str:
    """The blocks as Markdown, with an empty line between them."""
    return "\n\n".join(part for part in map(_render, blocks) if part)


def inline(text: str) -> str:
    """Text with Markdown's own characters escaped and nothing that links or calls by itself; `code` stays code."""
    parts = safe(text).split("`")
    if len(parts) % 2 == 0 or "" in parts[1:-1]:  # an open end, or several in a row, which close in other places
        return _escaped("'".join(parts))
    return "`".join(part if i % 2 else _escaped(part) for i, part in enumerate(parts))


def _escaped(text: str) -> str:
    return _LINK.sub(r"\g<0>&#8203;", _SPECIAL.sub(r"\\\1", text))


def _render(block: Block) -> str:
    match block:
        case Masthead(title, facts):
            return f"# {inline(title)}\n\n" + " · ".join(f"{inline(k)}: {inline(v)}" for k, v in facts)
        case Banner(level, verdict, sentences, chips):
            lines = [f"**{MARKS[level]} {inline(verdict)}**", ""]
            lines += [f"- **{inline(head)}:** {inline(text)}" for head, text in sentences]
            lines += ["", " · ".join(_cell(chip) for chip in chips)] if chips else []
            return "\n".join(lines)
        case Summary():
            return _summary(block)
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
            said = _LINK.sub(r"\g<0>&#8203;", escape(safe(summary).replace("`", "")).replace("$", "&#36;"))
            return f"<details>\n<summary>{said}</summary>\n\n{render(blocks)}\n\n</details>"
        case Pictured(name, alt, caption):
            return picture(f"{FIGURE}{name}", alt, caption)
        case Figure() | TrialTable():
            return ""


def picture(path: str, alt: str, caption: str) -> str:
    """A picture with its words."""
    shown = f"![{inline(alt)}]({path})"
    return f"{shown}\n\n*{inline(caption)}*" if caption else shown


def _summary(top: Summary) -> str:
    numbers = " · ".join(f"**{inline(number)}** {inline(name)}" for name, number in top.numbers)
    lines = [f"**{MARKS[top.level]} {inline(top.headline)}**", inline(top.proof), numbers]
    lines += [f"**Do next:** {inline(top.then)}", " · ".join(_cell(chip) for chip in top.chips)]
    return "\n\n".join(line for line in lines if line)


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
        lines.append(f"**Do:** {inline(finding.advice)}" + (f" ({inline(finding.gain)})" if finding.gain else ""))
    if finding.code:
        lines += ["", *_code(finding.code)]
    if finding.symptoms:
        lines += ["", f"It explains: {inline('; '.join(named_symptoms(finding)))}."]
    lines += ["", "<details>", f"<summary>{EVIDENCE}</summary>", "", *_reasons(finding)]
    if finding.symptoms:
        lines += ["", SYMPTOMS, *(f"\n{_finding(symptom, level + 1)}" for symptom in finding.symptoms)]
    return "\n".join([*lines, "", "</details>"])


def _reasons(finding: FindingBlock) -> Iterator[str]:
    """What a finding rests on, as items of a list."""
    if finding.facts:
        yield "- **Evidence:** " + "; ".join(f"{inline(name)} {inline(value)}" for name, value in finding.facts)
    if finding.limits:
        yield "- **Limits:** " + "; ".join(f"`{name}` {inline(value)}" for name, value in finding.limits)
    if finding.general:
        yield f"- **In general:** {inline(finding.general)}"
    if finding.refuted_by:
        yield f"- {inline(finding.refuted_by)}"
    if finding.why:
        yield f"- **Why it matters:** {inline(finding.why)}"
    yield f"- **Rule:** [`{finding.id}`]({finding.page})" if finding.page else f"- **Rule:** `{finding.id}`"


def _remedy(remedy: RecommendationBlock) -> str:
    lines = [f"### {inline(remedy.title)} · {inline(remedy.mark)}", "", inline(remedy.summary), ""]
    lines += [*_code(remedy.code), ""] if remedy.code else []
    lines += [f"- **{inline(name)}:** {inline(text)}" for name, text in remedy.notes]
    return "\n".join([*lines, f"- **Remedy:** `{remedy.id}`"])


def _code(code: str) -> list[str]:
    fence = "`" * max([2, *map(len, re.findall("`+", code))]) + "`"
    return [fence, *(safe(line) for line in code.splitlines()), fence]


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
