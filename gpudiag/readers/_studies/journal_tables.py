"""A replayed journal as the long tables of a storage."""

from __future__ import annotations

from collections.abc import Collection
from datetime import tzinfo
from typing import Any

import numpy as np
import pandas as pd

from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._studies.assemble import pair_keys
from gpudiag.readers._studies.distributions import parse_distribution
from gpudiag.readers._studies.fold import settle_local
from gpudiag.readers._studies.journal import Replay
from gpudiag.readers._studies.journal_steps import Codes, GrowingTable, picked
from gpudiag.readers._studies.stored import COLUMNS, Stored, no_stored
from gpudiag.readers._studies.timestamps import to_utc

_TRIAL_KINDS = {
    "trial_id": "int64",
    "study_id": "int64",
    "number": "int64",
    "state": "object",
    "start": "object",
    "end": "object",
    "worker": "object",
}
OpenLines = tuple[np.ndarray, np.ndarray]
"""By trial the lines from which and to which it may be changed."""


def to_stored(state: Replay, zone: tzinfo, study: str | None, problems: ProblemLog) -> Stored:
    """Long tables on UTC. Optuna 5 writes timestamps with a zone into its journals, earlier versions local time."""
    wanted = {key: value for key, value in state.studies.items() if study in (None, value[0])}
    open_lines = _open_lines(state)
    trials, clocks = on_utc(_trials(state, wanted), zone, problems)
    return Stored(
        studies=pd.DataFrame([(key, *value) for key, value in wanted.items()], columns=list(COLUMNS["studies"])),
        trials=trials,
        values=_values(state, wanted),
        params=_params(state, open_lines),
        reports=_reports(state, open_lines),
        user_attrs=_attributes(state, state.steps.user_attrs, open_lines),
        system_attrs=_attributes(state, state.steps.system_attrs, open_lines),
        heartbeats=no_stored("heartbeats"),
        clocks=clocks,
    )


def _trials(state: Replay, wanted: Collection[int]) -> pd.DataFrame:
    """The trials of these studies; ``start`` and ``end`` as written."""
    rows = [
        (at, trial.study_id, trial.number, trial.state, trial.start, trial.end, trial.worker)
        for at, trial in enumerate(state.trials)
        if trial.study_id in wanted
    ]
    columns = zip(*rows, strict=True) if rows else ((),) * len(_TRIAL_KINDS)
    cells = zip(_TRIAL_KINDS.items(), columns, strict=True)
    return pd.DataFrame({name: pd.Series(column, dtype=kind) for (name, kind), column in cells})


def _values(state: Replay, wanted: Collection[int]) -> pd.DataFrame:
    values = [
        (at, objective, value)
        for at, trial in enumerate(state.trials)
        if trial.study_id in wanted
        for objective, value in enumerate(trial.values)
    ]
    if not values:
        return no_stored("values")
    return pd.DataFrame(dict(zip(COLUMNS["values"], zip(*values, strict=True), strict=True)))


def _attributes(state: Replay, written: GrowingTable, open_lines: OpenLines) -> pd.DataFrame:
    """The last value of each trial and key, sorted by both."""
    rows = written.while_open(*open_lines)
    rows = picked(rows, _latest(rows["trial_id"], rows["key"]))
    key = pd.Categorical.from_codes(rows["key"], pd.Index(list(state.steps.keys), dtype="object"))
    return pd.DataFrame({"trial_id": rows["trial_id"], "key": key, "value_json": rows["value_json"]}, copy=False)


def _reports(state: Replay, open_lines: OpenLines) -> pd.DataFrame:
    """The last value of each trial and step, sorted by both."""
    rows = state.steps.reports.while_open(*open_lines)
    rows = picked(rows, rows["step"] >= 0)
    rows = picked(rows, _latest(rows["trial_id"], rows["step"]))
    return pd.DataFrame({name: rows[name] for name in COLUMNS["reports"]}, copy=False)


def _params(state: Replay, open_lines: OpenLines) -> pd.DataFrame:
    """The last value of each trial and parameter, sorted by both."""
    names, texts = list(state.steps.names), list(state.steps.distributions)
    rows = state.steps.params.while_open(*open_lines)
    study = np.array([trial.study_id for trial in state.trials], dtype="int64")[rows["trial_id"]]
    kind = _kinds(state.steps.distributions)[rows["distribution"]]
    key = study * len(names) + rows["name"]
    # Optuna holds a study to the kind and choices of a parameter's first appearance; ranges may differ.
    alone = np.flatnonzero(rows["added"] == 0)[::-1]
    first = np.full(int(key.max(initial=-1)) + 1, -1)
    first[key[alone]] = kind[alone]  # of several for one key the last one stays, which is the earliest line
    rows = picked(rows, (rows["added"] == 1) | (kind == first[key]))
    rows = picked(rows, _latest(rows["trial_id"], rows["name"]))
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


def _open_lines(state: Replay) -> OpenLines:
    """By trial the lines from which and to which it may be changed."""
    begun = np.array([trial.begun_line for trial in state.trials], dtype="int64")
    return begun, np.array([trial.finished_line for trial in state.trials], dtype="int64")


def _latest(trial: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Places of the last row of each pair, sorted by both; rows stand in the order in which they were written."""
    keys = pair_keys(trial, second)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    last = keys[1:] != keys[:-1]
    return order if last.all() else order[np.append(last, True)]


def on_utc(trials: pd.DataFrame, zone: tzinfo, problems: ProblemLog) -> tuple[pd.DataFrame, dict[Any, tuple[str, str]]]:
    """``start`` and ``end`` (ISO text) as UTC, and by study the clock they were written in and why."""
    why = {
        "utc": "the timestamps carry a zone",
        "local": "assumed, because the timestamps carry no zone and versions of Optuna before 5 write local time",
        "mixed": "the later timestamps carry a zone, the earlier ones none",
        "unknown": "it has no timestamps",
    }
    clocks: dict[Any, tuple[str, str]] = {}
    out = {column: np.full(len(trials), "NaT", dtype="datetime64[us]") for column in ("start", "end")}
    for study_id, rows in trials.groupby("study_id", sort=False).indices.items():
        found = set()
        for column, times in out.items():
            timestamps = to_utc(trials[column].to_numpy()[rows].tolist(), zone)
            times[rows] = timestamps.time.dt.tz_localize(None).to_numpy()
            found |= {timestamps.clock} - {"unknown"}
            problems.add("timestamp that is no date", timestamps.bad, example=timestamps.example)
        clock = found.pop() if len(found) == 1 else "mixed" if found else "unknown"
        doubt = _settled(trials["number"].iloc[rows], out, rows, zone) if clock == "local" else ""
        clocks[study_id] = (clock, why[clock] + doubt)
    return trials.assign(
        **{column: pd.Series(times, trials.index).dt.tz_localize("UTC") for column, times in out.items()}
    ), clocks


def _settled(number: pd.Series, out: dict[str, np.ndarray], rows: np.ndarray, zone: tzinfo) -> str:
    """Put the repeated hour of one study's local times right, in ``out``; returns a clause about what is in doubt."""
    start, end = (pd.Series(out[name][rows], number.index).dt.tz_localize("UTC") for name in ("start", "end"))
    settled = settle_local(number, start, end, zone)
    for name, column in (("start", settled.start), ("end", settled.end)):
        out[name][rows] = column.dt.tz_localize(None).to_numpy()
    return settled.said
