"""How often the predictions of plans came true: as JSON holds it, and what a terminal shows of it."""

from __future__ import annotations

from dataclasses import dataclass

from gpudiag.measures._trials.proportions import wilson_pct
from gpudiag.report._render.blocks import Block, Heading, Note, TableBlock
from gpudiag.report.format import interval, plural, share


@dataclass(frozen=True)
class PredictionCounts:
    """Predictions of one remedy, or of one measure: how they came out, and the share of those known that held."""

    name: str
    came_true: int
    missed: int
    cannot_tell: int

    @property
    def known(self) -> int:
        return self.came_true + self.missed

    @property
    def held_pct(self) -> float:
        return 100 * self.came_true / self.known if self.known else float("nan")

    @property
    def held_interval_pct(self) -> tuple[float, float]:
        """Wilson 95 % of the share that held."""
        return wilson_pct(self.came_true, self.known)


@dataclass(frozen=True)
class Calibration:
    """``overall`` and the same by remedy and by measure; ``checked`` comparisons with a plan, ``pending`` plans that
    no comparison refers to by its remedies, as paths; ``unread``: why a file with one of these could not be read.
    """

    overall: PredictionCounts
    by_remedy: tuple[PredictionCounts, ...]
    by_measure: tuple[PredictionCounts, ...]
    checked: tuple[str, ...]
    pending: tuple[str, ...]
    unread: tuple[str, ...] = ()


def calibration_text(held: Calibration) -> list[Block]:
    """How often predictions held."""
    counted = f"{plural(len(held.checked), 'comparison')} with a plan; "
    blocks: list[Block] = [
        Note(f"{counted}{plural(len(held.pending), 'plan')} not compared yet."),
        Note(f"Predictions: {_tally(held.overall)}"),
    ]
    for title, tallies in (("By remedy", held.by_remedy), ("By measure", held.by_measure)):
        if tallies:
            blocks += [Heading(title), TableBlock(("", ""), tuple((tally.name, _tally(tally)) for tally in tallies))]
    blocks += [*([Heading("Not compared yet")] if held.pending else []), *map(Note, held.pending)]
    return [*blocks, *([Heading("Not read")] if held.unread else []), *map(Note, held.unread)]


def _tally(tally: PredictionCounts) -> str:
    counts = f"{tally.came_true} came true, {tally.missed} missed, {tally.cannot_tell} cannot be told"
    if not tally.known:
        return f"{counts}."
    low, high = tally.held_interval_pct
    return f"{counts}; of those told {share(tally.held_pct)} held (95 %: {interval(low, high, '%')})."
