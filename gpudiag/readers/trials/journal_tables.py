"""A replayed journal as the long tables of a storage."""

from __future__ import annotations

import json
from datetime import tzinfo
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.readers.problems import ProblemLog
from gpudiag.readers.trials.assemble import sorted_places
from gpudiag.readers.trials.distributions import parse_distribution
from gpudiag.readers.trials.journal import Entry, Replay
from gpudiag.readers.trials.journal_steps import Codes, Columns
from gpudiag.readers.trials.stamps import to_utc
from gpudiag.readers.trials.stored import COLUMNS, Stored


def to_stored(state: Replay, zone: tzinfo, study: str | None, problems: ProblemLog) -> Stored:
    """Long tables on UTC. Optuna 5 writes stamps with a zone into its journals, earlier versions local time."""
    wanted = {key: value for key, value in state.studies.items() if study in (None, value[0])}
    trials = [(at, trial) for at, trial in enumerate(state.trials) if trial.study_id in wanted]
    rows: dict[str, list[tuple]] = {name: [] for name in COLUMNS}
    for at, trial in trials:
        rows["trials"].append((at, trial.study_id, trial.number, trial.state, trial.start, trial.end))
        rows["values"] += [(at, objective, value) for objective, value in enumerate(trial.values)]
        rows["user_attrs"] += [(at, key, _json(value)) for key, value in trial.user_attrs.items()]
        rows["system_attrs"] += [(at, key, _json(value)) for key, value in trial.system_attrs.items()]
    rows["studies"] = [(key, *value) for key, value in wanted.items()]
    tables = {name: pd.DataFrame.from_records(rows[name], columns=COLUMNS[name]) for name in COLUMNS}
    tables["trials"]["worker"] = [trial.worker for _, trial in trials]
    tables["trials"], clocks = on_utc(tables["trials"], zone, problems)
    tables["reports"], tables["params"] = _reports(state), _params(state)
    return Stored(**tables, clocks=clocks)


def _json(value: Any) -> str:
    """JSON text; numbers without the encoder, which takes four times as long."""
    return repr(value) if type(value) is int or (type(value) is float and isfinite(value)) else json.dumps(value)


def _reports(state: Replay) -> pd.DataFrame:
    """The last value of each trial and step, sorted by both."""
    rows = _while_open(state.steps.reports, state.trials)
    rows = _picked(rows, rows["step"] >= 0)
    rows = _picked(rows, _latest(rows["trial_id"], rows["step"]))
    return pd.DataFrame({name: rows[name] for name in COLUMNS["reports"]}, copy=False)


def _params(state: Replay) -> pd.DataFrame:
    """The last value of each trial and parameter, sorted by both."""
    names, texts = list(state.steps.names), list(state.steps.distributions)
    rows = _while_open(state.steps.params, state.trials)
    study = np.array([trial.study_id for trial in state.trials], dtype="int64")[rows["trial_id"]]
    kind = _kinds(state.steps.distributions)[rows["distribution"]]
    key = study * len(names) + rows["name"]
    # Optuna holds a study to the kind and choices of a parameter's first appearance; ranges may differ.
    told = np.flatnonzero(rows["added"] == 0)[::-1]
    first = np.full(int(key.max(initial=-1)) + 1, -1)
    first[key[told]] = kind[told]  # of several for one key the last one stays, which is the earliest line
    rows = _picked(rows, (rows["added"] == 1) | (kind == first[key]))
    rows = _picked(rows, _latest(rows["trial_id"], rows["name"]))
    return pd.DataFrame(
        {
            "trial_id": rows["trial_id"],
            "name": pd.Categorical.from_codes(rows["name"], pd.Index(names, dtype="object")),
            "value": rows["value"],
            "distribution": pd.Categorical.from_codes(rows["distribution"], pd.Index(texts, dtype="object")),
        },
        copy=False,
    )


def _kinds(distributions: Codes) -> np.ndarray:
    """By code of a distribution, a number that equal kinds and choices share."""
    seen: Codes = Codes()
    out = []
    for text in distributions:
        parsed = parse_distribution(str(text))
        try:
            out.append(seen[parsed])
        except TypeError:  # a choice that is a list
            out.append(seen[repr(parsed)])
    return np.array(out, dtype="int64")


def _while_open(rows: Columns, trials: list[Entry]) -> Columns:
    """The rows whose trial had begun and had not finished."""
    trial = rows["trial_id"]
    rows = _picked(rows, (trial >= 0) & (trial < len(trials)))
    trial, line = rows["trial_id"], rows["line"]
    begun = np.array([entry.begun_line for entry in trials], dtype="int64")[trial]
    finished = np.array([entry.finished_line for entry in trials], dtype="int64")[trial]
    return _picked(rows, (begun <= line) & (line <= finished))


def _latest(trial: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Places of the last row of each pair, sorted by both; rows stand in the order in which they were written."""
    order = sorted_places(trial, second)
    trial, second = trial[order], second[order]
    return order[np.append((np.diff(trial) != 0) | (np.diff(second) != 0), True)[: len(order)]]


def _picked(rows: Columns, which: np.ndarray) -> Columns:
    if which.dtype == bool and which.all():
        return rows
    return {name: cells[which] for name, cells in rows.items()}


def on_utc(trials: pd.DataFrame, zone: tzinfo, problems: ProblemLog) -> tuple[pd.DataFrame, dict[Any, tuple[str, str]]]:
    """``start`` and ``end`` (ISO text) as UTC, and by study the clock they were written in and why."""
    why = {
        "utc": "the stamps carry a zone",
        "local": "assumed, because the stamps carry no zone and versions of Optuna before 5 write local time",
        "mixed": "the later stamps carry a zone, the earlier ones none",
        "unknown": "it has no stamps",
    }
    clocks: dict[Any, tuple[str, str]] = {}
    parts = []
    for study_id, group in trials.groupby("study_id", sort=False):
        start, end = (to_utc(group[column].tolist(), zone) for column in ("start", "end"))
        found = {start.clock, end.clock} - {"unknown"}
        clock = found.pop() if len(found) == 1 else "mixed" if found else "unknown"
        for stamps in (start, end):
            problems.add("stamp that is no date", stamps.bad, example=stamps.example)
        clocks[study_id] = (clock, why[clock])
        parts.append(group.assign(start=start.time.to_numpy(), end=end.time.to_numpy()))
    joined = pd.concat(parts) if parts else trials
    for column in ("start", "end"):
        joined[column] = pd.to_datetime(joined[column], utc=True).astype("datetime64[us, UTC]")
    return joined.sort_index(), clocks
