"""One run as one row of the fleet's table: typed, small, with stable names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from gpudiag.fleets.found import FoundRun, as_text
from gpudiag.fleets.gpu_slots import n_slots
from gpudiag.fleets.prices import KINDS, costliest, failed_trials, priced
from gpudiag.fleets.recordings import recordings_of
from gpudiag.fleets.study_copies import trials_of
from gpudiag.measures._time.cells import cells
from gpudiag.measures._time.gpu_samples import known_gpus
from gpudiag.measures._time.own_time import held_windows
from gpudiag.measures.costs import CostsProfile
from gpudiag.measures.ledger import LedgerProfile
from gpudiag.measures.power import PowerProfile
from gpudiag.measures.trials import TrialsProfile, TrialState
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.plain_data import plain_object
from gpudiag.readers._io.url import shown
from gpudiag.report.document import Document
from gpudiag.report.fleet.document import CELLS, OF_OUTCOME, Cause, FailedTrials, Recording, RunRow
from gpudiag.report.format import quantity, safe
from gpudiag.report.format import share as percent
from gpudiag.schema import has_values
from gpudiag.spans import length_us
from gpudiag.units import FIRST_YEAR, SECOND_US

COMMIT = "user_attrs.git_commit"
"""Where trials state the commit: W&B's metadata, and whoever sets this attribute in Optuna."""
SHORT = 12
"""Letters of a commit that tell it from others."""
COUNTED_ALREADY = "its inputs are those of {}"
COPY = "its telemetry is that of {}"
WITHOUT_GPU_TIME = "its telemetry is that of {}, where its GPU time counts"
IN_PART = "{} of its telemetry is that of {}, where this GPU time counts; the rest, about {}, is left out"
SAME_TRIALS = "its trials are those of {}, where they count"
SAME_IN_PART = "{} of its trials are those of {}, where they count; the others are left out of the counts of trials"
OBSERVED_THERE = "about {} of its unobserved time is that of {}, where it was observed and counts"
WHOLE = 0.99
"""Share from which on two recordings are of the same time: one may begin a sample earlier."""

Beside = Literal["trials", "telemetry", "cluster"]
"""What counts GPU time instead of a run: a run with trials, one without, or telemetry of a cluster without checks."""

if TYPE_CHECKING:
    from gpudiag.diagnosis import Diagnosis
    from gpudiag.run import Run


def row_of(found: FoundRun, diagnosis: Diagnosis) -> RunRow:
    """The row of a run that was diagnosed."""
    document, run = diagnosis.document, diagnosis.run
    entry, head = document.run, document.headline
    values = document.values
    outcomes = {row.outcome: row.gpu_s for row in document.costs.outcomes} if document.costs else {}
    trials, costs = values(TrialsProfile), values(CostsProfile)
    within, over = values(LedgerProfile).get(LedgerProfile.mean_util_pct), values(UtilizationProfile)
    causes = priced(diagnosis)
    top = costliest(causes)
    held_s, seconds = _gpu_time(diagnosis, costs.get(CostsProfile.total_gpu_h))
    gpu_s: dict[str, Any] = {name: outcomes.get(outcome) for outcome, name in OF_OUTCOME.items()}
    gpu_s |= {f"{cell}_gpu_s": None if held_s is None else seconds.get(cell, 0.0) for cell in CELLS}
    logs = [one for one in document.inputs if one.kind == "artifacts"]
    return RunRow(
        run=found.name,
        source=_source(found),
        status="diagnosed",
        **owner_of(found, run),
        **gpu_s,
        gpu_model=", ".join(sorted({safe(gpu.get("name") or "unnamed GPU") for gpu in entry.gpus})),
        driver=", ".join(sorted({safe(name) for gpu in entry.gpus if (name := gpu.get("driver"))})),
        commit=_commit(run),
        image=safe(run.info.settings.image or ""),
        framework=safe(run.info.settings.framework or ""),
        n_gpus=n_slots(run),
        start=_dated(entry.start) or _first([_dated(one.start) for one in logs]),
        end=_dated(entry.end) or _last([_dated(one.end) for one in logs]),
        gpu_s=held_s,
        util_pct=over.get(UtilizationProfile.mean_pct) if within is None else within,
        n_trials=trials.get(TrialsProfile.n),
        n_completed=trials.get(TrialState.n.at("COMPLETE")),
        n_pruned=trials.get(TrialState.n.at("PRUNED")),
        n_failed=trials.get(TrialState.n.at("FAIL")),
        energy_kwh=_energy_kwh(document),
        **_cost(diagnosis, costs.get(CostsProfile.cost), held_s),
        level=head.level,
        use=head.use,
        headline=head.sentences[0],
        top_cause=top.rule if top else "",
        recoverable_gpu_h=top.lost_gpu_h if top else None,
        causes=causes,
        failures=failed_trials(diagnosis),
        recommendations=tuple(one.id for one in document.recommendations),
        options=found.part.options(run.info.timezone) if found.part else (),
        inputs=_digest(document, found),
        telemetry=tuple(one.sha256 for one in document.inputs if one.kind == "telemetry" and one.sha256),
        recordings=recordings_of(run),
        trials=trials_of(run),
    )


