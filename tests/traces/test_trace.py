"""What is read of a trace, whatever its form, and what is said of files that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from writtentrace import BASE_US, WrittenTrace, training

import gpudiag as gd
from gpudiag.readers._traces import json_events
from gpudiag.readers._traces.trace import Trace


def tables(trace: Trace) -> list[str]:
    return [table.to_csv() for table in (trace.gpu, trace.host, trace.steps)]


@pytest.mark.slow
def test_every_form_holds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = training(3)
    plain = gd.read_trace(made.write(tmp_path / "a.json"))
    assert [len(plain.gpu), len(plain.host), len(plain.steps)] == [12, 27, 3]
    for name, indent in (("a.pt.trace.json.gz", 1), ("compact.json", None)):
        assert tables(gd.read_trace(made.write(tmp_path / name, indent=indent))) == tables(plain)
    (tmp_path / "array.json").write_text(json.dumps(made.events))
    assert tables(gd.read_trace(tmp_path / "array.json")) == tables(plain)
    monkeypatch.setattr(json_events, "PIECE_BYTES", 97)
    assert tables(gd.read_trace(tmp_path / "a.json")) == tables(plain)


def test_brackets_commas_and_quotes_in_names_cut_nothing(tmp_path: Path) -> None:
    made = WrittenTrace()
    names = ["a<b, {c}>[d]", 'q"uo"te', "back\\slash\\", "],\n{", "日本語 \u2028", '\\"']
    for at, name in enumerate(names):
        made.on_gpu(name, 10 * at, 10 * at + 5)
    for indent in (None, 4):
        found = gd.read_trace(made.write(tmp_path / "a.json", indent=indent))
        assert found.gpu["name"].tolist() == names


def test_a_trace_that_was_cut_off_keeps_its_whole_events(tmp_path: Path) -> None:
    whole = training(3)
    text = whole.text()
    path = tmp_path / "a.json"
    for cut in (len(text) // 2, text.rindex('"ph": "s"'), len(text) * 3 // 4):
        path.write_text(text[:cut])
        found = gd.read_trace(path)
        n_whole = sum(json.dumps(one["ts"]) in text[:cut] for one in whole.events)
        assert 0 < len(found.gpu) + len(found.host) + len(found.steps) <= n_whole
        assert [one.kind for one in found.problems] == ["trace ends in the middle"]
        with pytest.raises(gd.NotMeasurable, match="idle time cannot be told"):
            _ = found.breakdown


def test_damaged_events_are_counted_and_the_others_read(tmp_path: Path) -> None:
    made = training(3)
    text = made.text(indent=None)
    first = text.index('{"ph"')
    bad = '{"ph": "X", "cat": "kernel", "name": "x", "ts": 1e999, "dur": 3}, {"ph": "X", oops}, '
    (tmp_path / "a.json").write_text(text[:first] + bad + text[first:].replace('"grid": [1, 2, 3]', '"occ": NaN', 1))
    found = gd.read_trace(tmp_path / "a.json")
    assert tables(found) == tables(gd.read_trace(made.write(tmp_path / "b.json")))
    assert [(one.kind, one.count) for one in found.problems] == [("damaged event", 2)]


def test_odd_values_are_left_out(tmp_path: Path) -> None:
    made = training(1)
    ordinary = tables(gd.read_trace(made.write(tmp_path / "a.json")))
    odd = [{"ts": "12"}, {"ts": None}, {"dur": -1.0}, {"dur": None}, {"cat": 7}, {"ph": "B"}, {"name": None, "cat": ""}]
    made.events += [dict(made.events[6]) | change for change in odd]
    made.events += [{}, {"ph": "X"}]
    assert tables(gd.read_trace(made.write(tmp_path / "b.json"))) == ordinary


def test_times_that_count_from_the_base_have_their_date(tmp_path: Path) -> None:
    made = WrittenTrace()
    made.on_gpu("k", 0, 10)
    made.events[0]["ts"] = 2_000_000.5
    assert gd.read_trace(made.write(tmp_path / "a.json")).begin is not None
    made.beside["baseTimeNanoseconds"] = BASE_US * 1000
    found = gd.read_trace(made.write(tmp_path / "a.json"))
    assert str(found.begin) == "2023-11-14 22:13:22+00:00" and found.gpu["start_us"].tolist() == [0.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/host:CPU"}}]}', "JAX"),
        ('{"traceEvents": []}', "no event of it"),
        ('{"events": []}', "expected a Chrome trace"),
        ("a line of a log\n", "expected a Chrome trace"),
        ("", "expected a Chrome trace"),
        ('{"traceEvents": [', "no event of it"),
        ('{"traceEvents": [1, "two", null, [3]]}', "no event of it"),
    ],
)
def test_what_is_no_trace_is_said_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(gd.InputError, match=said) as caught:
        gd.read_trace(path)
    assert "\n" not in str(caught.value)


def test_binary_files_and_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pickle").write_bytes(bytes(range(256)) * 10)
    for path in (tmp_path, tmp_path / "a.pickle"):
        with pytest.raises(gd.InputError):
            gd.read_trace(path)
