"""Studies for the tests of the trial readers: written by Optuna, or by SQL where Optuna no longer can."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

optuna.logging.set_verbosity(optuna.logging.CRITICAL)

T0 = datetime(2025, 10, 24, 12, 0, 0, 250_000)
CHOICES = ("adam", "sgd", None, 3, 2.5, True)


def frozen(number: int, state: str = "COMPLETE", **more: Any) -> FrozenTrial:
    """A trial of one minute that began ``number`` minutes after T0, with four parameters."""
    kinds = {
        "lr": FloatDistribution(1e-5, 1.0, log=True),
        "layers": IntDistribution(1, 9),
        "optimizer": CategoricalDistribution(CHOICES),
    }
    params: dict[str, Any] = {
        "lr": 0.1 / (number + 1),
        "layers": number % 9 + 1,
        "optimizer": CHOICES[number % len(CHOICES)],
    }
    if number % 2:  # a conditional parameter
        kinds["momentum"] = FloatDistribution(0.0, 1.0)
        params["momentum"] = 0.5
    finished = state in ("COMPLETE", "PRUNED", "FAIL")
    start = T0 + timedelta(minutes=number)
    fields: dict[str, Any] = {
        "state": TrialState[state],
        "params": params,
        "distributions": kinds,
        "intermediate_values": {0: 1.0, 1: 0.5} if state in ("COMPLETE", "PRUNED") else {},
    }
    if state in ("COMPLETE", "PRUNED"):
        fields["value"] = 1.0 / (number + 1)
    trial = create_trial(**(fields | {key: value for key, value in more.items() if key != "timestamps"}))
    trial.datetime_start, trial.datetime_complete = more.get(
        "timestamps", (None if state == "WAITING" else start, start + timedelta(minutes=1) if finished else None)
    )
    return trial


def write_study(storage: Any, name: str = "s", trials: Sequence[FrozenTrial] = (), directions: Any = None) -> Any:
    """A study of that name with these trials, numbered in this order."""
    study = optuna.create_study(study_name=name, storage=storage, directions=directions or ["minimize"])
    for trial in trials:
        study.add_trial(trial)
    return study


@cache
def _empty_database() -> bytes:
    """Optuna's current schema without a study; making it anew for every test would take a second each."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
        storage.engine.dispose()
        set_created_by(path, "5.0.0")
        return path.read_bytes()


def sqlite_study(path: Path, *trials: FrozenTrial, name: str = "s", directions: Any = None) -> Path:
    """An SQLite file with one study. The engine is closed, so that nobody has the file open."""
    if not path.exists():
        path.write_bytes(_empty_database())
    storage = optuna.storages.RDBStorage(f"sqlite:///{path}", skip_table_creation=True)
    write_study(storage, name, trials, directions)
    storage.remove_session()
    storage.engine.dispose()
    return path


def set_created_by(path: Path, version: str) -> None:
    """Say that this version of Optuna created the file."""
    execute(path, f"UPDATE version_info SET library_version = '{version}'")


