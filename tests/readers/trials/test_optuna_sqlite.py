"""Optuna studies in SQLite files: what is read, from every schema, without a trace and around damage."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from handmade_studies import CHOICES, T0, execute, frozen, old_schema, set_created_by, sqlite_study, write_study

from gpudiag._load.intake import take
from gpudiag.errors import InputError, StudyNotFound, UnknownInput
from gpudiag.readers._io import sqlite_database, sqlite_file
from gpudiag.readers._io.source import Source
from gpudiag.readers._studies.optuna_rdb import KNOWN, NEWEST
from gpudiag.readers._studies.trial_rows import NUMBER_TWICE
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.readers.trials import optuna_sqlite, read_trials

STATES = ("COMPLETE", "PRUNED", "FAIL", "RUNNING", "WAITING")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """One trial of every state."""
    return sqlite_study(tmp_path / "optuna.db", *(frozen(i, state) for i, state in enumerate(STATES)))


def fingerprint(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Every file of a folder: content, time of change and size."""
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns, path.stat().st_size)
        for path in folder.iterdir()
    }


def test_states_values_times_and_parameters(study: Path) -> None:
    out = read_trials(study, timezone="UTC")
    trials = out.trials
    assert out.reader == "optuna-sqlite"
    assert trials["state"].tolist() == list(STATES)
    assert trials["trial"].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(trials["value"], [1.0, 0.5, np.nan, np.nan, np.nan])
    assert trials["params.lr"].tolist() == [0.1 / (i + 1) for i in range(5)]
    assert trials["params.layers"].tolist() == [1, 2, 3, 4, 5]
    assert trials["params.layers"].dtype == "int64"
    assert trials["params.optimizer"].tolist() == list(CHOICES[:5])
    np.testing.assert_array_equal(trials["params.momentum"], [np.nan, 0.5, np.nan, 0.5, np.nan])
    assert out.reports[["trial", "step", "value"]].to_numpy().tolist() == [
        [0, 0, 1],
        [0, 1, 0.5],
        [1, 0, 1],
        [1, 1, 0.5],
    ]
    assert out.studies[["study", "directions", "clock"]].to_numpy().tolist() == [["s", "MINIMIZE", "utc"]]
    assert pd.isna(trials["start"][4]) and trials["end"].isna().tolist() == [False, False, False, True, True]
    assert (trials["end"] - trials["start"])[0].total_seconds() == 60


def test_infinite_and_undefined_values(tmp_path: Path) -> None:
    path = sqlite_study(
        tmp_path / "o.db",
        frozen(0, value=float("inf"), intermediate_values={0: float("nan"), 1: float("-inf"), 2: 3.0, 3: float("inf")}),
        frozen(1, value=float("-inf")),
    )
    out = read_trials(path)
    assert out.trials["value"].tolist() == [np.inf, -np.inf]
    np.testing.assert_array_equal(out.reports["value"][:4], [np.nan, -np.inf, 3.0, np.inf])


def test_two_objectives(tmp_path: Path) -> None:
    trial = frozen(0, value=None, values=[1.0, 2.0], intermediate_values={})
    path = sqlite_study(tmp_path / "o.db", trial, directions=["minimize", "maximize"])
    sqlite_study(path, frozen(0), name="one")
    out = read_trials(path)
    assert out.studies["directions"].tolist() == ["MINIMIZE,MAXIMIZE", "MINIMIZE"]
    np.testing.assert_array_equal(out.trials[["value", "value_0", "value_1"]], [[np.nan, 1, 2], [1, np.nan, np.nan]])
    assert "value" not in read_trials(path, study="s").trials


def test_of_other_studies_those_that_may_have_run_meanwhile_are_read_as_well(tmp_path: Path) -> None:
    path = sqlite_study(tmp_path / "o.db", frozen(0))
    sqlite_study(path, frozen(3), name="meanwhile")
    sqlite_study(path, frozen(3 * 24 * 60), name="days later")
    options = ReadOptions(UTC, study="s", beside=True)
    assert set(optuna_sqlite.read(Source.open(path), options).trials["study"]) == {"s", "meanwhile"}
    taken = take(path, options)
    assert isinstance(taken.data, Trials) and set(taken.data.trials["study"]) == {"s"} and taken.record.rows == 1
    assert [list(one.trials["study"]) for one in taken.data.beside] == [["meanwhile"]]