def _gpu_time(diagnosis: Diagnosis, costs_gpu_h: float | None) -> tuple[float | None, Mapping[str, float]]:
    """GPU time of the run in all and by category. Without utilization (MIG) there is no ledger, and all time is
    unobserved: that of the trials, ``costs_gpu_h``, else from the first to the last sample of any GPU, as in a ledger.
    """
    ledger, run = diagnosis.document.ledger, diagnosis.run
    if ledger is not None:
        return ledger.total_gpu_s, ledger.seconds()
    if run.gpu.empty or has_values(run.gpu, "util_pct"):
        return None, {}
    if costs_gpu_h is not None and costs_gpu_h > 0:
        held_s = 3600 * costs_gpu_h
    else:
        seen = cells(run)
        window = int(seen["start_us"].min()), int(seen["end_us"].max())
        held_s = sum(length_us(held_windows(run, gpu, [window])) for gpu in known_gpus(run)) / SECOND_US
    return (held_s, {"unobserved": held_s}) if held_s > 0 else (None, {})


def _energy_kwh(document: Document) -> float | None:
    """Energy of the time that is counted as GPU time: that of the trials where their clock is known, else all."""
    costs = document.values(CostsProfile)
    if costs.get(CostsProfile.total_gpu_h) is not None:
        return costs.get(CostsProfile.energy_kwh)
    return document.values(PowerProfile).get(PowerProfile.energy_kwh)


def _cost(diagnosis: Diagnosis, cost: float | None, gpu_s: float | None) -> dict[str, Any]:
    """What the run cost; where it has no trials whose time is known, its GPU time at the stated price."""
    settings = diagnosis.run.info.settings
    price, currency = settings.price_per_gpu_h, settings.currency
    if price is None:
        return {"cost": None, "currency": currency}
    if cost is None and gpu_s is not None:
        cost = gpu_s / 3600 * price
    return {"cost": cost, "currency": currency, "price_per_gpu_h": price}


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
    return replace(row, status="counted already", reason=COUNTED_ALREADY.format(other.run))


def _source(found: FoundRun) -> str:
    """The place as it may be shown: no password, and bytes that are no UTF-8 escaped."""
    return as_text(safe(shown(found.source)))


def without_gpu_time(row: RunRow, name: str, *, share: float = 1.0, beside: Beside = "trials") -> RunRow:
    """The row of a run whose GPU time counts under ``name``: it counts as a run and by its trials. ``share``: how much
    of its telemetry is there as well; ``beside``: what is there, which is not to be counted twice either. Where it is
    nothing but a copy of that telemetry, it is no run either.
    """
    gone: dict[str, Any] = dict.fromkeys(("gpu_s", *(f"{cell}_gpu_s" for cell in CELLS)))
    if beside != "cluster":
        gone |= dict.fromkeys(("energy_kwh", "cost", "recoverable_gpu_h"))
    if beside == "trials":
        gone |= dict.fromkeys(OF_OUTCOME.values())
        gone["failures"] = tuple(replace(one, gpu_s=None) for one in row.failures)
    if share >= WHOLE and telemetry_alone(row):
        return replace(row, status="counted already", reason=COPY.format(name))
    if share >= WHOLE:
        said = WITHOUT_GPU_TIME.format(name)
    else:
        gone["left_out_gpu_h"] = (1 - share) * (row.gpu_s or 0.0) / 3600
        said = IN_PART.format(percent(100 * share), name, quantity(gone["left_out_gpu_h"], "GPU-h"))
    return replace(row, reason=said, **gone)


def without_trials(row: RunRow, name: str, *, share: float = 1.0) -> RunRow:
    """The row of a run whose trials count under ``name``: it counts as a run and by its GPU time, where it has any.
    ``share``: how much of its trials is there.
    """
    said = SAME_TRIALS.format(name) if share >= WHOLE else SAME_IN_PART.format(percent(100 * share), name)
    reason = _also(row, said)
    if row.gpu_s is None and (row.reason or not row.recordings):
        return replace(row, status="counted already", reason=reason)
    failures = tuple(replace(one, n_trials=0) for one in row.failures if one.gpu_s is not None)
    none: dict[str, Any] = dict.fromkeys(("n_trials", "n_completed", "n_pruned", "n_failed"))
    return replace(row, reason=reason, failures=failures, **none)


