"""The newest of many runs of the same training against the noise of the earlier ones: as JSON, and in a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gpudiag.plain_data import NAN_IS_NULL, TIME, meaning
from gpudiag.report._render.blocks import (
    Banner,
    Block,
    Chip,
    Figure,
    Folded,
    Heading,
    Masthead,
    Note,
    Number,
    TableBlock,
    TableCell,
)
from gpudiag.report.format import UNKNOWN, count, interval, listed, number, plural, precise, safe, span, timestamp, zone

HistoryVerdict = Literal["worse", "better", "lower", "within the noise", "not assessed"]
"""``lower``: less utilization, though a result took less GPU time, which is no loss."""
LEVELS = {"worse": "warning", "better": "ok", "lower": "ok", "within the noise": "ok", "not assessed": "unknown"}
COSTS_FIRST = ("gpu_s", "fail_pct", "median_s", "energy_kwh", "util_pct")
"""Of several quantities that are worse, the first of these is the headline's."""
MOST_RUNS, MOST_COLUMNS = 10, 2
"""Of the table in a terminal, which is to fit a screen."""
FEWEST = 5
"""Earlier runs from which on a band is drawn: with fewer, t is so wide that only a doubling would show."""


@dataclass(frozen=True)
class HistoryRun:
    """One run: what it is called, when it began, and the quantities that are known of it."""

    name: str
    start: str | None = field(metadata=TIME)
    values: dict[str, float]
    studies: tuple[str, ...] = ()
    parameters: tuple[str, ...] = field(default=(), metadata=meaning("what the trials vary, without 'params.'"))
    conditions: dict[str, str] = field(default_factory=dict, metadata=meaning("driver, GPU model, settings, loader"))
    failures: tuple[int, int] | None = field(
        default=None, metadata=meaning("trials that failed, of so many that ended")
    )
    steps: float | None = field(
        default=None, metadata=meaning("steps of the training of a run without trials, each once, as its log has them")
    )


@dataclass(frozen=True)
class HistoryStep:
    """A place in the history where the level of a quantity changed: between run number ``at`` (from 1 on) and the one
    before it. ``changed``: conditions that are different in these two runs, which need not be the cause.
    """

    at: int
    run: str
    before: float
    after: float
    changed: tuple[str, ...]


@dataclass(frozen=True)
class HistoryQuantity:
    """The newest value against the band that 95 % of such histories would keep it in if nothing had changed, all
    quantities together.
    """

    name: str
    title: str
    unit: str
    newest: float = field(metadata=NAN_IS_NULL)  # infinity: spent and no trial completed; NaN: the newest lacks it
    typical: float | None = field(metadata=meaning("mean of the earlier runs, geometric of all but shares"))
    low: float | None
    high: float | None
    n_earlier: int
    verdict: HistoryVerdict
    steps: tuple[HistoryStep, ...] = ()

    @property
    def of_other_work(self) -> bool:
        """Whether the band is known, and the newest value is that of another amount of work."""
        return self.verdict == "not assessed" and self.low is not None


@dataclass(frozen=True)
class Difference:
    """What the newest run has not in common with ``n_runs`` of ``n_earlier`` earlier ones."""

    what: str
    n_runs: int
    n_earlier: int


@dataclass(frozen=True)
class History:
    """Runs in the order of their time, and what may be said of the newest."""

    schema: Literal["gpudiag.history/1"]
    runs: tuple[HistoryRun, ...]
    quantities: tuple[HistoryQuantity, ...]
    unread: tuple[str, ...] = field(metadata=meaning("documents that could not be read, and why"))
    differing: tuple[Difference, ...] = field(default=(), metadata=meaning("why they may not be the same training"))
    changed: tuple[str, ...] = field(default=(), metadata=meaning("conditions that the run before had not"))
    perhaps_newer: tuple[str, ...] = field(default=(), metadata=meaning("those of unread that may be the newest run"))

    @property
    def regression(self) -> bool:
        """Whether the newest run is worse in anything."""
        return any(one.verdict == "worse" for one in self.quantities)