def test_attributes_are_columns_and_containers_stay_json(tmp_path: Path) -> None:
    attrs = {"acc": 0.5, "n": 3, "ok": True, "note": "fine", "shape": [1, 2], "cfg": {"a": None}}
    path = sqlite_study(tmp_path / "o.db", frozen(0, user_attrs=attrs, system_attrs={"rung": 1}), frozen(1))
    trials = read_trials(path).trials
    assert trials["user_attrs.acc"].dropna().tolist() == [0.5]
    assert trials["user_attrs.ok"][0] and pd.isna(trials["user_attrs.ok"][1])
    assert trials["user_attrs.note"][0] == "fine"
    assert json.loads(trials["user_attrs.shape"][0]) == [1, 2]
    assert json.loads(trials["user_attrs.cfg"][0]) == {"a": None}
    assert trials["system_attrs.rung"][0] == 1


@pytest.mark.slow
def test_a_study_that_is_not_there_is_named_with_those_that_are(study: Path) -> None:
    write_study(f"sqlite:///{study}", "search-2")
    with pytest.raises(
        StudyNotFound, match=r"has no study 'search2' \(did you mean 'search-2'\?\); it has 's', 'search-2'"
    ):
        read_trials(study, study="search2")
    assert len(read_trials(study, study="s").trials) == 5
    assert read_trials(study, study="search-2").trials.empty


