"""What every reader of trials keeps to, whatever it is given: valid tables or one clear sentence."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import optuna
import pandas as pd
import pytest
import yaml
from handmade_studies import frozen, sqlite_study, write_study
from optuna.storages import InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial

from gpudiag.errors import InputError
from gpudiag.readers import artifacts, telemetry, trials
from gpudiag.readers._io.source import Source
from gpudiag.readers.artifacts import task_jsonl
from gpudiag.readers.base import ReadOptions, Trials
from gpudiag.readers.trials import optuna_sqlite, read_trials
from gpudiag.schema import EVENTS, REPORTS, STATES, STUDIES, TRIALS, conform
from gpudiag.timezones import parse_zone

SECRET = "hunter2-Ünïcode"
OPTIONS = ReadOptions(parse_zone("Asia/Taipei"))


def _sqlite(path: Path, study: optuna.Study) -> None:
    directions = [direction.name.lower() for direction in study.directions]
    sqlite_study(path, *study.trials, name=study.study_name, directions=directions)


def _journal(path: Path, study: optuna.Study) -> None:
    storage = JournalStorage(JournalFileBackend(str(path)))
    write_study(storage, study.study_name, study.trials, [direction.name.lower() for direction in study.directions])


def _csv(path: Path, study: optuna.Study) -> None:
    study.trials_dataframe().to_csv(path)


def _parquet(path: Path, study: optuna.Study) -> None:
    frame = study.trials_dataframe()
    frame.astype({name: str for name in frame if name == "params_optimizer"}).to_parquet(path)


def _dashboard(path: Path, study: optuna.Study) -> None:
    frame = study.trials_dataframe().drop(columns=["datetime_start", "datetime_complete", "duration"], errors="ignore")
    names = {"number": "Number", "state": "State", "value": "Value"}
    prefixes = {"params_": "Param ", "user_attrs_": "UserAttribute ", "values_": "Objective "}
    for name in frame:
        prefix = next((p for p in prefixes if name.startswith(p)), "")
        names.setdefault(name, prefixes.get(prefix, "") + name.removeprefix(prefix))
    first = ["Number", "State"] if len(frame.columns) else []
    frame = frame.rename(columns=names)
    frame[first + [name for name in frame if name not in first]].to_csv(path, index=False, lineterminator="\r\n")


def _records(study: optuna.Study) -> list[dict[str, object]]:
    many = len(study.directions) > 1
    return [
        {
            "number": trial.number,
            **({"values": trial.values or []} if many else {"value": trial.value}),
            "datetime_start": trial.datetime_start and str(trial.datetime_start),
            "datetime_complete": trial.datetime_complete and str(trial.datetime_complete),
            "params": trial.params,
            "user_attrs": trial.user_attrs,
            "state": trial.state.name,
        }
        for trial in study.trials
    ]


def _json(path: Path, study: optuna.Study) -> None:
    path.write_text(json.dumps(_records(study)))


def _yaml(path: Path, study: optuna.Study) -> None:
    path.write_text(yaml.safe_dump(_records(study)))


def _tasks(path: Path, study: optuna.Study) -> None:
    lines = [
        {
            "task": f"t{trial.number}",
            "status": trial.state.name.lower().replace("complete", "ok"),
            "start": trial.datetime_start and trial.datetime_start.isoformat(),
            "end": trial.datetime_complete and trial.datetime_complete.isoformat(),
            "params": trial.params,
            "token": trial.user_attrs.get("token"),
        }
        for trial in study.trials
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


WRITERS: dict[str, Callable[[Path, optuna.Study], None]] = {
    "optuna-sqlite": _sqlite,
    "optuna-journal": _journal,
    "optuna-trials-csv": _csv,
    "optuna-dashboard-csv": _dashboard,
    "optuna-cli-json": _json,
    "optuna-cli-yaml": _yaml,
    "optuna-trials-parquet": _parquet,
    "task-jsonl": _tasks,
}
BY_NAME = {reader.name: reader for reader in (*trials.READERS, task_jsonl.READER)}
kinds = pytest.mark.parametrize("kind", WRITERS)


def study_of(*found: FrozenTrial, directions: tuple[str, ...] = ("minimize",)) -> optuna.Study:
    return write_study(InMemoryStorage(), "größe/学習 1", found, list(directions))


def usual() -> optuna.Study:
    states = ("COMPLETE", "PRUNED", "FAIL", "RUNNING", "COMPLETE", "COMPLETE")
    return study_of(*(frozen(i, state, user_attrs={"token": SECRET}) for i, state in enumerate(states)))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One good file of every kind, without an extension that could help."""
    folder = tmp_path_factory.mktemp("trials")
    for kind, write in WRITERS.items():
        write(folder / kind, usual())
    return {kind: folder / kind for kind in WRITERS}


