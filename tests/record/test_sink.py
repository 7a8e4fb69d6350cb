"""The file: torn by nothing that can be helped, read back as it was written."""

from __future__ import annotations

import errno
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay import device

from gpudiag import read_telemetry
from gpudiag.errors import ConfigError, InputError
from gpudiag.readers._io.record_format import COLUMNS, KINDS
from gpudiag.record.readings import RecordRow
from gpudiag.record.sink import CsvSink, line, timestamp

AT = 1_772_359_200.0


def gpu_row(tick: int, **values: float) -> RecordRow:
    return RecordRow("gpu", AT + tick, 10.0 + tick, {"gpu": "0", "util_pct": tick % 100, **values})


def write(path: Path, ticks: range, **more: object) -> CsvSink:
    sink = CsvSink(path, pytest.fail, **more)  # type: ignore[arg-type]
    sink.begin({"driver": "1"}, [device(0)])
    for tick in ticks:
        sink.write([gpu_row(tick)])
    sink.close()
    return sink


def test_the_schema_is_in_the_columns() -> None:
    from gpudiag.schema import GPU, HOST, PROCESSES

    for table in (GPU, HOST, PROCESSES):
        assert set(table.names) - {"tenant"} <= set(COLUMNS), "whose a GPU is, monitoring of a cluster tells"
    assert COLUMNS[-1] == "record" and len(set(COLUMNS)) == len(COLUMNS)
    assert not any(a != b and a.startswith(b) for a in KINDS for b in KINDS)


@given(st.floats(0, 4e9), st.floats(0, 1e12), st.text(max_size=30))
def test_a_line_is_one_line_and_loses_nothing(time_s: float, value: float, text: str) -> None:
    import csv

    out = line(RecordRow("event", time_s, 1.0, {"energy_j": value, "detail": text, "kind": "mark"}))
    assert out.endswith(",event\n") and out.count("\n") == 1 and "\r" not in out
    (cells,) = csv.reader([out.rstrip("\n")])
    row = dict(zip(COLUMNS, cells, strict=True))
    assert math.isclose(float(row["energy_j"]), value, abs_tol=5.1e-4)
    assert row["detail"] == " ".join(text.split())


def test_timestamps_are_utc_to_the_microsecond() -> None:
    assert timestamp(0.000001) == "1970-01-01T00:00:00.000001Z"
    assert timestamp(AT + 0.5) == "2026-03-01T10:00:00.500000Z"


