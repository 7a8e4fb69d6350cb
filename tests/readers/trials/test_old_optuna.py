"""Studies that old Optunas wrote, recorded, against what they read from them: tests/recorded/old_optuna/record.py."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpudiag.readers.trials import read_trials
from gpudiag.timezones import parse_zone

RECORDED = Path(__file__).parents[2] / "recorded" / "old_optuna"
ZONE = "Asia/Taipei"  # no summer time
VERSIONS = ("2.10.1", "3.1.1")


def as_read(version: str, storage: str, url: str) -> None:
    """Everything that this Optuna read from its storage is what we read."""
    out = read_trials(url, study="old", timezone=ZONE)
    assert out.problems == ()
    assert out.studies[["directions", "clock"]].to_numpy().tolist() == [["MAXIMIZE", "local"]]
    assert any(f"Optuna {version} created the storage" in note for note in out.notes)
    same(out.trials, pd.read_csv(RECORDED / version / f"{storage}.csv", keep_default_na=False, dtype=str))
    told = json.loads((RECORDED / version / f"{storage}.json").read_text())
    assert out.reports[["trial", "step", "value"]].to_numpy().tolist() == sorted(told)
    assert np.isinf(out.reports["value"]).sum() == (storage != "mysql")


def statements(version: str, storage: str) -> Iterator[str]:
    """One after the other: none of these has a semicolon at the end of a line within it."""
    yield from filter(None, (RECORDED / version / f"{storage}.sql").read_text(encoding="utf-8").split(";\n"))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_of_an_old_optuna_reads_as_it_reads_it(version: str, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "o.db") as database:
        database.executescript((RECORDED / version / "sqlite.sql").read_text(encoding="utf-8"))
    database.close()
    as_read(version, "sqlite", f"sqlite:///{tmp_path / 'o.db'}")


@pytest.mark.slow
@pytest.mark.server
@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_of_an_old_optuna_reads_as_it_reads_it(version: str, fresh_server_urls: tuple[str, str]) -> None:
    import sqlalchemy

    before = {"postgres": [], "mysql": ["SET FOREIGN_KEY_CHECKS = 0"]}  # tables come in the order of their names
    for (storage, first), url in zip(before.items(), fresh_server_urls, strict=True):
        engine = sqlalchemy.create_engine(url)
        with engine.begin() as connection:
            for statement in (*first, *statements(version, storage)):
                connection.exec_driver_sql(statement.replace("%", "%%"))
        engine.dispose()
        as_read(version, storage, url)


def same(ours: pd.DataFrame, theirs: pd.DataFrame) -> None:
    """Every cell of the old Optuna's own frame, floats to the last bit."""
    assert set(theirs["state"]) == {"COMPLETE", "PRUNED", "FAIL"}
    assert ours["trial"].tolist() == theirs["number"].astype(int).tolist()
    assert ours["state"].tolist() == theirs["state"].tolist()
    for column, timestamp in (("start", "datetime_start"), ("end", "datetime_complete")):
        expected = (
            pd.to_datetime(theirs[timestamp], format="ISO8601").dt.tz_localize(parse_zone(ZONE)).dt.tz_convert("UTC")
        )
        assert (ours[column] == expected).all()
    for name in ("value", "params_lr", "params_depth", "params_momentum", "user_attrs_seconds"):
        numbers = ours[name.replace("_", ".", 1) if name != "user_attrs_seconds" else "user_attrs.seconds"]
        expected = [float(cell) if cell else np.nan for cell in theirs[name]]
        np.testing.assert_array_equal(numbers.to_numpy(dtype=float), expected)
    kinds = ["" if kind is None else str(kind) for kind in ours["params.optimizer"]]
    assert kinds == theirs["params_optimizer"].tolist()