def read(kind: str, path: Path) -> Trials:
    return BY_NAME[kind].read(Source.open(path), OPTIONS)


def check(out: Trials) -> Trials:
    tables = ((out.trials, TRIALS), (out.reports, REPORTS), (out.studies, STUDIES), (out.events, EVENTS))
    for frame, table in tables:
        pd.testing.assert_frame_equal(frame, conform(frame, table))
    assert not out.trials.duplicated(["study", "trial"]).any()
    assert set(out.trials["state"]) <= set(STATES)
    assert set(out.trials["study"]) <= set(out.studies["study"])
    assert not out.reports.duplicated(["study", "trial", "step"]).any()
    shown = repr((out.notes, out.problems, out.studies.to_dict()))
    assert SECRET not in shown and SECRET.encode("unicode_escape").decode() not in shown
    assert "gpudiag-" not in shown  # no temporary path
    return out


def test_every_reader_has_a_sample() -> None:
    assert set(BY_NAME) == set(WRITERS)


@kinds
def test_exactly_one_reader_of_all_registries_recognises_it(kind: str, whole: dict[str, Path]) -> None:
    source = Source.open(whole[kind])
    readers = (*telemetry.READERS, *trials.READERS, *artifacts.READERS)
    assert [reader.name for reader in readers if reader.recognises(source)] == [kind]


@kinds
def test_a_good_file(kind: str, whole: dict[str, Path]) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in whole[kind].parent.iterdir()}
    out = check(read(kind, whole[kind]))
    assert out.reader == kind
    assert out.problems == ()
    assert out.trials["state"].tolist() == ["COMPLETE", "PRUNED", "FAIL", "RUNNING", "COMPLETE", "COMPLETE"]
    assert (out.trials["user_attrs.token"] == SECRET).all()
    assert out.trials["params.layers"].tolist() == [1, 2, 3, 4, 5, 6]
    assert {path.name: path.stat().st_mtime_ns for path in whole[kind].parent.iterdir()} == before


@kinds
def test_names_and_texts_of_every_language(kind: str, whole: dict[str, Path]) -> None:
    named = kind in ("optuna-sqlite", "optuna-journal")
    assert set(read(kind, whole[kind]).trials["study"]) == ({"größe/学習 1"} if named else {kind})