def test_a_restart_appends_a_session(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write(path, range(5))
    before = path.read_bytes()
    write(path, range(5, 9))
    assert path.read_bytes().startswith(before)
    out = read_telemetry(path)
    assert len(out.gpu) == 9 and not out.problems


@pytest.mark.slow
def test_a_torn_row_costs_itself_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write(path, range(5))
    whole = path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    for cut in range(last + 1, len(whole) - 1, 3):
        path.write_bytes(whole[:cut])
        write(path, range(7, 9))
        out = read_telemetry(path)
        assert out.gpu["util_pct"].tolist() == [0, 1, 2, 3, 7, 8], cut
        assert [p.kind for p in out.problems] in (["torn row"], ["line that is no row"]), cut


def test_rotation_keeps_every_row(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write(path, range(200), rotate_mb=0.004)
    files = sorted(tmp_path.glob("*.csv"))
    assert len(files) > 3 and path in files
    assert all(file.stat().st_size <= 4000 for file in files)
    ticks = [value for file in files for value in read_telemetry(file).gpu["time"]]
    assert len(ticks) == len(set(ticks)) == 200


class Full:
    """A disk with room for ``room`` bytes."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.data = bytearray()

    def write(self, data: memoryview) -> int:
        fits = min(len(data), self.room - len(self.data))
        if fits <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.data += data[:fits]
        return fits

    def close(self) -> None:
        pass


@pytest.mark.parametrize("room", [10, 900, 1500, 2001])
def test_a_full_disk_is_told_once_and_stops_the_recording(room: int, tmp_path: Path) -> None:
    said: list[str] = []
    disk = Full(room)
    sink = CsvSink(tmp_path / "a.csv", said.append, opener=lambda path: disk)  # type: ignore[arg-type,return-value]
    sink.begin({}, [device(0)])
    answers = [sink.write([gpu_row(tick)]) for tick in range(100)]
    sink.close()
    assert answers == sorted(answers, reverse=True) and answers[-1] is False, "never again after the first failure"
    assert len(said) == 1 and "No space left on device" in said[0] and "a.csv" in said[0]
    assert len(disk.data) == room
    (tmp_path / "kept.csv").write_bytes(disk.data)
    if room > 1500:
        assert len(read_telemetry(tmp_path / "kept.csv").gpu) == sum(answers)


def test_a_place_that_cannot_be_written_is_an_error_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot be written \(.*\); give another file"):
        CsvSink(tmp_path / "file" / "a.csv", pytest.fail).begin({}, [])


@pytest.mark.parametrize("text", ["timestamp, index\n2026/03/01 10:00:00.000, 0\n", "a,b\n1,2", "\n"])
def test_rows_are_never_appended_to_the_file_of_another(text: str, tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(text)
    with pytest.raises(ConfigError, match=r"gpu\.csv: holds something else than a recording of gpudiag .*another file"):
        write(tmp_path / "gpu.csv", range(3))
    assert (tmp_path / "gpu.csv").read_text() == text


@pytest.mark.parametrize("text", ["", "# gpudiag-rec"])
def test_an_empty_file_and_a_header_cut_short_are_ours(text: str, tmp_path: Path) -> None:
    (tmp_path / "gpu.csv").write_text(text)
    write(tmp_path / "gpu.csv", range(3))
    assert len(read_telemetry(tmp_path / "gpu.csv").gpu) == 3


def test_a_newer_format_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("# gpudiag-record 99 {}\ntime,record\n")
    with pytest.raises(InputError, match="version 99 of the recorder's format; this gpudiag reads version 1"):
        read_telemetry(path)


WRITERS = """
import os, random, signal, sys, time
from pathlib import Path
from gpudiag.record.readings import RecordRow
from gpudiag.record.sink import CsvSink

def write(path, told, began):
    sink = CsvSink(path, print)
    sink.begin({}, [])
    tick = 0
    while True:
        timestamp = began + tick / 1000
        rows = [RecordRow("gpu", timestamp, tick / 1000, {"gpu": str(g), "util_pct": tick % 100}) for g in range(4)]
        sink.write(rows)
        tick += 1
        os.write(told, b"x")

for attempt in range(100):
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        write(Path(sys.argv[1]), writes, 1.7e9 + 100 * attempt)
    os.close(writes)
    os.read(reads, 1)
    time.sleep(random.Random(attempt).uniform(0, 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    told = 1
    while data := os.read(reads, 65536):
        told += len(data)
    os.close(reads)
    print(told)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks of itself")
@pytest.mark.slow
def test_a_kill_loses_at_most_one_sample(tmp_path: Path) -> None:
    """100 writers are killed at any moment; what they had written is there, in whole ticks but for the last."""
    path = tmp_path / "a.csv"
    done = subprocess.run([sys.executable, "-c", WRITERS, str(path)], stdout=subprocess.PIPE, text=True, check=True)
    told = [int(ticks) for ticks in done.stdout.split()]
    sessions = path.read_bytes().split(b"# gpudiag-record ")[1:]
    assert len(told) == len(sessions) == 100 and max(told) > 10
    for ticks, session in zip(told, sessions, strict=True):
        written = session.count(b",gpu\n")
        assert written >= 4 * ticks, "what the writer told of is in the file"
        assert written <= 4 * (ticks + 1), "at most the tick of the kill is more"
        rows = [row for row in session.split(b"\n") if row[:4] == b"2023"]
        assert len(rows) - written <= 1 and written // 4 >= len(rows) / 4 - 1, "at most the last tick is torn"
    assert len(read_telemetry(path).gpu) >= 4 * sum(told)


@pytest.mark.skipif(not hasattr(os, "statvfs") or os.geteuid() != 0, reason="needs to mount a file system")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting is not permitted")
    try:
        said: list[str] = []
        sink = CsvSink(disk / "a.csv", said.append)
        sink.begin({}, [device(0)])
        answers = [sink.write([gpu_row(tick)]) for tick in range(2000)]
        sink.close()
        assert not answers[-1] and len(said) == 1
        read = len(read_telemetry(disk / "a.csv").gpu)
        assert read - sum(answers) in (0, 1), "the last that did not fit may lack no more than its line end"
    finally:
        subprocess.run(["umount", str(disk)], check=True)
