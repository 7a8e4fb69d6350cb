"""What changed over the weeks of a fleet, and what else did so at the same time: as JSON, and as a section."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gpudiag.plain_data import meaning
from gpudiag.report._render.blocks import Block, Chip, Note, Number, TableBlock, TableCell
from gpudiag.report.format import listed, number, precise, safe, share

ChangeKind = Literal["hardware", "method", "mix", "regression", "improvement"]
LEVELS = {True: "warning", False: "ok"}
WORDS: dict[ChangeKind, str] = {
    "hardware": "hardware",
    "method": "method",
    "mix": "mix of runs",
    "regression": "regression",
    "improvement": "improvement",
}
COMPARED = ("driver", "GPU model", "commit", "image", "framework")
"""All that is compared of the runs before and after a step: no other setting is."""
EVERY_TIME = "it changes most weeks"
ALIKE = 0.3
"""Correlation of neighboring weeks beside the steps from which on they resemble each other. It comes out too low: of
drawn fleets that showed a false change it was reached in 29 of 33 at correlation 0.8 and in 4 of 7 at 0.5, of fleets
without correlation in none of 60 (benchmarks/fleet_changes.py)."""


@dataclass(frozen=True)
class ChangedFactor:
    """What else changed within a week of it; ``often``: it changes in most weeks anyway."""

    what: str
    before: str
    after: str
    often: bool


@dataclass(frozen=True)
class MixPart:
    """The part of a change that the shares of projects or users make, if each had stayed as it was (Kitagawa 1955).
    Above 100 %: within them it went the other way.
    """

    by: str
    share_pct: float


@dataclass(frozen=True)
class Change:
    """A step in a weekly quantity of the fleet, or of one project. ``kinds`` are all that apply: hardware or method
    that changed at the same time, another mix of runs, and if nothing known did, regression or improvement.
    """

    project: str = field(metadata=meaning("'' for the whole fleet"))
    quantity: str
    title: str
    unit: str
    last_week: str
    first_week: str
    before: float
    after: float
    n_before: int = field(metadata=meaning("weeks"))
    n_after: int = field(metadata=meaning("weeks"))
    worse: bool = field(metadata=meaning("less utilization is not, where a completed trial took less GPU time"))
    p: float = field(metadata=meaning("chance of such a step by luck, over all series that were looked at"))
    kinds: tuple[ChangeKind, ...]
    factors: tuple[ChangedFactor, ...]
    mix: tuple[MixPart, ...]
    not_recorded: tuple[str, ...] = field(metadata=meaning("what may have changed as well: no run states it"))


@dataclass(frozen=True)
class Changes:
    """Steps over the weeks. ``n_series`` were looked at, ``n_short`` had too few weeks; the others are noise."""

    n_series: int
    n_short: int
    fewest_weeks: int
    found: tuple[Change, ...]
    correlation: float = field(
        default=0.0, metadata=meaning("of neighboring weeks, beside the steps: the median of the series")
    )


def changes_section(held: Changes) -> list[Block]:
    """A row a step, the whole fleet first."""
    if not held.n_series:
        return []  # the top of the report says why
    looked = f"{held.n_series:,} series of weeks"
    if not held.found:
        return [Note(f"No change that stands out of the noise, in {looked}.", "ok")]
    rows: list[tuple[TableCell, ...]] = [
        (
            f"{_scope(one)}{one.title}",
            one.first_week,
            Number(f"{precise(one.before, one.unit)} → {precise(one.after, one.unit)}"),
            Chip(LEVELS[one.worse], listed([WORDS[kind] for kind in one.kinds])),
            _beside(one),
        )
        for one in held.found
    ]
    caption = (
        f"Steps that stand out of the noise in {looked}: utilization, GPU time per completed trial and share of failed "
        "trials. What changed at the same time need not be the cause."
    )
    table = TableBlock(("What", "From week", "Change", "Kind", "At the same time"), tuple(rows), caption)
    return [table, *_alike(held.correlation)]


def _alike(correlation: float) -> list[Block]:
    """That some of the steps may be drift. The share is that of drawn fleets, benchmarks/fleet_changes.py."""
    if correlation < ALIKE:
        return []
    return [
        Note(
            f"Neighboring weeks of this fleet resemble each other (correlation {number(correlation)}). A step may be a "
            "slow drift: at correlation 0.8 one fleet in four shows a change where nothing changed.",
            "warning",
        )
    ]


def step_words(one: Change) -> str:
    """A step in a sentence, and what else changed at the same time."""
    step = f"{precise(one.before, one.unit)} to {precise(one.after, one.unit)}"
    beside = f" At the same time: {_beside(one)}." if one.factors or one.mix else ""
    return f"{one.title} went from {step} in {one.first_week}.{beside}"


def _scope(one: Change) -> str:
    return f"{safe(one.project)}: " if one.project else ""


def _beside(one: Change) -> str:
    said = [
        f"{factor.what}: {safe(factor.before)} → {safe(factor.after)}" + (f" ({EVERY_TIME})" if factor.often else "")
        for factor in one.factors
    ]
    said += [
        f"the shares of {part.by} changed, which alone makes {share(min(part.share_pct, 100.0))} of it"
        for part in one.mix
    ]
    compared = [words for words in COMPARED if words not in one.not_recorded]
    if not said and compared:
        said = [f"none of {', '.join(compared)} changed" if len(compared) > 1 else f"the {compared[0]} did not change"]
    if one.not_recorded:
        said.append(f"not recorded: {', '.join(one.not_recorded)}")
    return "; ".join(said)
