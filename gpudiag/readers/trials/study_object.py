"""A Study in memory, or a list of its trials."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._studies.assemble import assemble
from gpudiag.readers._studies.journal_tables import on_utc
from gpudiag.readers._studies.stored import COLUMNS, Stored, pick_study
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.timezones import machine_zone

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

NAME = "optuna-study"


def storage_of(study: Study) -> str | None:
    """Where a study lies, if it can be read there: a URL. Optuna converts timestamps; the storage does not."""
    storage = getattr(study, "_storage", None)
    url = getattr(getattr(storage, "_backend", storage), "url", None)
    return url if isinstance(url, str) and ":memory:" not in url and url not in ("sqlite://", "sqlite:///") else None


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite URL without options, None for any other URL."""
    path = url.removeprefix("sqlite:///")
    return Path(path) if path != url and "?" not in path else None


def read_study(study: Study, options: ReadOptions) -> Trials:
    """The trials of a Study as Optuna gives them: naive timestamps on this machine's clock."""
    pick_study(options.study, [study.study_name], "the Study object")
    directions = ",".join(direction.name for direction in study.directions)
    return _read(study.get_trials(deepcopy=False), study.study_name, directions, options)


def read_frozen(trials: Sequence[FrozenTrial], options: ReadOptions) -> Trials:
    """A list of FrozenTrial. It names no study and tells no direction."""
    return _read(trials, options.study or "study", "", options)


def _read(trials: Sequence[FrozenTrial], name: str, directions: str, options: ReadOptions) -> Trials:
    from optuna.distributions import distribution_to_json

    rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in COLUMNS}
    for at, trial in enumerate(trials):
        rows["trials"].append((at, 0, trial.number, trial.state.name, trial.datetime_start, trial.datetime_complete))
        rows["values"] += [(at, objective, value) for objective, value in enumerate(trial.values or [])]
        rows["reports"] += [(at, step, value) for step, value in trial.intermediate_values.items()]
        rows["user_attrs"] += [(at, key, json.dumps(value, default=str)) for key, value in trial.user_attrs.items()]
        rows["system_attrs"] += [(at, key, json.dumps(value, default=str)) for key, value in trial.system_attrs.items()]
        for key, value in trial.params.items():
            kind = trial.distributions[key]
            rows["params"].append((at, key, kind.to_internal_repr(value), distribution_to_json(kind)))
    if not directions and any(len(trial.values or []) > 1 for trial in trials):
        directions = ","
    rows["studies"] = [(0, name, directions)]
    tables = {table: pd.DataFrame.from_records(rows[table], columns=COLUMNS[table]) for table in COLUMNS}
    problems = ProblemLog()
    # The run's zone is that of the files; Optuna converts to the zone of the machine that asks.
    here = machine_zone()
    tables["trials"], clocks = on_utc(tables["trials"], here, problems)
    why = "Optuna gives a Study's timestamps in the local time of the machine that loads it"
    known = {key: (clock, why if clock == "local" else given) for key, (clock, given) in clocks.items()}
    return assemble(Stored(**tables, clocks=known), here, "", NAME, problems)
