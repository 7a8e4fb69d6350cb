"""A large study in any of Optuna's storages: the schema is Optuna's own, the rows go in by bulk.

20 parameters, 58 intermediate values and two user attributes a trial, if not said otherwise.
"""

from __future__ import annotations

import csv
import json
import os
import random
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution, distribution_to_json
from sqlalchemy import create_engine

NAME = "bench"
PARAMS = 20
REPORTS = 58
WORKERS = 8
STATES = ("COMPLETE", "PRUNED", "FAIL")
SPACES = (
    FloatDistribution(1e-5, 1e-1, log=True),
    FloatDistribution(0, 1),
    IntDistribution(1, 100),
    CategoricalDistribution(("adam", "sgd", "rmsprop", None, 3)),
)
ADMIN = {
    "postgresql": os.environ.get("GPUDIAG_POSTGRES", "postgresql+psycopg://root@127.0.0.1:5432/postgres"),
    "mysql": os.environ.get("GPUDIAG_MYSQL", "mysql+pymysql://root@127.0.0.1:3306/test"),
}
STORAGES = ("sqlite", *ADMIN, "journal")
Rows = dict[tuple[str, str], Iterator[tuple]]


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(1.7e9 + seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


@dataclass(frozen=True)
class Shape:
    """How large a study is."""

    trials: int
    params: int = PARAMS
    reports: int = REPORTS
    finite: bool = False
    """No NaN among the intermediate values."""


class Drawn:
    """The values of a study, drawn as they are asked for."""

    def __init__(self, shape: Shape) -> None:
        self._rng = random.Random(0)
        self.shape = shape
        self.ids = range(1, shape.trials + 1)
        self.spaces = [(f"p{i:02d}", SPACES[i % 4], distribution_to_json(SPACES[i % 4])) for i in range(shape.params)]
        self.states = [self._rng.choices(STATES, (30, 65, 5))[0] for _ in self.ids]

    def param(self, space: object) -> float:
        if isinstance(space, CategoricalDistribution):
            return float(self._rng.randrange(len(space.choices)))
        return float(self._rng.randint(1, 100)) if isinstance(space, IntDistribution) else self._rng.uniform(1e-4, 0.1)

    def report(self, at: int, step: int) -> float | None:
        """None for the one value in a thousand that is NaN."""
        lost = not self.shape.finite and (at * self.shape.reports + step) % 1000 == 0
        return None if lost else self._rng.random()

    def value(self) -> float:
        return self._rng.random()

    def attributes(self, at: int) -> dict[str, Any]:
        return {"seconds": self._rng.random(), "gpu": at % 4}


def rows_of(shape: Shape) -> Rows:
    """Rows by table and columns, made while they are inserted."""
    drawn = Drawn(shape)
    ids, states = drawn.ids, drawn.states
    return {
        ("trials", "trial_id, number, study_id, state, datetime_start, datetime_complete"): (
            (at, at - 1, 1, states[at - 1], _timestamp(at * 30.125), _timestamp(at * 30.125 + 250.5)) for at in ids
        ),
        ("trial_params", "trial_id, param_name, param_value, distribution_json"): (
            (at, name, drawn.param(space), text) for at in ids for name, space, text in drawn.spaces
        ),
        ("trial_values", "trial_id, objective, value, value_type"): (
            (at, 0, drawn.value(), "FINITE") for at in ids if states[at - 1] != "FAIL"
        ),
        ("trial_intermediate_values", "trial_id, step, intermediate_value, intermediate_value_type"): (
            (at, step, value, "NAN" if value is None else "FINITE")
            for at in ids
            for step in range(drawn.shape.reports)
            for value in (drawn.report(at, step),)
        ),
        ("trial_user_attributes", "trial_id, key, value_json"): (
            (at, key, json.dumps(value)) for at in ids for key, value in drawn.attributes(at).items()
        ),
    }


@contextmanager
def filled(kind: str, shape: Shape) -> Iterator[tuple[str, float]]:
    """Where the study lies (file or URL), and its size in MiB; it is removed afterwards."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as name:
        if kind in ADMIN:
            with _database(ADMIN[kind]) as url:
                optuna.create_study(storage=url, study_name=NAME)
                copy = _copy_to_postgres if kind == "postgresql" else _load_into_mysql
                copy(url, rows_of(shape), Path(name))
                yield url, _size_mib(url)
            return
        path = Path(name) / ("bench.db" if kind == "sqlite" else "bench.log")
        _fill_sqlite(path, shape) if kind == "sqlite" else _fill_journal(path, shape)
        yield str(path), path.stat().st_size / 1024**2


@contextmanager
def _database(admin: str) -> Iterator[str]:
    """A database of our own beside the one that ``admin`` names."""
    name = f"gpudiag_bench_{uuid.uuid4().hex[:12]}"
    engine = create_engine(admin, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    try:
        yield f"{admin.rpartition('/')[0]}/{name}"
    finally:
        force = " WITH (FORCE)" if admin.startswith("postgresql") else ""
        with engine.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name}{force}")
        engine.dispose()


def _size_mib(url: str) -> float:
    sql = (
        "SELECT pg_database_size(current_database())"
        if url.startswith("postgresql")
        else "SELECT sum(data_length + index_length) FROM information_schema.tables WHERE table_schema = database()"
    )
    engine = create_engine(url)
    with engine.connect() as connection:
        size = float(connection.exec_driver_sql(sql).scalar() or 0)
    engine.dispose()
    return size / 1024**2


def _fill_sqlite(path: Path, shape: Shape) -> None:
    optuna.create_study(storage=f"sqlite:///{path}", study_name=NAME)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        for (table, columns), rows in rows_of(shape).items():
            marks = ", ".join("?" * (columns.count(",") + 1))
            connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)
        connection.commit()


def _copy_to_postgres(url: str, tables: Rows, folder: Path) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        cursor = connection.connection.driver_connection.cursor()
        for (table, columns), rows in tables.items():
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE")
    engine.dispose()


def _load_into_mysql(url: str, tables: Rows, folder: Path) -> None:
    engine = create_engine(url, connect_args={"local_infile": True})
    with engine.begin() as connection:
        for (table, columns), rows in tables.items():
            file = folder / "rows.csv"
            with file.open("w", newline="") as out:
                csv.writer(out, lineterminator="\n", escapechar=None).writerows(
                    ["NULL" if cell is None else cell for cell in row] for row in rows
                )
            names = columns.replace("key", "`key`")
            connection.exec_driver_sql(
                f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE {table} FIELDS TERMINATED BY ',' "
                rf"OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' LINES TERMINATED BY '\n' ({names})".replace("%", "%%")
            )
            file.unlink()
    engine.dispose()


def _fill_journal(path: Path, shape: Shape) -> None:
    """The operations of eight workers in Optuna's own spelling, one of each in turn."""
    drawn = Drawn(shape)
    with path.open("w") as out:

        def write(code: int, at: int, fields: dict[str, Any]) -> None:
            worker = f"433c8057-d965-4160-9e65-9262625493af-{at % WORKERS}"
            out.write(json.dumps({"op_code": code, "worker_id": worker, **fields}, separators=(",", ":")) + "\n")

        write(0, 0, {"study_name": NAME, "directions": [1]})
        for first in range(0, shape.trials, WORKERS):
            for together in zip_longest(*(_operations(drawn, at) for at in drawn.ids[first : first + WORKERS])):
                for at, operation in enumerate(together, start=first):
                    if operation is not None:
                        write(operation[0], at, operation[1])


def _operations(drawn: Drawn, at: int) -> Iterator[tuple[int, dict[str, Any]]]:
    trial = {"trial_id": at - 1}
    yield 4, {"study_id": 0, "datetime_start": _timestamp(at * 30.125).replace(" ", "T") + "+00:00"}
    for name, space, text in drawn.spaces:
        value = drawn.param(space)
        value = int(value) if isinstance(space, CategoricalDistribution) else value
        yield 5, trial | {"param_name": name, "param_value_internal": value, "distribution": text}
    for step in range(drawn.shape.reports):
        value = drawn.report(at, step)
        yield 7, trial | {"step": step, "intermediate_value": float("nan") if value is None else value}
    for key, value in drawn.attributes(at).items():
        yield 8, trial | {"user_attr": {key: value}}
    state = drawn.states[at - 1]
    values = None if state == "FAIL" else [drawn.value()]
    end = _timestamp(at * 30.125 + 250.5).replace(" ", "T") + "+00:00"
    code = ("RUNNING", "COMPLETE", "PRUNED", "FAIL").index(state)
    yield 6, trial | {"state": code, "values": values, "datetime_complete": end}
