"""What cannot be is said with its line and changes no number; the rows beside it are read."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

import gpudiag as gd
from gpudiag.errors import NotMeasurable, UnknownInput
from gpudiag.measures.ledger import measure_ledger
from gpudiag.readers._io.problems import Problem

HEAD = "timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"
START = datetime(2026, 3, 1, 10)


def row(at: datetime, gpu: int = 0, used: int = 1000) -> str:
    return f"{at:%Y/%m/%d %H:%M:%S}.000, {gpu}, 80 %, {used} MiB, 81920 MiB\n"


def rows(seconds: int, start: datetime = START) -> list[str]:
    return [row(start + timedelta(seconds=second), gpu) for second in range(seconds) for gpu in (0, 1)]


def log(folder: Path, lines: list[str]) -> Path:
    path = folder / "gpu.csv"
    path.write_text(HEAD + "".join(lines))
    return path


def problems(path: Path) -> list[Problem]:
    return list(gd.load_run(path, timezone="UTC").info.inputs[0].problems)


@pytest.mark.parametrize("year", [1995, 2019, 2099])
@pytest.mark.parametrize("place", [0, 501, 1200])
def test_a_lone_row_of_another_year_is_dropped_and_said(tmp_path: Path, year: int, place: int) -> None:
    lines = rows(600)
    lines.insert(place, row(datetime(year, 1, 1)))
    run = gd.load_run(log(tmp_path, lines), timezone="UTC")
    (said,) = run.info.inputs[0].problems
    assert (said.kind, said.count, said.lost) == ("sample more than 30 days from all others", 1, True)
    assert said.line == place + 2 and said.example.startswith(f"{year}-01-01T00:00:00")
    assert len(run.gpu) == 1200 and run.gpu["time"].max() - run.gpu["time"].min() == pd.Timedelta(seconds=599)


def test_a_sweep_of_all_gpus_at_a_wrong_time_is_one_stray(tmp_path: Path) -> None:
    (said,) = problems(log(tmp_path, rows(600) + rows(1, datetime(2099, 1, 1))))
    assert said.count == 2


@pytest.mark.parametrize(
    "lines",
    [
        rows(600) + rows(2, datetime(2026, 6, 1)),  # a short session is a session
        rows(50) + rows(1, datetime(2026, 6, 1)),  # too few to say which are wrong
        [one for month in range(1, 13) for one in rows(1, datetime(2026, month, 1))],  # somebody looks once a month
        rows(600) + rows(1, datetime(2026, 3, 30)),  # days of silence are a gap
    ],
)
def test_what_may_be_meant_is_kept(tmp_path: Path, lines: list[str]) -> None:
    run = gd.load_run(log(tmp_path, lines), timezone="UTC")
    assert len(run.gpu) == len(lines) and not run.info.inputs[0].problems


def test_dates_out_of_range_are_called_so(tmp_path: Path) -> None:
    far = [row(datetime(year, 1, 1)) for year in (1970, 1969, 9999)]
    (said,) = problems(log(tmp_path, rows(50) + far))
    assert (said.kind, said.count, said.line) == ("row with a date before 1990 or after 2199", 3, 102)


def test_more_memory_in_use_than_there_is_is_unknown(tmp_path: Path) -> None:
    lines = rows(60)
    lines[50] = row(START + timedelta(seconds=25), 0, 99_999_999)
    run = gd.load_run(log(tmp_path, lines), timezone="UTC")
    (said,) = run.info.inputs[0].problems
    assert (said.kind, said.count, said.line) == ("mem_used_mib above mem_total_mib", 1, 52)
    assert said.example == "99999999.0 of 81920.0 MiB"
    assert len(run.gpu) == 120 and run.gpu["mem_used_mib"].isna().sum() == 1 and run.gpu["mem_used_mib"].max() == 1000


def test_a_rounded_total_is_no_impossible_memory(tmp_path: Path) -> None:
    assert not problems(log(tmp_path, [row(START + timedelta(seconds=s), 0, 82_000) for s in range(60)]))


def test_gpus_with_large_numbers_are_gpus(tmp_path: Path) -> None:
    numbers = (0, 4095, 4096, 9999, 32_766)
    lines = [row(START + timedelta(seconds=second), gpu) for second in range(5) for gpu in (*numbers, 32_767)]
    run = gd.load_run(log(tmp_path, lines), timezone="UTC")
    assert run.gpu["gpu"].value_counts().to_dict() == {str(gpu): 5 for gpu in numbers}
    assert [(p.kind, p.count) for p in run.info.inputs[0].problems] == [("row that names no GPU", 5)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("minute", "said"), [(7, "No GPU has more than 1 sample between"), (240, "No sample lies between")]
)
def test_one_sample_within_the_trials_says_nothing_of_their_time(tmp_path: Path, minute: int, said: str) -> None:
    log(tmp_path, [row(START + timedelta(days=day, minutes=minute)) for day in range(-2, 3)])
    trials = [f"{n},0.5,COMPLETE,2026-03-01 10:{n:02}:00,2026-03-01 10:{n:02}:55\n" for n in range(15)]
    (tmp_path / "trials.csv").write_text("number,value,state,datetime_start,datetime_complete\n" + "".join(trials))
    run = gd.load_run(tmp_path, timezone="UTC")
    with pytest.raises(NotMeasurable, match=f"{said} the first trial and the last"):
        measure_ledger(run)
    assert "at 50 %" not in gd.diagnose(run).to_markdown()


def test_a_parquet_file_that_nobody_knows_is_called_one(tmp_path: Path) -> None:
    pd.DataFrame({f"column {n}": [1.0] for n in range(9)}).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(UnknownInput, match=r"is a Parquet file.*columns: column 0, .*column 7, \.\.\."):
        gd.load_run(tmp_path / "x.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "x.parquet").read_bytes()[:300])
    with pytest.raises(UnknownInput, match="binary file"):
        gd.load_run(tmp_path / "cut.parquet")


@pytest.mark.parametrize("query", ["SELECT nosuch(1) AS trial_id", "SELECT * FROM other"])
def test_a_table_that_cannot_be_resolved_is_not_called_absent(tmp_path: Path, samples: Path, query: str) -> None:
    path = tmp_path / "study.db"
    path.write_bytes((samples / "hpo-aggressive-pruning" / "optuna.db").read_bytes())
    study = sqlite3.connect(path)
    study.execute("DROP TABLE IF EXISTS trial_heartbeats")
    study.execute(f"CREATE VIEW trial_heartbeats AS {query}")
    study.execute("CREATE VIEW other AS SELECT * FROM trial_heartbeats")
    study.commit()
    study.close()
    with pytest.raises(gd.errors.InputError, match="'trial_heartbeats' is a view, not a table"):
        gd.load_run(path)


def test_processes_alone_are_said_to_have_been_read(tmp_path: Path) -> None:
    head = "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"
    uuid = "GPU-5d1a3a9c-0000-1111-2222-333344445555"
    lines = [f"2026/03/01 10:00:{second:02}.000, {uuid}, 4711, python, 1000 MiB\n" for second in range(50)]
    (tmp_path / "apps.csv").write_text(head + "".join(lines))
    run = gd.load_run(tmp_path, timezone="UTC")
    said = "Telemetry of single processes was read (50 samples); it says nothing of the utilization, memory, power or"
    with pytest.raises(NotMeasurable) as raised:
        measure_ledger(run)
    assert raised.value.reason.startswith(said)
    text = gd.diagnose(run).to_markdown()
    assert said in text and "There is no GPU telemetry" not in text
