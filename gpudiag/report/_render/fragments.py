"""Blocks as HTML fragments: semantic, escaped, readable without a style sheet and without a script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib import resources

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
from gpudiag.report._render.commands import split_command
from gpudiag.report._render.untrusted import bare, styled
from gpudiag.report.format import plural, safe

_UNITS = "ms|s|min|h|d|W|Wh|kWh|MHz|MiB/s|GiB/s|MiB|GiB|GPU-hours?|GPU-h|GPU-s|worker-hours?|worker-h|worker-s|trials/h"
_UNIT = re.compile(rf"(\d) (?=(?:{_UNITS})\b|%|°C|×)|(\bGPU) (?=\d)")
_SECOND = re.compile(r"(&nbsp;(?:d|h|min)) (?=\d+&nbsp;(?:h|min|s)\b)")
"""Between the two units of a duration."""
_HYPHEN = re.compile(r"(?:(?<=[\d.,])&nbsp;|\b)(?:GPU|worker)-(?:hours?|h|s)\b")
"""A unit within which a line would break after its hyphen."""
_GOTO = re.compile(r'<span (class="gd-goto" data-gd-goto="[^"]*")></span>')
"""The place of a button, which a notebook without the timeline's script cannot have."""
NARROW_PX, LETTER_PX, DIGIT_PX, BETWEEN_PX, BOLD = 354, 7.2, 8, 13, 1.12
"""The room for a table on a screen of 390 pixels, a letter and a digit at 13 pixels, what lies between two columns, and
how much wider bold letters are.
"""
MOST_LINES = 6
"""Of a cell, before its row becomes a block."""


def render(blocks: Sequence[Block]) -> str:
    """The blocks as HTML, one after the other."""
    return "\n".join(part for part in map(_render, blocks) if part)


def standalone(blocks: Sequence[Block]) -> str:
    """The same for display in a notebook: with the style sheet, and with what stands in where that is removed."""
    return f'<div class="gpudiag">{style()}\n{styled(render(blocks))}\n</div>'


def on_page(html: str) -> str:
    """Such an output on a page, which has the style sheet in its head and the script of the timeline."""
    return _GOTO.sub(r'<button type="button" \1 hidden>On the timeline</button>', bare(html.replace(style(), "")))


@cache
def style() -> str:
    """The style sheet of fragments as an element; a page that has it in its head drops this one."""
    return f"<style>{style_sheet()}</style>"


def style_sheet() -> str:
    """The rules of that element."""
    return resources.files("gpudiag").joinpath("report/_render/fragments.css").read_text(encoding="utf-8")


def inline(text: str) -> str:
    """Text escaped; `code` becomes a code element; a number and its unit stay on one line."""
    parts = safe(text).split("`")
    if len(parts) % 2 == 0:
        return _words("`".join(parts))
    return "".join(f"<code>{escape(part)}</code>" if i % 2 else _words(part) for i, part in enumerate(parts))


def _words(text: str) -> str:
    kept = _SECOND.sub(r"\1&nbsp;", _UNIT.sub(r"\1\2&nbsp;", escape(text)))
    return _HYPHEN.sub(r'<span class="gd-unit">\g<0></span>', kept)


def chip(mark: Chip) -> str:
    """A level as a shape and a word."""
    return (
        f'<span class="gd-chip gd-{mark.level}"><span aria-hidden="true">{MARKS[mark.level]}</span> '
        f"{inline(mark.words)}</span>"
    )