@dataclass(frozen=True)
class Scale:
    """The unit of a quantity in all places of a page: how many of it one of the document's is."""

    factor: float
    unit: str

    def shown(self, value: float | None) -> str:
        """A value of the document in this unit."""
        if value is not None and math.isinf(value):
            return "no result"
        if value is None or math.isnan(value) or self.unit not in SCALED:
            return precise(value, self.unit)
        return f"{number(value * self.factor)} {self.unit}"


SCALED = ("GPU-s", "GPU-h", "Wh", "kWh")
"""Units that differ with the size of a value elsewhere, and are one on a page."""


def scale_of(values: Iterable[float], unit: str) -> Scale:
    """The unit that suits the largest of these values."""
    largest = max((value for value in values if math.isfinite(value)), default=0.0)
    if unit == "GPU-s" and largest >= 36:
        return Scale(1 / 3600, "GPU-h")
    return Scale(1000.0, "Wh") if unit == "kWh" and largest < 1 else Scale(1.0, unit)


def scale_in(held: History, one: HistoryQuantity) -> Scale:
    """The unit of a quantity on the page of this history."""
    return scale_of([run.values[one.name] for run in held.runs if one.name in run.values], one.unit)


def history_text(held: History) -> list[Block]:
    """What a terminal shows."""
    newest = held.runs[-1]
    out: list[Block] = [Heading(safe(newest.name)), Note(_sentence(held))]
    out += [Note(_not_the_same(one), "warning") for one in held.differing]
    out.append(_against(held))
    if held.changed:
        out.append(Note(f"Changed since the run before: {safe('; '.join(held.changed))}."))
    out += [Note(safe(line)) for line in steps_of(held)]
    out.append(runs_table(held, held.quantities[:MOST_COLUMNS], held.runs[-MOST_RUNS:]))
    return out + [Note(f"Left out: {safe(one)}") for one in held.unread]


def steps_of(held: History) -> list[str]:
    """A sentence a change of level."""
    return [
        f"{one.title[:1].upper()}{one.title[1:]} changed from {scale_in(held, one).shown(step.before)} to "
        f"{scale_in(held, one).shown(step.after)} with {step.run} (run {step.at}). "
        + (f"At the same time: {'; '.join(step.changed)}." if step.changed else _unchanged(held, step))
        for one in held.quantities
        for step in one.steps
    ]


def _unchanged(held: History, step: HistoryStep) -> str:
    """What was the same before and after, as far as both runs state it; anything else may have changed."""
    before, after = (held.runs[at].conditions for at in (step.at - 2, step.at - 1))
    same = [name for name in after if name in before]
    if not same:
        return "Why is not recorded: no condition is stated in both runs."
    return f"What both runs state did not change: {listed(same)}."


def runs_table(held: History, columns: Sequence[HistoryQuantity], runs: Sequence[HistoryRun]) -> TableBlock:
    """A row a run, in the order of their time."""
    first = len(held.runs) - len(runs) + 1
    scales = {one.name: scale_in(held, one) for one in columns}
    table: list[tuple[TableCell, ...]] = [
        (
            Number(str(at)),
            safe(run.name),
            timestamp(run.start, zone("UTC")) if run.start else UNKNOWN,
            *(Number(scales[one.name].shown(run.values.get(one.name))) for one in columns),
        )
        for at, run in enumerate(runs, first)
    ]
    return TableBlock(("No.", "Run", "Began (UTC)", *(one.title for one in columns)), tuple(table))


def overview(held: History) -> list[Block]:
    """What the page begins with: the newest run, and each quantity against what was expected."""
    newest = held.runs[-1]
    facts = [("Runs", count(len(held.runs)))]
    if held.runs[0].start and newest.start:
        facts.append(("From the first to the last", span(held.runs[0].start, newest.start, zone("UTC"))))
    verdicts = [one.verdict for one in held.quantities]
    level = next((LEVELS[v] for v in ("worse", "better", "within the noise") if v in verdicts), "unknown")
    chips = tuple(Chip(LEVELS[one.verdict], f"{one.title}: {one.verdict}") for one in held.quantities)
    said = [("Newest run", _sentence(held))]
    if held.changed:
        said.append(("Changed since the run before", "; ".join(held.changed) + "."))
    notes = [Note(_not_the_same(one), "warning") for one in held.differing]
    return [Masthead(newest.name, tuple(facts)), Banner(level, said[0][1], tuple(said[1:]), chips), *notes]


