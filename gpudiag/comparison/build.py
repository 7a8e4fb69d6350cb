"""The document of a comparison, built from what was compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar, cast

from gpudiag import __version__
from gpudiag.comparison.check import FAIL, GateCheck, reasons
from gpudiag.plain_data import clean, plain
from gpudiag.report.comparison import headline
from gpudiag.report.comparison.document import (
    CheckId,
    CheckStatus,
    ComparedCellEntry,
    ComparisonDocument,
    ComparisonHeadline,
    ComparisonVerdict,
    ConsistencyEntry,
    DifferenceEntry,
    GateCheckEntry,
    InputEntry,
    ItemsEntry,
    PlanOf,
    PlanOutcomeEntry,
    QuantityEntry,
    SideEntry,
)

if TYPE_CHECKING:
    from gpudiag.comparison.compared import Compared
    from gpudiag.comparison.side import Side

SCHEMA_SEVERAL = "gpudiag.comparisons/1"

T = TypeVar("T")


def build(pair: Compared) -> ComparisonDocument:
    """The document of one baseline and one experiment."""
    document = ComparisonDocument(
        schema="gpudiag.comparison/1",
        version=__version__,
        verdict=cast(ComparisonVerdict, pair.verdict),
        leader=pair.leader.name if pair.leader else None,
        headline=ComparisonHeadline(),
        baseline=_side(pair.baseline),
        experiment=_side(pair.experiment),
        gate=tuple(_check(c) for c in pair.gate),
        reasons=tuple(check.check for check in reasons(pair.gate)),
        items=_items(pair),
        consistency=_entries(ConsistencyEntry, pair.consistency),
        quantities=_entries(QuantityEntry, pair.quantities),
        ledger=_entries(ComparedCellEntry, pair.ledger),
        differences=_entries(DifferenceEntry, pair.differences),
        plan_of=_plan_of(pair),
        plan=_entries(PlanOutcomeEntry, pair.plan),
        errors=pair.errors,
    )
    return replace(document, headline=headline(document))


def _check(one: GateCheck) -> GateCheckEntry:
    fault = one.fault if one.status == FAIL else ""
    return GateCheckEntry(cast(CheckId, one.check), one.title, cast(CheckStatus, one.status), str(one.evidence), fault)


def _entries(kind: type[T], found: Iterable[object]) -> tuple[T, ...]:
    """What was found, with the fields of the document's class; unknown is None."""
    names = [one.name for one in fields(kind)]  # type: ignore[arg-type]
    return tuple(kind(**{name: plain(getattr(one, name)) for name in names}) for one in found)


def _side(side: Side) -> SideEntry:
    states = side.items["state"].value_counts()
    return SideEntry(
        name=side.name,
        timezone=side.run.info.timezone,
        n_items=len(side.items),
        states={str(state): int(n) for state, n in states.items()},
        start=clean(side.items["start"].min()),
        end=clean(side.items["end"].max()),
        wall_s=clean(side.wall_s),
        gpus=tuple(sorted({str(name) for name in side.run.gpus["name"].dropna()})) if "name" in side.run.gpus else (),
        n_gpus=len(side.run.gpus),
        inputs=tuple(InputEntry(record.path, record.sha256) for record in side.run.info.inputs),
    )


def _items(pair: Compared) -> ItemsEntry:
    held = pair.matched
    return ItemsEntry(
        paired=held.named and len(held.both_complete) > 0,
        n_baseline=held.n_baseline,
        n_experiment=held.n_experiment,
        n_shared=held.n_shared,
        n_succeeded_in_both=len(held.both_complete),
        jaccard=clean(held.jaccard),
    )


def _plan_of(pair: Compared) -> PlanOf | None:
    plan = pair.plan_made
    if plan is None:
        return None
    return PlanOf(
        run=plan.run,
        inputs=tuple(InputEntry(one.path, one.sha256) for one in plan.inputs),
        remedies=tuple(remedy.id for remedy in plan.remedies),
        note=pair.plan_note,
    )
