"""`gpudiag convert`: every table comes back exactly, with what was said of it; inputs are never harmed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpudiag.cli import main
from gpudiag.errors import ConfigError, InputError
from gpudiag.export.convert import convert
from gpudiag.readers._shape.merge_telemetry import merge
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import parquet, read_telemetry
from gpudiag.readers.telemetry.parquet import HELD
from gpudiag.schema import TABLES

CSV = """timestamp, index, name, utilization.gpu [%], memory.used [MiB], clocks_throttle_reasons.active
2026/03/01 10:00:00.000, 0, NVIDIA H200, 95 %, 9000 MiB, 0x0000000000000004
2026/03/01 10:00:05.000, 0, NVIDIA H200, 97 %, [N/A], 0x0000000000000000
nonsense
2026/03/01 10:00:10.000, 0, NVIDIA H200, 96 %, 9100 MiB, [N/A]
"""
PMON = """#Date       Time        gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command
 20260301   10:00:00      0       4242     C     55     20      -      -      -      -    python
 20260301   10:00:01      0       4242     C     56     21      -      -      -      -    python
"""


def logs(folder: Path) -> list[Path]:
    paths = [folder / "gpu.csv", folder / "pmon.log"]
    for path, text in zip(paths, (CSV, PMON), strict=True):
        path.write_text(text)
    return paths


def same_tables(left: Telemetry, right: Telemetry) -> None:
    for name in HELD:
        pd.testing.assert_frame_equal(getattr(left, name), getattr(right, name), check_exact=True)


@pytest.mark.parametrize("number", [1, 2])
def test_tables_come_back_exactly(tmp_path: Path, number: int) -> None:
    paths = logs(tmp_path)[:number]
    whole = merge([read_telemetry(path, timezone="Asia/Taipei") for path in paths])
    written = convert(paths, tmp_path / "out.parquet", timezone="Asia/Taipei")
    back = read_telemetry(tmp_path / "out.parquet", timezone="America/New_York")
    same_tables(written, whole)
    same_tables(back, whole)
    assert back.clock == "local"
    assert {(p.kind, p.count, p.lost) for p in back.problems} == {(p.kind, p.count, p.lost) for p in whole.problems}
    assert back.problems and back.notes[: len(whole.notes)] == whole.notes
    digest = hashlib.sha256(CSV.encode()).hexdigest()
    assert f"Converted from gpu.csv (nvidia-smi-query-csv, 3 rows, sha256 {digest})." in back.notes
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.slow
def test_the_runs_of_the_samples_come_back_exactly(samples: Path, tmp_path: Path) -> None:
    for number, path in enumerate(sorted(samples.glob("*/*.csv"))):
        out = tmp_path / f"{number}.parquet"
        same_tables(
            read_telemetry(out) if convert([path], out, timezone="UTC") else Telemetry(),
            read_telemetry(path, timezone="UTC"),
        )


def test_host_and_events_without_a_time_come_back(tmp_path: Path) -> None:
    time = pd.to_datetime(["2026-03-01T10:00:00.000001Z", None], utc=True).as_unit("us")
    events = {"time": time, "kind": ["oom", "xid"], "detail": ["größe\n2", "b"], "trial": [3, None], "line": [None, 7]}
    host = {"time": time[:1], "cpu_pct": [12.1 + 1e-13]}
    data = Telemetry(host=conformed("host", host), events=conformed("events", events), clock="utc", notes=("A note.",))
    pq.write_table(parquet.to_arrow(data, ()), tmp_path / "x.parquet")
    back = read_telemetry(tmp_path / "x.parquet")
    same_tables(back, data)
    assert back.notes == data.notes and back.clock == "utc"


def conformed(name: str, columns: dict[str, object]) -> pd.DataFrame:
    from gpudiag.schema import conform

    return conform(pd.DataFrame(columns), TABLES[name])


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("gpu.csv", ConfigError, "expected a name that ends in .parquet"),
        ("out.feather", ConfigError, "expected a name that ends in .parquet"),
        ("no/out.parquet", ConfigError, "make it first"),
    ],
)
def test_outputs_that_cannot_be(tmp_path: Path, name: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        convert(logs(tmp_path)[:1], tmp_path / name)
    assert (tmp_path / "gpu.csv").read_text() == CSV


def test_an_input_is_never_overwritten_and_an_older_output_is(tmp_path: Path) -> None:
    gpu, pmon = logs(tmp_path)
    out, link = tmp_path / "out.parquet", tmp_path / "link.parquet"
    convert([gpu], out)
    link.symlink_to(out)
    before = out.read_bytes()
    with pytest.raises(InputError, match="is an input, which is never changed"):
        convert([link, pmon], out)
    assert out.read_bytes() == before
    convert([pmon], out)
    assert len(read_telemetry(out).processes) == 2


def test_other_kinds_of_input_are_refused(tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.csv"
    tasks.write_text("name,status,start,end\na,ok,1761645600,1761645700\n")
    with pytest.raises(InputError, match=r"holds artifacts \(task-csv\)"):
        convert([tasks], tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def rewritten(path: Path, about: object, drop: tuple[str, ...] = ()) -> Path:
    table = pq.read_table(path).drop_columns(list(drop))
    out = path.with_name("changed.parquet")
    text = about if isinstance(about, bytes) else json.dumps(about).encode()
    pq.write_table(table.replace_schema_metadata({parquet.KEY: text}), out)
    return out


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"version": 2}, "Install a newer gpudiag"),
        (b"{", "no readable Parquet file"),
        ([], "no readable Parquet file"),
        ({"version": 1, "problems": [{"kind": "x"}]}, "no readable Parquet file"),
    ],
)
def test_metadata_of_others(tmp_path: Path, about: object, said: str) -> None:
    convert(logs(tmp_path)[:1], tmp_path / "out.parquet")
    with pytest.raises(InputError, match=said):
        read_telemetry(rewritten(tmp_path / "out.parquet", about))


def test_columns_of_others(tmp_path: Path) -> None:
    convert(logs(tmp_path)[:1], tmp_path / "out.parquet")
    with pytest.raises(InputError, match="no readable Parquet file"):
        read_telemetry(rewritten(tmp_path / "out.parquet", {"version": 1}, ("table",)))
    with pytest.raises(InputError, match="row of table gpu without its key"):
        read_telemetry(rewritten(tmp_path / "out.parquet", {"version": 1}, ("gpu",)))
    text = pq.read_table(tmp_path / "out.parquet")
    text = text.set_column(text.column_names.index("util_pct"), "util_pct", pa.repeat("much", len(text)))
    pq.write_table(text, tmp_path / "text.parquet")
    with pytest.raises(InputError, match="no readable Parquet file"):
        read_telemetry(tmp_path / "text.parquet")


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    logs(tmp_path)
    monkeypatch.setattr("sys.argv", ["gpudiag", "convert", "gpu.csv", "pmon.log", "-o", "out.parquet"])
    with pytest.raises(SystemExit) as stop:
        main()
    out = capsys.readouterr()
    assert stop.value.code == 0
    assert out.out == "out.parquet: 3 rows of 1 GPU written.\n" and out.err == ""
