"""The document of a diagnosis, built from what was measured and concluded."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import metadata
from typing import TYPE_CHECKING, TypeVar, cast

from gpudiag import __version__
from gpudiag.advice._engine.advise import Advice
from gpudiag.errors import NotMeasurable
from gpudiag.faults import Fault, attempt
from gpudiag.measures.base import Profile, facts, profile_of
from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.plain_data import Scalar, clean, entry_of, plain, plain_object
from gpudiag.report._sections.headline import headline
from gpudiag.report.document import (
    AdviceEntry,
    CellEntry,
    ClockEntry,
    CombinedEntry,
    CostsEntry,
    Document,
    Environment,
    GpuEntry,
    Headline,
    LedgerEntry,
    Measured,
    NotMeasured,
    RunEntry,
    SuppressionEntry,
    TrialOutcomeEntry,
    VerdictEntry,
)
from gpudiag.report.format import is_dated
from gpudiag.report.noun import noun, noun_of, worded
from gpudiag.rules._engine.rule import Rule
from gpudiag.rules._engine.suppression import Applied
from gpudiag.rules._engine.verdict import Status, Verdict
from gpudiag.schema import OUTCOMES

if TYPE_CHECKING:
    from gpudiag.run import Run

PACKAGES = ("numpy", "pandas", "polars", "scipy", "matplotlib", "optuna", "papermill", "nbconvert")
NO_ADVICE = AdviceEntry(None, None, (), None, None, ())

T = TypeVar("T")


def build(
    run: Run,
    *,
    findings: Sequence[Verdict],
    verdicts: Sequence[Verdict],
    rules: Iterable[Rule],
    profiles: Mapping[str, Profile],
    missing: Mapping[str, NotMeasurable],
    advice: Advice,
    preset: str = "",
    suppressions: Sequence[Applied] = (),
    docs_url: str = "",
    errors: Sequence[Fault] = (),
) -> Document:
    """The document of one diagnosis: findings first, in their order, then the other verdicts in theirs."""
    by_id = {rule.id: rule for rule in rules}
    others = [v for v in verdicts if v.status is not Status.FOUND]
    failed = list(errors)

    def part(name: str, make: Callable[[], T], otherwise: T) -> T:
        """A part of the document; ``otherwise`` where it fails by a fault of gpudiag."""
        made = attempt(f"document's {name}", make)
        if isinstance(made, Fault):
            failed.append(made)
            return otherwise
        return made

    measured = {topic: part(f"measure {topic}", partial(_measured, p), None) for topic, p in profiles.items()}
    document = Document(
        schema="gpudiag.diagnosis/4",
        version=__version__,
        run=_run(run),
        headline=Headline(),
        inputs=run.info.inputs,
        clock=worded(_clock(run), noun_of(run)),
        measures={topic: values for topic, values in measured.items() if values is not None},
        not_measured={topic: NotMeasured(gap.reason, gap.remedy) for topic, gap in missing.items()},
        ledger=part("ledger", lambda: _ledger(profile_of(profiles, LedgerProfile)), None),
        costs=part("costs", lambda: _costs(profile_of(profiles, CostsProfile)), None),
        preset=preset or None,
        verdicts=worded(tuple(_verdict(v, by_id[v.rule]) for v in (*findings, *others)), noun_of(run)),
        suppressions=tuple(_suppression(one) for one in suppressions),
        recommendations=worded(advice.recommendations, noun_of(run)),
        advice=worded(part("advice", lambda: _advice(advice), NO_ADVICE), noun_of(run)),
        errors=tuple(failed),
        environment=environment(),
        docs_url=docs_url,
    )
    return replace(document, headline=worded(headline(document), noun(document)))


@cache
def environment() -> Environment:
    """Versions of Python and of the libraries that numbers depend on."""
    return Environment(platform.python_version(), {name: metadata.version(name) for name in PACKAGES})


def _run(run: Run) -> RunEntry:
    timestamps = [s for table, column in ((run.gpu, "time"), (run.trials, "start"), (run.trials, "end"))
              for s in (table[column].min(), table[column].max())]  # fmt: skip
    dated = [timestamp for timestamp in timestamps if timestamp == timestamp and is_dated(timestamp)]
    known = [timestamp for timestamp in map(clean, dated or timestamps) if timestamp]
    return RunEntry(
        name=run.info.name,
        timezone=run.info.timezone,
        timezone_assumed=run.info.timezone_assumed,
        start=min(known, default=None),
        end=max(known, default=None),
        gpus=tuple(cast(GpuEntry, plain(row)) for row in run.gpus.to_dict("records")),
        n_samples=len(run.gpu),
        n_trials=len(run.trials),
        studies=tuple(str(name) for name in run.trials["study"].unique()),
        settings=_given(run.info.settings.model_dump()),
        dataloader=_given(run.info.dataloader.model_dump()),
        stated={name: clean(value) for name, value in run.info.stated.items()},
        notes=run.info.notes,
        training=_given(run.info.training.model_dump()),
    )


def _given(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """What run.toml says; a currency without a price says nothing."""
    given: dict[str, Scalar] = {name: value for name, value in values.items() if value is not None}
    if "price_per_gpu_h" not in given:
        given.pop("currency", None)
    return given


def _clock(run: Run) -> ClockEntry:
    clock = run.info.clock
    return ClockEntry(
        offset_s=clean(clock.offset_s),
        confidence=clock.confidence,
        method=clock.method,
        evidence=str(clock.evidence),
        applied_s=clean(clock.applied_s),
        joined=clock.joined,
    )


def _measured(profile: Profile) -> dict[str, Measured]:
    return {name: Measured(fact["value"], fact["unit"]) for name, fact in facts(profile).items()}


def _ledger(profile: LedgerProfile | None) -> LedgerEntry | None:
    """Every cell of every GPU; None where the time of the GPUs could not be accounted for."""
    if profile is None:
        return None
    rows = zip(*(profile.cells[name] for name in ("gpu", "cell", "gpu_s")), strict=True)
    return LedgerEntry(clean(profile.total_gpu_s), tuple(CellEntry(*map(clean, row)) for row in rows))


def _costs(profile: CostsProfile | None) -> CostsEntry | None:
    """Worker time, GPU time, energy and money of each outcome; None without timed trials."""
    if profile is None:
        return None
    rows = profile.worker_time.drop(columns="share_pct").merge(
        profile.outcomes.drop(columns=["share_pct", "n_trials"]), on="outcome", how="outer", sort=False
    )
    order = [*profile.outcomes["outcome"], *profile.worker_time["outcome"]]
    rows = rows.set_index("outcome").loc[list(dict.fromkeys(order))].reset_index()
    # What lies between trials has a number of gaps, or none at all, but no number of trials.
    ran = rows["outcome"].isin(OUTCOMES)
    rows["n_trials"] = rows["n_trials"].astype("Int64").where(ran)
    return CostsEntry(profile.currency, tuple(entry_of(TrialOutcomeEntry, row) for row in rows.to_dict("records")))


def _verdict(verdict: Verdict, rule: Rule) -> VerdictEntry:
    return VerdictEntry(
        rule=verdict.rule,
        topic=rule.topic,
        title=verdict.title,
        checks=verdict.checks,
        status=verdict.status,
        severity=verdict.severity,
        summary=verdict.summary,
        reason=verdict.reason,
        evidence=plain_object(verdict.evidence),
        thresholds={name: clean(value) for name, value in verdict.thresholds.items()},
        changed=tuple(sorted(n for n, v in verdict.thresholds.items() if v != rule.thresholds.get(n))),
        where=plain_object(verdict.where),
        lost_gpu_h=clean(verdict.lost_gpu_h),
        margin=clean(verdict.margin),
        caused_by=verdict.caused_by,
        remedy=verdict.remedy,
        refuted_by=rule.refuted_by,
        why=rule.why,
    )


def _suppression(one: Applied) -> SuppressionEntry:
    until = one.entry.until
    return SuppressionEntry(
        one.entry.rule, one.entry.reason, one.entry.run, until.isoformat() if until else None, one.state
    )


def _advice(advice: Advice) -> AdviceEntry:
    chosen = advice.choose()
    held = advice.combined(chosen)
    return AdviceEntry(
        busy_pct=clean(advice.bounds.busy_pct),
        ceiling=clean(held.ceiling) if held else None,
        plan=tuple(one.id for one in chosen),
        combined=CombinedEntry(held.low, held.high, "x", held.clipped) if chosen and held and held.is_bounded else None,
        saved_gpu_h=clean(held.saved_gpu_h) if held else None,
        corrections=advice.corrections,
    )
