"""The recorder around a training: thread and process, Parquet, and that nothing of it reaches the training."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pytest
from replay import Hands, Replay, no_driver

import gpudiag as gd
from gpudiag.errors import ConfigError
from gpudiag.readers.telemetry import gpudiag_parquet
from gpudiag.record import sink as sinks
from gpudiag.record.parquet import convert, journal_of
from gpudiag.record.readings import NoDriver


def recorder(path: Path, adapter: Replay | None = None, **more: object) -> gd.Recorder:
    return gd.Recorder(path, interval_s=0.02, adapter=adapter or Replay(), **more)  # type: ignore[arg-type]


def wait_until(condition: object, timeout_s: float = 20) -> None:
    end = time.monotonic() + timeout_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "it never came to be so"
        time.sleep(0.01)


def test_importing_it_is_cheap() -> None:
    heavy = ("pandas", "numpy", "polars", "optuna", "pyarrow")
    code = (
        f"import sys, gpudiag.record.session, gpudiag.record.process\nprint([m for m in {heavy} if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_a_training_in_a_with_block(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    with recorder(path, settings={"batch_size": 8}) as rec:
        batches = list(rec.timed(range(5)))
        wait_until(lambda: "CPU:" in rec.status_line())
        summary = rec.epoch(3)
        rec.mark("checkpoint", "saved", trial=4)
    assert batches == [0, 1, 2, 3, 4]
    assert rec.status_line().startswith("GPU: 85% | VRAM:12.3/24.0GB(51.2%) | CPU: ")
    assert summary.startswith("epoch 3: ") and "GPU mean 85 %" in summary
    out = gd.read_telemetry(path)
    assert len(out.gpu) > 0 and len(out.host) > 0
    told = dict(zip(out.events["kind"], out.events["detail"], strict=True))
    assert told["epoch"] == summary and told["checkpoint"] == "saved" and "record_end" in told
    assert out.events.loc[out.events["kind"] == "checkpoint", "trial"].tolist() == [4]


def test_an_exception_is_noted_and_passes(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), recorder(tmp_path / "a.csv"):
        _ = 1 / 0
    events = gd.read_telemetry(tmp_path / "a.csv").events
    assert events.loc[events["kind"] == "exception", "detail"].tolist() == ["ZeroDivisionError"]


def test_no_failure_while_recording_reaches_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self) -> None:
            pass

    with recorder(tmp_path / "bug.csv", Replay({"0": [ValueError("a bug")]})):
        time.sleep(0.1)
    said = capsys.readouterr().err
    assert said == "gpudiag: recording has stopped: ValueError: a bug\n"
    monkeypatch.setattr(sinks.CsvSink.__init__, "__kwdefaults__", {"rotate_mb": None, "opener": lambda path: Full()})
    with recorder(tmp_path / "full.csv"):
        time.sleep(0.1)
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "No space left on device" in said


def test_a_reading_that_hangs_does_not_hold_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpudiag.record.worker.PATIENCE_S", 0.2)
    free = threading.Event()

    class Hanging(Replay):
        def read(self, of: object, *, pcie: bool) -> dict:  # type: ignore[override]
            free.wait(30)
            return {}

    began = time.monotonic()
    with recorder(tmp_path / "a.csv", Hanging()):
        pass
    assert time.monotonic() - began < 5
    assert "hangs in the driver" in capsys.readouterr().err
    free.set()
    wait_until(lambda: not any(thread.name == "gpudiag-record" for thread in threading.enumerate()))


def test_without_a_driver(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    gone = [no_driver(), no_driver()]
    with (
        pytest.raises(NoDriver, match="no NVIDIA driver"),
        recorder(tmp_path / "a.csv", Replay(opens=gone), host=False),
    ):
        pass
    with recorder(tmp_path / "a.csv", Replay(opens=gone)) as rec:
        wait_until(lambda: "RAM" in rec.status_line())
    assert capsys.readouterr().err.endswith("Only the host is recorded.\n")
    assert len(gd.read_telemetry(tmp_path / "a.csv").host) > 0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_stopping_twice_and_a_fork_do_nothing(tmp_path: Path) -> None:
    rec = recorder(tmp_path / "a.csv").start()
    pid = os.fork()
    if pid == 0:
        rec.stop()
        os._exit(0)
    os.waitpid(pid, 0)
    wait_until(lambda: rec.status_line() != "")
    rec.stop()
    size = (tmp_path / "a.csv").stat().st_size
    rec.stop()
    assert (tmp_path / "a.csv").stat().st_size == size
    events = gd.read_telemetry(tmp_path / "a.csv").events
    assert events["kind"].tolist().count("record_end") == 1


def test_parquet_holds_what_the_journal_held(tmp_path: Path) -> None:
    path = tmp_path / "metrics.parquet"
    with recorder(path, Replay({"0": [], "1": []}, seen={"0": [{"pid": 5, "sm_pct": 9}]})) as rec:
        wait_until(lambda: "CPU:" in rec.status_line())
        journal = journal_of(path)
        assert journal.exists() and not path.exists(), "a kill at any time leaves the journal"
    assert path.exists() and not journal.exists() and rec.path == path
    out = gd.read_telemetry(path)
    assert out.reader == gpudiag_parquet.NAME and out.clock == "utc"
    assert len(out.gpu) > 0 and len(out.host) > 0 and len(out.processes) > 0
    assert out.events["kind"].tolist() == ["record_start", "record_end"]
    assert out.gpus["gpu"].tolist() == ["0", "1"] and out.gpus["driver"].notna().all()


def test_parquet_and_csv_give_the_same_tables(tmp_path: Path) -> None:
    """A file with two sessions, a lost GPU and a clock that was set."""
    from gpudiag.record.readings import GpuLost
    from gpudiag.record.sampler import Clock, Options, Sampler

    path = tmp_path / "a.journal.csv"
    hands = Hands()
    hands.at_wait = lambda n: setattr(hands, "wall_s", hands.wall_s - (500.0 if n == 7 else 0.0))
    for adapter in (Replay({"0": [GpuLost("lost")], "1": []}, seen={"1": [{"pid": 4}]}), Replay()):
        sampler = Sampler(
            sinks.CsvSink(path, pytest.fail), adapter, None, Options(processes=True),
            clock=Clock(hands.wall, hands.mono, hands.wait),
        )  # fmt: skip
        sampler.open()
        for _ in range(12):
            sampler.tick()
            hands.wait(threading.Event(), 1.0)
        sampler.close()
        hands.wall_s += 5000
    before = gd.read_telemetry(path)
    assert convert(path, tmp_path / "a.parquet") == tmp_path / "a.parquet"
    after = gd.read_telemetry(tmp_path / "a.parquet")
    for name in ("gpu", "gpus", "processes", "host"):
        pd.testing.assert_frame_equal(getattr(before, name), getattr(after, name))
    pd.testing.assert_frame_equal(before.events.drop(columns="path"), after.events.drop(columns="path"))
    assert before.notes == after.notes and len(before.notes) == 1


def test_an_older_parquet_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "metrics.parquet"
    for _ in range(2):
        with recorder(path) as rec:
            pass
    assert sorted(file.name for file in tmp_path.iterdir()) == ["metrics.002.parquet", "metrics.parquet"]
    assert rec.path.name == "metrics.002.parquet"


def test_senseless_wishes_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"cannot be rotated; record to \.csv"):
        gd.Recorder("a.parquet", rotate_mb=1)
    with pytest.raises(ConfigError, match="'thread' or 'process', but got 'magic'"):
        gd.Recorder("a.csv", mode="magic")  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_process_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with gd.Recorder(path, interval_s=0.05, mode="process") as rec:
        wait_until(lambda: "CPU: " in rec.status_line() and "CPU: n/a" not in rec.status_line())
        rec.mark("checkpoint", "saved")
        assert "CPU mean" in rec.epoch()
    out = gd.read_telemetry(path)
    assert len(out.host) >= 2
    assert {"checkpoint", "epoch", "record_end"} <= set(out.events["kind"])
    size = path.stat().st_size
    time.sleep(0.2)
    assert path.stat().st_size == size, "it has ended"


def test_a_process_that_cannot_begin_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ConfigError, match="cannot be written"),
        gd.Recorder(tmp_path / "file" / "a.csv", mode="process"),
    ):
        pass


def test_the_process_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """Even where a child of the training still holds the pipe open."""
    path = tmp_path / "a.csv"
    code = (
        "import gpudiag as gd, os, sys, time\n"
        f"rec = gd.Recorder({str(path)!r}, interval_s=0.05, mode='process').start()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n    time.sleep(60); os._exit(0)\n"
        "print(pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    try:
        wait_until(lambda: path.exists() and b",host" in path.read_bytes())
        process.kill()
        process.wait()
        wait_until(lambda: b"record_end" in path.read_bytes())
    finally:
        os.kill(worker, 9)
        process.stdout.close()