def slug(text: str) -> str:
    """An id made from text: the same for the same text."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _render(block: Block) -> str:
    match block:
        case Masthead(title, facts):
            listed = "".join(f"<div><dt>{inline(k)}</dt><dd>{inline(v)}</dd></div>" for k, v in facts)
            return f'<header class="gd-masthead"><h1>{inline(title)}</h1><dl>{listed}</dl></header>'
        case Banner():
            return _banner(block)
        case Summary():
            return _summary(block)
        case FindingBlock():
            return _finding(block)
        case RecommendationBlock():
            return _remedy(block)
        case TableBlock():
            return _table(block)
        case Tiles(items):
            return '<dl class="gd-tiles">' + _pairs(items) + "</dl>"
        case Note(text, level):
            mark = f"{chip(Chip(level))} " if level else ""
            words, command = split_command(text)
            return f'<p class="gd-remark">{mark}{inline(words)}</p>{_code(command, "gd-code gd-command")}'
        case Heading(text):
            return f"<h3>{inline(text)}</h3>"
        case Folded(summary, blocks):
            return f'<details class="gd-folded"><summary>{inline(summary)}</summary>\n{render(blocks)}\n</details>'
        case Pictured(name, alt, caption, mime, image):
            return figure(name, alt, caption, f"data:{mime};base64,{image}")
        case TrialTable(n, still, _, noun):
            few = f"Some of {plural(n, noun)}: the best, the longest, the last that failed"
            every = f"All {plural(n, noun)}: sort, filter and copy"  # said where a script shows them
            return (
                f'<details class="gd-folded gd-few" data-all="{every}"><summary>{few}</summary>\n'
                f"{_table(still)}\n</details>"
            )
        case Figure():
            return ""


def figure(name: str, alt: str, caption: str, source: str, small: str = "") -> str:
    """A picture with its words; ``source`` and ``small``, the one for narrow screens, are data URIs."""
    img = f'<img alt="{escape(safe(alt))}" src="{source}">'
    if small:
        img = f'<picture><source media="(max-width: 40rem)" srcset="{small}">{img}</picture>'
    kind = "gd-figure gd-fits" if small else "gd-figure"
    words = f"<figcaption>{inline(caption)}</figcaption>" if caption else ""
    return (
        f'<figure class="{kind}" id="figure-{escape(name)}">'
        f'<div class="gd-pan" tabindex="0" role="group" aria-label="Figure {escape(name)}">{img}</div>{words}</figure>'
    )


def _summary(top: Summary) -> str:
    more = f' <a href="#finding-{escape(top.finding)}">Why and how</a>' if top.finding else ""
    then, command = split_command(top.then)
    return (
        f'<div class="gd-summary gd-{top.level}">'
        f'<p class="gd-headline">{inline(top.headline)}</p><p class="gd-proof">{inline(top.proof)}</p>'
        f'<dl class="gd-tiles">{_pairs(top.numbers)}</dl>'
        f'<p class="gd-do"><strong>Do next</strong> {inline(then)}{more}</p>{_code(command, "gd-code gd-command")}'
        f'<p class="gd-chips">{" ".join(map(chip, top.chips))}</p></div>'
    )


def _banner(banner: Banner) -> str:
    said = "".join(f"<div><dt>{inline(head)}</dt><dd>{inline(text)}</dd></div>" for head, text in banner.sentences)
    chips = f'<p class="gd-chips">{" ".join(map(chip, banner.chips))}</p>' if banner.chips else ""
    return (
        f'<div class="gd-banner gd-{banner.level}">'
        f'<p class="gd-verdict"><span class="gd-mark" aria-hidden="true">{MARKS[banner.level]}</span> '
        f"{inline(banner.verdict)}</p>"
        f'<dl class="gd-said">{said}</dl>{chips}</div>'
    )


def _finding(finding: FindingBlock) -> str:
    title = f"finding-{finding.id}"
    cost = f'<span class="gd-cost">{inline(finding.cost)}</span>' if finding.cost else ""
    about = f' <a href="{escape(finding.page)}">About this check</a>' if finding.page else ""
    parts = [
        f'<article class="gd-finding gd-{finding.level}" aria-labelledby="{title}">',
        f'<header>{chip(Chip(finding.level))}<h3 id="{title}">{inline(finding.title)}</h3>{cost}</header>',
        f"<p>{inline(finding.summary)}{about} {_place(finding.id)}</p>",
    ]
    if finding.advice:
        gain = f' <span class="gd-gain">· {inline(finding.gain)}</span>' if finding.gain else ""
        words, command = split_command(finding.advice)
        parts.append(
            f'<p class="gd-do"><strong>Do</strong> {inline(words)}{gain}</p>{_code(command, "gd-code gd-command")}'
        )
    if finding.code:
        parts.append(_code(finding.code))
    parts.append(f"<details><summary>Evidence, limits and reasons: <code>{escape(finding.id)}</code></summary>")
    if finding.facts:
        parts.append(f'<dl class="gd-facts">{_pairs(finding.facts)}</dl>')
    if finding.limits:
        parts.append(f'<dl class="gd-facts gd-limits">{_pairs(finding.limits, code=True)}</dl>')
    parts += [f"<p>{inline(text)}</p>" for text in (finding.general, finding.why) if text]
    if finding.refuted_by:
        parts.append(f"<p>{inline(finding.refuted_by)}</p>")
    parts.append("</details>")
    if finding.symptoms:
        titles = "; ".join(map(inline, named_symptoms(finding)))
        parts.append(f'<details class="gd-symptoms"><summary>{SYMPTOMS} {titles}</summary>')
        parts += [*map(_finding, finding.symptoms), "</details>"]
    return "\n".join([*parts, "</article>"])


def _place(rule: str) -> str:
    """Where a page has a way to the finding's place on the timeline, hidden until a script finds that there is one."""
    return f'<span class="gd-goto" data-gd-goto="finding:{escape(rule)}"></span>'


