"""Telemetry of several sessions in one place: recordings that are months apart are not one run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from gpudiag._load.intake import Intake
from gpudiag._run.tables import InputRecord
from gpudiag.errors import InputError
from gpudiag.readers._shape.timestamp_forms import FIRST_YEAR
from gpudiag.readers.base import Telemetry

APART = timedelta(days=30)
"""A silence that no run survives: together, most of such a run would be time that nobody observed (a default without a
published source). A log with a hole as long is one file of one recorder, and is said to have a gap."""


def refuse_sessions_apart(intakes: Sequence[Intake], where: str) -> None:
    """Raise InputError where logs of GPU metrics lie months apart, or some have dates and others count from 0."""
    logs = [intake.record for intake in intakes if isinstance(intake.data, Telemetry) and intake.record.start]
    logs.sort(key=lambda record: (_start(record), record.path))
    undated = [record for record in logs if _start(record).year < FIRST_YEAR]
    dated = [record for record in logs if record not in undated]
    if undated and dated:
        raise InputError(
            f"{where}: {undated[0].path} has no dates, so that it cannot be placed beside {dated[0].path}; load one of "
            "the two, or record with dates (nvidia-smi dmon -o DT)."
        )
    sessions: list[list[InputRecord]] = []
    last = None
    for record in dated:
        if last is None or _start(record) - last > APART:
            sessions.append([])
        sessions[-1].append(record)
        last = max(last or _end(record), _end(record))
    if len(sessions) > 1:
        held = "; ".join(f"{_start(session[0]):%Y-%m-%d}: {_named(session)}" for session in sessions[:5])
        raise InputError(
            f"{where}: holds {len(sessions)} recordings more than {APART.days} days apart ({held}), which are not one "
            "run; load the files of one of them, or name all of them in a run.toml (telemetry = [...])."
        )


def _start(record: InputRecord) -> datetime:
    return datetime.fromisoformat(record.start or "")


def _end(record: InputRecord) -> datetime:
    return datetime.fromisoformat(record.end or record.start or "")


def _named(session: Sequence[InputRecord]) -> str:
    return ", ".join(record.path for record in session[:3]) + (", ..." if len(session) > 3 else "")
