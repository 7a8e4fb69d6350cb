"""Blocks for a terminal. Lines, columns and colours are made by rich; text of inputs never is its markup."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from gpudiag.report._render.blocks import (
    MARKS,
    NAMES,
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
)
from gpudiag.report.format import inert_lines, label, safe

STYLES = {
    "critical": "bold red",
    "warning": "yellow",
    "note": "cyan",
    "ok": "green",
    "unknown": "magenta",
    "none": "dim",
    "error": "bold red",
}
"""How a level looks; its mark and word say the same without colours."""
ABOVE, BELOW = (Masthead, Heading, FindingBlock), (Banner, Summary, FindingBlock)
"""Blocks with an empty line above them, and with one below."""
MIN_WIDTH, MAX_WIDTH = 40, 120
NARROW = 20
"""A column of words is not made narrower for others to fit."""
SENTENCE = 40
"""Cells that are longer go below the first words of their row where they don't fit beside them."""


def text(blocks: Iterable[Block]) -> str:
    """The blocks for this terminal as it is now, in lines that an eye can follow, without colours."""
    return render(blocks, min(shutil.get_terminal_size((88, 24)).columns, MAX_WIDTH))


def render(blocks: Iterable[Block], width: int = 80, *, color: bool = False) -> str:
    """The blocks as lines of at most ``width`` characters, of which only a longer word sticks out.

    Where not all columns of a table fit, the others follow in a table below it, beside the names of its rows.
    """
    out = StringIO()
    console = Console(
        file=out,
        width=max(width, MIN_WIDTH),
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        force_jupyter=False,
        legacy_windows=False,
    )
    before: Block | None = None
    for block in (one for one in blocks if not isinstance(one, Figure | TrialTable)):
        tables = isinstance(block, TableBlock) and isinstance(before, TableBlock)
        if before and (tables or isinstance(block, ABOVE) or isinstance(before, BELOW)):
            console.print()
        for part in _parts(block, console.width):
            console.print(part, crop=False)
        before = block
    return inert_lines("\n".join(line.rstrip() for line in out.getvalue().splitlines()))


@dataclass(frozen=True)
class _Words:
    """A paragraph with something in front of it and its later lines indented; words stay whole, to be copied."""

    text: Text
    front: Text
    later: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        text = self.text.copy()
        text.overflow = "ignore"
        for n, line in enumerate(text.wrap(console, options.max_width - self.later)):
            yield Text(no_wrap=True, overflow="ignore") + (Text(" " * self.later) if n else self.front) + line


def _words(said: str, first: int = 0, later: int = 0, style: str | Style = "") -> _Words:
    return _Words(_text(said, style), Text(" " * first), later)


def _text(said: str, style: str | Style = "") -> Text:
    return Text(safe(said).replace("`", ""), style)


def _parts(block: Block, width: int) -> Iterator[RenderableType]:
    match block:
        case Masthead(title, facts):
            yield _words(title)
            yield _pairs(facts, width)
        case Banner(level, verdict, sentences):
            yield _words(verdict, 0, 2, STYLES[level])
            yield ""
            yield from (_words(f"{head}: {said}", 0, 2) for head, said in sentences if said)
        case Summary():
            yield from _summary(block)
        case FindingBlock():
            yield from _finding(block, width)
        case RecommendationBlock():
            yield from (_words(f"{block.title} ({block.mark})"), _words(block.summary))
            yield from (_Words(Text(safe(row), no_wrap=True), Text("    "), 4) for row in block.code.splitlines())
            yield _pairs(block.notes, width)
        case TableBlock(rows=(_, *_)):
            yield from _table(block, width)
            yield from [_words(block.caption)] if block.caption else []
        case Tiles(items):
            yield _pairs(items, width)
        case Note(said, "error"):
            yield _words(f"{MARKS['error']} {NAMES['error']}: {said}", 0, 4, STYLES["error"])
        case Note(said):
            yield _words(said)
        case Pictured(_, said):
            yield _words(said)
        case Heading(said):
            yield _words(said, style="bold")
        case Folded(summary, blocks):  # nothing is folded here
            yield _words(summary)
            yield from (part for inner in blocks for part in _parts(inner, width))


def _summary(top: Summary) -> Iterator[RenderableType]:
    """The headline, its numbers in a line, and what to do next."""
    yield _words(f"{MARKS[top.level]} {top.headline}", 0, 2, STYLES[top.level])
    yield _words(top.proof, 2, 2)
    yield ""
    wide = max((len(number) for _, number in top.numbers), default=0)
    yield from (_words(f"{number:>{wide}}  {name}", 2, wide + 4) for name, number in top.numbers)
    if top.numbers:
        yield ""
    yield _words(f"Do next: {top.then}", 0, 2)
    yield _words(" · ".join(chip.words for chip in top.chips))


