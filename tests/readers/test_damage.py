"""Damage that once broke a reader: each case gives tables or one InputError, and what is good is kept."""

from __future__ import annotations

import gzip
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import gpudiag as gd
from gpudiag.errors import InputError
from gpudiag.measures.inputs import measure_inputs
from gpudiag.readers._io.source import Source
from gpudiag.readers._shape.identity import GpuIdentity, resolve
from gpudiag.readers.base import ReadOptions, Telemetry, Trials
from gpudiag.readers.identify import identify
from gpudiag.timezones import parse_zone

OPTIONS = ReadOptions(parse_zone("Asia/Taipei"))
HUGE = "9" * 400
DAY = datetime(2026, 3, 1, 10)
ZSTD = partial(pa.Codec("zstd", compression_level=3).compress, asbytes=True)
RECORD = (
    '# gpudiag-record 1 {"host": "n"}\n# gpu {"gpu": "0"}\ntime,mono_s,gpu,pid,util_pct,name,kind,detail,record\n'
    "2026-03-01T10:00:00Z,5,0,,50,,,,gpu\n2026-03-01T10:00:01Z,6,0,,51,,,,gpu\n"
)
QUERY = "timestamp, index, utilization.gpu [%]\n2026/03/01 10:00:00.000, 0, 5 %\n2026/03/01 10:00:01.000, 0, 7 %\n"
MADE = "time,util_pct,mem_used_mb\n"
ROWS = "".join(f"2026-03-01 10:00:{second:02d},5{second % 10},900\n" for second in range(20))
YAML = "- number: 0\n  state: COMPLETE\n  value: 1\n  datetime_start: '2026-03-01 10:00:00'\n"


def read(folder: Path, text: str) -> Telemetry | Trials:
    path = folder / "input.dat"
    path.write_text(text, encoding="utf-8")
    source = Source.open(path)
    found = identify(source)
    assert found is not None, "the damage is beyond the head by which it is recognised"
    return found[1].read(source, OPTIONS)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        pytest.param(QUERY + "2026/03/01 10:00:02.1e29, 0, 5 %\n", 2, id="fraction of a second beyond an integer"),
        pytest.param(QUERY + "2026/03/01 10:00:02inf, 0, 5 %\n", 2, id="infinite fraction of a second"),
        pytest.param(QUERY + "0000/03/01 10:00:02.000, 0, 5 %\n", 2, id="year 0"),
        pytest.param(MADE + ROWS + "0000-01-01T00:00:00,5,6\n", 20, id="year 0 in a home-made table"),
        pytest.param(RECORD + "2026-03-01T10:00:02Z,inf,0,,52,,,,gpu\n", 3, id="infinite monotonic clock"),
        pytest.param(RECORD + '"2026-03-01T10:00:02Z"x,7,0,,52,,"a"b"",,gpu\n', 2, id="damaged quotes"),
        pytest.param(RECORD + "time,util_pct,record\n2026-03-01T10:00:02Z,7,0,,52,,,,gpu\n", 3, id="damaged header"),
        pytest.param("index,time,util_pct\n" + "".join(f"²,{row}" for row in ROWS.splitlines(True)), 20, id="²"),
    ],
)
def test_good_rows_are_kept(tmp_path: Path, text: str, rows: int) -> None:
    data = read(tmp_path, text)
    assert isinstance(data, Telemetry)
    assert len(data.gpu) == rows


def test_dates_that_no_sample_can_have_are_no_moments(tmp_path: Path) -> None:
    data = read(
        tmp_path,
        "[0210-04-01 @ 13:32:00] > Temp: 50C  Power: 70/250 W  Utilization: 7%  Memory: 90/11019 MiB\n"
        "[2021-04-01 @ 13:32:01] > Temp: 50C  Power: 70/250 W  Utilization: 8%  Memory: 91/11019 MiB\n"
        "[2021-04-01 @ 13:32:02] > Temp: 50C  Power: 70/250 W  Utilization: 9%  Memory: 92/11019 MiB\n",
    )
    assert isinstance(data, Telemetry)
    assert set(data.gpu["time"].dt.year) <= {1970, 2021}


