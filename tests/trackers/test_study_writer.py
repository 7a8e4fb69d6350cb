"""``gpudiag report --write-study``: four user attributes of the one study, and not a byte else."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
import pytest
import sqlalchemy
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from gpudiag.diagnosis import diagnose
from gpudiag.errors import ConfigError
from gpudiag.load import load_run
from gpudiag.report.document import Document
from gpudiag.trackers.study import study_writer

NAMES = ["gpudiag:verdict", "gpudiag:top_finding", "gpudiag:report", "gpudiag:version"]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(level)


def filled(storage: Any, name: str = "s") -> None:
    """A study with trials and an attribute of its owner."""
    study = optuna.create_study(storage=storage, study_name=name)
    study.set_user_attr("mine", "kept")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)


def sqlite_at(path: Path, *names: str) -> Path:
    storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
    for name in names or ("s",):
        filled(storage, name)
    storage.engine.dispose()
    return path


def written(
    source: Any, files: list[Path], study: str | None = None, document: Document | None = None
) -> dict[str, Any]:
    """Write the diagnosis of a run to its study; what is to be found there, worked out from the documents."""
    document = document or diagnose(load_run(source, study=study)).document
    sources = source if isinstance(source, list) else [source]
    study_writer([str(one) for one in sources], study)(files, document)
    found = [f"{one.rule}: {one.summary}" for one in document.findings]
    return {
        "gpudiag:verdict": document.headline.level,
        "gpudiag:top_finding": found,
        "gpudiag:report": str(files[0].resolve()),
        "gpudiag:version": document.version,
    }


def same(rows: dict[str, Any], expected: dict[str, Any]) -> bool:
    top, among = rows["gpudiag:top_finding"], expected["gpudiag:top_finding"]
    rest = {name: value for name, value in rows.items() if name != "gpudiag:top_finding"}
    return (top in among if among else top is None) and rest == {
        name: value for name, value in expected.items() if name != "gpudiag:top_finding"
    }


def rows_of(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables."""
    engine = sqlalchemy.create_engine(url)
    with engine.connect() as connection:
        names = sqlalchemy.inspect(connection).get_table_names()
        quoted = {name: connection.dialect.identifier_preparer.quote(name) for name in names}
        found = {
            name: sorted(map(tuple, connection.exec_driver_sql(f"SELECT * FROM {quoted[name]}")), key=repr)
            for name in names
        }
    engine.dispose()
    return found


def check_database(url: str, source: Any, files: list[Path], study: str | None = None) -> None:
    """A first diagnosis adds four rows to one table, a second one changes these alone."""
    before = rows_of(url)
    document = diagnose(load_run(source, study=study)).document
    for _ in range(2):
        expected = written(source, files, study, document)
        after = rows_of(url)
        assert {name for name in before if before[name] != after[name]} == {"study_user_attributes"}
        added = [row for row in after["study_user_attributes"] if row not in before["study_user_attributes"]]
        assert set(before["study_user_attributes"]) <= set(after["study_user_attributes"]) and len(added) == 4
        assert same({row[2]: json.loads(row[3]) for row in added}, expected)
        files = [Path(str(one).replace("report.html", "later.html")) for one in files]


@pytest.mark.slow
def test_an_sqlite_study_gets_four_attributes(tmp_path: Path, report_files: list[Path]) -> None:
    url = f"sqlite:///{sqlite_at(tmp_path / 'optuna.db')}"
    check_database(url, url, report_files)


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.parametrize("server", ["postgres_url", "mysql_url"])
def test_a_study_on_a_server_gets_four_attributes(
    server: str, request: pytest.FixtureRequest, report_files: list[Path]
) -> None:
    url = str(request.getfixturevalue(server))
    storage = optuna.storages.RDBStorage(url)
    filled(storage, "written")
    filled(storage, "beside")
    storage.engine.dispose()
    plain = url.replace("+psycopg", "").replace("+pymysql", "")  # without a driver, as Optuna's own default
    check_database(url, plain, report_files, "written")


@pytest.mark.slow
def test_a_journal_gets_four_lines(tmp_path: Path, report_files: list[Path]) -> None:
    path = tmp_path / "journal.log"
    filled(JournalStorage(JournalFileBackend(str(path))))
    before = path.read_bytes()
    expected = written(path, report_files)
    after = path.read_bytes()
    assert after.startswith(before)
    lines = [json.loads(line) for line in after[len(before) :].splitlines()]
    assert [line["op_code"] for line in lines] == [2] * 4  # JournalOperation.SET_STUDY_USER_ATTR
    assert same({name: value for line in lines for name, value in line["user_attr"].items()}, expected)
    study = optuna.load_study(storage=JournalStorage(JournalFileBackend(str(path))), study_name="s")
    assert study.user_attrs.keys() == {"mine", *NAMES} and len(study.trials) == 3
    path.write_bytes(after[:-1])
    with pytest.raises(ConfigError, match="its last line is not whole"):
        study_writer([str(path)])


@pytest.mark.parametrize(
    "statement", ["DELETE FROM alembic_version", "UPDATE alembic_version SET version_num='v3.0.0.d'"]
)
def test_tables_of_an_older_optuna_are_refused_and_stay(tmp_path: Path, statement: str) -> None:
    path = sqlite_at(tmp_path / "optuna.db")
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=r"optuna storage upgrade"):
        study_writer([str(path)])
    assert path.read_bytes() == before


@pytest.mark.slow
def test_not_one_study_is_refused(tmp_path: Path, samples: Path) -> None:
    two = sqlite_at(tmp_path / "two.db", "a", "b")
    with pytest.raises(ConfigError, match=r"two\.db: has 2 studies; name the one to write to with --study"):
        study_writer([str(two)])
    with pytest.raises(ConfigError, match="has no study 'c'; it has a, b"):
        study_writer([str(two)], "c")
    with pytest.raises(ConfigError, match="but this one has 2 of them"):
        study_writer([str(two), str(sqlite_at(tmp_path / "three.db"))])
    with pytest.raises(ConfigError, match="but this one has none"):
        study_writer([str(samples / "tiny-batch-laptop" / "gpu.csv")])
    with pytest.raises(ConfigError, match="not to Redis"):
        study_writer(["redis://me:geheim@h/0"])
    with pytest.raises(ConfigError, match="does not take this storage") as refused:
        study_writer(["postgresql://me:geheim@127.0.0.1:1/none"])
    assert "geheim" not in str(refused.value)


@pytest.mark.slow
def test_on_the_command_line_only_the_option_writes(gpudiag: Any, samples: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(samples / "healthy", run)
    before = (run / "optuna.db").read_bytes()
    assert gpudiag("diagnose", run)[0] == 0
    assert (run / "optuna.db").read_bytes() == before
    code, out, err = gpudiag("report", run, "-o", "out", "--no-notebook", "-p", "minimal=true", "--write-study")
    assert code == 0 and "study 'healthy'" in (out + err), err
    with sqlite3.connect(run / "optuna.db") as connection:
        rows = dict(connection.execute("SELECT key, value_json FROM study_user_attributes"))
    connection.close()
    assert json.loads(rows["gpudiag:report"]) == str((tmp_path / "out" / "report.html").resolve())
    code, _, err = gpudiag("report", samples / "idle-second-gpu", "--write-study")
    assert code == 2 and "--write-study takes the report of one run, but got 2." in " ".join(err.split())
