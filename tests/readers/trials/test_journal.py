"""Optuna journals in files: what Optuna ignores is ignored, what is torn is counted, a writer may be at work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest
from drawn import few_of
from handmade_studies import frozen, write_study
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from gpudiag.errors import StudyNotFound
from gpudiag.readers._io.source import Source
from gpudiag.readers._studies import journal_cut
from gpudiag.readers.base import Trials
from gpudiag.readers.trials import READERS, journal_file, read_trials

FLOAT = '{"name": "FloatDistribution", "attributes": {"step": null, "low": 0, "high": 9, "log": false}}'
CHOICE = '{"name": "CategoricalDistribution", "attributes": {"choices": ["a", "b"]}}'


@pytest.fixture(autouse=True, params=["line by line", "column by column"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long journal is read column by column: with the same result."""
    monkeypatch.setattr(journal_cut, "BULK_BYTES", 0 if request.param == "column by column" else 1 << 30)


def create(name: str = "s", directions: tuple[int, ...] = (1,), worker: str = "w-0") -> dict[str, Any]:
    return {"op_code": 0, "worker_id": worker, "study_name": name, "directions": list(directions)}


def begin(
    study: int = 0, worker: str = "w-0", start: str = "2025-10-24T12:00:00.250000", **more: Any
) -> dict[str, Any]:
    return {"op_code": 4, "worker_id": worker, "study_id": study, "datetime_start": start} | more


def end(
    trial: int, state: int = 1, value: Any = 0.5, timestamp: str = "2025-10-24T12:01:00.250000", **more: Any
) -> dict:
    op = {"op_code": 6, "worker_id": "w-0", "trial_id": trial, "state": state, "values": [value]}
    return op | {"datetime_complete": timestamp} | more


def param(trial: int, name: str, value: float, kind: str = FLOAT) -> dict[str, Any]:
    op = {"op_code": 5, "worker_id": "w-0", "trial_id": trial, "param_name": name}
    return op | {"param_value_internal": value, "distribution": kind}


def report(trial: int, step: int, value: float) -> dict[str, Any]:
    return {"op_code": 7, "worker_id": "w-0", "trial_id": trial, "step": step, "intermediate_value": value}


def attribute(trial: int, key: str, value: Any, whose: str = "user") -> dict[str, Any]:
    code = 8 if whose == "user" else 9
    return {"op_code": code, "worker_id": "w-0", "trial_id": trial, f"{whose}_attr": {key: value}}


def journal(folder: Path, *operations: Any, tail: str = "", name: str = "journal.log") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(operation, separators=(",", ":")) + "\n" for operation in operations) + tail)
    return path


def read(folder: Path, *operations: Any, **more: Any) -> Trials:
    return read_trials(journal(folder, *operations, **more), timezone="Asia/Taipei")


def test_a_small_journal(tmp_path: Path) -> None:
    out = read(
        tmp_path,
        create(directions=(2,)),
        begin(worker="w-7"),
        param(0, "x", 0.25),
        param(0, "c", 1, CHOICE),
        report(0, 1, 2.5),
        report(0, 0, float("inf")),
        {"op_code": 8, "worker_id": "w-0", "trial_id": 0, "user_attr": {"note": "hi"}},
        {"op_code": 9, "worker_id": "w-0", "trial_id": 0, "system_attr": {"rung": 3}},
        end(0, value=float("-inf")),
    )
    row = out.trials.iloc[0]
    assert (row["state"], row["value"], row["worker"]) == ("COMPLETE", float("-inf"), "w-7")
    assert (row["params.x"], row["params.c"], row["user_attrs.note"], row["system_attrs.rung"]) == (0.25, "b", "hi", 3)
    assert row["start"] == pd.Timestamp("2025-10-24T04:00:00.25Z")
    assert out.reports[["step", "value"]].to_numpy().tolist() == [[0, float("inf")], [1, 2.5]]
    assert out.studies[["directions", "clock"]].to_numpy().tolist() == [["MAXIMIZE", "local"]]
    assert out.problems == ()


def test_a_study_created_twice_takes_no_id(tmp_path: Path) -> None:
    out = read(tmp_path, create("a"), create("a", worker="w-1"), create("b"), begin(1), begin(0), end(0), end(1, 2))
    states = dict(zip(out.trials["study"], out.trials["state"], strict=True))
    assert states == {"a": "PRUNED", "b": "COMPLETE"}