def _remedy(remedy: RecommendationBlock) -> str:
    title = f"remedy-{remedy.id}"
    return "\n".join(
        [
            f'<article class="gd-finding gd-remedy" aria-labelledby="{title}">',
            f'<header><h3 id="{title}">{inline(remedy.title)}</h3>'
            f'<span class="gd-cost">{inline(remedy.mark)}</span></header>',
            f"<p>{inline(remedy.summary)}</p>",
            _code(remedy.code),
            f"<details><summary>Remedy <code>{escape(remedy.id)}</code>: assumption, test and way back</summary>",
            f'<dl class="gd-facts">{_pairs(remedy.notes)}</dl></details></article>',
        ]
    )


def _code(lines: str, kind: str = "gd-code") -> str:
    if not lines:
        return ""
    code = "\n".join(f'<span class="gd-line">{escape(safe(line))}</span>' for line in lines.splitlines())
    return f'<pre class="{kind}"><code>{code}</code></pre>'


def _pairs(pairs: Iterable[tuple[str, str]], *, code: bool = False) -> str:
    mark = (lambda name: f"<code>{escape(name)}</code>") if code else inline
    return "".join(f"<div><dt>{mark(name)}</dt><dd>{inline(value)}</dd></div>" for name, value in pairs)


def _table(table: TableBlock) -> str:
    """A table in a box of its own. Where it does not fit a narrow screen, each row becomes a block there, labelled by
    the names of the columns.
    """
    if not table.rows:
        return ""
    columns = list(zip(*table.rows, strict=True))
    head = "".join(
        f'<th scope="col"{_side(cells)}>{inline(name)}</th>' for name, cells in zip(table.columns, columns, strict=True)
    )
    stacks = width_px(table) > NARROW_PX
    labels = [f' data-column="{escape(safe(name))}"' if stacks else "" for name in table.columns]
    body = "\n".join(
        "<tr>" + "".join(_cell(cell, label) for cell, label in zip(row, labels, strict=True)) + "</tr>"
        for row in table.rows
    )
    kind = ' class="gd-stack"' if stacks else ""
    named = escape(safe(table.caption or ", ".join(table.columns)))
    caption = f"<caption>{inline(table.caption)}</caption>" if table.caption else ""
    return (
        f'<div class="gd-scroll" role="group" tabindex="0" aria-label="{named}">'
        f"<table{kind}>{caption}<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>"
    )


def width_px(table: TableBlock) -> float:
    """About how wide a table is in small letters where no word is cut and no cell has more than MOST_LINES lines."""
    columns = zip(table.columns, zip(*table.rows, strict=True), strict=True)
    return sum(max(_least_px(name) * BOLD, *map(_least_px, cells)) + BETWEEN_PX for name, cells in columns)


def _least_px(cell: TableCell) -> float:
    """About how wide a cell's longest line is: numbers and levels have one line."""
    match cell:
        case Number(text):
            return len(text) * DIGIT_PX
        case Chip():
            return (len(cell.words) + 2) * LETTER_PX
        case TextWithId(text, id):
            return max(_least_px(text), _least_px(id))
        case str():
            words = re.split(r"[ \n]|(?<=-)", _UNIT.sub("\\1\\2\xa0", cell.replace("`", "")))
            return max(len(cell) / MOST_LINES, *map(len, words)) * LETTER_PX


def _side(cells: Iterable[TableCell]) -> str:
    return ' class="gd-number"' if all(isinstance(cell, Number) for cell in cells) else ""


def _cell(cell: TableCell, label: str) -> str:
    match cell:
        case Chip():
            return f"<td{label}>{chip(cell)}</td>"
        case Number(text):
            return f'<td class="gd-number"{label}>{inline(text)}</td>'
        case TextWithId(text, id):
            return f'<td class="gd-named"{label}>{inline(text)}<small><code>{escape(id)}</code></small></td>'
        case str():
            return f"<td{_width(cell)}{label}>{inline(cell)}</td>"


def _width(text: str) -> str:
    return ' class="gd-long"' if len(text) > 40 else ""
