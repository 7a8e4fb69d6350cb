"""One run as one row of the fleet's table: typed, small, with stable names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from gpudiag.fleets.found import FoundRun, as_text
from gpudiag.fleets.prices import costliest, priced
from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.measures.power import PowerProfile
from gpudiag.measures.trials import TrialsProfile, TrialState
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.plain_data import plain_object
from gpudiag.readers._io.url import shown
from gpudiag.readers._shape.timestamp_forms import FIRST_YEAR
from gpudiag.report.document import Document
from gpudiag.report.fleet.document import CELLS, OF_OUTCOME, Cause, RunRow
from gpudiag.report.format import safe

if TYPE_CHECKING:
    from gpudiag.diagnosis import Diagnosis
    from gpudiag.run import Run


def row_of(found: FoundRun, diagnosis: Diagnosis) -> RunRow:
    """The row of a run that was diagnosed."""
    document, run = diagnosis.document, diagnosis.run
    entry, head = document.run, document.headline
    values = document.values
    seconds = document.ledger.seconds() if document.ledger else {}
    outcomes = {row.outcome: row.gpu_s for row in document.costs.outcomes} if document.costs else {}
    trials, costs = values(TrialsProfile), values(CostsProfile)
    within, over = values(LedgerProfile).get(LedgerProfile.mean_util_pct), values(UtilizationProfile)
    causes = priced(diagnosis)
    top = costliest(causes)
    gpu_s: dict[str, Any] = {name: outcomes.get(outcome) for outcome, name in OF_OUTCOME.items()}
    gpu_s |= {f"{cell}_gpu_s": seconds.get(cell, 0.0) if document.ledger else None for cell in CELLS}
    return RunRow(
        run=found.name,
        source=_source(found),
        status="diagnosed",
        **owner_of(found, run),
        **gpu_s,
        gpu_model=", ".join(sorted({safe(gpu.get("name") or "unnamed GPU") for gpu in entry.gpus})),
        n_gpus=len(entry.gpus) or None,
        start=_dated(entry.start),
        end=_dated(entry.end),
        gpu_s=document.ledger.total_gpu_s if document.ledger else None,
        util_pct=over.get(UtilizationProfile.mean_pct) if within is None else within,
        n_trials=trials.get(TrialsProfile.n),
        n_completed=trials.get(TrialState.n.at("COMPLETE")),
        n_pruned=trials.get(TrialState.n.at("PRUNED")),
        n_failed=trials.get(TrialState.n.at("FAIL")),
        energy_kwh=values(PowerProfile).get(PowerProfile.energy_kwh),
        cost=costs.get(CostsProfile.cost),
        currency=costs.get(CostsProfile.currency) or "",
        level=head.level,
        use=head.use,
        headline=head.sentences[0],
        top_cause=top.rule if top else "",
        recoverable_gpu_h=top.lost_gpu_h if top else None,
        causes=causes,
        recommendations=tuple(one.id for one in document.recommendations),
        inputs=_digest(document, found),
        telemetry=tuple(one.sha256 for one in document.inputs if one.kind == "telemetry" and one.sha256),
    )


def not_diagnosed(found: FoundRun, reason: str) -> RunRow:
    """The row of a run that could not be."""
    return RunRow(
        found.name,
        _source(found),
        "not diagnosed",
        as_text(safe(reason)),
        user=found.user,
        project=found.project,
        host=found.host,
    )


def counted_already(row: RunRow, other: RunRow) -> RunRow:
    """The row of a run whose inputs are those of another one."""
    return replace(row, status="counted already", reason=f"its inputs are those of {other.run}")


def _source(found: FoundRun) -> str:
    """The place as it may be shown: no password, and bytes that are no UTF-8 escaped."""
    return as_text(safe(shown(found.source)))


def without_gpu_time(row: RunRow, other: RunRow) -> RunRow:
    """The row of a run whose GPU time another one accounts for: it counts as a run and by its trials."""
    names = ("gpu_s", *(f"{cell}_gpu_s" for cell in CELLS), *OF_OUTCOME.values(), "energy_kwh", "recoverable_gpu_h")
    gone: dict[str, Any] = dict.fromkeys(names)
    return replace(row, reason=f"its telemetry is that of {other.run}, where its GPU time counts", **gone)


def owner_of(found: FoundRun, run: Run) -> dict[str, Any]:
    """User, project and host: as run.toml says, else as the trials say, else as files and folders do."""
    hosts = set(run.trials["host"].dropna()) if "host" in run.trials else set()
    return {
        "user": safe(run.info.user or found.user),
        "project": safe(run.info.project or found.project),
        "host": safe(run.info.host or (str(next(iter(hosts))) if len(hosts) == 1 else "") or found.host),
    }


def _digest(document: Document, found: FoundRun) -> str:
    """Of the content of all inputs, and of which part of it this run is."""
    held = sorted(one.sha256 or one.path for one in document.inputs if one.error is None)
    part = [*document.run.studies, *([found.part.start, found.part.end] if found.part else [])]
    return sha256("\n".join([*held, *part]).encode("utf-8", "surrogatepass")).hexdigest() if held else ""


def _dated(iso: str | None) -> str | None:
    """The time, None for one that counts from 0: no date of it is known."""
    return iso if iso and datetime.fromisoformat(iso).year >= FIRST_YEAR else None


def to_plain(row: RunRow) -> dict[str, Any]:
    """The row as JSON's own."""
    return plain_object(row)


def from_plain(held: Mapping[str, Any]) -> RunRow:
    """The row that :func:`to_plain` wrote; raises TypeError for that of another version."""
    causes = tuple(Cause(**one) for one in held["causes"])
    lists = {name: tuple(held[name]) for name in ("recommendations", "telemetry")}
    return RunRow(**{**held, **lists, "causes": causes})