def test_a_deleted_study_is_gone_and_its_trials_keep_their_ids(tmp_path: Path) -> None:
    gone = {"op_code": 1, "worker_id": "w-0", "study_id": 0}
    out = read(tmp_path, create("a"), begin(0), gone, create("b"), begin(1), end(1, value=3.0), begin(0))
    assert out.studies["study"].tolist() == ["b"]
    assert out.trials[["study", "trial", "value"]].to_numpy().tolist() == [["b", 0, 3.0]]


def test_updates_of_a_finished_trial_are_ignored(tmp_path: Path) -> None:
    out = read(tmp_path, create(), begin(), end(0), end(0, 3, 9.0), report(0, 0, 1.0), param(0, "x", 1.0))
    assert out.trials[["state", "value"]].to_numpy().tolist() == [["COMPLETE", 0.5]]
    assert out.reports.empty and "params.x" not in out.trials


def test_a_parameter_that_contradicts_the_study_is_ignored(tmp_path: Path) -> None:
    out = read(tmp_path, create(), begin(), begin(), param(0, "x", 0.5), param(1, "x", 1, CHOICE), param(1, "y", 2.0))
    assert pd.isna(out.trials["params.x"][1]) and out.trials["params.y"][1] == 2.0


def test_an_enqueued_trial_belongs_to_the_worker_that_runs_it(tmp_path: Path) -> None:
    waiting = begin(start=None, state=4, worker="boss")
    run = {"op_code": 6, "worker_id": "w-3", "trial_id": 0, "state": 0, "values": None}
    again = run | {"worker_id": "w-4", "datetime_start": "2025-10-24T13:00:00"}
    out = read(tmp_path, create(), waiting, waiting, run | {"datetime_start": "2025-10-24T12:00:00"}, again)
    assert out.trials["state"].tolist() == ["RUNNING", "WAITING"]
    assert out.trials["worker"].tolist() == ["w-3", "boss"]
    assert out.trials["start"][0] == pd.Timestamp("2025-10-24T04:00Z") and pd.isna(out.trials["start"][1])


def test_a_trial_added_whole(tmp_path: Path) -> None:
    whole = begin(state=1, value=2.0, datetime_complete="2025-10-24T12:05:00", params={"x": 1.0})
    whole |= {"distributions": {"x": FLOAT}, "intermediate_values": {"3": 1.0}, "user_attrs": {"a": 1}}
    out = read(tmp_path, create(), whole)
    row = out.trials.iloc[0]
    assert (row["value"], row["params.x"], row["user_attrs.a"]) == (2.0, 1.0, 1)
    assert out.reports["step"].tolist() == [3]


def test_the_last_line_without_its_end_does_not_count(tmp_path: Path) -> None:
    whole = json.dumps(end(0))
    for tail in (whole, whole[:30]):
        out = read(tmp_path, create(), begin(), tail=tail)
        assert out.trials["state"].tolist() == ["RUNNING"]
        assert [(p.kind, p.line) for p in out.problems] == [
            ("last line without its end, still being written or cut", 3)
        ]


def test_damaged_lines_are_counted_and_passed_over(tmp_path: Path) -> None:
    path = journal(tmp_path, create(), begin())
    path.write_text(path.read_text() + '{"op_code"\n[1]\n' + json.dumps({"op_code": 6, "worker_id": "w"}) + "\n")
    with path.open("a") as stream:
        stream.write(json.dumps(end(0)) + "\n")
    out = read_trials(path)
    assert out.trials["state"].tolist() == ["COMPLETE"]
    assert {p.kind: (p.count, p.line) for p in out.problems} == {
        "line that is not a JSON object": (2, 3),
        "journal operation that cannot be applied": (1, None),
    }


def test_a_journal_that_went_on_under_optuna_5(tmp_path: Path) -> None:
    late = begin(start="2025-10-24T05:00:00.000000+00:00")
    out = read(tmp_path, create(), begin(), end(0), late, end(1, timestamp="2025-10-24T05:01:00.000000+00:00"))
    assert out.studies["clock"].tolist() == ["mixed"]
    assert out.trials["start"].dt.hour.tolist() == [4, 5]
    assert out.notes[0].endswith("(the later timestamps carry a zone, the earlier ones none).")


def test_a_journal_is_told_by_its_content(tmp_path: Path) -> None:
    path = journal(tmp_path, create(), begin(), name="optuna.db")
    assert [reader.name for reader in READERS if reader.recognises(Source.open(path))] == ["optuna-journal"]
    with pytest.raises(StudyNotFound, match="has no study 'x'; it has 's'"):
        read_trials(path, study="x")
    other = journal(tmp_path, {"op_code": "x", "message": "no journal"}, name="other.log")
    assert not any(reader.recognises(Source.open(other)) for reader in READERS)


