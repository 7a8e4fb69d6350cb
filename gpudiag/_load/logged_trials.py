"""Trials that Optuna's own log tells of: they count where no study and no table of trials is beside it, each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from gpudiag._load.intake import Intake, read_again
from gpudiag.readers._studies.logged_trials import READER
from gpudiag.readers.base import Telemetry, Trials, no_rows

_KEY = ["study", "trial"]
_TOLD = [*_KEY, "state", "end"]


def is_logged(data: Trials) -> bool:
    """Whether its trials are those that a log tells of."""
    return data.reader == READER and len(data.trials) > 0


def trials_once(intakes: Sequence[Intake]) -> list[Intake]:
    """The inputs without trials of logs where a study or a table of trials is read, which holds more of them; and
    without those that several logs tell of, but in the first.
    """
    every = [one.data for one in intakes if isinstance(one.data, Trials)]
    if not any(map(is_logged, every)):
        return list(intakes)
    stored = any(one.record.kind == "trials" and isinstance(one.data, Trials) and one.data.rows for one in intakes)
    kept: list[Trials] = []
    for data in every:
        if is_logged(data):
            data = _without_trials(data, "a study or a table of trials is read") if stored else _new(data, kept)
        kept.append(data)
    return read_again(intakes, [one.data for one in intakes if isinstance(one.data, Telemetry)], kept)


def _new(data: Trials, before: Sequence[Trials]) -> Trials:
    """The log without trials that one before tells of; whole where it tells otherwise of one of that number."""
    tables = [other.trials for other in before if is_logged(other)]
    if not tables:
        return data
    known = pd.concat(tables, ignore_index=True)
    again = _in(data.trials, known, _TOLD)
    left = data.trials[~again].reset_index(drop=True)
    if left.empty:
        return _without_trials(data, "another log tells of the same")
    if _in(left, known, _KEY).any():
        return data
    studies = data.studies[~data.studies["study"].isin(known["study"])].reset_index(drop=True)
    return replace(data, trials=left, studies=studies)


def _in(table: pd.DataFrame, other: pd.DataFrame, columns: list[str]) -> pd.Series:
    rows, others = (pd.MultiIndex.from_frame(one[columns]) for one in (table, other))
    return pd.Series(rows.isin(others), table.index)


def _without_trials(data: Trials, why: str) -> Trials:
    note = f"Its {len(data.trials)} trials from Optuna's log were set aside: {why}."
    notes = tuple(one for one in data.notes if "from Optuna's log" not in one)
    return replace(data, trials=no_rows("trials")(), studies=no_rows("studies")(), beside=(), notes=(*notes, note))
