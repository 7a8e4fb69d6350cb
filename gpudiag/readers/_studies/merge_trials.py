"""Several sources of trials as one, each trial once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from gpudiag.readers._jobs.repeated_jobs import each_job_once
from gpudiag.readers.base import Trials
from gpudiag.schema import COLLECTIVES, EVENTS, PROFILED, REPORTS, STEPS, STUDIES, TRIALS, TableSpec, conform, empty


def merge(parts: Sequence[Trials]) -> Trials:
    """One table of trials from several sources.

    The same trials exported twice (a study and its CSV, say) are kept once, from the source that
    holds more about them; different studies of one name are told apart by a suffix. Both are noted.
    """
    if len(parts) == 1:
        return parts[0]
    kept: list[Trials] = []
    parts, notes = each_job_once(parts)
    for part in sorted(parts, key=_richness, reverse=True):
        twin = next((other for other in kept if _same_trials(part, other)), None)
        if twin is not None:
            notes.append(f"{part.reader} holds the same {len(part.trials)} trials as {twin.reader}; it was set aside.")
            continue
        kept.append(_renamed(part, {name for other in kept for name in other.studies["study"]}, notes))
    return Trials(
        trials=_joined([p.trials for p in kept], TRIALS),
        reports=_joined([p.reports for p in kept], REPORTS),
        studies=_joined([p.studies for p in kept], STUDIES),
        events=_joined([p.events for p in kept], EVENTS),
        steps=_joined([p.steps for p in kept], STEPS),
        profiled=_joined([p.profiled for p in kept], PROFILED),
        collectives=_joined([p.collectives for p in kept], COLLECTIVES),
        problems=tuple(problem for p in parts for problem in p.problems),
        notes=(*(note for p in parts for note in p.notes), *notes),
        beside=tuple(other for p in kept for other in p.beside),
        reader=", ".join(dict.fromkeys(p.reader for p in kept)),
    )


def _richness(part: Trials) -> tuple[int, int]:
    return len(part.reports), int(part.trials.notna().sum().sum())


def _same_trials(a: Trials, b: Trials) -> bool:
    """True if every trial of ``a`` has a twin in ``b``: same number, state, and start to the second."""
    if not len(a.trials) or len(a.trials) != len(b.trials):
        return False
    keys = ["trial", "state", "start"]
    left, right = (t[keys].assign(start=t["start"].dt.floor("s")) for t in (a.trials, b.trials))
    if left["start"].isna().all():
        return False
    both = left.merge(right, on=keys, how="inner")
    return len(both) == len(left)


def _renamed(part: Trials, taken: set[str], notes: list[str]) -> Trials:
    """``part`` with studies whose name is taken renamed ``name (2)``."""
    mapping: dict[str, str] = {}
    for name in part.studies["study"]:
        new, n = name, 2
        while new in taken:
            new, n = f"{name} ({n})", n + 1
        if new != name:
            mapping[name] = new
            notes.append(f"two sources hold a study named '{name}'; the second is shown as '{new}'.")
    if not mapping:
        return part
    trials, reports, studies = (
        t.assign(study=t["study"].replace(mapping)) for t in (part.trials, part.reports, part.studies)
    )
    return replace(part, trials=trials, reports=reports, studies=studies)


def _joined(frames: list[pd.DataFrame], table: TableSpec) -> pd.DataFrame:
    filled = [f for f in frames if len(f)]
    return conform(pd.concat(filled, ignore_index=True), table) if filled else empty(table)