def test_what_optuna_writes_now(tmp_path: Path) -> None:
    path = tmp_path / "j.log"
    storage = JournalStorage(JournalFileBackend(str(path)))
    study = write_study(storage, "s", [frozen(i, state) for i, state in enumerate(("COMPLETE", "PRUNED", "FAIL"))])
    study.enqueue_trial({"x": 1})
    out = read_trials(path, timezone="Asia/Taipei")
    frame = study.trials_dataframe()
    assert out.trials["state"].tolist() == frame["state"].tolist()
    assert out.trials["params.optimizer"].tolist()[:2] == frame["params_optimizer"].tolist()[:2]
    assert out.studies["clock"].tolist() == ["utc" if int(optuna.__version__.split(".")[0]) >= 5 else "local"]
    assert out.trials["worker"].notna().all()


@pytest.mark.slow
def test_a_journal_is_read_while_it_grows(tmp_path: Path) -> None:
    """Any prefix of the file reads as the operations whose lines are complete."""
    operations = [create(), *(op for i in range(4) for op in (begin(), report(i, 0, 1.0), end(i)))]
    whole = journal(tmp_path, *operations).read_bytes()
    lengths = [len(json.dumps(operation, separators=(",", ":"))) + 1 for operation in operations]
    for size in range(lengths[0], len(whole), 37):
        path = tmp_path / "part.log"
        path.write_bytes(whole[:size])
        complete = sum(1 for i in range(len(lengths)) if sum(lengths[: i + 1]) <= size)
        started = sum(op["op_code"] == 4 for op in operations[:complete])
        out = read_trials(path)
        assert len(out.trials) == started
        assert (out.trials["state"] == "COMPLETE").sum() == sum(op["op_code"] == 6 for op in operations[:complete])


def test_optuna_agrees_on_a_journal_of_oddities(tmp_path: Path) -> None:
    path = journal(
        tmp_path,
        create("a"),
        create("a"),
        begin(),
        begin(),
        param(0, "x", 0.5),
        param(1, "x", 1, CHOICE),
        end(0),
        end(0, 3),
        report(1, 2, 0.5),
        end(1, 2, 0.25),
        tail=json.dumps(begin()),
    )
    theirs = optuna.load_study(study_name="a", storage=JournalStorage(JournalFileBackend(str(path))))
    ours = read_trials(path).trials
    assert ours["state"].tolist() == [trial.state.name for trial in theirs.trials]
    assert ours["value"].tolist() == [trial.value for trial in theirs.trials]
    assert [("params.x" in ours and not pd.isna(cell)) for cell in ours["params.x"]] == [
        "x" in trial.params for trial in theirs.trials
    ]


NAMES = st.sampled_from(["x", "a,b", 'quo"te', "déjà", "new\nline", "tab\t", "", '"param_value_internal":1'])
NUMBERS = st.one_of(st.floats(), st.integers(-5, 5), st.none(), st.just(2**70))
TRIAL = st.integers(-1, 4)
WORKERS = st.sampled_from(["w-0", "w,1", 'w"2', "w" * 64, "w" * 500])
OPERATIONS = st.one_of(
    st.builds(begin),
    st.builds(param, TRIAL, NAMES, NUMBERS, st.sampled_from([FLOAT, CHOICE, "no JSON", '{"name": "é"}'])),
    st.builds(attribute, TRIAL, NAMES, st.one_of(NUMBERS, st.booleans(), NAMES), st.sampled_from(["user", "system"])),
    st.builds(
        report,
        TRIAL,
        st.one_of(st.integers(-2, 4), st.integers(10**7 - 1, 10**8 + 1), st.just(2**62), st.just(2**80), st.just("1")),
        NUMBERS,
    ),
    st.builds(end, TRIAL, st.sampled_from([0, 1, 2, 3])),
    st.builds(lambda code, trial: {"op_code": code, "trial_id": trial}, st.sampled_from([5, 7, 71]), TRIAL),
)
OF_WORKERS = st.builds(lambda operation, worker: operation | {"worker_id": worker}, OPERATIONS, WORKERS)
SPELLINGS = st.sampled_from([(",", ":"), (", ", ": "), (" ,", ":")])


