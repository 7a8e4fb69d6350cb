"""``compare``: one baseline against one experiment or several, the gate first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar, cast, overload

import pandas as pd

from gpudiag.advice._engine.plan import Plan, load_plan
from gpudiag.comparison.build import SCHEMA_SEVERAL, build
from gpudiag.comparison.check import GateCheck, decisive_fails, is_invalid, reasons
from gpudiag.comparison.compared import MUCH_MORE, Compared
from gpudiag.comparison.consistency import consistency
from gpudiag.comparison.differences import differences
from gpudiag.comparison.gate import run_gate
from gpudiag.comparison.intervals import Ratio
from gpudiag.comparison.ledger_difference import ledger_difference
from gpudiag.comparison.match import Match, match, unmatched
from gpudiag.comparison.plan_check import check_plan, made_for
from gpudiag.comparison.quantities import quantities
from gpudiag.comparison.quantity import COSTS_MORE, FAILS_MORE, SLOWER, Quantity, judged
from gpudiag.comparison.side import Side, as_side
from gpudiag.comparison.time_series import time_series
from gpudiag.errors import ConfigError, NotMeasurable, expected
from gpudiag.faults import Fault, attempt, heard
from gpudiag.load import RunLike
from gpudiag.measures.parallelism import ParallelismProfile
from gpudiag.plain_data import JsonObject, json_text, plain_object
from gpudiag.plots._draw.picture import Picture
from gpudiag.plots.comparison import COMPARISON_PLOTS
from gpudiag.report import comparison as reports
from gpudiag.report._notebook import pages
from gpudiag.report._notebook.parameters import Given
from gpudiag.report._render.show import Show
from gpudiag.report.comparison.document import ComparisonDocument
from gpudiag.report.format import safe
from gpudiag.statement import Statement, joined

if TYPE_CHECKING:
    from nbformat import NotebookNode

T = TypeVar("T")


class Frames(TypedDict):
    """What the figures of a comparison are drawn from, by the names of their parameters; pairs and lists are baseline
    first.
    """

    names: tuple[str, str]
    pairs: pd.DataFrame | None
    durations: list[pd.DataFrame]
    ledger: pd.DataFrame | None
    same_size: bool
    time_series: list[pd.DataFrame]
    parallelism: list[ParallelismProfile | None]


class Comparison(Compared):
    """What may be said of an experiment against its baseline, and every way to show it."""

    @property
    def headline(self) -> JsonObject:
        """``level``, one line, and three sentences: what may be said, what differs, what to do next."""
        return plain_object(self.document.headline)

    def quantity(self, name: str) -> Quantity:
        """The quantity of that name. Raises KeyError where the runs do not allow it."""
        return {quantity.name: quantity for quantity in self.quantities}[name]

    def fails(self, level: str) -> bool:
        """True if the experiment is a regression: slower, or it fails more often, or the same steps took over 10 % more
        wall time or GPU time in all; never for 'never'.

        'invalid' counts a comparison that fails its gate as well.
        """
        worse = self.verdict in (SLOWER, FAILS_MORE) or (self.verdict == COSTS_MORE and self.costs_more(MUCH_MORE))
        return (level in ("regression", "invalid") and worse) or (level == "invalid" and self.invalid)

    @property
    def show(self) -> Show[ComparisonDocument]:
        """Sections for a notebook: ``show.gate``, ``show.quantities`` ..."""
        return Show(self.document, self._draw, reports.SECTIONS)

    def picture(self, name: str) -> Picture:
        """A figure with its text alternative and caption. Raises NotMeasurable, or KeyError."""
        return COMPARISON_PLOTS[name].picture(name, self._frames, timezone=self.baseline.run.info.timezone)

    def to_dict(self) -> JsonObject:
        """The JSON document, schema ``gpudiag.comparison/1``."""
        return plain_object(self.document)

    def to_json(self) -> str:
        """The document as JSON text."""
        return json_text(self.document)

    def to_markdown(self) -> str:
        """The report as Markdown without its pictures."""
        return pages.markdown_page(self._notebook(pictures=False)).text

    def summary(self) -> str:
        """Markdown short enough for a comment on a pull request."""
        return reports.summary(self.document)

    def save(self, path: str | Path) -> Path:
        """Write the report where ``path`` says: .html (self-contained), .md (pictures beside it) or .json.

        Raises ConfigError for any other suffix.
        """
        return pages.save(Path(path), self._notebook, self.to_json)

    def save_report(self, folder: str | Path, parameters: Mapping[str, Given]) -> tuple[Path, ...]:
        """Write report.html, report.md with its pictures, report.ipynb and comparison.json, and return their paths.

        Nothing is compared again: all say what this comparison says, also where it is one of several that share one
        control of chance findings. ``parameters`` of the notebook are those that make it again.
        """
        return reports.write_files(self._notebook(), Path(folder), parameters, self.to_json())

    def _repr_html_(self) -> str:
        return "\n".join(getattr(self.show, name)._repr_html_() for name in ("masthead", "verdict", "gate"))

    def _repr_markdown_(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<Comparison of {safe(self.experiment.name)} with {safe(self.baseline.name)}: {self.verdict}>"

    @cached_property
    def document(self) -> ComparisonDocument:
        """All that is said of the two, typed; the same as :meth:`to_dict`."""
        return build(self)

    @cached_property
    def _frames(self) -> Frames:
        """What the figures are drawn from, by the names of their parameters."""
        pairs = self.matched.both_complete if self.matched.named else pd.DataFrame()
        named = (safe(self.baseline.name), safe(self.experiment.name))
        return {
            "names": named,
            "pairs": pairs if len(pairs) else None,
            "durations": [
                side.items[["name", "state", "duration_s"]].dropna() for side in (self.baseline, self.experiment)
            ],
            "ledger": pd.DataFrame([vars(cell) for cell in self.ledger]) if self.ledger else None,
            "same_size": self.matched.same_set
            or 0.95 <= len(self.experiment.finished) / max(len(self.baseline.finished), 1) <= 1.05,
            "time_series": [time_series(side, "util_pct") for side in (self.baseline, self.experiment)],
            "parallelism": [side.get("parallelism") for side in (self.baseline, self.experiment)],
        }

    def _draw(self, name: str) -> Picture | None:
        try:
            return self.picture(name)
        except NotMeasurable:
            return None

    def _notebook(self, *, pictures: bool = True) -> NotebookNode:
        """compare_report as if executed: its prose with this comparison's sections, without a kernel."""
        show = self.show if pictures else Show(self.document, lambda name: None, reports.SECTIONS)
        return pages.filled("compare_report", show)