def test_a_huge_integer_in_wandb_events_is_no_reading(tmp_path: Path) -> None:
    line = '{"system.gpu.0.gpu": %s, "system.gpu.0.temp": 41.0, "_timestamp": %s, "_runtime": 1}\n'
    data = read(tmp_path, line % (50, 1772359200) + line % (HUGE, 1772359210) + line % (52, "1e400"))
    assert isinstance(data, Telemetry)
    assert data.gpu["temp_c"].tolist() == [41.0, 41.0] and data.gpu["util_pct"].isna().tolist() == [False, True]


def test_yaml_of_trials_with_impossible_dates_and_huge_numbers(tmp_path: Path) -> None:
    data = read(
        tmp_path, YAML + YAML.replace("'2026-03-01 10:00:00'", "0000-01-01 00:00:00").replace("number: 0", "number: 1")
    )
    assert isinstance(data, Trials)
    assert data.trials["trial"].tolist() == [0] and any(problem.lost for problem in data.problems)
    data = read(
        tmp_path,
        YAML + f"  params: {{depth: {HUGE}}}\n" + YAML.replace("number: 0", "number: 1") + "  params: {depth: 0.5}\n",
    )
    assert isinstance(data, Trials)
    assert data.trials["params.depth"].tolist() == [int(HUGE), 0.5]


def test_timestamps_of_mlflow_beyond_any_time(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "metrics" / "system"
    folder.mkdir(parents=True)
    (tmp_path / "run" / "meta.yaml").write_text("run_id: a\n")
    (folder / "gpu_0_utilization_percentage").write_text(f"1772359200000 50.0 0\n{HUGE} 51.0 1\n1772359210000 52.0 2\n")
    source = Source.open(tmp_path / "run")
    found = identify(source)
    assert found is not None
    data = found[1].read(source, OPTIONS)
    assert isinstance(data, Telemetry)
    assert data.gpu["util_pct"].tolist() == [50.0, 52.0]
    assert [(problem.kind, problem.count) for problem in data.problems] == [("torn line", 1)]


def test_a_header_of_trials_that_loses_its_number(tmp_path: Path) -> None:
    """Two columns of one name look like a multi-index frame, whose second header renames columns."""
    with pytest.raises(InputError, match="expected a column 'number'"):
        read(tmp_path, ",number,value,value,datetime_start,state\n0,0,1.0,1.0,2026-03-01 10:00:00,COMPLETE\n")


def test_a_frame_of_a_table_without_a_table(tmp_path: Path) -> None:
    frame = "| NVIDIA-SMI 570.86.15    Driver Version: 570.86.15    CUDA Version: 12.8 |\n"
    bar = "+" + "-" * 73 + "+\n"
    with pytest.raises(InputError, match="no usable sample"):
        read(tmp_path, bar + "frozen\n" + frame.replace("|", "\x1d|", 1))


@pytest.mark.parametrize("count", ["inf", "1e29", "-inf"])
def test_steps_and_epochs_of_lightning_that_are_no_counts(tmp_path: Path, count: str) -> None:
    data = read(tmp_path, f"train_loss,epoch,step\n0.9,0,9\n0.8,{count},19\n0.7,1,{count}\n")
    assert isinstance(data, Trials)
    assert data.reports["step"].tolist() == [9, 19] and data.trials["user_attrs.epochs"].tolist() == [2]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("UPDATE trials SET state = CAST(state AS BLOB) WHERE number < 3", id="bytes for a state"),
        pytest.param("UPDATE study_directions SET direction = CAST(direction AS BLOB)", id="bytes for a direction"),
        pytest.param("UPDATE trials SET datetime_start = 1e308 WHERE number < 3", id="a number for a date"),
        pytest.param("UPDATE trial_params SET trial_id = 1e308 WHERE rowid < 3", id="a trial beyond an integer"),
        pytest.param("UPDATE trials SET number = 'x' WHERE number = 0", id="text for a number"),
    ],
)
def test_cells_of_a_study_of_another_type(change: str, tmp_path: Path, samples: Path) -> None:
    shutil.copy(samples / "healthy" / "optuna.db", tmp_path / "o.db")
    with closing(sqlite3.connect(tmp_path / "o.db")) as held, held:
        assert held.execute(change).rowcount > 0
    source = Source.open(tmp_path / "o.db")
    found = identify(source)
    assert found is not None
    data = found[1].read(source, OPTIONS)
    assert isinstance(data, Trials)
    assert len(data.trials) >= 21 and data.studies["directions"].tolist() == ["MAXIMIZE"]