def test_the_last_attribute_of_an_open_trial_counts(tmp_path: Path) -> None:
    later = [attribute(0, "a", 9), end(0), attribute(0, "b", 3.5, "system"), attribute(0, "a", 10)]
    notes = [attribute(0, "note", {"k": [1]}), attribute(0, "é,", "x"), *[attribute(0, "a", n / 4) for n in range(50)]]
    row = read(tmp_path, create(), begin(), *notes, *later, attribute(7, "a", 1), begin()).trials.iloc[0]
    assert (row["user_attrs.a"], row["user_attrs.note"], row["user_attrs.é,"]) == (9, '{"k": [1]}', "x")
    assert "system_attrs.b" not in row


@pytest.mark.slow
@pytest.mark.parametrize("bytes_", [150, 1000, 4096])
def test_the_size_of_a_block_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_: int) -> None:
    """Blocks share their memory, and a line may be longer than one."""
    operations: list[Any] = [create(), attribute(0, "x", 1)]
    for at in range(40):
        operations += [
            begin(worker=f"w-{10 ** (at % 5)}"),
            param(at, "p" * (at * 9 % 50), at / 7),
            param(at, "c", 1, CHOICE),
        ]
        operations += [report(at, step, at + step / 3) for step in range(at % 9)]
        operations += [attribute(at, "text", "long " * (at * 20)), attribute(at, "n", at), end(at, value=-at / 3)]
    path = journal(tmp_path, *operations, tail='{"op_code":4,"worker')
    whole = read_trials(path)
    assert whole.reports["value"].tolist() == [at + step / 3 for at in range(40) for step in range(at % 9)]
    assert whole.trials["user_attrs.text"].tolist() == ["long " * (at * 20) for at in range(40)]
    monkeypatch.setattr(journal_file, "BLOCK_BYTES", bytes_)
    small = read_trials(path)
    pd.testing.assert_frame_equal(whole.trials, small.trials)
    pd.testing.assert_frame_equal(whole.reports, small.reports)
    assert whole.problems == small.problems != ()


def test_names_of_workers_of_several_lengths_are_cut_in_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of more than 64 bytes are left, and neither they nor lines without a trial keep others from being cut."""
    monkeypatch.setattr(journal_cut, "BULK_BYTES", 0)
    operations = [begin(worker="w" * length) for length in (52, 80, 51) for _ in range(100)]
    operations += [report(0, step, 0.5) | {"worker_id": "w" * length} for length in (80, 52, 51) for step in range(100)]
    text = "".join(json.dumps(op, separators=(",", ":")) + "\n" for op in [*operations, *[end(0)] * 3]).encode()
    piece = journal_cut.take_apart(memoryview(text))
    assert piece.reports is not None and len(piece.reports["step"]) == 200
    assert piece.lines == 603 and len(piece.rest) == 403


def test_numbers_of_every_length(tmp_path: Path) -> None:
    """To the last bit, and steps up to the largest that a column holds."""
    values = [0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0, 1e22, 123456789.123456789, 7, -3, 1e-7, 2.5]
    steps = [0, 9, 10, 99, 1234567, 12345678, 99999999, 100000000, 2**31, 2**62]
    rows = [report(0, step, value) for step, value in zip(steps, values, strict=True)]
    path = journal(tmp_path, create(), begin(), *rows, report(0, 7, 1.0), begin())
    path.write_text(path.read_text().replace('"step":7,', '"step":07,'))
    found = read_trials(path)
    out = found.reports
    assert [(p.kind, p.line) for p in found.problems] == [("line that is not a JSON object", 13)]
    assert out["step"].tolist() == steps
    assert [value.hex() for value in out["value"]] == [float(value).hex() for value in values]


@pytest.mark.slow
@settings(max_examples=few_of(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(OF_WORKERS, SPELLINGS), max_size=30), st.integers(100, 2000))
def test_all_ways_to_read_a_journal_agree(
    tmp_path: Path, spelt: list[tuple[Any, tuple[str, str]]], small_block: int
) -> None:
    lines = [json.dumps(create(), separators=(",", ":")), *(json.dumps(op, separators=how) for op, how in spelt)]
    path = tmp_path / "j.log"
    path.write_text("\n".join(lines) + "\n")
    found = []
    for bulk, block in ((1 << 30, journal_file.BLOCK_BYTES), (0, journal_file.BLOCK_BYTES), (0, small_block)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(journal_cut, "BULK_BYTES", bulk)
            patch.setattr(journal_file, "BLOCK_BYTES", block)
            found.append(read_trials(path))
    rows, *by_columns = found
    for columns in by_columns:
        pd.testing.assert_frame_equal(columns.trials, rows.trials)
        pd.testing.assert_frame_equal(columns.reports, rows.reports)
        assert sorted(map(str, columns.problems)) == sorted(map(str, rows.problems))