def _finding(finding: FindingBlock, width: int, cause: str = "") -> Iterator[RenderableType]:
    """A finding, and those that it explains below it."""
    cost = f" ({finding.cost})" if finding.cost else ""
    limits = ", ".join(f"{label(name)} {value}" for name, value in finding.limits)
    below = (
        f"Explained by: {cause}" if cause else "",
        f"Do: {finding.advice}" if finding.advice else "",
        f"Rule {finding.id}" + (f"; limits: {limits}" if limits else "") if finding.id else "",
    )
    style = Style.parse(STYLES[finding.level]) + Style(link=finding.page or None)
    yield _words(f"{MARKS[finding.level]} {NAMES[finding.level]}: {finding.title}{cost}", 0, 4, style)
    yield _words(finding.summary, 4, 4)
    if finding.facts:
        yield Padding(_pairs(finding.facts, width - 2), (0, 0, 0, 2))
    yield from (_words(one, 4, 4) for one in below if one)
    for symptom in finding.symptoms:
        yield ""
        yield from _finding(symptom, width, finding.title)


def _pairs(pairs: Sequence[tuple[str, str]], width: int) -> RenderableType:
    return _grid([[_text(name), _text(value)] for name, value in pairs], width)


def _grid(rows: Sequence[Sequence[Text]], width: int) -> RenderableType:
    """Names in a column of their own, what belongs to them beside it."""
    grid = Table.grid(padding=(0, 0, 0, 2), pad_edge=True)
    grid.add_column(max_width=max(width // 3, NARROW) + 2, overflow="fold")
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return grid


def _table(table: TableBlock, width: int) -> Iterator[RenderableType]:
    """All columns, in several tables where they don't fit; sentences that don't go below the first words of a row."""
    names, rows = [_text(name) for name in table.columns], [[_cell(cell) for cell in row] for row in table.rows]
    right = [all(isinstance(cell, Number) for cell in column) for column in zip(*table.rows, strict=True)]
    wide = [max(cell.cell_len for cell in column) for column in zip(names, *rows, strict=True)]
    first = next((i for i, cell in enumerate(table.rows[0]) if isinstance(cell, str | TextWithId)), len(names))
    sentences = max(wide[first + 1 :], default=0) > SENTENCE and not any(right[first:])
    if len(names) == 2 and not any(right):  # names and what belongs to them
        yield _grid(rows, width)
    elif not any(names) or (sentences and _taken(wide) > width):
        for row in [names[: first + 1], *rows] if any(names) else rows:
            yield from _entry(row[:first], wide, *row[first:])
    else:
        for place, group in enumerate(_groups(wide, right, width)):
            if place:
                yield ""
            yield _columns(
                [names[i] for i in group], [[row[i] for i in group] for row in rows], [right[i] for i in group]
            )


def _groups(wide: Sequence[int], right: Sequence[bool], width: int) -> list[list[int]]:
    """The columns of each table: the words that come first name the rows and stand in all of them."""
    least = [size if number else min(size, NARROW) for size, number in zip(wide, right, strict=True)]
    keys = list(range(max(1, next((i for i, number in enumerate(right) if number), 1))))
    if len(keys) > 2 or _taken([least[i] for i in keys]) > width // 2:
        keys = keys[:1]
    groups = [keys]
    for i in range(len(keys), len(wide)):
        if len(groups[-1]) > len(keys) and _taken([least[j] for j in (*groups[-1], i)]) > width:
            groups.append(keys)
        groups[-1] = [*groups[-1], i]
    return groups


def _columns(names: list[Text], rows: list[list[Text]], right: list[bool]) -> Table:
    """Cells under these names, two blanks before each; words too long for a line go on in the next."""
    shown = Table(box=None, padding=(0, 0, 0, 2), show_header=any(names), header_style="")
    for name, number in zip(names, right, strict=True):
        shown.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        shown.add_row(*row)
    return shown


def _entry(short: list[Text], wide: list[int], words: Text, *below: Text) -> Iterator[RenderableType]:
    """A row whose words have sentences below them."""
    front, indent = Text("  "), _taken(wide[: len(short)]) + 2
    for cell, size in zip(short, wide, strict=False):
        cell.pad_right(size - cell.cell_len + 2)
        front += cell
    yield _Words(words, front, indent)
    yield from (_Words(one, Text(" " * indent), indent) for one in below if one)


def _taken(widths: Sequence[int]) -> int:
    """The width of a table of such columns."""
    return sum(widths) + 2 * len(widths)


def _cell(cell: TableCell) -> Text:
    match cell:
        case Chip(level):
            return _text(f"{MARKS[level]} {cell.words}", STYLES[level])
        case Number(text) | TextWithId(text):
            return _text(text)
        case str():
            return _text(cell)
