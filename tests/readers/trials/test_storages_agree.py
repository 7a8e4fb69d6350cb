"""Any study, written by Optuna to each storage and export, reads back the same from each."""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Iterator
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest
from drawn import few_of
from handmade_studies import sqlite_study, write_study
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalRedisBackend
from optuna.trial import FrozenTrial, TrialState, create_trial

from gpudiag.readers.base import Trials
from gpudiag.readers.trials import optuna_sqlite, read_trials

REAL = st.floats(allow_nan=False, width=64)
SPACE = {
    "lr": (FloatDistribution(1e-6, 1.0, log=True), st.floats(1e-6, 1.0)),
    "depth": (IntDistribution(1, 99), st.integers(1, 99)),
    "kind": (CategoricalDistribution(("adam", "sgd", "déjà vu")), st.sampled_from(("adam", "sgd", "déjà vu"))),
    "batch": (CategoricalDistribution((16, 32)), st.sampled_from((16, 32))),
}
# Where all times are midnight, pandas writes dates alone, which are no times.
MOMENT = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)).filter(lambda at: at.time() != time())


@st.composite
def trials(draw: st.DrawFn, objectives: int) -> FrozenTrial:
    """A trial of any state, with any subset of the parameters."""
    state = draw(st.sampled_from(list(TrialState)))
    names = draw(st.sets(st.sampled_from(sorted(SPACE))))
    values = [draw(REAL) for _ in range(objectives)]
    if state not in (TrialState.COMPLETE, TrialState.PRUNED) or (state == TrialState.PRUNED and objectives > 1):
        values = []
    steps = draw(st.dictionaries(st.integers(0, 2**31 - 1), st.floats(), max_size=4)) if objectives == 1 else {}
    trial = create_trial(
        state=state,
        params={name: draw(SPACE[name][1]) for name in names},
        distributions={name: SPACE[name][0] for name in names},
        intermediate_values={} if state == TrialState.WAITING else steps,
        user_attrs=draw(
            st.fixed_dictionaries({}, optional={"acc": REAL.filter(lambda x: abs(x) < 1e300), "tag": st.just("x")})
        ),
        values=values or None,
    )
    start = draw(MOMENT)
    trial.datetime_start = None if state == TrialState.WAITING else start
    if state.is_finished():
        trial.datetime_complete = start + timedelta(microseconds=draw(st.integers(0, 10**12)))
    return trial


STUDIES = st.integers(1, 2).flatmap(lambda n: st.tuples(st.just(n), st.lists(trials(n), min_size=1, max_size=6)))


def sources(folder: Path, study: optuna.Study, directions: list[str], found: list[FrozenTrial]) -> Iterator[Any]:
    """The study in every storage and export that needs no server."""
    yield sqlite_study(folder / "o.db", *found, directions=directions)
    journal = JournalStorage(JournalFileBackend(str(folder / "j.log")))
    write_study(journal, "s", found, directions)
    yield folder / "j.log"
    frame = study.trials_dataframe()
    frame.to_csv(folder / "t.csv")
    yield folder / "t.csv"
    frame.to_parquet(folder / "t.parquet")
    yield folder / "t.parquet"
    records = [
        {
            "number": trial.number,
            ("value" if len(directions) == 1 else "values"): trial.value
            if len(directions) == 1
            else trial.values or [],
            "datetime_start": trial.datetime_start and str(trial.datetime_start),
            "datetime_complete": trial.datetime_complete and str(trial.datetime_complete),
            "params": trial.params,
            "user_attrs": trial.user_attrs,
            "state": trial.state.name,
        }
        for trial in study.trials
    ]
    (folder / "t.json").write_text(json.dumps(records))
    yield folder / "t.json"


def same(ours: Trials, theirs: Trials, where: object, *, exported: bool) -> None:
    left = ours.trials.drop(columns="worker", errors="ignore")
    right = theirs.trials
    if exported:
        # An export has no column for what no trial has, and a duration where times are known is not stated.
        left = left.reindex(columns=right.columns)
    pd.testing.assert_frame_equal(left, right, check_like=True, check_dtype=not exported, obj=str(where))
    if not exported:
        pd.testing.assert_frame_equal(ours.reports, theirs.reports, obj=str(where))
        assert ours.studies["directions"].tolist() == theirs.studies["directions"].tolist()
    assert ours.problems == ()


@pytest.mark.slow
@settings(max_examples=few_of(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STUDIES)
def test_every_storage_and_export_gives_the_same(drawn: tuple[int, list[FrozenTrial]]) -> None:
    objectives, found = drawn
    directions = ["minimize", "maximize"][:objectives]
    study = write_study(InMemoryStorage(), "s", found, directions)
    expected = read_trials(study)
    with tempfile.TemporaryDirectory() as name:
        for source in sources(Path(name), study, directions, found):
            exported = source.suffix not in (".db", ".log")
            same(read_trials(source, study="s"), expected, source.name, exported=exported)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(optuna_sqlite, "LARGE_BYTES", 0)
            same(read_trials(Path(name) / "o.db"), expected, "column by column", exported=False)


@pytest.fixture(scope="module")
def servers(postgres_url: str, mysql_url: str) -> Iterator[dict[str, RDBStorage]]:
    storages = {url: RDBStorage(url) for url in (postgres_url, mysql_url)}
    yield storages
    for storage in storages.values():
        storage.remove_session()
        storage.engine.dispose()


@pytest.mark.slow
@pytest.mark.server
@settings(
    max_examples=5,
    deadline=None,
    phases=[Phase.generate],  # shrinking through three servers takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(drawn=STUDIES)
def test_every_server_gives_the_same(
    drawn: tuple[int, list[FrozenTrial]], servers: dict[str, RDBStorage], redis_prefix: tuple[str, str]
) -> None:
    objectives, found = drawn
    directions = ["minimize", "maximize"][:objectives]
    name = uuid.uuid4().hex
    expected = read_trials(write_study(InMemoryStorage(), name, found, directions))
    for url, storage in servers.items():
        write_study(storage, name, found, directions)
        ours = read_trials(url, study=name)
        if url.startswith("mysql"):  # whole seconds only: MySQL rounds, MariaDB cuts
            for column in ("start", "end"):
                away = (ours.trials[column] - expected.trials[column]).abs().max()
                assert pd.isna(away) or away < pd.Timedelta(seconds=1)
            ours.trials[["start", "end"]] = expected.trials[["start", "end"]]
        same(ours, expected, url, exported=False)
    url, prefix = redis_prefix
    with pytest.warns(ExperimentalWarning):
        backend = JournalRedisBackend(url, prefix=prefix + name)
    write_study(JournalStorage(backend), name, found, directions)
    same(read_trials(f"{url}?prefix={prefix}{name}"), expected, url, exported=False)