@pytest.mark.parametrize("large", [False, True])
def test_reading_leaves_no_trace(study: Path, monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    monkeypatch.setattr(optuna_sqlite, "LARGE_BYTES", 0 if large else 1 << 30)
    before = fingerprint(study.parent)
    assert len(read_trials(study).trials) == 5
    assert fingerprint(study.parent) == before


@pytest.mark.slow
def test_both_ways_to_read_a_file_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attrs = {"a": 1, "b": "x", "c": [1]}
    values = {0: float("nan"), 1: float("inf"), 2: 2.0}
    trials = [frozen(i, state, user_attrs=attrs) for i, state in enumerate(STATES)]
    trials.append(frozen(5, intermediate_values=values))
    path = sqlite_study(tmp_path / "o.db", *trials)
    rows = read_trials(path)
    monkeypatch.setattr(optuna_sqlite, "LARGE_BYTES", 0)
    # A silent way back to the row-by-row reader would hide that the fast one broke.
    monkeypatch.setattr(optuna_sqlite, "open_readonly", None)
    columns = read_trials(path)
    for one, other in ((rows.trials, columns.trials), (rows.reports, columns.reports), (rows.studies, columns.studies)):
        pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize(
    ("mode", "in_use", "wanted"),
    [("DELETE", False, "bytes, locked"), ("WAL", False, "pages"), ("DELETE", True, "pages")],
)
def test_a_large_file_is_copied_by_its_bytes_under_the_lock_of_a_reader(
    mode: str, in_use: bool, wanted: str, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But page by page by SQLite where a log may hold a part of it, or this very process has it open."""
    monkeypatch.setattr(optuna_sqlite, "LARGE_BYTES", 0)
    copied: list[str] = []
    by_bytes, by_pages = shutil.copyfileobj, sqlite_file._back_up
    script = f"import sqlite3; sqlite3.connect({str(study)!r}, timeout=0).execute('BEGIN EXCLUSIVE')"

    def bytewise(*given: Any) -> None:
        by_bytes(*given)
        other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        copied.append("bytes, locked" if "database is locked" in other.stderr else "bytes")

    monkeypatch.setattr(sqlite_file.shutil, "copyfileobj", bytewise)
    monkeypatch.setattr(sqlite_file, "_back_up", lambda *given: copied.append("pages") or by_pages(*given))
    with closing(sqlite3.connect(study)) as writer:
        writer.execute(f"PRAGMA journal_mode={mode}")
        writer.execute("UPDATE trials SET state = 'FAIL' WHERE number = 3")
        writer.commit()
        if not in_use:
            writer.close()
        assert read_trials(study).trials["state"][3] == "FAIL"
    assert copied == [wanted]


def test_what_a_fast_reading_met_before_it_failed_is_counted_once(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optuna_sqlite, "LARGE_BYTES", 0)
    execute(
        study,
        "UPDATE trials SET datetime_start = 'soon' WHERE number = 1",
        "UPDATE trial_params SET param_value = 'high' WHERE trial_id = 1",
    )
    assert [(p.kind, p.count) for p in read_trials(study).problems] == [("timestamp that is no date", 1)]


def test_one_study_in_order_is_not_grouped_by_study(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fleet has many small studies, and grouping takes pandas longer than reading a few trials."""
    grouped: list[str] = []
    group = pd.DataFrame.groupby
    monkeypatch.setattr(
        pd.DataFrame, "groupby", lambda table, by, **more: grouped.append(by) or group(table, by, **more)
    )
    assert len(read_trials(study).trials) == 5
    assert grouped == []
    write_study(f"sqlite:///{study}", "other", [frozen(0)])
    out = read_trials(study)
    assert grouped == ["study_id"]
    assert out.trials["trial"].tolist() == [0, 1, 2, 3, 4, 0]


def test_directions_of_a_damaged_study_are_unknown(study: Path) -> None:
    execute(study, *HALF_KNOWN)
    out = read_trials(study)
    assert out.studies["directions"].tolist() == [""] and len(out.trials) == 5


HALF_KNOWN = (
    "ALTER TABLE study_directions RENAME TO constrained",
    "CREATE TABLE study_directions AS SELECT study_id, objective, NULL AS direction FROM constrained",
)


def test_text_that_repeats_does_not_keep_what_the_driver_made() -> None:
    batch = pa.RecordBatch.from_pydict({"id": [1, 2, 3], "name": ["a", "b", "a"]})
    made = sqlite_database._encoded(batch, [1])
    assert made.column(1).to_pylist() == ["a", "b", "a"] and len(made.column(1).dictionary) == 2
    assert made.column(0).equals(batch.column(0))
    assert made.column(0).buffers()[1].address != batch.column(0).buffers()[1].address


def test_a_wal_file_that_nobody_uses_stays_alone(study: Path) -> None:
    with closing(sqlite3.connect(study)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    before = fingerprint(study.parent)
    assert set(before) == {"optuna.db"}
    assert len(read_trials(study).trials) == 5
    assert fingerprint(study.parent) == before


@pytest.mark.parametrize("large", [False, True])
def test_a_wal_in_use_is_read_with_what_is_only_in_the_log(
    study: Path, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    monkeypatch.setattr(optuna_sqlite, "LARGE_BYTES", 0 if large else 1 << 30)
    with closing(sqlite3.connect(study)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("UPDATE trials SET state = 'FAIL' WHERE number = 3")
        writer.commit()
        before = {name: seen for name, seen in fingerprint(study.parent).items() if not name.endswith("-shm")}
        assert read_trials(study).trials["state"][3] == "FAIL"
        assert {name: seen for name, seen in fingerprint(study.parent).items() if not name.endswith("-shm")} == before


def test_a_file_that_stays_locked_is_one_sentence(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_S", 0.1)
    with closing(sqlite3.connect(study, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match=r"another process has kept it locked for 10 s; try again later"):
            read_trials(study)


def test_a_name_with_odd_characters(study: Path) -> None:
    path = study.rename(study.parent / "100% of #1?.db")
    assert len(read_trials(path).trials) == 5


def test_a_log_left_by_a_crash_is_replayed_in_a_copy(study: Path, tmp_path: Path) -> None:
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    with closing(sqlite3.connect(study)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("UPDATE trials SET state = 'FAIL' WHERE number = 3")
        writer.commit()
        for suffix in ("", "-wal"):
            (crashed / f"o.db{suffix}").write_bytes((study.parent / f"optuna.db{suffix}").read_bytes())
    before = fingerprint(crashed)
    assert read_trials(crashed / "o.db").trials["state"][3] == "FAIL"
    assert fingerprint(crashed) == before


def test_a_journal_left_by_a_crash_is_rolled_back_in_a_copy(study: Path, tmp_path: Path) -> None:
    """The writer is killed in the middle of a transaction whose pages are in the file already."""
    script = f"""
import os, sqlite3
connection = sqlite3.connect({str(study)!r})
connection.execute("PRAGMA cache_size=1")
connection.execute("BEGIN")
connection.execute("UPDATE trials SET state = 'FAIL'")
connection.execute("CREATE TABLE filler (blob)")
connection.executemany("INSERT INTO filler VALUES (?)", [(os.urandom(99),) for _ in range(9999)])
os._exit(9)
"""
    subprocess.run([sys.executable, "-c", script], check=False)
    assert (study.parent / "optuna.db-journal").stat().st_size > 0
    before = fingerprint(study.parent)
    assert read_trials(study).trials["state"].tolist() == list(STATES)
    assert fingerprint(study.parent) == before


def test_a_read_only_folder(study: Path) -> None:
    study.chmod(0o444)
    study.parent.chmod(0o555)
    try:
        assert len(read_trials(study).trials) == 5
    finally:
        study.parent.chmod(0o755)


WRITER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
connection.execute("PRAGMA synchronous=OFF")
longest, number = 0.0, 1000
end = time.monotonic() + 1.5
print("ready", flush=True)
while time.monotonic() < end:
    began = time.monotonic()
    connection.execute("BEGIN IMMEDIATE")
    trial = connection.execute("INSERT INTO trials (number, study_id, state) VALUES (?, 1, 'RUNNING')", (number,))
    rows = [(trial.lastrowid, step) for step in range(5)]
    connection.executemany("INSERT INTO trial_intermediate_values VALUES (NULL, ?, ?, 1.0, 'FINITE')", rows)
    connection.execute("COMMIT")
    longest, number = max(longest, time.monotonic() - began), number + 1
    time.sleep(0.002)
print(longest, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
def test_a_writer_at_work_is_not_locked_out_and_one_state_is_seen(
    study: Path, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    monkeypatch.setattr(optuna_sqlite, "LARGE_BYTES", 0 if large else 1 << 30)
    with subprocess.Popen([sys.executable, "-c", WRITER, str(study)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
        seen = []
        end = time.monotonic() + 1
        while time.monotonic() < end:
            out = read_trials(study)
            steps = out.reports[out.reports["trial"] >= 1000].groupby("trial").size()
            assert (steps == 5).all()
            assert len(steps) == (out.trials["trial"] >= 1000).sum()
            seen.append(len(out.trials))
        longest = float(writer.stdout.readline())
    assert seen[-1] > seen[0]
    assert longest < 1.0


@pytest.mark.parametrize("revision", [*KNOWN, NEWEST])
def test_every_schema(tmp_path: Path, revision: str) -> None:
    path = old_schema(tmp_path / "old.db", revision)
    assert optuna_sqlite.recognises(Source.open(path))
    out = read_trials(path, timezone="Asia/Taipei")
    trials = out.trials
    assert out.studies[["study", "directions"]].to_numpy().tolist() == [["old", "MAXIMIZE"]]
    assert trials[["trial", "state", "value"]].to_numpy().tolist() == [[0, "COMPLETE", 0.5], [1, "PRUNED", 0.25]]
    assert trials["start"][0] == pd.Timestamp("2020-05-01T02:00:00.25Z")
    assert trials["params.x"].tolist() == [0.25, 0.5]
    assert trials["params.n"].tolist() == [3, 4]
    assert trials["params.c"][0] == "b" and pd.isna(trials["params.c"][1])
    assert out.reports[["trial", "step", "value"]].to_numpy().tolist() == [[0, 0, 1.5], [0, 1, 0.5], [1, 0, 0.25]]
    assert out.studies["clock"].tolist() == ["local"]
    assert "Asia/Taipei" in out.notes[0] and "assumed" in out.notes[0]
    assert out.problems == ()


def test_numbers_of_the_oldest_schemas_come_from_the_attribute(tmp_path: Path) -> None:
    path = old_schema(tmp_path / "old.db", "v1.2.0.a")
    execute(path, "UPDATE trial_system_attributes SET value_json = CASE value_json WHEN '0' THEN '1' ELSE '0' END")
    assert read_trials(path).trials["state"].tolist() == ["PRUNED", "COMPLETE"]


def test_the_stand_in_for_infinity_of_old_schemas(tmp_path: Path) -> None:
    path = old_schema(tmp_path / "old.db", "v2.4.0.a")
    execute(path, f"UPDATE trial_values SET value = {np.finfo(np.float32).max} WHERE trial_id = 1")
    execute(path, f"UPDATE trial_intermediate_values SET intermediate_value = {np.finfo(np.float32).min} WHERE id = 3")
    out = read_trials(path)
    assert out.trials["value"].tolist() == [np.inf, 0.25]
    assert out.reports["value"].tolist() == [1.5, 0.5, -np.inf]


def test_an_unknown_revision_with_the_same_tables_is_read_and_noted(study: Path) -> None:
    execute(study, "UPDATE alembic_version SET version_num = 'v9.0.0.a'")
    out = read_trials(study)
    assert len(out.trials) == 5
    assert any("schema revision v9.0.0.a is none that gpudiag knows; read like v3.2.0.a" in note for note in out.notes)


def test_an_unknown_revision_with_other_tables_is_one_sentence(study: Path) -> None:
    execute(
        study, "UPDATE alembic_version SET version_num = 'v9.0.0.a'", "ALTER TABLE trials RENAME COLUMN state TO status"
    )
    with pytest.raises(InputError, match=r"table trials lacks state \(schema revision v9.0.0.a; known are v0.9.0.a to"):
        read_trials(study)


def test_databases_of_others_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    execute(
        path, "CREATE TABLE alembic_version (version_num TEXT)", "CREATE TABLE experiments (a)", "CREATE TABLE runs (a)"
    )
    with pytest.raises(UnknownInput, match="SQLite database without Optuna's tables"):
        read_trials(path)


def test_the_first_pages_are_enough_to_recognise_a_wal_never_checkpointed(tmp_path: Path) -> None:
    path = tmp_path / "o.db"
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.executescript("CREATE TABLE trials (a); CREATE TABLE studies (a);")
        assert optuna_sqlite.recognises(Source.open(path))


def big_study(path: Path, trials: int = 400) -> Path:
    """A file of many pages, so that damage hits data."""
    sqlite_study(path)
    rows = ", ".join(
        f"({i + 1}, {i}, 1, 'COMPLETE', '2025-10-24 12:00:00', '2025-10-24 12:01:00')" for i in range(trials)
    )
    steps = ", ".join(f"({i * 20 + s + 1}, {i + 1}, {s}, {s}.5, 'FINITE')" for i in range(trials) for s in range(20))
    execute(path, f"INSERT INTO trials VALUES {rows}", f"INSERT INTO trial_intermediate_values VALUES {steps}")
    return path


@pytest.mark.parametrize("large", [False, True])
def test_a_cut_file_keeps_what_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    monkeypatch.setattr(optuna_sqlite, "LARGE_BYTES", 0 if large else 1 << 30)
    path = big_study(tmp_path / "o.db")
    os.truncate(path, path.stat().st_size * 3 // 4)
    out = read_trials(path)
    assert len(out.trials) == 400
    assert 0 < len(out.reports) < 8000
    found = {problem.kind: problem for problem in out.problems}
    assert found["incomplete: part of a table cannot be read"].lost
    assert "trial_intermediate_values" in found["incomplete: part of a table cannot be read"].example


def test_a_damaged_page_costs_its_own_rows_only(tmp_path: Path) -> None:
    path = big_study(tmp_path / "o.db")
    with closing(sqlite3.connect(path)) as connection:
        pages = (
            connection.execute(
                "SELECT pageno FROM dbstat WHERE name = 'trial_intermediate_values' AND pagetype = 'leaf' ORDER BY path"
            ).fetchall()
            if _has_dbstat(connection)
            else []
        )
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    if not pages:
        pytest.skip("this SQLite has no dbstat")
    with path.open("r+b") as raw:
        raw.seek((pages[len(pages) // 2][0] - 1) * size)
        raw.write(b"\xff" * size)
    out = read_trials(path)
    assert 8000 - 400 < len(out.reports) < 8000
    assert out.reports["trial"].max() == 399
    assert not out.reports.duplicated(["trial", "step"]).any()


def _has_dbstat(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT count(*) FROM dbstat").fetchone()
    except sqlite3.OperationalError:
        return False
    return True


def test_garbage_behind_the_header_is_one_sentence(tmp_path: Path, study: Path) -> None:
    whole = study.read_bytes()
    path = tmp_path / "broken.db"
    path.write_bytes(whole[:16] + b"\0" * 84 + whole[100:])
    with pytest.raises(InputError) as caught:
        read_trials(path)
    assert "broken.db" in str(caught.value) and "\n" not in str(caught.value)


def test_rows_that_make_no_sense_are_counted(study: Path) -> None:
    execute(
        study,
        "UPDATE trials SET state = 'DREAMING' WHERE number = 0",
        "UPDATE trials SET datetime_start = 'yesterday' WHERE number = 1",
        "UPDATE trial_params SET distribution_json = '{' WHERE trial_id = 3",
        "INSERT INTO trial_user_attributes VALUES (99, 2, 'k', 'not json')",
        "INSERT INTO trials VALUES (99, 2, 1, 'FAIL', NULL, NULL)",
    )
    out = read_trials(study)
    kinds = {problem.kind: problem.count for problem in out.problems}
    assert kinds == {
        "timestamp that is no date": 1,
        "trial without a study, an id, a number or a known state": 1,
        NUMBER_TWICE: 1,
        "parameter of unknown distribution": 3,
        "attribute that is not JSON, kept as text": 1,
    }
    assert out.trials["trial"].tolist() == [1, 2, 3, 4]
    assert out.reports["trial"].tolist() == [1, 1]


@pytest.mark.parametrize("large", [False, True])
def test_a_text_in_a_column_of_numbers_is_unknown(study: Path, monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    """SQLite keeps any value in any column; the fast reader then hands over to the patient one."""
    monkeypatch.setattr(optuna_sqlite, "LARGE_BYTES", 0 if large else 1 << 30)
    execute(
        study,
        "UPDATE trial_params SET param_value = 'high' WHERE trial_id = 1 AND param_name = 'lr'",
        "UPDATE trial_values SET value = 'good' WHERE trial_id = 2",
        "UPDATE trial_intermediate_values SET intermediate_value = 'bad' WHERE trial_id = 1 AND step = 0",
        "UPDATE trials SET number = 'five' WHERE number = 4",
    )
    out = read_trials(study)
    assert out.trials["trial"].tolist() == [0, 1, 2, 3, 4]
    assert pd.isna(out.trials["params.lr"][0]) and out.trials["params.lr"][1] == 0.05
    np.testing.assert_array_equal(out.trials["value"][:2], [1.0, np.nan])
    np.testing.assert_array_equal(out.reports["value"], [np.nan, 0.5, 1.0, 0.5])


def test_a_timestamp_with_a_zone_is_damage(study: Path) -> None:
    execute(study, "UPDATE trials SET datetime_start = '2025-10-24 12:00:00+05' WHERE number = 1")
    out = read_trials(study)
    assert [(p.kind, p.count) for p in out.problems] == [("timestamp that is no date", 1)]
    assert out.trials["start"].isna().tolist() == [False, True, False, False, True]


@pytest.mark.slow
def test_secrets_stay_in_their_column(tmp_path: Path) -> None:
    path = sqlite_study(tmp_path / "o.db", frozen(0, user_attrs={"token": "hunter2-secret"}))
    execute(path, "UPDATE trial_user_attributes SET value_json = 'hunter2-secret'")
    out = read_trials(path)
    assert out.trials["user_attrs.token"].tolist() == ["hunter2-secret"]
    assert "hunter2" not in repr((out.notes, out.problems, out.studies.to_dict()))


def test_files_of_optuna_4_are_local_and_of_5_utc(study: Path) -> None:
    with closing(sqlite3.connect(study)) as connection:
        stored = connection.execute("SELECT datetime_start FROM trials WHERE number = 0").fetchone()[0]
    assert read_trials(study, timezone="Asia/Taipei").trials["start"][0] == pd.Timestamp(stored, tz="UTC")
    set_created_by(study, "4.9.0")
    out = read_trials(study, timezone="Asia/Taipei")
    assert out.trials["start"][0] == pd.Timestamp(stored, tz="Asia/Taipei").tz_convert("UTC")
    assert "Optuna 4.9.0 created the storage" in out.notes[0]
    assert T0.microsecond == out.trials["start"][0].microsecond


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are listed on Linux only")
@pytest.mark.parametrize("large", [False, True])
def test_nothing_stays_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    """pytest cannot tell: warnings of unclosed databases are ignored, because Optuna gives them."""
    study = tmp_path / "kept.db"
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    sqlite_study(folder / "made.db", frozen(0, "COMPLETE"))
    study.write_bytes((folder / "made.db").read_bytes())
    monkeypatch.setattr(optuna_sqlite, "LARGE_BYTES", 0 if large else 1 << 30)
    read_trials(study, timezone="UTC")
    held = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert not [name for name in held if "kept.db" in name or "copy.db" in name]
