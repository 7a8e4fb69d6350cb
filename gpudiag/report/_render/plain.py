"""Blocks as plain text that fits a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from gpudiag.report._render.blocks import (
    MARKS,
    NAMES,
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


def render(blocks: Sequence[Block], width: int = 88, *, whole: bool = False) -> str:
    """The blocks as lines of at most ``width`` characters; tables lose their last columns before that.

    ``whole`` is for a file or a pipe: there a table has all its columns and all of its cells, however wide it becomes.
    """
    return "\n".join(line for block in blocks for line in _lines(block, width, whole)).strip("\n")


def _lines(block: Block, width: int, whole: bool) -> list[str]:
    match block:
        case Masthead(title, facts):
            return [_cut(safe(title), width), *_pairs(facts, width)]
        case Banner():
            said = [part for head, words in block.sentences for part in _wrapped(f"{head}: {words}", width)]
            return [*_wrapped(f"{MARKS[block.level]} {block.verdict}", width), *said]
        case FindingBlock():
            first = f"{MARKS[block.level]} {block.title}" + (f"  ({block.cost})" if block.cost else "")
            todo = _wrapped(f"Do: {block.advice}", width) if block.advice else []
            shown = [*_wrapped(first, width), *_wrapped(block.summary, width), *_pairs(block.facts, width), *todo]
            below = [f"  {line}" for symptom in block.symptoms for line in _lines(symptom, width - 2, whole)]
            return [*shown, *([f"  {SYMPTOMS}"] if below else []), *below]
        case RecommendationBlock():
            code = [f"    {_cut(safe(row), width - 4)}" for row in block.code.splitlines()]
            head = _wrapped(f"{block.title} ({block.mark})", width)
            return [*head, *_wrapped(block.summary, width), *code, *_pairs(block.notes, width)]
        case TableBlock():
            return _table(block, width, whole)
        case Tiles(items):
            return _pairs(items, width)
        case Note(text, "error"):
            return _wrapped(f"{MARKS['error']} {NAMES['error']}: {text}", width)
        case Note():
            return _wrapped(block.text, width)
        case Heading():
            return ["", _cut(safe(block.text), width)]
        case Folded(summary):
            return [_cut(safe(summary), width)]
        case Figure():
            return []


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(safe(text).replace("`", ""), width) or [""]


def _pairs(pairs: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Labels in a column of their own, values beside them."""
    left = min(max((len(safe(name)) for name, _ in pairs), default=0), width // 3)
    out: list[str] = []
    for name, value in pairs:
        first, *rest = _wrapped(value, max(width - left - 4, 20))
        out.append(f"  {_cut(safe(name), left):<{left}}  {first}")
        out += [" " * (left + 4) + line for line in rest]
    return out


def _table(table: TableBlock, width: int, whole: bool) -> list[str]:
    if not table.rows:
        return []
    cells = [[_text(cell) for cell in row] for row in table.rows]
    right = [all(isinstance(row[i], Number) for row in table.rows) for i in range(len(table.columns))]
    if len(right) == 2 and not any(right):  # names and what belongs to them: the second column may run over lines
        return _pairs([(row[0], row[1]) for row in cells], width) + (
            _wrapped(table.caption, width) if table.caption else []
        )
    wide = [max(len(name), *(len(row[i]) for row in cells)) for i, name in enumerate(table.columns)]
    wide = wide if whole else [min(size, 40) for size in wide]
    shown = len(wide) if whole else _fitting(wide, width)
    out = ["  " + "  ".join(_pad(table.columns[i], wide[i], right[i]) for i in range(shown)).rstrip()]
    out += ["  " + "  ".join(_pad(row[i], wide[i], right[i]) for i in range(shown)).rstrip() for row in cells]
    if shown < len(wide):
        out += _wrapped(f"  ... and {', '.join(table.columns[shown:])}", width)
    return out + (_wrapped(table.caption, width) if table.caption else [])


def _fitting(wide: Sequence[int], width: int) -> int:
    """How many columns fit, two blanks before each; always one."""
    used = 0
    for count, size in enumerate(wide):
        used += size + 2
        if used > width and count:
            return count
    return len(wide)


def _text(cell: TableCell) -> str:
    match cell:
        case Chip():
            return cell.words
        case Number(text) | TextWithId(text):
            return safe(text)
        case str():
            return safe(cell).replace("`", "")


def _pad(text: str, size: int, right: bool) -> str:
    text = _cut(text, size)
    return text.rjust(size) if right else text.ljust(size)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"
