"""What an input is described by: studies with their span and concurrency, and the period of samples."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpudiag._load.inspection import LEFT_OUT, inspect
from gpudiag._load.intake import _max_concurrent, _median_period_s
from gpudiag.load import load_run
from gpudiag.report.inspection import lines

HEADER = ",number,value,datetime_start,datetime_complete,duration,state\n"


def study(*spans: tuple[int, int | None], states: tuple[str, ...] = ()) -> pd.DataFrame:
    origin = pd.Timestamp("2026-03-01", tz="UTC")
    end = [pd.NaT if high is None else origin + pd.Timedelta(high, "s") for _, high in spans]
    start = [origin + pd.Timedelta(low, "s") for low, _ in spans]
    frame = pd.DataFrame({"start": start, "end": pd.to_datetime(end, utc=True)})
    return frame.assign(state=states or ["COMPLETE"] * len(spans)).astype({"start": "datetime64[us, UTC]"})


def test_a_worker_that_goes_on_at_the_same_timestamp_counts_once() -> None:
    assert _max_concurrent(study((0, 10), (10, 20), (20, 30))) == 1
    assert _max_concurrent(study((0, 10), (9, 20), (10, 30))) == 2


def test_only_finished_trials_count() -> None:
    assert _max_concurrent(study((0, None), (0, 10), states=("RUNNING", "PRUNED"))) == 1
    assert _max_concurrent(study((0, None), states=("RUNNING",))) is None


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), min_size=1, max_size=30))
def test_most_at_once_is_the_count_at_the_fullest_second(found: list[tuple[int, int]]) -> None:
    at_each = [sum(low <= second < low + size for low, size in found) for second in range(80)]
    assert _max_concurrent(study(*((low, low + size) for low, size in found))) == max(at_each)


@given(st.lists(st.tuples(st.sampled_from("012"), st.integers(0, 300)), min_size=2, max_size=40))
def test_median_period_is_that_between_different_instants_of_one_gpu(found: list[tuple[str, int]]) -> None:
    frame = pd.DataFrame({"gpu": [gpu for gpu, _ in found], "time": [at for _, at in found]})
    frame["time"] = pd.to_datetime(frame["time"], unit="s", utc=True).astype("datetime64[us, UTC]")
    steps = [step for gpu in "012" for step in np.diff(sorted({at for own, at in found if own == gpu})).tolist()]
    times_us = frame["time"].to_numpy("datetime64[us]")
    assert _median_period_s(times_us, frame["gpu"]) == (float(np.median(steps)) if steps else None)


def test_events_without_a_time_have_no_period() -> None:
    frame = pd.DataFrame({"time": pd.to_datetime([None, None, "2026-03-01"], utc=True)})
    assert _median_period_s(frame["time"].to_numpy("datetime64[us]"), None) is None


def test_the_text_shows_span_and_concurrency(tmp_path: Path) -> None:
    rows = [
        f"{k},{k},0.5,2026-03-01 10:00:{k:02d},2026-03-01 10:01:{k:02d},0 days 00:01:00,COMPLETE\n" for k in range(3)
    ]
    (tmp_path / "trials.csv").write_text(HEADER + "".join(rows))
    (record,) = inspect([tmp_path / "trials.csv"], timezone="UTC")
    (entry,) = record.studies
    assert entry.start == "2026-03-01T10:00:00+00:00" and entry.end == "2026-03-01T10:01:02+00:00"

    shown = lines(record)[1]
    assert shown == "    study trials: COMPLETE 3; 2026-03-01 10:00:00 to 10:01:02 UTC; at most 3 at once"


def test_inspect_shows_what_run_toml_names_elsewhere(samples: Path, tmp_path: Path) -> None:
    run, other = tmp_path / "run", tmp_path / "other"
    for folder, name in ((run, "gpu.csv"), (run, "optuna.db"), (other, "gpu.csv")):
        folder.mkdir(exist_ok=True)
        shutil.copy(samples / "healthy" / name, folder)
    named = ["gpu.csv", "../other/gpu.csv", "../other/none.csv"]
    (run / "run.toml").write_text(f'telemetry = {named}\ntrials = "sqlite:///optuna.db"\nartifacts = []\n')
    records = list(inspect([run]))
    places = [record.path.removeprefix(f"{tmp_path}/") for record in records]
    assert places == ["run/gpu.csv", "run/optuna.db", "run/../other/gpu.csv", "run/../other/none.csv"]
    assert [record.error is None for record in records] == [True, True, True, False]
    assert records[0].rows == records[2].rows > 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("toml", "left_out", "noted"),
    [
        ('telemetry = []\ntrials = "trials.csv"\n', ["gpu.csv", "train.log", "more/gpu.csv"], None),
        ('telemetry = "gpu.csv"\n', ["more/gpu.csv"], "more/gpu.csv"),
        ('trials = "trials.csv"\n', ["train.log"], "train.log"),
        ('artifacts = ["train.log"]\n', ["trials.csv"], "trials.csv"),
        ('name = "a run"\n', [], None),
    ],
)
def test_what_run_toml_leaves_out_is_said(
    samples: Path, tmp_path: Path, toml: str, left_out: list[str], noted: str | None
) -> None:
    """The folder and its run.toml show the same; a run whose folder was searched says it too."""
    (tmp_path / "more").mkdir()
    head = (samples / "healthy" / "gpu.csv").read_text().splitlines(keepends=True)[:60]
    for name in ("gpu.csv", "more/gpu.csv"):
        (tmp_path / name).write_text("".join(head))
    rows = "".join(f"{n},COMPLETE,2026-03-01 10:0{n}:00,2026-03-01 10:0{n}:50,0.5\n" for n in range(3))
    (tmp_path / "trials.csv").write_text(f"number,state,datetime_start,datetime_complete,value\n{rows}")
    lines_of_log = "".join(f"2026-03-01 10:00:{n:02d} step {n} loss 0.5\n" for n in range(1, 60))
    (tmp_path / "train.log").write_text(lines_of_log)
    (tmp_path / "run.toml").write_text(toml)
    records = list(inspect([tmp_path], timezone="UTC"))
    assert [one.path.removeprefix(f"{tmp_path}/") for one in records if LEFT_OUT in one.notes] == left_out
    assert [(one.path, one.notes) for one in inspect([tmp_path / "run.toml"], timezone="UTC")] == [
        (one.path, one.notes) for one in records
    ]
    said = [note for note in load_run(tmp_path, timezone="UTC").info.notes if "leaves out" in note]
    assert said == ([f"run.toml leaves out 1 input in the folder: {noted}."] if noted else [])


def test_inspect_shows_a_storage_that_run_toml_names_without_its_password(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('trials = "redis://:hunter2@127.0.0.1:1"\n')
    (record,) = inspect([tmp_path])
    assert record.path == "redis://:***@127.0.0.1:1" and record.error is not None and "hunter2" not in record.error


def test_a_zone_given_takes_nothing_else_from_run_toml(tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text("".join(f"{80 + n % 3},{9000 + n}\n" for n in range(50)))
    (tmp_path / "run.toml").write_text('columns = ["util_pct", "mem_used_mib"]\nperiod_s = 5\n')
    for zone in (None, "Asia/Taipei"):
        (record,) = inspect([tmp_path], timezone=zone)
        assert record.median_period_s == 5.0, record