def without_outcomes(row: RunRow) -> RunRow:
    """The row of a run of whose trials another one has the GPU time too."""
    gone: dict[str, Any] = dict.fromkeys(OF_OUTCOME.values())
    gone |= {"recoverable_gpu_h": None} if row.top_cause in KINDS else {}
    return replace(row, failures=(), **gone)


def observed_elsewhere(row: RunRow, gpu_s: float, name: str) -> RunRow:
    """The row without unobserved time that the run ``name`` observed."""
    said = OBSERVED_THERE.format(quantity(gpu_s / 3600, "GPU-h"), name)
    cost = None if row.cost is None else row.cost - gpu_s / 3600 * (row.price_per_gpu_h or 0.0)
    return replace(
        row,
        reason=_also(row, said),
        gpu_s=(row.gpu_s or 0.0) - gpu_s,
        unobserved_gpu_s=(row.unobserved_gpu_s or 0.0) - gpu_s,
        cost=cost,
    )


def _also(row: RunRow, said: str) -> str:
    """The reason of a row, and one more."""
    return "; ".join(filter(None, (row.reason, said)))


def owner_of(found: FoundRun, run: Run) -> dict[str, Any]:
    """User, project and host: as run.toml says, else the trials, else the telemetry, else files and folders."""
    stated = [set(table["host"].dropna()) if "host" in table else set() for table in (run.trials, run.gpus)]
    hosts = next((one for one in stated if one), set())
    return {
        "user": safe(run.info.user or found.user),
        "project": safe(run.info.project or found.project),
        "host": safe(run.info.host or (str(next(iter(hosts))) if len(hosts) == 1 else "") or found.host),
    }


def _commit(run: Run) -> str:
    """The commit as run.toml says, else the one that all trials state, in the form in which git writes it."""
    stated = run.info.settings.commit
    if stated is None and COMMIT in run.trials:
        held = {str(one) for one in run.trials[COMMIT].dropna()}
        stated = held.pop() if len(held) == 1 else ""
        stated = stated if re.fullmatch(r"[0-9a-f]{7,64}", stated) else ""
    return safe(stated or "")[:SHORT]


def _digest(document: Document, found: FoundRun) -> str:
    """Of the content of all inputs, and of which part of it this run is."""
    held = [one.sha256 or one.path for one in document.inputs if one.error is None]
    part = [*document.run.studies, *([found.part.start, found.part.end] if found.part else [])]
    return _digest_of(held, part) if held else ""


def _digest_of(inputs: Iterable[str], part: Iterable[str] = ()) -> str:
    return sha256("\n".join([*sorted(inputs), *part]).encode("utf-8", "surrogatepass")).hexdigest()


def telemetry_alone(row: RunRow) -> bool:
    """Whether the run is its telemetry and nothing else, so that a copy of that is no run of its own."""
    return bool(row.telemetry) and row.inputs == _digest_of(row.telemetry)


def _first(times: Iterable[str | None]) -> str | None:
    return min((one for one in times if one), key=datetime.fromisoformat, default=None)


def _last(times: Iterable[str | None]) -> str | None:
    return max((one for one in times if one), key=datetime.fromisoformat, default=None)


def _dated(iso: str | None) -> str | None:
    """The time, None for one that counts from 0: no date of it is known."""
    return iso if iso and datetime.fromisoformat(iso).year >= FIRST_YEAR else None


def to_plain(row: RunRow) -> dict[str, Any]:
    """The row as JSON's own."""
    return plain_object(row)


def from_plain(held: Mapping[str, Any]) -> RunRow:
    """The row that :func:`to_plain` wrote; raises TypeError for that of another version."""
    causes = tuple(Cause(**one) for one in held["causes"])
    lists = {name: tuple(held.get(name, ())) for name in ("options", "recommendations", "telemetry", "trials")}
    failures = tuple(FailedTrials(**one) for one in held["failures"])
    recordings = tuple(map(recording_from, held["recordings"]))
    return RunRow(**{**held, **lists, "causes": causes, "failures": failures, "recordings": recordings})


def recording_from(held: Mapping[str, Any]) -> Recording:
    """The recording of which JSON holds the fields."""
    return Recording(**{**held, "parts": tuple(held["parts"])})