@dataclass(frozen=True, eq=False)
class Comparisons(Sequence[Comparison]):
    """Several experiments, each against the same baseline; verdicts share one control of chance findings."""

    pairs: tuple[Comparison, ...]

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self.pairs)

    @overload
    def __getitem__(self, index: int) -> Comparison: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Comparison, ...]: ...
    def __getitem__(self, index: int | slice) -> Comparison | tuple[Comparison, ...]:
        return self.pairs[index]

    def fails(self, level: str) -> bool:
        """True if any of the experiments is a regression."""
        return any(pair.fails(level) for pair in self.pairs)

    def to_dict(self) -> JsonObject:
        """Schema ``gpudiag.comparisons/1``: ``comparisons`` holds a document of each pair."""
        return {"schema": SCHEMA_SEVERAL, "comparisons": [pair.to_dict() for pair in self.pairs]}

    def to_json(self) -> str:
        """The documents as JSON text."""
        return json_text(self.to_dict())

    def to_markdown(self) -> str:
        """The reports one after the other."""
        return "\n".join(pair.to_markdown() for pair in self.pairs)

    def summary(self) -> str:
        """One table over all experiments, then the summary of each."""
        return reports.several([pair.document for pair in self.pairs])

    def _repr_markdown_(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<Comparisons: {', '.join(f'{safe(pair.experiment.name)} {pair.verdict}' for pair in self.pairs)}>"


def compare(
    baseline: RunLike,
    experiment: RunLike | Sequence[RunLike],
    *others: RunLike,
    plan: Plan | str | Path | None = None,
) -> Comparison | Comparisons:
    """Compare an experiment with its baseline: first whether that may be done, then the numbers.

    >>> pair = "data/samples/idle-second-gpu/"
    >>> gd.compare(pair + "baseline", pair + "experiment").verdict
    'invalid'

    Args:
        baseline: a run, its diagnosis, or what :func:`gpudiag.load_run` reads.
        experiment: the same; or several of them.
        *others: further experiments against the same baseline.
        plan: plan.json of the baseline (``diagnosis.save_plan``), whose predictions are checked.

    Returns:
        A :class:`Comparison`; :class:`Comparisons` for several experiments.

    Raises:
        InputError: a path holds no run, a run holds neither trials nor telemetry, or the plan cannot be read.
    """
    several = isinstance(experiment, Sequence) and not isinstance(experiment, str)
    given = [*cast("Sequence[RunLike]", experiment if several else (experiment,)), *others]
    first = as_side(baseline, "baseline")
    sides = [as_side(one, "experiment") for one in given]
    if not sides:
        raise ConfigError("there is no experiment to compare with the baseline; give at least one run.")
    sides = _with_distinct_names(first, sides)
    made = load_plan(plan) if isinstance(plan, str | Path) else plan
    if not isinstance(made, Plan | None):
        raise expected("a plan or the path of its plan.json", plan)
    pairs = _pairs(first, sides, made)
    return Comparisons(pairs) if several or others else pairs[0]


def _pairs(baseline: Side, sides: list[Side], plan: Plan | None) -> tuple[Comparison, ...]:
    matches, gates, found, failures = [], [], [], []
    for side in sides:
        with heard() as faults:
            made = attempt("comparison's items", partial(match, baseline, side))
            matched = unmatched(baseline, side) if isinstance(made, Fault) else made
            matches.append(matched)
            gates.append(run_gate(baseline, side, made))
            found.append([] if isinstance(made, Fault) else quantities(baseline, side, matched))
        failures.append(faults)
    with heard() as of_all:
        verdicts = _judged(found, gates, matches)
    out = []
    for side, matched, gate, numbers, faults in zip(sides, matches, gates, verdicts, failures, strict=True):
        with heard() as more:
            pair = _pair(baseline, side, matched, gate, tuple(numbers), plan)
        errors = (*baseline.analysis.failed, *side.analysis.failed, *faults, *of_all, *more)
        out.append(replace(pair, errors=tuple(dict.fromkeys(errors))))
    return tuple(out)


def _judged(
    found: list[list[Quantity]], gates: list[tuple[GateCheck, ...]], matches: list[Match]
) -> list[list[Quantity]]:
    """Verdicts of all comparisons at once. Where that fails by a fault of gpudiag, each number stands with a note."""
    made = attempt("comparison's verdicts", lambda: judged(found, [is_invalid(gate) for gate in gates], matches))
    if not isinstance(made, Fault):
        return made
    return [[replace(one, note=joined(one.note, Statement(str(made)))) for one in numbers] for numbers in found]


def _pair(
    baseline: Side,
    side: Side,
    matched: Match,
    gate: tuple[GateCheck, ...],
    numbers: tuple[Quantity, ...],
    plan: Plan | None,
) -> Comparison:
    """What follows from gate and quantities, each part by itself; one that fails by a fault of gpudiag is empty."""

    def part(name: str, make: Callable[[], Iterable[T]]) -> tuple[T, ...]:
        made = attempt(f"comparison's {name}", lambda: tuple(make()))
        return () if isinstance(made, Fault) else made

    failed = [check.fault for check in reasons(gate)]
    time = next((Ratio(q.ratio, q.low, q.high) for q in numbers if q.name == "time_per_item"), Ratio(float("nan")))
    pair = Comparison(
        baseline,
        side,
        matched,
        gate,
        numbers,
        part("consistency", lambda: consistency(baseline, side, matched, time, failed)),
        part("ledger", lambda: ledger_difference(baseline, side)),
        part("differences", lambda: differences(baseline, side)),
    )
    if plan is None:
        return pair
    outcomes = part("plan", lambda: check_plan(plan, baseline, side, list(numbers), decisive_fails(gate)))
    return replace(pair, plan_made=plan, plan_note=made_for(plan, baseline), plan=outcomes)


def _with_distinct_names(baseline: Side, sides: list[Side]) -> list[Side]:
    """Sides whose names differ from each other and the baseline's, so that every sentence says which run is meant."""
    taken = {baseline.name}
    out = []
    for place, side in enumerate(sides):
        name = side.name
        if name in taken:
            suffix = "experiment" if len(sides) == 1 else f"experiment {place + 1}"
            name = f"{name} ({suffix})"
            side = Side(side.analysis, name)
        taken.add(name)
        out.append(side)
    return out
