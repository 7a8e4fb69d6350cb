"""The wrapped command: its streams, its signals and its end, as if nobody stood between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpudiag import read_telemetry
from gpudiag.cli import expand

GPUDIAG = [sys.executable, "-m", "gpudiag", "record", "--host", "--interval", "0.1"]


def start(path: Path, *command: str, **more: object) -> subprocess.Popen[bytes]:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more
    return subprocess.Popen([*GPUDIAG, "-o", str(path), "--", *command], **streams)  # type: ignore[call-overload,no-any-return]


def finish(process: subprocess.Popen[bytes], timeout_s: float = 60) -> tuple[int, bytes, bytes]:
    out, err = process.communicate(timeout=timeout_s)
    return process.returncode, out, err


def events(path: Path) -> dict[str, str]:
    frame = read_telemetry(path).events
    return dict(zip(frame["kind"], frame["detail"], strict=True))


def wait_for(path: Path, text: str = "") -> str:
    for _ in range(600):
        if path.exists() and text in path.read_text(encoding="utf-8") and path.stat().st_size:
            return path.read_text(encoding="utf-8")
        time.sleep(0.05)
    pytest.fail(f"{path} never came to hold {text!r}")


@pytest.mark.slow
@pytest.mark.parametrize("code", [0, 3, 255])
def test_the_exit_code_passes(code: int, tmp_path: Path) -> None:
    returned, out, _ = finish(start(tmp_path / "a.csv", "sh", "-c", f"echo to out; exit {code}"))
    assert (returned, out) == (code, b"to out\n")
    told = events(tmp_path / "a.csv")
    assert told["command_end"] == f"exit code {code}" and told["command_start"].startswith("pid ")
    assert read_telemetry(tmp_path / "a.csv").notes == (f"Recorded while running: sh -c 'echo to out; exit {code}'.",)
    assert "record_end" in told


@pytest.mark.slow
def test_a_command_that_is_killed_is_told_by_its_signal(tmp_path: Path) -> None:
    returned, _, _ = finish(start(tmp_path / "a.csv", "sh", "-c", "kill -9 $$"))
    assert returned == 128 + 9
    assert events(tmp_path / "a.csv")["killed"] == "killed by SIGKILL (9)"


@pytest.mark.slow
def test_standard_input_is_the_commands(tmp_path: Path) -> None:
    process = start(tmp_path / "a.csv", "tr", "a-z", "A-Z", stdin=subprocess.PIPE)
    out, _ = process.communicate(b"hello\n", timeout=60)
    assert out == b"HELLO\n"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_are_passed_on(number: signal.Signals, tmp_path: Path) -> None:
    ready, path = tmp_path / "ready", tmp_path / "a.csv"
    script = (
        f"trap 'echo got; exit 5' {number.name.removeprefix('SIG')}; echo x > {ready}; while :; do sleep 0.05; done"
    )
    process = start(path, "sh", "-c", script)
    wait_for(ready)
    process.send_signal(number)
    returned, out, _ = finish(process)
    assert (returned, out) == (5, b"got\n")
    assert events(path)["signal"] == f"{number.name} ({number.value})", "an exit code alone does not tell of it"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_ctrl_c_of_a_terminal_reaches_the_command_once(tmp_path: Path) -> None:
    """The terminal sends it to the whole group: the command counts how often it comes."""
    pty = pytest.importorskip("pty")
    ready, count = tmp_path / "ready", tmp_path / "count"
    script = (
        "import signal, sys, time, pathlib\n"
        "n = []\n"
        "signal.signal(signal.SIGINT, lambda *a: n.append(1))\n"
        f"pathlib.Path({str(ready)!r}).write_text('x')\n"
        "end = time.time() + 1.5\n"
        "while time.time() < end: time.sleep(0.02)\n"
        f"pathlib.Path({str(count)!r}).write_text(str(len(n)))\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        command = [*GPUDIAG, "-o", str(tmp_path / "a.csv"), "--", sys.executable, "-c", script]
        os.execv(sys.executable, command)
    try:
        wait_for(ready)
        os.write(terminal, b"\x03")
        assert wait_for(count) == "1"
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        os.close(terminal)


@pytest.mark.slow
def test_a_command_that_ignores_sigterm_is_not_killed_and_its_end_is_awaited(tmp_path: Path) -> None:
    ready, path = tmp_path / "ready", tmp_path / "a.csv"
    process = start(path, "sh", "-c", f"trap '' TERM; echo x > {ready}; sleep 1; echo done; exit 4")
    wait_for(ready)
    for _ in range(5):
        process.send_signal(signal.SIGTERM)
    returned, out, _ = finish(process)
    assert (returned, out) == (4, b"done\n")
    assert len(read_telemetry(path).host) >= 5, "it recorded to the end"


@pytest.mark.slow
def test_a_command_that_leaves_a_child_behind_is_not_waited_for(tmp_path: Path) -> None:
    left = tmp_path / "left"
    command = f"sleep 30 > /dev/null 2>&1 & echo $! > {left}; exit 6"
    began = time.monotonic()
    try:
        assert finish(start(tmp_path / "a.csv", "sh", "-c", command))[0] == 6
        assert time.monotonic() - began < 20
        os.kill(int(left.read_text()), 0)
    finally:
        os.kill(int(left.read_text()), signal.SIGKILL)


@pytest.mark.slow
def test_fifty_megabytes_of_output_come_through(tmp_path: Path) -> None:
    code = "import sys\nfor n in range(50): sys.stdout.write(chr(97 + n % 26) * 999_999 + '\\n')"
    returned, out, err = finish(start(tmp_path / "a.csv", sys.executable, "-c", code))
    assert returned == 0 and len(out) == 50_000_000
    assert out == b"".join(bytes([97 + n % 26]) * 999_999 + b"\n" for n in range(50))
    assert err.count(b"\n") <= 1, "nothing of ours but the sentence on the driver"


@pytest.mark.slow
def test_a_gigabyte_of_output_comes_through_and_costs_us_nothing(tmp_path: Path) -> None:
    """It never passes through our hands: the command writes to our own standard output."""
    size = 1_000_000_000
    process = start(tmp_path / "a.csv", "head", "-c", str(size), "/dev/zero", stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    counted = subprocess.run(["wc", "-c"], stdin=process.stdout, capture_output=True, check=True)
    process.stdout.close()
    assert process.wait(timeout=60) == 0 and int(counted.stdout) == size
    assert {"command_start", "command_end", "record_end"} <= set(events(tmp_path / "a.csv"))


@pytest.mark.slow
def test_killing_the_recorder_leaves_the_command_alone(tmp_path: Path) -> None:
    ready, done, path = tmp_path / "ready", tmp_path / "done", tmp_path / "a.csv"
    process = start(path, "sh", "-c", f"echo x > {ready}; sleep 1; echo y > {done}")
    wait_for(ready)
    wait_for(path, ",host\n")
    process.kill()
    process.communicate()
    wait_for(done)
    assert len(read_telemetry(path).host) > 0


@pytest.mark.slow
def test_a_command_that_cannot_be_started_is_one_sentence(tmp_path: Path) -> None:
    returned, out, err = finish(start(tmp_path / "a.csv", "no-such-program"))
    assert returned == 2 and out == b""
    assert b"gpudiag: no-such-program: cannot be started (No such file or directory)." in err


@pytest.mark.slow
def test_without_a_driver_nothing_is_started(tmp_path: Path) -> None:
    """On a machine without a GPU; where there is one, the command runs."""
    mark = tmp_path / "ran"
    arguments = [sys.executable, "-m", "gpudiag", "record", "-o", str(tmp_path / "a.csv"), "--", "touch", str(mark)]
    result = subprocess.run(arguments, capture_output=True, text=True)
    if result.returncode == 0:
        assert mark.exists()
        return
    assert result.returncode == 2 and not mark.exists() and not (tmp_path / "a.csv").exists()
    assert result.stderr.startswith("gpudiag: no NVIDIA driver on this machine: ") and result.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_recording_without_a_command_and_it_says_where_it_lies(tmp_path: Path, number: int) -> None:
    path = tmp_path / "a.csv"
    process = subprocess.Popen(
        [*GPUDIAG, "-o", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # the tests may themselves run with nohup
    )
    wait_for(path, ",host\n")
    process.send_signal(number)
    returned, _, err = finish(process)
    assert returned == 0
    assert err.decode().splitlines()[-1] == f"{path}: recorded. Next: gpudiag diagnose {path}"
    assert "record_end" in events(path)


@pytest.mark.slow
def test_nohup_keeps_a_recording_from_a_hangup(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    process = subprocess.Popen(["nohup", *GPUDIAG, "-o", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(path, ",host\n")
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 0
    assert "record_end" in events(path)


def test_the_commands_own_options_are_left_alone() -> None:
    given = ["record", "-o", "x", "--", "train", "--telemetry", "a", "b", "--artifacts", "c", "d"]
    assert expand(given) == given