@pytest.mark.parametrize("pack", [gzip.compress, ZSTD], ids=["gzip", "zstd"])
@pytest.mark.parametrize("rows", [2_000, 40_000], ids=["within the head", "beyond it"])
def test_a_cut_archive_keeps_its_rows_and_is_told(pack: Callable[[bytes], bytes], rows: int, tmp_path: Path) -> None:
    """The check on inputs counts it; the same data whole are told as nothing."""
    rng = random.Random(rows)
    lines = [f"{DAY + timedelta(seconds=i):%Y/%m/%d %H:%M:%S}.000, 0, {rng.randrange(100)} %" for i in range(rows)]
    text = "\n".join(["timestamp, index, utilization.gpu [%]", *lines, ""]).encode()
    packed = b"".join(pack(text[low : low + 1000]) for low in range(0, len(text), 1000))
    (tmp_path / "whole.csv.gz").write_bytes(packed)
    (tmp_path / "cut.csv.gz").write_bytes(packed[: len(packed) * 2 // 3])
    whole, cut = (gd.load_run(tmp_path / f"{name}.csv.gz") for name in ("whole", "cut"))
    assert len(whole.gpu) == rows and whole.info.inputs[0].problems == () and measure_inputs(whole).n_unread == 0
    assert rows / 2 < len(cut.gpu) < 0.7 * rows
    said = measure_inputs(cut).unread["error"].tolist()
    assert len(said) == 1 and "data in it end too early" in said[0] and "only what comes before was read" in said[0]
    assert gd.read_telemetry(tmp_path / "cut.csv.gz").problems == cut.info.inputs[0].problems


@pytest.mark.parametrize(
    ("change", "told"),
    [(lambda data: data, False), (lambda data: data + bytes(9000), False), (lambda data: data + b"\0\0junk", True),
     (lambda data: data[:-8] + bytes(4) + data[-4:], True), (lambda data: data[:-4], True),
     (lambda data: data + data[:12], True)],
    ids=["whole", "filled up", "junk after it", "wrong checksum", "cut in its end", "a second one cut"],
)  # fmt: skip
def test_what_is_wrong_with_a_table_of_trials_in_gzip_is_told(
    change: Callable[[bytes], bytes], told: bool, tmp_path: Path
) -> None:
    rows = [f"{n},0.5,{DAY + timedelta(minutes=n)},{DAY + timedelta(minutes=n + 1)},COMPLETE" for n in range(500)]
    text = "\n".join(["number,value,datetime_start,datetime_complete,state", *rows, ""])
    (tmp_path / "trials.csv.gz").write_bytes(change(gzip.compress(text.encode())))
    read = gd.read_trials(tmp_path / "trials.csv.gz")
    assert any("gzip data" in one.kind and one.lost for one in read.problems) == told
    assert len(read.trials) == 500 or (told and len(read.trials) > 300)


@pytest.mark.slow
def test_forty_gpus_of_one_index_have_names_of_their_own() -> None:
    """As of damaged bytes, or of one log of many hosts that names none."""
    found = [GpuIdentity(index="0", uuid=f"GPU-{n:08x}-1111") for n in range(800)]
    labels = resolve(found)[0]
    assert len(set(labels)) == 800 and labels[:3] == ["0", "0b", "0c"] and labels[25:28] == ["0z", "0aa", "0ab"]
