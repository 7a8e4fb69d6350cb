"""`gpudiag convert --partition`: by UTC day and host, whole or not at all, and read again as what was written."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from commandline import called

from gpudiag.errors import ConfigError, InputError
from gpudiag.export import partitioned
from gpudiag.export.partitioned import convert_partitioned
from gpudiag.readers._datasets.host_samples import samples_of
from gpudiag.readers._datasets.partitions import telemetry_dataset
from gpudiag.readers.telemetry import read_telemetry

HEAD = "timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB]"


def csv(path: Path, start: str = "2026-03-01 22:00:00", n: int = 300, step_s: int = 60) -> Path:
    """Two GPUs; the times are those of UTC."""
    times = pd.date_range(start, periods=n, freq=f"{step_s}s")
    rows = [
        f"{time:%Y/%m/%d %H:%M:%S}.000, {gpu}, GPU-0000000{gpu}-1111-2222-3333-444444444444, NVIDIA H200, "
        f"{(7 * at + gpu) % 101} %, 100 MiB"
        for gpu in (0, 1)
        for at, time in enumerate(times)
    ]
    path.write_text("\n".join([HEAD, *rows]) + "\n", encoding="utf-8")
    return path


def prometheus(path: Path) -> Path:
    """Two hosts of one GPU each, as query_range gives them."""
    start = int(pd.Timestamp("2026-03-01 12:00", tz="UTC").timestamp())
    series = [
        {
            "metric": {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0", "UUID": f"GPU-{host}0000000", "Hostname": host},
            "values": [[start + 30 * at, str((at + shift) % 100)] for at in range(50)],
        }
        for shift, host in enumerate(("a.b/c", ".."))
    ]
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}}))
    return path


def files(folder: Path) -> list[str]:
    return sorted(path.parent.relative_to(folder).as_posix() for path in folder.rglob("*.parquet"))


def test_every_sample_lies_in_its_utc_day_and_comes_back(tmp_path: Path) -> None:
    whole = convert_partitioned([csv(tmp_path / "gpu.csv")], tmp_path / "out", host="n1", timezone="UTC")
    assert files(tmp_path / "out") == ["day=2026-03-01/host=n1", "day=2026-03-02/host=n1"]
    found = telemetry_dataset(tmp_path / "out")
    assert found is not None and list(found.hosts) == ["n1"]
    days = [set(read_telemetry(file).gpu["time"].dt.strftime("%Y-%m-%d")) for file in found.hosts["n1"]]
    assert days == [{"2026-03-01"}, {"2026-03-02"}]
    held = samples_of("n1", found.hosts["n1"], UTC)
    assert [(gpu.label, gpu.uuid[:12], gpu.model) for gpu in held.gpus] == [
        ("0", "GPU-00000000", "NVIDIA H200"),
        ("1", "GPU-00000001", "NVIDIA H200"),
    ]
    for gpu in held.gpus:
        own = whole.gpu[whole.gpu["gpu"] == gpu.label]
        np.testing.assert_array_equal(gpu.util_pct, own["util_pct"])
        np.testing.assert_array_equal(gpu.time_us, own["time"].astype("int64"))


def test_hosts_of_one_log_are_told_apart_and_their_names_are_safe(tmp_path: Path) -> None:
    convert_partitioned([prometheus(tmp_path / "range.json")], tmp_path / "out")
    assert files(tmp_path / "out") == ["day=2026-03-01/host=..", "day=2026-03-01/host=a.b%2Fc"]
    found = telemetry_dataset(tmp_path / "out")
    assert found is not None and sorted(found.hosts) == ["..", "a.b/c"]
    (gpu,) = samples_of("..", found.hosts[".."], UTC).gpus
    assert gpu.label == "0" and list(gpu.util_pct) == [(at + 1) % 100 for at in range(50)]


def test_the_host_of_a_recording_is_known(tmp_path: Path) -> None:
    lines = [f"2026-03-01T12:00:0{at}Z,n1,{gpu},{50 + gpu}" for at in range(9) for gpu in (0, 1)]
    (tmp_path / "gpu.csv").write_text("\n".join(["time,host,gpu,util_pct", *lines]) + "\n")
    convert_partitioned([tmp_path / "gpu.csv"], tmp_path / "out")
    assert files(tmp_path / "out") == ["day=2026-03-01/host=n1"]


def test_the_same_log_again_replaces_and_another_adds_and_no_sample_counts_twice(tmp_path: Path) -> None:
    out, first = tmp_path / "out", csv(tmp_path / "a.csv")
    for paths in ([first], [first], [csv(tmp_path / "b.csv", "2026-03-01 23:00:00")]):
        convert_partitioned(paths, out, host="n1", timezone="UTC")
    assert len(files(out)) == 4
    found = telemetry_dataset(out)
    assert found is not None
    held = samples_of("n1", found.hosts["n1"], UTC)
    assert [len(gpu.time_us) for gpu in held.gpus] == [360, 360]
    assert all((np.diff(gpu.time_us) > 0).all() for gpu in held.gpus)


def test_a_board_that_was_changed_is_another_gpu(tmp_path: Path) -> None:
    convert_partitioned([csv(tmp_path / "a.csv", n=10)], tmp_path / "out", host="n1", timezone="UTC")
    other = csv(tmp_path / "b.csv", "2026-03-05 00:00:00", n=10)
    other.write_text(other.read_text().replace("GPU-00000001", "GPU-99999999"))
    convert_partitioned([other], tmp_path / "out", host="n1", timezone="UTC")
    found = telemetry_dataset(tmp_path / "out")
    assert found is not None
    held = samples_of("n1", found.hosts["n1"], UTC)
    assert [(gpu.label, len(gpu.time_us)) for gpu in held.gpus] == [("0", 20), ("1", 10), ("1b", 10)]


def test_a_folder_of_others_is_left_alone(tmp_path: Path) -> None:
    log = csv(tmp_path / "a.csv", n=5)
    (tmp_path / "out" / "day=2026-03-01").mkdir(parents=True)
    (tmp_path / "out" / "day=2026-03-01" / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"notes\.txt: was not written"):
        convert_partitioned([log], tmp_path / "out", host="n1")
    with pytest.raises(ConfigError, match="is a file"):
        convert_partitioned([log], log, host="n1")
    with pytest.raises(ConfigError, match="--host"):
        convert_partitioned([log], tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_samples_without_a_date_belong_to_no_day(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("elapsed_s,gpu,gpu_util_pct\n0,0,5\n1,0,6\n2,0,7\n")
    with pytest.raises(InputError, match="no day"):
        convert_partitioned([tmp_path / "a.csv"], tmp_path / "out", host="n1")


def test_all_files_come_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, content = [], partitioned._bytes

    def full(*given: Any) -> bytes:
        made.append(content(*given))
        if len(made) == 2:
            raise OSError("no space left")
        return made[-1]

    monkeypatch.setattr(partitioned, "_bytes", full)
    with pytest.raises(OSError, match="no space"):
        convert_partitioned([csv(tmp_path / "a.csv")], tmp_path / "out", host="n1", timezone="UTC")
    assert not (tmp_path / "out").exists()


def test_data_sets_of_others_are_known_by_their_columns(tmp_path: Path) -> None:
    """date= and node=, other names and units; beside them an empty file, a damaged one, and one of something else."""
    folder = tmp_path / "date=2026-03-01" / "node=n1"
    folder.mkdir(parents=True)
    times = pd.date_range("2026-03-01", periods=4, freq="30s")
    frame = pl.DataFrame({"timestamp": times, "gpu": [0, 0, 0, 0], "gpu_utilization": [1, None, 300, 7]})
    frame.write_parquet(folder / "a.parquet")
    seconds = pl.DataFrame({"timestamp": [1772323500, 1772323530, None], "gpu": 0, "gpu_utilization": 9.0})
    seconds.write_parquet(folder / "b.parquet")
    frame.head(0).write_parquet(folder / "c.parquet")
    pl.DataFrame({"x": [1]}).write_parquet(folder / "d.parquet")
    (folder / "e.parquet").write_bytes(b"PAR1 nothing")
    (folder / "_SUCCESS").write_text("")
    found = telemetry_dataset(tmp_path)
    assert found is not None
    held = samples_of("n1", found.hosts["n1"], UTC)
    (gpu,) = held.gpus
    assert list(gpu.util_pct) == [1.0, 7.0, 9.0, 9.0]
    assert list(gpu.time_us // 1_000_000) == [1772323200, 1772323290, 1772323500, 1772323530]
    assert {one.kind: one.count for one in held.problems.all} == {
        "file without columns of telemetry": 1,
        "file that cannot be read": 1,
        "row without a known time": 1,
    }


def test_folders_of_runs_are_no_data_set(tmp_path: Path) -> None:
    folder = tmp_path / "day=2026-03-01" / "host=n1"
    folder.mkdir(parents=True)
    assert telemetry_dataset(tmp_path) is None
    csv(folder / "gpu.csv", n=5)
    assert telemetry_dataset(tmp_path) is None


def test_the_command_says_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = csv(tmp_path / "a.csv", n=5)
    assert called(monkeypatch, "convert", log, "-o", tmp_path / "out", "--partition", "--host", "n1") == 0
    assert "10 rows of 2 GPUs written" in capsys.readouterr().out
    assert called(monkeypatch, "convert", log, "-o", tmp_path / "x.parquet", "--host", "n1") == 2
