"""An Optuna study as an SQLite file: Optuna makes the schema, the rows are written in bulk.

Optuna's own interface timestamps the wall clock on every trial and takes about 10 ms for each; written
directly, the timestamps are the simulated ones and the file is the same to the byte each time.
"""

from __future__ import annotations

import json
import math
import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)

from gpudiag.plain_data import JsonObject
from gpudiag.simulation.life import Life
from gpudiag.simulation.pruner import quiet
from gpudiag.simulation.spec import Spec
from gpudiag.simulation.tables import origin_of, place_of

LIBRARY = {"optuna4": "4.5.0", "optuna5": "5.0.0"}
SQLITE_VERSION = 3_045_000


def write_study(path: Path, spec: Spec, lives: Sequence[Life]) -> None:
    """Write the trials as a study that Optuna loads. Replaces ``path``."""
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "made.db"
        _create_empty(made, spec)
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(made)) as connection:
            _insert(connection, spec, lives)
            connection.execute("VACUUM INTO ?", (str(path),))
    _normalise_header(path)


def _create_empty(path: Path, spec: Spec) -> None:
    with quiet():
        storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
        optuna.create_study(study_name=spec.study, direction=spec.curve.direction, storage=storage)
        storage.remove_session()
        storage.engine.dispose()


def _insert(connection: sqlite3.Connection, spec: Spec, lives: Sequence[Life]) -> None:
    space = search_space(spec, lives)
    tables: dict[str, Iterable[tuple[Any, ...]]] = {
        "trials": _trial_rows(spec, lives),
        "trial_params": _param_rows(lives, space),
        "trial_values": (
            (at, 0, life.value, "FINITE")
            for at, life in _numbered(lives)
            if life.state in ("COMPLETE", "PRUNED") and life.reports
        ),
        "trial_intermediate_values": (
            (at, step, value, "FINITE") for at, life in _numbered(lives) for step, value, _ in life.reports
        ),
        "trial_user_attributes": (
            (at, key, json.dumps(value))
            for at, life in _numbered(lives)
            for key, value in _attributes(spec, life).items()
        ),
        "trial_system_attributes": (
            (at, key, json.dumps(value)) for at, life in _numbered(lives) for key, value in life.system_attrs.items()
        ),
    }
    with connection:
        for name, rows in tables.items():
            numbered = [(index, *row) for index, row in enumerate(rows, start=1)]
            if numbered:
                marks = ", ".join("?" * len(numbered[0]))
                connection.executemany(f"INSERT INTO {name} VALUES ({marks})", numbered)
        connection.execute("UPDATE version_info SET library_version = ?", (LIBRARY[spec.clock],))


def _numbered(lives: Sequence[Life]) -> Iterable[tuple[int, Life]]:
    """Row ids of the trials table, from 1."""
    return enumerate(lives, start=1)


def _trial_rows(spec: Spec, lives: Sequence[Life]) -> Iterable[tuple[Any, ...]]:
    for life in lives:
        end = life.end_s if life.finished else math.nan
        yield life.number, 1, life.state, stored_timestamp(spec, life.start_s), stored_timestamp(spec, end)


def stored_timestamp(spec: Spec, seconds: float) -> str | None:
    """Naive text as the column holds it: local time up to Optuna 4, UTC from Optuna 5."""
    if math.isnan(seconds):
        return None
    timestamp = origin_of(spec) + pd.Timedelta(microseconds=round(seconds * 1e6))
    if spec.clock == "optuna4":
        timestamp = timestamp.tz_convert(spec.timezone)
    return str(timestamp.tz_localize(None).strftime("%Y-%m-%d %H:%M:%S.%f"))


def _attributes(spec: Spec, life: Life) -> JsonObject:
    """User attributes: what the life carries, who ran it where that is declared, and the error."""
    out = {**life.user_attrs, **place_of(spec, life)}
    if life.detail:
        out["error"] = life.detail
    return out


def search_space(spec: Spec, lives: Sequence[Life]) -> dict[str, BaseDistribution]:
    """A distribution for every parameter that the trials have."""
    declared: dict[str, BaseDistribution] = {
        "model": CategoricalDistribution([model.name for model in spec.trial.models]),
        "batch_size": CategoricalDistribution(spec.trial.batch_sizes),
        "lr": FloatDistribution(1e-5, 1e-2, log=True),
    }
    names = dict.fromkeys(name for life in lives for name in life.params)
    return {
        name: declared.get(name) or _span([life.params[name] for life in lives if name in life.params])
        for name in names
    }


def _span(values: Sequence[Any]) -> BaseDistribution:
    """The narrowest distribution that holds the values."""
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return IntDistribution(min(values), max(values))
    if all(isinstance(value, float) for value in values):
        return FloatDistribution(min(values), max(values))
    return CategoricalDistribution(sorted(set(values)))


def _param_rows(lives: Sequence[Life], space: dict[str, BaseDistribution]) -> Iterable[tuple[Any, ...]]:
    text = {name: distribution_to_json(distribution) for name, distribution in space.items()}
    for at, life in _numbered(lives):
        for name, value in life.params.items():
            yield at, name, space[name].to_internal_repr(value), text[name]


def _normalise_header(path: Path) -> None:
    """Take the library's version and the change counters out of the SQLite header (bytes 24-27 and 92-99)."""
    with path.open("r+b") as file:
        for offset, value in ((24, 1), (92, 1), (96, SQLITE_VERSION)):
            file.seek(offset)
            file.write(value.to_bytes(4, "big"))