def course(held: History) -> list[Block]:
    """The figure, and where the level changed."""
    return [Figure("history"), *(Note(line) for line in steps_of(held))]


def expected(held: History) -> list[Block]:
    """The newest value of each quantity, and where it was expected."""
    return [_against(held)]


def every_run(held: History) -> list[Block]:
    """All runs with all values."""
    left = [Note(f"Left out: {one}") for one in held.unread]
    return [Folded(plural(len(held.runs), "run"), (runs_table(held, held.quantities, held.runs),)), *left]


SECTIONS: dict[str, Callable[[History], list[Block]]] = {
    "overview": overview,
    "course": course,
    "expected": expected,
    "runs": every_run,
}
"""Sections of the page in their order."""


def _against(held: History) -> TableBlock:
    rows: list[tuple[TableCell, ...]] = [
        (
            one.title,
            Number(scale_in(held, one).shown(one.newest)),
            Number(_expected(scale_in(held, one), one)),
            Number(str(one.n_earlier)),
            Chip(LEVELS[one.verdict], one.verdict),
        )
        for one in held.quantities
    ]
    return TableBlock(("Quantity", "Newest", "Expected", "Earlier runs", "Verdict"), tuple(rows))


def _expected(scale: Scale, one: HistoryQuantity) -> str:
    if one.low is None or one.high is None:
        return UNKNOWN
    if scale.unit not in SCALED:
        return interval(one.low, one.high, one.unit)
    return f"{number(one.low * scale.factor)}–{number(one.high * scale.factor)} {scale.unit}"


def _not_the_same(one: Difference) -> str:
    return (
        f"This may not be the same training: the {one.what} differ from those of {one.n_runs:,} of "
        f"{plural(one.n_earlier, 'earlier run')}. Compare runs of one training only."
    )


def _sentence(held: History) -> str:
    n = len(held.runs) - 1
    gone = [one.title for one in held.quantities if math.isnan(one.newest)]
    lacks = f" The newest run lacks what the earlier ones have: {listed(gone)}; not assessed." if gone else ""
    other = [one.title for one in held.quantities if one.of_other_work]
    lacks += f" The newest run did another number of steps; not assessed: {listed(other)}." if other else ""
    worse = [one for one in held.quantities if one.verdict == "worse"]
    better = [one.title for one in held.quantities if one.verdict == "better"]
    if worse:
        first = min(worse, key=lambda one: (not math.isinf(one.newest), COSTS_FIRST.index(one.name)))
        beside = f" Better: {listed(better)}." if better else ""
        return f"Worse than {plural(n, 'earlier run')}: {_is_worse(held, first)}.{beside}{lacks}"
    if len(gone) == len(held.quantities):
        return lacks.strip() or "No run has a quantity that a history follows."
    if all(one.verdict == "not assessed" for one in held.quantities) and not other:
        return f"{plural(n, 'earlier run')}: at least {FEWEST} are needed to know the noise.{lacks}"
    if better:
        less = "".join(_is_lower(held, one) for one in held.quantities if one.verdict == "lower")
        return f"Better than {plural(n, 'earlier run')}: {listed(better)}.{less}{lacks}"
    moved = sorted({step.at for one in held.quantities for step in one.steps})
    level = f", whose level changed with {listed(f'run {at}' for at in moved)}" if moved else ""
    return f"Within the noise of {plural(n, 'earlier run')}{level}.{lacks}"


def _is_worse(held: History, one: HistoryQuantity) -> str:
    """What is worse, in words: a run without any result first says so."""
    if not math.isinf(one.newest):
        return f"{one.title} is {_against_usual(held, one)}"
    failed, ended = held.runs[-1].failures or (0, 0)
    if not ended:
        return "the newest run has no result, since its training failed or no trial ended"
    return f"the newest run has no result, since {failed:,} of {plural(ended, 'trial')} failed"


def _is_lower(held: History, one: HistoryQuantity) -> str:
    return (
        f" {one.title.capitalize()} is lower ({_against_usual(held, one)}): a result took less GPU time all the same."
    )


def _against_usual(held: History, one: HistoryQuantity) -> str:
    scale = scale_in(held, one)
    return f"{scale.shown(one.newest)}, not {scale.shown(one.typical)}"
