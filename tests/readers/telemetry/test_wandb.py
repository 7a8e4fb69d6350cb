"""W&B: units, what is derived, records of one tick, and files of runs that were killed."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from wandb_bytes import BLOCK, environment, run_file, stats

from gpudiag.errors import InputError
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.wandb_log import records
from gpudiag.readers._io.wire_format import number, text
from gpudiag.readers.base import Telemetry
from gpudiag.readers.telemetry import read_telemetry

AT_S = 1_700_000_000.25


def read(folder: Path, content: bytes | str) -> Telemetry:
    path = folder / "run-abc.wandb"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_telemetry(path, timezone="Asia/Taipei")


def test_names_units_and_what_percentages_tell(tmp_path: Path) -> None:
    first = {
        "gpu.0.gpu": 97.9, "gpu.0.memory": 49.7, "gpu.0.memoryAllocated": 50.0, "gpu.0.memoryAllocatedBytes": 4 * 2**30,
        "gpu.0.powerWatts": 150.0, "gpu.0.powerPercent": 50.0, "gpu.0.temp": 62.0, "gpu.process.0.gpu": 97.9,
        "gpu.0.smClock": 1830, "gpu.0.memoryClock": 8001, "gpu.0.fanSpeed": 62, "gpu.0.pcieLinkGen": 4,
    }  # fmt: skip
    idle = {"gpu.0.memoryAllocated": 0.7, "gpu.0.memoryAllocatedBytes": 60 * 2**20}
    out = read(tmp_path, run_file([stats(AT_S, first), stats(AT_S + 30, idle)]))
    row = out.gpu.iloc[0]
    assert row["time"] == pd.Timestamp("2023-11-14T22:13:20.25Z") and out.clock == "utc"
    assert (row["util_pct"], row["mem_util_pct"], row["mem_used_mib"]) == (97.9, 49.7, 4096)
    assert (row["power_w"], row["temp_c"], row["sm_clock_mhz"], row["mem_clock_mhz"], row["fan_pct"]) == (
        150, 62, 1830, 8001, 62,
    )  # fmt: skip
    # 60 MiB at "0.7 %" would give 8571 MiB: the larger percentage is the one to trust.
    assert out.gpu["mem_total_mib"].tolist() == [8192, 8192]
    assert out.gpus["power_limit_w"].tolist() == [300]
    assert out.gpus["gpu"].tolist() == ["0"], "gpu.process.0 is no second GPU"
    assert any("gpu.process.N" in note for note in out.notes)
    assert any("peaks within an interval" in note for note in out.notes)


def test_records_of_one_tick_are_one_sample(tmp_path: Path) -> None:
    parts = [{"cpu.0.cpu_percent": 90.0, "cpu.1.cpu_percent": 10.0, "cpu": 45.0}, {"gpu.0.gpu": 5.0}]
    parts.append({"memory_percent": 75.0, "proc.memory.availableMB": 1000.0})
    ticks = [stats(AT_S + 10 * n + 0.002 * i, part) for n in range(2) for i, part in enumerate(parts)]
    out = read(tmp_path, run_file(ticks))
    assert len(out.gpu) == len(out.host) == 2
    assert out.gpu["time"].tolist() == out.host["time"].tolist()
    first = out.host.iloc[0]
    assert (first["cpu_pct"], first["cpu_max_core_pct"], first["process_cpu_max_pct"]) == (50, 90, 90)
    assert (first["ram_total_mib"], first["ram_used_mib"]) == (4000, 3000)


@pytest.mark.parametrize(("memory", "expected"), [("memory", 60.0), ("memory_percent", None)])
def test_cpu_without_cores_is_the_machine_only_in_old_versions(
    tmp_path: Path, memory: str, expected: float | None
) -> None:
    out = read(tmp_path, run_file([stats(AT_S, {"cpu": 60.0, memory: 50.0, "proc.memory.availableMB": 10.0})]))
    assert ("cpu_pct" not in out.host) if expected is None else out.host["cpu_pct"].tolist() == [expected]


def test_the_machine_that_the_file_tells_names_the_gpus(tmp_path: Path) -> None:
    boards = [("NVIDIA H100 80GB HBM3", "GPU-7d83c649-a451-78d1-cf90-503a571b9ab4"), ("NVIDIA T4", "")]
    ticks = [stats(1e9 + 10 * k, {"gpu.0.gpu": 90.0, "gpu.1.gpu": 1.0}) for k in range(4)]
    gpus = read(tmp_path, run_file([environment(boards), environment([]), *ticks])).gpus.set_index("gpu")
    assert gpus["name"].to_dict() == {"0": boards[0][0], "1": boards[1][0]}
    assert gpus.loc["0", "uuid"] == boards[0][1] and pd.isna(gpus.loc["1", "uuid"])
    first = [stats(1e9 + 10 * k, {"gpu.0.gpu": 90.0}) for k in range(4)]
    assert read(tmp_path, run_file([environment(boards), *first])).gpus["gpu"].tolist() == ["0"]


def test_a_killed_run_is_read_up_to_its_last_block(tmp_path: Path) -> None:
    whole = run_file([stats(AT_S + 30 * n, {f"gpu.{i}.gpu": 50.0 for i in range(40)}) for n in range(100)])
    assert len(whole) > 2 * BLOCK
    full, cut = read(tmp_path, whole), read(tmp_path, whole[: 2 * BLOCK])
    assert full.problems == ()
    assert [problem.kind for problem in cut.problems] == ["last record is cut"]
    assert 0 < len(cut.gpu) < len(full.gpu) and len(cut.gpu) % 40 == 0
    assert set(cut.gpu["time"]) < set(full.gpu["time"])


def test_a_damaged_record_costs_its_block_only(tmp_path: Path) -> None:
    whole = bytearray(run_file([stats(AT_S + 30 * n, {f"gpu.{i}.gpu": 50.0 for i in range(40)}) for n in range(100)]))
    whole[BLOCK + 300] ^= 255
    out = read(tmp_path, bytes(whole))
    assert "record with a wrong checksum" in {problem.kind for problem in out.problems}
    assert out.gpu["time"].max() == pd.Timestamp(AT_S + 30 * 99, unit="s", tz="UTC")


def test_a_run_shorter_than_one_interval_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run file without system metrics"):
        read(tmp_path, run_file([]))


def test_records_give_back_what_was_written() -> None:
    log = ProblemLog()
    (found,) = records(run_file([b"\x08\x07" + b"\xb2\x01\x03abc" + b"\x48" + b"\xff" * 9 + b"\x01"]), log)
    assert (number(found, 1), text(found, 22), number(found, 9), number(found, 5)) == (7, "abc", -1, 0)
    assert log.all == ()


def test_events_without_bytes_know_no_mebibytes(tmp_path: Path) -> None:
    line = {"system.gpu.0.gpu": 4.07, "system.gpu.0.memoryAllocated": 1.91, "_timestamp": 1582070941, "_wandb": True}
    out = read(tmp_path, json.dumps(line) + "\n")
    assert out.gpu["util_pct"].tolist() == [4.07] and "mem_used_mib" not in out.gpu
    assert any("memory in MiB is unknown" in note for note in out.notes)
