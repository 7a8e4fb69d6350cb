"""A Study, wherever it lies, and a list of FrozenTrial."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from datetime import UTC
from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest
from handmade_studies import frozen, sqlite_study, write_study
from optuna.storages import InMemoryStorage, RDBStorage

from gpudiag.errors import StudyNotFound
from gpudiag.load import load_run
from gpudiag.readers._io.source import Source
from gpudiag.readers.trials import optuna_sqlite, read_trials
from gpudiag.timezones import machine_zone

STATES = ("COMPLETE", "PRUNED", "FAIL", "RUNNING", "WAITING")


def test_a_study_in_memory() -> None:
    study = write_study(InMemoryStorage(), "s", [frozen(i, state) for i, state in enumerate(STATES)], ["maximize"])
    out = read_trials(study, timezone="Pacific/Apia")
    assert out.trials["state"].tolist() == list(STATES)
    assert out.studies[["study", "directions"]].to_numpy().tolist() == [["s", "MAXIMIZE"]]
    # Optuna gives naive timestamps of this machine; the zone of the run's files has no say.
    theirs = pd.Timestamp(study.trials[0].datetime_start).tz_localize(machine_zone())
    assert out.trials["start"][0] == theirs
    with pytest.raises(StudyNotFound, match="the Study object: has no study 'x'; it has 's'"):
        read_trials(study, study="x")


def test_a_list_of_frozen_trials() -> None:
    trials = [frozen(0), frozen(1, value=None, values=[1.0, 2.0], intermediate_values={})]
    out = read_trials(trials[:1], study="mine")
    assert out.trials[["study", "value"]].to_numpy().tolist() == [["mine", 1.0]]
    assert out.studies["directions"].tolist() == [""]
    two = read_trials(trials[1:])
    assert two.trials[["value_0", "value_1"]].to_numpy().tolist() == [[1.0, 2.0]]


def test_an_attribute_that_json_does_not_know() -> None:
    study = write_study(InMemoryStorage(), "s")
    study.optimize(lambda trial: trial.set_user_attr("array", np.float32(2)) or 1.0, n_trials=1)
    assert read_trials(study).trials["user_attrs.array"].tolist() == ["2.0"]


@pytest.mark.parametrize("large", [False, True])
def test_a_study_in_a_file_is_read_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool) -> None:
    """With the timestamps as they were written, only the Study asked for, and only through SQLite."""
    monkeypatch.setattr(optuna_sqlite, "LARGE_BYTES", 0 if large else 1 << 30)
    path = sqlite_study(tmp_path / "o.db", frozen(0))
    sqlite_study(path, frozen(0), frozen(1), name="other")
    storage = RDBStorage(f"sqlite:///{path}")
    study = optuna.load_study(study_name="other", storage=storage)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the file was opened past SQLite")

    monkeypatch.setattr(Path, "open", refuse)
    out = read_trials(study)
    assert out.reader == "optuna-sqlite"
    assert out.trials["study"].tolist() == ["other", "other"]
    started = study.trials[0].datetime_start.astimezone(UTC)
    assert out.trials["start"][0] == pd.Timestamp(started)
    storage.engine.dispose()


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("given", ["the study", "its path", "its URL", "the hash of its file", "a run"])
def test_the_locks_of_a_study_in_use_survive_the_reading(
    given: str, large: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process must still be kept out while this one holds a write lock and reads."""
    monkeypatch.setattr(optuna_sqlite, "LARGE_BYTES", 0 if large else 1 << 30)
    path = sqlite_study(tmp_path / "o.db", frozen(0))
    storage = RDBStorage(f"sqlite:///{path}")
    study = optuna.load_study(study_name="s", storage=storage)
    with storage.engine.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        if given == "the hash of its file":
            assert Source.open(path).sha256() == hashlib.sha256(subprocess.check_output(["cat", path])).hexdigest()
        elif given == "a run":
            assert len(load_run(tmp_path).trials) == 1
        else:
            source = {"the study": study, "its path": path, "its URL": f"sqlite:///{path}"}[given]
            assert len(read_trials(source).trials) == 1
        script = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('BEGIN IMMEDIATE')"
        other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert "database is locked" in other.stderr
    storage.engine.dispose()