@pytest.mark.many
@pytest.mark.slow
@kinds
def test_a_file_cut_anywhere(kind: str, whole: dict[str, Path], tmp_path: Path) -> None:
    """Cut at every fiftieth: valid tables whose trials are all in the whole, or an InputError."""
    data = whole[kind].read_bytes()
    full = read(kind, whole[kind]).trials.set_index("trial")
    path = tmp_path / kind
    for part in range(50):
        path.write_bytes(data[: len(data) * part // 50])
        source = Source.open(path)
        if not BY_NAME[kind].recognises(source):
            with pytest.raises(InputError):
                read_trials(path)
            continue
        try:
            out = check(BY_NAME[kind].read(source, OPTIONS))
        except InputError as error:
            assert "\n" not in str(error) and str(path) in str(error)
            continue
        kept = out.trials.set_index("trial")
        assert set(kept.index) <= set(full.index)
        if "value" in kept and "value" in full:
            there = kept["value"].dropna()
            assert there.tolist() == full["value"][there.index].tolist()
        if len(kept) < len(full) and kind != "optuna-journal":
            # A journal cut between two operations is a journal of a moment before.
            assert out.problems or _cut_between_rows(path)


def _cut_between_rows(path: Path) -> bool:
    """A cut that no reader can see: behind a line's end, or between two items of YAML."""
    return path.read_bytes()[-1:] in (b"\n", b"\r") or "yaml" in path.name


@kinds
def test_garbage_behind_a_good_beginning(kind: str, whole: dict[str, Path], tmp_path: Path) -> None:
    data = whole[kind].read_bytes()
    noise = random.Random(0).randbytes(len(data))
    for share in (0.1, 0.5, 0.9):
        path = tmp_path / kind
        at = int(len(data) * share)
        path.write_bytes(data[:at] + noise[at:])
        source = Source.open(path)
        if BY_NAME[kind].recognises(source):
            try:
                check(BY_NAME[kind].read(source, OPTIONS))
            except InputError as error:
                assert "\n" not in str(error)


@pytest.mark.many
@pytest.mark.slow
@kinds
def test_bytes_changed_at_random(
    kind: str, whole: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = whole[kind].read_bytes()
    rng = random.Random(kind)
    path = tmp_path / kind
    for _ in range(60):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 5, 50))):
            changed[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(changed)
        monkeypatch.setattr(optuna_sqlite, "LARGE_BYTES", rng.choice((0, 1 << 30)))
        source = Source.open(path)
        if BY_NAME[kind].recognises(source):
            try:
                out = BY_NAME[kind].read(source, OPTIONS)
            except InputError as error:
                assert "\n" not in str(error)
                continue
            assert not out.trials.duplicated(["study", "trial"]).any()
            assert set(out.trials["state"]) <= set(STATES)


@kinds
def test_two_objectives(kind: str, tmp_path: Path) -> None:
    found = [frozen(i, value=None, values=[1.0 + i, 2.0], intermediate_values={}) for i in range(2)]
    WRITERS[kind](tmp_path / kind, study_of(*found, directions=("minimize", "maximize")))
    trials_read = check(read(kind, tmp_path / kind)).trials
    if kind != "task-jsonl":
        assert trials_read[["value_0", "value_1"]].to_numpy().tolist() == [[1.0, 2.0], [2.0, 2.0]]
        assert "value" not in trials_read


@kinds
def test_no_trial_at_all(kind: str, tmp_path: Path) -> None:
    WRITERS[kind](tmp_path / kind, study_of())
    source = Source.open(tmp_path / kind)
    if kind in ("optuna-sqlite", "optuna-journal"):
        out = check(BY_NAME[kind].read(source, OPTIONS))
        assert out.trials.empty and out.studies["study"].tolist() == ["größe/学習 1"]
    else:
        assert not BY_NAME[kind].recognises(source)


@kinds
def test_only_running_trials(kind: str, tmp_path: Path) -> None:
    WRITERS[kind](tmp_path / kind, study_of(*(frozen(i, "RUNNING") for i in range(3))))
    out = check(read(kind, tmp_path / kind))
    assert out.trials["state"].tolist() == ["RUNNING"] * 3
    assert out.trials["end"].isna().all()
    assert "value" not in out.trials


@kinds
def test_an_empty_file_belongs_to_nobody(kind: str, tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert not BY_NAME[kind].recognises(Source.open(tmp_path / "empty"))
    assert not BY_NAME[kind].recognises(Source.open(tmp_path))
    with pytest.raises(InputError, match=r"is empty \(0 bytes\)"):
        read_trials(tmp_path / "empty")


@kinds
def test_files_through_gzip(kind: str, whole: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / kind
    path.write_bytes(gzip.compress(whole[kind].read_bytes()))
    if kind == "optuna-sqlite":
        with pytest.raises(InputError, match="unpack it first"):
            read_trials(path)
        return
    pd.testing.assert_frame_equal(read(kind, path).trials, read(kind, whole[kind]).trials)


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
@pytest.mark.slow
def test_a_study_is_read_without_what_other_inputs_need(kind: str, samples: Path, tmp_path: Path) -> None:
    """Polars and Arrow's Parquet with its file systems take as long to import as a large study to read."""
    path = samples / "healthy" / "optuna.db"
    if kind == "journal":
        path = tmp_path / "optuna.log"
        _journal(path, optuna.load_study(study_name=None, storage=f"sqlite:///{samples / 'healthy' / 'optuna.db'}"))
    program = (
        "import sys\nfrom gpudiag import read_trials\n"
        "from gpudiag.readers._studies import journal_cut\njournal_cut.BULK_BYTES = 0\n"
        f"assert len(read_trials({str(path)!r}).trials) == 24\n"
        "print(*({'polars', 'pyarrow.parquet', 'pyarrow.fs', 'sqlalchemy', 'optuna', 'yaml'} & set(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []
