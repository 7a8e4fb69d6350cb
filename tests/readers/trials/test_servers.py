"""Studies on PostgreSQL, MySQL and Redis: the same tables, one snapshot, nothing written, no password shown."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
import sqlalchemy
from handmade_studies import frozen, write_study
from optuna.distributions import CategoricalDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalRedisBackend

from gpudiag.errors import InputError, StudyNotFound
from gpudiag.readers._studies import mysql_columns, postgres_columns, server_stretches
from gpudiag.readers.trials import optuna_server, read_trials

pytestmark = pytest.mark.server

INF = float("inf")
TRIALS = [frozen(i, state) for i, state in enumerate(("COMPLETE", "PRUNED", "FAIL", "RUNNING", "WAITING"))]
TRIALS.append(
    frozen(5, value=INF, intermediate_values={0: float("nan"), 1: -INF, 2: 1.5}, user_attrs={"k": "v", "n": 2})
)


def rounded(trials: pd.DataFrame, url: str) -> pd.DataFrame:
    """MySQL rounds Optuna's timestamps to seconds."""
    timestamps = {column: trials[column].dt.round("s") for column in ("start", "end")}
    return trials.assign(**timestamps) if url.startswith("mysql") else trials


@pytest.fixture(params=["postgres_url", "mysql_url"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@contextmanager
def storage_at(url: str) -> Iterator[RDBStorage]:
    storage = RDBStorage(url)
    yield storage
    storage.remove_session()
    storage.engine.dispose()


def expected() -> tuple[pd.DataFrame, pd.DataFrame]:
    out = read_trials(write_study(InMemoryStorage(), "expected", TRIALS))
    return out.trials.drop(columns="study"), out.reports.drop(columns="study")


@pytest.mark.slow
def test_the_tables_of_a_database_server(url: str) -> None:
    with storage_at(url) as storage:
        study = write_study(storage, "one", TRIALS)
        write_study(storage, "two", [frozen(0)])
        live = read_trials(study)
    out = read_trials(url, study="one")
    trials, reports = expected()
    for found in (out, live):
        assert found.reader == "optuna-server"
        pd.testing.assert_frame_equal(
            rounded(found.trials.drop(columns="study"), url), rounded(trials, url), check_dtype=False
        )
        pd.testing.assert_frame_equal(found.reports.drop(columns="study"), reports)
    assert set(read_trials(url).studies["study"]) >= {"one", "two"}
    assert any("whole seconds" in note for note in out.notes) == url.startswith("mysql")
    with pytest.raises(StudyNotFound, match=r"has no study 'three'.*it has .*'one'"):
        read_trials(url, study="three")


TEXTS = ['quo"te', "comma, and", "", "new\nline", "back\\slash", "NULL", "déjà 漢", "tab\t", "'; --", "%s :x"]


WAYS = ("numbers as they are", "row by row")


def only(way: str, patch: pytest.MonkeyPatch) -> None:
    """Leave this way to read a table."""
    if way == "row by row":
        patch.setattr(optuna_server, "as_points", lambda *_: None)
        patch.setattr(optuna_server, "as_arrays", lambda *_: None)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_any_text_comes_through(url: str, way: str, as_they_are: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rows as one answer, or row by row."""
    only(way, monkeypatch)
    kinds = {name: CategoricalDistribution(TEXTS) for name in TEXTS if name}
    trials = [
        frozen(i, params=dict.fromkeys(kinds, text), distributions=kinds, user_attrs={"text": text, "none": None})
        for i, text in enumerate(TEXTS)
    ]
    with storage_at(url) as storage:
        write_study(storage, f"texts {way}", trials)
    out = read_trials(url, study=f"texts {way}")
    assert out.trials["user_attrs.text"].tolist() == TEXTS
    for name in kinds:
        assert out.trials[f"params.{name}"].tolist() == TEXTS
    assert ("trial_params" in as_they_are) == (way == "numbers as they are")


@pytest.fixture
def as_they_are(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that were read without turning numbers into text; the slower ways are closed."""
    tables: list[str] = []

    def watch(name: str, read: Callable[..., pd.DataFrame | None]) -> None:
        def watched(connection: Any, what: Any, table: str, where: str, *more: Any) -> pd.DataFrame | None:
            frame = read(connection, what, table, where, *more)
            tables.extend([table] * (frame is not None))
            count = f"SELECT COUNT(*) FROM {table} AS t" + (f" WHERE {where}" if where else "")
            assert frame is not None or not connection.exec_driver_sql(count).scalar()
            return frame

        monkeypatch.setattr(optuna_server, name, watched)

    watch("as_points", mysql_columns.as_points)
    watch("as_arrays", postgres_columns.as_arrays)
    return tables


VALUES = [0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0, 0.0, -1e-7, 1 / 3, float("nan"), INF, -INF]


@pytest.mark.slow
@pytest.mark.parametrize("stretch", [1, 7, 16384])
def test_every_bit_of_a_number_comes_through(
    url: str, as_they_are: list[str], monkeypatch: pytest.MonkeyPatch, stretch: int
) -> None:
    monkeypatch.setattr(server_stretches, "STRETCH", stretch)
    name = f"bits {stretch}"
    with storage_at(url) as storage:
        trials = [frozen(0, intermediate_values=dict(enumerate(VALUES))), frozen(1, "RUNNING")]
        write_study(storage, name, trials)
    with storage_at(url) as storage:  # without what the first one remembers
        stored = optuna.load_study(study_name=name, storage=storage).trials[0].intermediate_values
    out = read_trials(url, study=name)
    found = out.reports["value"][:10].tolist()
    assert [value.hex() for value in found] == [value.hex() for value in stored.values()]
    np.testing.assert_array_equal(found, VALUES)
    assert {"trials", "trial_params", "trial_intermediate_values", "trial_values"} <= set(as_they_are)


@pytest.mark.slow
def test_every_bit_comes_through_postgres_too(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with storage_at(postgres_url) as storage:
        write_study(storage, "bits", [frozen(i, intermediate_values=dict(enumerate(VALUES))) for i in range(8)])
    frames, read, sizes = [], postgres_columns.as_arrays, []

    def watched(*given: Any) -> pd.DataFrame | None:
        frame = read(*given)
        sizes.append(-1 if frame is None else len(frame))
        return frame

    monkeypatch.setattr(optuna_server, "as_arrays", watched)
    for way in WAYS:
        only(way, monkeypatch)
        reports = read_trials(postgres_url, study="bits").reports
        frames.append(reports)
        assert [value.hex() for value in reports["value"]] == [value.hex() for value in VALUES * 8]
        assert reports["step"].tolist() == [*range(len(VALUES))] * 8
    assert 8 * len(VALUES) in sizes
    for other in frames[1:]:
        pd.testing.assert_frame_equal(frames[0], other)


@pytest.mark.slow
def test_a_small_study_among_large_ones_is_not_looked_for_by_stretches(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows lie far apart: by the index of its trials they are found at once."""
    with storage_at(url) as storage:
        first = write_study(storage, "small", [frozen(0)])
        write_study(storage, "large", [frozen(i, intermediate_values=dict.fromkeys(range(10), 0.5)) for i in range(4)])
        first.add_trial(frozen(1))
    asked = []
    bounds = server_stretches._bounds

    def watched(connection: Any, table: str, *more: Any) -> tuple[int, int]:
        first_and_last = bounds(connection, table, *more)
        asked.append(table)
        return first_and_last

    monkeypatch.setattr(server_stretches, "_bounds", watched)
    assert read_trials(url, study="small").reports.groupby("trial").size().tolist() == [2, 2]
    assert "trial_intermediate_values" not in asked
    assert len(read_trials(url, study="large").reports) == 40
    assert "trial_intermediate_values" in asked


@pytest.mark.slow
@pytest.mark.parametrize("style", ["German", "SQL, DMY", "Postgres, MDY"])
@pytest.mark.parametrize("way", WAYS)
def test_the_style_of_dates_of_a_database_changes_nothing(
    postgres_url: str, way: str, style: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(way, monkeypatch)
    name = postgres_url.rpartition("/")[2]
    with storage_at(postgres_url) as storage:
        write_study(storage, f"dates {way} {style}", [frozen(0)])
        before = read_trials(postgres_url, study=f"dates {way} {style}").trials
        with storage.engine.begin() as connection:
            connection.exec_driver_sql(f"ALTER DATABASE {name} SET datestyle = '{style}'")
            connection.exec_driver_sql(f"ALTER DATABASE {name} SET extra_float_digits = 0")
        try:
            out = read_trials(postgres_url, study=f"dates {way} {style}")
        finally:
            with storage.engine.begin() as connection:
                connection.exec_driver_sql(f"ALTER DATABASE {name} RESET ALL")
    assert before[["start", "end"]].notna().all(axis=None)
    pd.testing.assert_frame_equal(out.trials, before)


@pytest.mark.slow
def test_a_server_that_knows_no_arrays_is_read_as_text(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failed question does not end the transaction, whichever it is; nor is it asked again in halves."""
    asked = []
    monkeypatch.setattr(postgres_columns, "_cells", lambda *given: asked.append(given) or "no_such_function(1)")
    monkeypatch.setattr(server_stretches, "_whole", lambda between, *stretch: [between(*stretch)])
    with storage_at(postgres_url) as storage:
        write_study(storage, "no arrays", [frozen(0)])
    assert len(read_trials(postgres_url, study="no arrays").reports) == 2 and asked
    monkeypatch.setattr(server_stretches, "_stretches", lambda connection, *_: connection.exec_driver_sql("SELECT 1/0"))
    assert len(read_trials(postgres_url, study="no arrays").reports) == 2


def narrow(url: str, patch: pytest.MonkeyPatch) -> None:
    """Let the server refuse (PostgreSQL makes no value of more than 1 GB) or cut more than a few rows at once."""
    if url.startswith("mysql"):
        patch.setattr(mysql_columns, "ANSWER_BYTES", 9000)
        return
    answer = postgres_columns._answer
    refuse = "SELECT CASE WHEN COUNT(*) > 5 THEN 1 / (COUNT(*) - COUNT(*)) ELSE COUNT(*) END,"
    patch.setattr(postgres_columns, "_answer", lambda at, sql: answer(at, sql.replace("SELECT COUNT(*),", refuse, 1)))


@pytest.mark.slow
def test_an_answer_too_long_for_the_server_is_asked_for_in_halves(
    url: str, as_they_are: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with storage_at(url) as storage:
        write_study(storage, "halves", [frozen(i, user_attrs={"long": "é" * (100 * i)}) for i in range(8)])
    whole = read_trials(url, study="halves")
    narrow(url, monkeypatch)
    halves = read_trials(url, study="halves")
    assert whole.trials["user_attrs.long"].str.len().tolist() == [100 * i for i in range(8)]
    pd.testing.assert_frame_equal(whole.trials, halves.trials)
    pd.testing.assert_frame_equal(whole.reports, halves.reports)
    assert as_they_are.count("trial_user_attributes") == 2


@pytest.mark.slow
def test_keys_far_apart_are_not_asked_for_one_by_one(mysql_url: str, as_they_are: list[str]) -> None:
    with storage_at(mysql_url) as storage:
        study = write_study(storage, "gap", [frozen(0)])
        with storage.engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE trials AUTO_INCREMENT = 2000000000")
        study.add_trial(frozen(1))
        with storage.engine.connect() as connection:
            found = connection.exec_driver_sql("SELECT MAX(trial_id) FROM trial_params").scalar()
    assert found >= 2_000_000_000
    out = read_trials(mysql_url)
    assert out.trials["trial"][out.trials["study"] == "gap"].tolist() == [0, 1]
    assert (out.reports["study"] == "gap").sum() == 4


@pytest.mark.slow
def test_a_url_that_names_no_driver_finds_one(url: str) -> None:
    with storage_at(url) as storage:
        write_study(storage, "plain", [frozen(0)])
    plain = url.replace("+psycopg", "").replace("+pymysql", "")
    assert len(read_trials(plain, study="plain").trials) == 1


@pytest.mark.slow
def test_a_password_is_never_shown(url: str) -> None:
    with storage_at(url) as storage:
        write_study(storage, "secret", [frozen(0)])
    wrong = url.replace("root@", "nobody:hunter2@")
    with pytest.raises(InputError, match=r"nobody:\*\*\*@.*cannot be read") as caught:
        read_trials(wrong)
    assert "hunter2" not in repr(caught.value)
    # PostgreSQL trusts this machine, so any password opens it.
    if url.startswith("postgresql"):
        out = read_trials(url.replace("root@", "root:hunter2@"), study="secret")
        assert "hunter2" not in repr((out.studies.to_dict(), out.notes, out.problems))
        assert "root:***@" in out.studies["source"][0]


def test_a_database_without_optuna_is_said(url: str) -> None:
    other = url.rpartition("/")[0] + ("/postgres" if url.startswith("postgresql") else "/mysql")
    with pytest.raises(InputError, match=r"has no Optuna tables \(trials, studies\)"):
        read_trials(other)


def test_the_transaction_is_read_only_and_sees_one_state(url: str) -> None:
    with storage_at(url) as storage:
        write_study(storage, "steady", [frozen(0)])
        with optuna_server._connect(sqlalchemy.make_url(url)) as connection:
            count = "SELECT count(*) FROM trials"
            before = connection.exec_driver_sql(count).scalar()
            optuna.load_study(study_name="steady", storage=storage).add_trial(frozen(1))
            assert connection.exec_driver_sql(count).scalar() == before
            with pytest.raises(sqlalchemy.exc.SQLAlchemyError, match=r"(?i)read.only"):
                connection.exec_driver_sql("DELETE FROM trials")


@pytest.mark.slow
def test_a_writer_at_work(url: str) -> None:
    with storage_at(url) as storage:
        study = write_study(storage, "busy", [frozen(0)])
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                study.add_trial(frozen(1))

        writer = threading.Thread(target=work)
        writer.start()
        try:
            for _ in range(5):
                out = read_trials(url, study="busy")
                assert (out.reports.groupby("trial").size() == 2).all()
                assert out.reports["trial"].nunique() == len(out.trials)
                assert out.trials["value"].notna().all() and out.trials["params.lr"].notna().all()
        finally:
            stop.set()
            writer.join()


@pytest.fixture
def redis_journal(redis_prefix: tuple[str, str]) -> Callable[[str], JournalStorage]:
    def make(prefix: str = "") -> JournalStorage:
        with pytest.warns(ExperimentalWarning):
            return JournalStorage(JournalRedisBackend(redis_prefix[0], prefix=redis_prefix[1] + prefix))

    return make


def test_redis(redis_prefix: tuple[str, str], redis_journal: Callable[..., JournalStorage]) -> None:
    url, prefix = redis_prefix
    write_study(redis_journal(), "one", TRIALS)
    out = read_trials(f"{url}?prefix={prefix}")
    trials, reports = expected()
    assert out.reader == "optuna-redis"
    pd.testing.assert_frame_equal(out.trials.drop(columns=["study", "worker"]), trials)
    pd.testing.assert_frame_equal(out.reports.drop(columns="study"), reports)
    assert out.studies["source"].tolist() == [f"{url}?prefix={prefix}"]
    with pytest.raises(StudyNotFound, match="it has 'one'"):
        read_trials(f"{url}?prefix={prefix}", study="two")


def test_redis_without_the_journal_asked_for(
    redis_prefix: tuple[str, str], redis_journal: Callable[..., JournalStorage]
) -> None:
    url, prefix = redis_prefix
    for part in ("a", "b"):
        write_study(redis_journal(part), "s")
    with pytest.raises(InputError, match=f"no single journal; prefixes found: .*'{prefix}a', '{prefix}b'"):
        read_trials(url)
    with pytest.raises(InputError, match=f"no journal with prefix '{prefix}c'"):
        read_trials(f"{url}?prefix={prefix}c")


def test_redis_with_a_damaged_entry(
    redis_prefix: tuple[str, str], redis_journal: Callable[..., JournalStorage]
) -> None:
    import redis

    url, prefix = redis_prefix
    write_study(redis_journal(), "s", [frozen(0), frozen(1)])
    server = redis.Redis.from_url(url)
    server.set(f"{prefix}:log:1", b"{")
    server.close()
    out = read_trials(f"{url}?prefix={prefix}")
    assert len(out.trials) == 1
    assert [(p.kind, p.count, p.lost) for p in out.problems] == [("journal entry that is missing or damaged", 1, True)]
    assert np.isfinite(out.trials["value"]).all()
