"""Exports read back by the tools they are for, and the numbers in them are the run's."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from toyrun import START, toy_run

from gpudiag.diagnosis import Diagnosis, diagnose
from gpudiag.errors import ConfigError, InputError
from gpudiag.export import FORMATS, export
from gpudiag.export.openmetrics import text
from gpudiag.export.perfetto import FINDINGS, FIRST_GPU, MAX_POINTS, TRIALS, trace
from gpudiag.load import load_run
from gpudiag.readers._shape.exported import exported_table
from gpudiag.schema import TABLES

MINUTE_US = 60_000_000


@pytest.fixture(scope="module")
def diagnosis() -> Diagnosis:
    run = toy_run(name='odd "name"\n<b>')
    trials = run.trials.assign(**{"params.lr": [0.5] + [float("nan")] * 11, "params.opt": "</script>\x1b[31m"})
    return diagnose(replace(run, trials=trials))


@pytest.mark.slow
@pytest.mark.parametrize("to", sorted(FORMATS))
def test_no_format_gives_attributes_of_users_away(diagnosis: Diagnosis, to: str, tmp_path: Path) -> None:
    written = export(diagnosis, to, tmp_path / "out")
    assert written
    for path in written:
        assert path.stat().st_size > 0
        assert b"hunter2" not in path.read_bytes()


@pytest.mark.slow
def test_attributes_named_in_run_toml_are_given(diagnosis: Diagnosis, tmp_path: Path) -> None:
    run = replace(diagnosis.run, info=replace(diagnosis.run.info, show_attrs=("token",)))
    export(diagnose(run), "csv", tmp_path)
    assert "hunter2" in (tmp_path / "trials.csv").read_text(encoding="utf-8")


@pytest.mark.slow
def test_an_unknown_format_is_one_sentence(diagnosis: Diagnosis, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no format 'perfeto'"):
        export(diagnosis, "perfeto", tmp_path / "x")


@pytest.mark.slow
@pytest.mark.parametrize("to", ["parquet", "csv"])
def test_tables_come_back_as_they_were(diagnosis: Diagnosis, to: str, tmp_path: Path) -> None:
    names = {path.stem for path in export(diagnosis, to, tmp_path)}
    assert {"gpu", "gpus", "trials", "ledger_cells", "ledger_spans"} <= names
    read = pd.read_parquet if to == "parquet" else pd.read_csv
    gpu = read(tmp_path / f"gpu.{to}")
    pd.testing.assert_series_equal(
        pd.to_datetime(gpu["time"], utc=True), diagnosis.run.gpu["time"], check_dtype=False, check_index=False
    )
    assert gpu["util_pct"].tolist() == diagnosis.run.gpu["util_pct"].tolist()
    cells = read(tmp_path / f"ledger_cells.{to}")
    assert cells["gpu_s"].sum() == pytest.approx(diagnosis.ledger.total_gpu_s, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("to", ["parquet", "csv"])
def test_tables_are_no_inputs_but_say_what_is(diagnosis: Diagnosis, to: str, tmp_path: Path) -> None:
    for path in export(diagnosis, to, tmp_path):
        if path.name == "gpu.csv":
            assert load_run(path).gpu["util_pct"].tolist() == diagnosis.run.gpu["util_pct"].tolist()
            continue
        with pytest.raises(InputError, match=r"is table \w+ of gpudiag export.*what the run was read from.*convert"):
            load_run(path)


@pytest.mark.parametrize("name", sorted(TABLES.keys() - {"gpu"}))
def test_each_table_is_known_by_its_columns(name: str) -> None:
    table = TABLES[name]
    least = table.required if len(table.required) > 1 else table.names[:2]
    assert exported_table(least) == exported_table(table.names) == name
    assert not exported_table([*least, "loss"]) and not exported_table([*reversed(least)])


def test_openmetrics_is_read_by_prometheus_own_parser(diagnosis: Diagnosis) -> None:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    families = {family.name: family for family in parser.text_string_to_metric_families(text(diagnosis))}
    cells = families["gpudiag_ledger_gpu_seconds"].samples
    assert sum(s.value for s in cells) == pytest.approx(diagnosis.ledger.total_gpu_s, abs=1e-6)
    assert {s.labels["run"] for s in cells} == {'odd "name" <b>'}
    rules = {s.labels["rule"] for s in families["gpudiag_finding"].samples}
    assert rules == {finding.rule for finding in diagnosis.findings}
    states = {s.labels["state"]: s.value for s in families["gpudiag_trials"].samples}
    assert states == {
        "COMPLETE": 2,
        "PRUNED": 7,
        "FAIL": 2,
        "STOPPED": 0,
        "RUNNING": 1,
        "ABANDONED": 0,
        "WAITING": 0,
    }
    assert text(diagnosis).endswith("# EOF\n")


def test_a_trace_has_a_slice_a_trial_in_the_lane_of_its_worker(diagnosis: Diagnosis) -> None:
    events = trace(diagnosis)["traceEvents"]
    slices = [e for e in events if e["ph"] == "X" and e["pid"] == TRIALS]
    assert len(slices) == 12
    for number, one in enumerate(sorted(slices, key=lambda e: int(e["name"].split()[-1]))):
        assert one["ts"] == (number // 2) * 10 * MINUTE_US
        assert one["name"].split()[-1] == str(number)
        if "end" not in one["args"]:
            assert one["dur"] == 590_000_000
    lanes = {e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name" and e["pid"] == TRIALS}
    assert lanes == {"worker 0", "worker 1"}
    for lane in (1, 2):  # slices of one lane never overlap, or the viewer would nest them
        mine = sorted((e["ts"], e["ts"] + e["dur"]) for e in slices if e["tid"] == lane)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(mine))


def test_a_trace_shows_parameters_that_are_known_without_control_characters(diagnosis: Diagnosis) -> None:
    slices = {e["name"]: e for e in trace(diagnosis)["traceEvents"] if e["pid"] == TRIALS and e["ph"] == "X"}
    assert slices["COMPLETE 0"]["args"]["lr"] == 0.5
    assert "lr" not in slices["PRUNED 1"]["args"]
    assert "\x1b" not in slices["PRUNED 1"]["args"]["opt"]


def test_a_trace_has_counters_cells_and_findings(diagnosis: Diagnosis) -> None:
    made = trace(diagnosis)
    events = made["traceEvents"]
    for place, util in ((0, 80.0), (1, 0.0)):
        counter = [
            e for e in events if e["ph"] == "C" and e["pid"] == FIRST_GPU + place and e["name"].startswith("util")
        ]
        assert {e["args"]["%"] for e in counter} == {util}
        assert len(counter) == 361
        cells = [e for e in events if e["ph"] == "X" and e["pid"] == FIRST_GPU + place]
        ledger = diagnosis.ledger.per_gpu["window_s"].iloc[place]
        assert sum(e["dur"] for e in cells) / 1e6 == pytest.approx(ledger, abs=1e-3)
    found = [e for e in events if e["ph"] == "i"]
    assert [e["name"] for e in found] == [finding.title for finding in diagnosis.findings]
    assert {e["pid"] for e in found} == {FINDINGS}
    assert pd.Timestamp(made["otherData"]["start"]) == START


@pytest.mark.slow
def test_a_trace_without_trials_begins_with_its_first_ledger_cell(diagnosis: Diagnosis) -> None:
    """A sample stands for the 5 s before and after it; Perfetto drops what lies before zero."""
    made = trace(diagnose(toy_run(trials=0)))
    timed = [e for e in made["traceEvents"] if "ts" in e]
    assert min(e["ts"] for e in timed) == min(e["ts"] for e in timed if e["ph"] == "X") == 0
    assert min(e["ts"] for e in timed if e["ph"] == "C") == 5_000_000
    assert pd.Timestamp(made["otherData"]["start"]) == START - pd.Timedelta(seconds=5)
    names = {(e["name"], e["args"]["cell"]) for e in timed if e.get("cat") == "ledger"}
    assert names == {("busy (≥ 50 %)", "busy"), ("idle", "idle_no_trial")}, "as every page calls them"


def test_a_trace_states_the_order_of_processes_and_lanes_in_events_of_their_own(diagnosis: Diagnosis) -> None:
    metadata = [e for e in trace(diagnosis)["traceEvents"] if e["ph"] == "M"]
    assert {(e["name"], *e["args"]) for e in metadata} == {
        ("process_name", "name"),
        ("process_sort_index", "sort_index"),
        ("thread_name", "name"),
        ("thread_sort_index", "sort_index"),
    }
    order = {e["pid"]: e["args"]["sort_index"] for e in metadata if e["name"] == "process_sort_index"}
    assert sorted(order, key=lambda pid: order[pid]) == [TRIALS, FINDINGS, FIRST_GPU, FIRST_GPU + 1]


@pytest.mark.slow
def test_a_trace_is_strict_json_and_stays_small(tmp_path: Path) -> None:
    long = toy_run(samples=60_000)
    (path,) = export(diagnose(long), "perfetto", tmp_path / "t.json")
    made = json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda word: pytest.fail(word))
    counters = [e for e in made["traceEvents"] if e["ph"] == "C" and e["pid"] == FIRST_GPU and "util" in e["name"]]
    assert 2 < len(counters) <= MAX_POINTS
    assert all(e["ts"] >= 0 for e in made["traceEvents"] if "ts" in e)


@pytest.mark.slow
def test_a_run_without_telemetry_and_one_without_trials_are_exported_too(tmp_path: Path) -> None:
    for name, run in {"a": toy_run(samples=0), "b": toy_run(trials=0)}.items():
        for to in FORMATS:
            assert export(diagnose(run), to, tmp_path / name / to)


@pytest.mark.slow
def test_tables_of_two_runs_never_lie_together_and_no_input_is_overwritten(tmp_path: Path) -> None:
    with_trials, without = toy_run(), diagnose(toy_run(trials=0))
    export(diagnose(with_trials), "csv", tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ConfigError, match=r"holds trials\.csv, and this run has no such table"):
        export(without, "csv", tmp_path)
    read = diagnose(load_run(telemetry=tmp_path / "gpu.csv"))
    with pytest.raises(ConfigError, match=r"is an input of the run|and this run has no such table"):
        export(read, "csv", tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.slow
def test_openmetrics_states_the_utilization_of_the_job() -> None:
    """A recorder that runs on for an hour after the last trial changes nothing."""
    run = toy_run()
    last = run.gpu["time"].max()
    tail = [
        run.gpu[run.gpu["time"] == last].assign(time=last + pd.Timedelta(seconds=10 * i), util_pct=0.0)
        for i in range(1, 361)
    ]
    longer = replace(run, gpu=pd.concat([run.gpu, *tail], ignore_index=True))
    used = [
        [line for line in text(diagnose(one)).splitlines() if line.startswith("gpudiag_utilization_percent{")]
        for one in (run, longer)
    ]
    assert used[0] and used[0] == used[1]
