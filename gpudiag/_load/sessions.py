"""Telemetry of several sessions in one place: recordings that are months apart are not one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from gpudiag._load.intake import Intake
from gpudiag._run.selection import dumps_within
from gpudiag._run.tables import InputRecord
from gpudiag.errors import InputError
from gpudiag.readers.base import Telemetry, Trials
from gpudiag.units import FIRST_YEAR

if TYPE_CHECKING:
    import pandas as pd

APART = timedelta(days=30)
"""A silence that no run survives: together, most of such a run would be time that nobody observed (a default without a
published source). A log with a hole as long is one file of one recorder, and is said to have a gap."""


_WITH_DATES = {
    "nvidia-smi dmon": "nvidia-smi dmon -o DT",
    "nvidia-smi pmon": "nvidia-smi pmon -o DT",
    "nvidia-smi-query-csv": "nvidia-smi --query-gpu=timestamp,...",
    "nvidia-smi-compute-apps": "nvidia-smi --query-compute-apps=timestamp,...",
}
"""By reader: the command whose lines have dates."""


class Session(NamedTuple):
    """When it starts, its files and those of studies, and from when to before when trials begin that are of it: the
    middle of the silences around it, '' without one (ISO 8601).
    """

    start: str
    files: tuple[str, ...]
    since: str = ""
    before: str = ""


class SessionsApart(InputError):
    """Logs of GPU metrics lie months apart."""

    sessions: tuple[Session, ...] = ()


def without_undated(intakes: Sequence[Intake]) -> list[Intake]:
    """What was found in a folder, with logs that have no dates left unread where another log has them."""
    dated, undated = _by_date(intakes)
    if not dated:
        return list(intakes)
    return [_unread(intake, dated[0]) if intake.record in undated else intake for intake in intakes]


def _unread(intake: Intake, beside: InputRecord) -> Intake:
    record = intake.record
    error = InputError(f"{_undated(record, beside)}; load it alone, or {_remedy(record)}.")
    left = InputRecord(record.path, record.kind, record.reader, record.sha256, error=str(error))
    return replace(intake, record=left, data=None, error=error)


def _undated(record: InputRecord, beside: InputRecord) -> str:
    return f"{record.path} has no dates, so that it cannot be placed beside {beside.path}"


def _remedy(record: InputRecord) -> str:
    command = _WITH_DATES.get(record.reader, "")
    return f"record with dates ({command})" if command else "record with dates"


def refuse_sessions_apart(intakes: Sequence[Intake], where: str) -> None:
    """Raise InputError where logs of GPU metrics lie months apart, or some have dates and others count from 0."""
    dated, undated = _by_date(intakes)
    if undated and dated:
        raise InputError(f"{where}: {_undated(undated[0], dated[0])}; load one of the two, or {_remedy(undated[0])}.")
    sessions: list[list[InputRecord]] = []
    last = None
    for record in dated:
        if last is None or _start(record) - last > APART:
            sessions.append([])
        sessions[-1].append(record)
        last = max(last or _end(record), _end(record))
    if len(sessions) > 1:
        held = "; ".join(f"{_start(session[0]):%Y-%m-%d}: {_named(session)}" for session in sessions[:5])
        error = SessionsApart(
            f"{where}: holds {len(sessions)} recordings more than {APART.days} days apart ({held}), which are not one "
            "run; load the files of one of them, or name all of them in a run.toml (telemetry = [...])."
        )
        studies = tuple(intake.record.path for intake in intakes if isinstance(intake.data, Trials))
        borders = ["", *(_middle(a, b) for a, b in pairwise(sessions)), ""]
        error.sessions = tuple(
            Session(one[0].start or "", (*(record.path for record in one), *studies), since, before)
            for one, since, before in zip(sessions, borders, borders[1:], strict=False)
        )
        raise error


def _middle(earlier: Sequence[InputRecord], later: Sequence[InputRecord]) -> str:
    """The middle of the silence between two sessions."""
    end = max(_end(record) for record in earlier)
    return (end + (_start(later[0]) - end) / 2).isoformat()


def within_session(intakes: Sequence[Intake], since: str, before: str) -> list[Intake]:
    """The inputs with the trials that began from ``since`` to before ``before``, and what was logged between them."""
    return [
        replace(intake, data=_of_session(intake.data, since, before)) if isinstance(intake.data, Trials) else intake
        for intake in intakes
    ]


def _of_session(data: Trials, since: str, before: str) -> Trials:
    def within(table: pd.DataFrame, column: str) -> pd.DataFrame:
        if column not in table:
            return table.iloc[:0]
        times = table[column]
        own = times.notna()
        if since:
            own &= times >= datetime.fromisoformat(since)
        if before:
            own &= times < datetime.fromisoformat(before)
        return table[own].reset_index(drop=True)

    trials = within(data.trials, "start")
    keys = ["study", "trial"]
    reports = data.reports.merge(trials[keys].drop_duplicates(), on=keys) if len(data.reports) else data.reports
    logged = {name: within(getattr(data, name), "time") for name in ("events", "steps", "profiled")}
    low, high = (datetime.fromisoformat(border) if border else None for border in (since, before))
    logged["collectives"] = dumps_within(data.collectives, low, high)
    return replace(data, trials=trials, reports=reports, **logged)


def _by_date(intakes: Sequence[Intake]) -> tuple[list[InputRecord], list[InputRecord]]:
    """The logs of GPU metrics that have dates, and those that count from 0, by when they start."""
    logs = [intake.record for intake in intakes if isinstance(intake.data, Telemetry) and intake.record.start]
    logs.sort(key=lambda record: (_start(record), record.path))
    undated = [record for record in logs if _start(record).year < FIRST_YEAR]
    return [record for record in logs if record not in undated], undated


def _start(record: InputRecord) -> datetime:
    return datetime.fromisoformat(record.start or "")


def _end(record: InputRecord) -> datetime:
    return datetime.fromisoformat(record.end or record.start or "")


def _named(session: Sequence[InputRecord]) -> str:
    return ", ".join(record.path for record in session[:3]) + (", ..." if len(session) > 3 else "")
