"""What a report is made of. Sections build blocks from the document; each renderer has one case per block.

Text in a block is plain text in which `backticks` mark code; renderers escape everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NAMES = {
    "critical": "critical",
    "warning": "warning",
    "note": "note",
    "ok": "ok",
    "unknown": "not assessed",
    "none": "not applicable",
    "error": "ERROR",
}
"""Levels and the word that stands for each; a level is never told by its colour alone."""

MARKS = {"critical": "■", "warning": "▲", "note": "●", "ok": "✓", "unknown": "?", "none": "–", "error": "✗"}
"""A shape for each level."""

SYMPTOMS = "Explained by it:"
"""What stands over findings that are symptoms of another."""


@dataclass(frozen=True)
class Chip:
    """A level as mark and word; ``text`` in place of the level's own name."""

    level: str
    text: str = ""

    @property
    def words(self) -> str:
        return self.text or NAMES[self.level]


@dataclass(frozen=True)
class Number:
    """A formatted number: aligned to the right."""

    text: str


@dataclass(frozen=True)
class TextWithId:
    """Words and the id that they go by."""

    text: str
    id: str


TableCell = str | Chip | Number | TextWithId


@dataclass(frozen=True)
class Masthead:
    """The title of a report and the facts that tell which run it is about."""

    title: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Banner:
    """The verdict: its level, one line, labelled sentences and counts of checks."""

    level: str
    verdict: str
    sentences: tuple[tuple[str, str], ...]
    chips: tuple[Chip, ...]


@dataclass(frozen=True)
class Summary:
    """The top of a report: the headline with its level, the number that proves it, key numbers as (label, number), what
    to do next, and counts of checks. ``finding``: id of the card that says more, '' where there is none.
    """

    level: str
    use: str
    headline: str
    proof: str
    numbers: tuple[tuple[str, str], ...]
    then: str
    finding: str
    chips: tuple[Chip, ...]


@dataclass(frozen=True)
class FindingBlock:
    """One finding as a card. ``limits`` are thresholds, ``facts`` evidence and place, ``cost`` what it lost;
    ``advice`` is what to do, ``code`` the lines that do it, ``gain`` what it brings, ``general`` what its rule says
    of any run; ``symptoms`` are findings that this one explains; ``page`` is the address of what is written about the
    check, '' where nobody said where that is.
    """

    id: str
    level: str
    title: str
    summary: str
    cost: str
    facts: tuple[tuple[str, str], ...]
    limits: tuple[tuple[str, str], ...]
    advice: str
    refuted_by: str
    why: str
    gain: str = ""
    code: str = ""
    general: str = ""
    symptoms: tuple[FindingBlock, ...] = ()
    page: str = ""


def gravest(finding: FindingBlock) -> str:
    """The level of the finding, or of one that it explains if that is graver."""
    return min((finding.level, *map(gravest, finding.symptoms)), key=list(MARKS).index)


def named_symptoms(finding: FindingBlock) -> list[str]:
    """The titles of those that it explains, with the level of each that holds what is graver than the finding."""
    graver = [(one.title, gravest(one)) for one in finding.symptoms]
    order = list(MARKS).index
    return [f"{title} ({NAMES[level]})" if order(level) < order(finding.level) else title for title, level in graver]


@dataclass(frozen=True)
class RecommendationBlock:
    """One recommendation as a card. ``mark`` says in a few words how safe it is and what it brings; ``notes`` follow
    the ``code`` that makes the change.
    """

    id: str
    title: str
    mark: str
    summary: str
    code: str
    notes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TableBlock:
    """Rows under column names. ``caption`` says what a row is or what to look at."""

    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    caption: str = ""


@dataclass(frozen=True)
class Tiles:
    """A few key numbers: (label, number)."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Note:
    """One paragraph. ``level`` 'unknown' marks what could not be said and what would fill it."""

    text: str
    level: str = ""


@dataclass(frozen=True)
class Heading:
    """A heading within a section."""

    text: str


@dataclass(frozen=True)
class Figure:
    """The place of the picture of that name; a renderer that has no pictures leaves it out. ``small``: on a narrow
    screen a smaller picture stands in its place, where others scroll sideways. ``bare``: without its caption, at the
    top of a page, where each line counts.
    """

    name: str
    small: bool = False
    bare: bool = False


@dataclass(frozen=True)
class Pictured:
    """A figure that was drawn, among other blocks: ``image`` is base64."""

    name: str
    alt: str
    caption: str
    mime: str
    image: str


@dataclass(frozen=True)
class Folded:
    """Blocks that open on demand; ``summary`` says what they hold."""

    summary: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class TrialTable:
    """All trials, ``packed`` for a page with scripts; ``still`` are a few, for a page without. Nothing elsewhere."""

    n: int
    still: TableBlock
    packed: str
    noun: str = "trial"


Block = (
    Masthead
    | Banner
    | Summary
    | FindingBlock
    | RecommendationBlock
    | TableBlock
    | Tiles
    | Note
    | Heading
    | Figure
    | Pictured
    | Folded
    | TrialTable
)
Blocks = Sequence[Block]