def execute(path: Path, *statements: str) -> None:
    """Run SQL on a file of our own."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


_ATTRS = 'CREATE TABLE trial_{}_attributes (id INTEGER PRIMARY KEY, trial_id INTEGER, "key" TEXT, value_json TEXT);'
_KINDS = {
    "x": '{"name": "UniformDistribution", "attributes": {"low": 0, "high": 1}}',
    "n": '{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 5}}',
    "c": '{"name": "CategoricalDistribution", "attributes": {"choices": ["a", "b"]}}',
}
_PARAMS = ((1, "x", 0.25), (1, "n", 3.0), (1, "c", 1.0), (2, "x", 0.5), (2, "n", 4.0))
_TIMESTAMPS = "'2020-05-01 10:00:00.250000', '2020-05-01 10:01:00.250000'"


def old_schema(path: Path, revision: str) -> Path:
    """A study 'old' (maximize) as Optuna of that schema left it.

    Number 0 is COMPLETE with 0.5, number 1 PRUNED with 0.25; three intermediate values.
    """
    numbered = revision not in ("v0.9.0.a", "v1.2.0.a")
    before_2_4 = revision < "v2.4"
    sql = [
        "CREATE TABLE version_info (version_info_id INTEGER, schema_version INTEGER, library_version VARCHAR(256))",
        "INSERT INTO version_info VALUES (1, 12, '1.0.0')",
        "CREATE TABLE trial_params (trial_id INTEGER, param_name TEXT, param_value FLOAT, distribution_json TEXT)",
        *(
            f"INSERT INTO trial_params VALUES ({at}, '{name}', {value}, '{_KINDS[name]}')"
            for at, name, value in _PARAMS
        ),
        _ATTRS.format("user"),
        _ATTRS.format("system"),
        "CREATE TABLE trials (trial_id INTEGER PRIMARY KEY, study_id INTEGER, state TEXT, datetime_start DATETIME,"
        f" datetime_complete DATETIME{', number INTEGER' * numbered}{', value FLOAT' * before_2_4})",
    ]
    for number, (state, value) in enumerate((("COMPLETE", 0.5), ("PRUNED", 0.25))):
        more = f", {number}" * numbered + f", {value}" * before_2_4
        sql.append(f"INSERT INTO trials VALUES ({number + 1}, 1, '{state}', {_TIMESTAMPS}{more})")
        if not numbered:
            sql.append(f"INSERT INTO trial_system_attributes VALUES ({number}, {number + 1}, '_number', '{number}')")
    sql += _before_2_4() if before_2_4 else _since_2_4(revision)
    if revision != "v0.9.0.a":
        sql += ["CREATE TABLE alembic_version (version_num TEXT)", f"INSERT INTO alembic_version VALUES ('{revision}')"]
    execute(path, *sql)
    return path


def _before_2_4() -> list[str]:
    return [
        "CREATE TABLE studies (study_id INTEGER PRIMARY KEY, study_name VARCHAR(512), direction VARCHAR(8) NOT NULL)",
        "INSERT INTO studies VALUES (1, 'old', 'MAXIMIZE')",
        "CREATE TABLE trial_values (id INTEGER PRIMARY KEY, trial_id INTEGER, step INTEGER, value FLOAT)",
        "INSERT INTO trial_values VALUES (1, 1, 0, 1.5), (2, 1, 1, 0.5), (3, 2, 0, 0.25)",
    ]


def _since_2_4(revision: str) -> list[str]:
    step_kind, value_kind = revision >= "v3.0.0.c", revision >= "v3.0.0.d"
    a, b = ", 'FINITE'" * step_kind, ", 'FINITE'" * value_kind
    steps = "id INTEGER PRIMARY KEY, trial_id INTEGER, step INTEGER, intermediate_value FLOAT"
    steps += ", intermediate_value_type TEXT" * step_kind
    values = (
        "id INTEGER PRIMARY KEY, trial_id INTEGER, objective INTEGER, value FLOAT" + ", value_type TEXT" * value_kind
    )
    heartbeats = "CREATE TABLE trial_heartbeats (id INTEGER PRIMARY KEY, trial_id INTEGER, heartbeat DATETIME)"
    return [
        "CREATE TABLE studies (study_id INTEGER PRIMARY KEY, study_name VARCHAR(512))",
        "INSERT INTO studies VALUES (1, 'old')",
        "CREATE TABLE study_directions (direction VARCHAR(8), study_id INTEGER, objective INTEGER)",
        "INSERT INTO study_directions VALUES ('MAXIMIZE', 1, 0)",
        f"CREATE TABLE trial_values ({values})",
        f"INSERT INTO trial_values VALUES (1, 1, 0, 0.5{b}), (2, 2, 0, 0.25{b})",
        f"CREATE TABLE trial_intermediate_values ({steps})",
        f"INSERT INTO trial_intermediate_values VALUES (1, 1, 0, 1.5{a}), (2, 1, 1, 0.5{a}), (3, 2, 0, 0.25{a})",
        *([heartbeats] if revision >= "v2.6" else []),
    ]
