"""gpudiag is ended from outside, at any moment: no mixed files, no process, no temporary folder is left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from gpudiag import files
from gpudiag.errors import ConfigError
from gpudiag.files import write, write_all
from gpudiag.report._notebook.kernel import kernel_for
from gpudiag.scratch import LOCK, scratch, sweep

SAMPLES = Path(__file__).resolve().parent.parent.parent / "data" / "samples"
NAMES = ("files/a.svg", "report.md", "report.ipynb", "diagnosis.json", "report.html")
LAST = NAMES[-1]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

WRITER = f"""
import os, signal, sys
from pathlib import Path
from gpudiag.files import write_all
folder, text, left = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
move = Path.rename
def counted(path, to):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return move(path, to)
Path.rename = counted
write_all(folder, [(folder / name, text) for name in {NAMES!r}])
"""


def put(folder: Path, text: str) -> None:
    write_all(folder, [(folder / name, text) for name in NAMES])


def held(folder: Path) -> dict[str, str]:
    """What lies in the folder for people to read, by name."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    names = {path.relative_to(folder).as_posix(): path for path in files}
    return {name: path.read_text() for name, path in names.items() if not name.startswith(".")}


def process(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], text=True, stdout=subprocess.PIPE)


@pytest.mark.slow
def test_a_kill_between_any_two_moves_leaves_files_of_one_output_alone(tmp_path: Path) -> None:
    moves = 1 + 2 * len(NAMES)  # one for the lock of the temporary folder
    seen = []
    for at in range(1, moves + 1):
        folder = tmp_path / str(at)
        put(folder, "A")
        writer = process(WRITER, folder, "B", at)
        writer.communicate()
        assert writer.returncode == (0 if at == moves else -signal.SIGKILL)
        now = held(folder)
        assert len(set(now.values())) <= 1, (at, now)
        assert LAST not in now or set(now) == set(NAMES), (at, now)
        seen.append("".join(sorted(set(now.values()))) + str(len(now)))
        put(folder, "C")  # the next run puts everything right, and removes what the killed one left
        assert held(folder) == dict.fromkeys(NAMES, "C") and not list(folder.glob(".*"))
    assert seen[0] == "A5" and seen[-1] == "B5" and {"A1", "B1", "0"} <= set(seen)


@pytest.mark.parametrize("raised", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_fails_between_any_two_moves_leaves_the_earlier_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException
) -> None:
    put(tmp_path, "A")
    move = Path.rename
    for room in range(1, 1 + 2 * len(NAMES)):  # the first move is that of the lock
        moves = iter(range(room))

        def limited(path: Path, to: Path, moves: Iterator[int] = moves) -> Path:
            if next(moves, None) is None:
                Path.rename = move  # type: ignore[assignment]  # the undoing may move
                raise raised
            return move(path, to)

        with monkeypatch.context() as context:
            context.setattr(Path, "rename", limited)
            with pytest.raises(type(raised)):
                put(tmp_path, "B")
        assert held(tmp_path) == dict.fromkeys(NAMES, "A"), room
        assert not list(tmp_path.glob(".*"))


def test_a_failed_first_output_leaves_no_folder(tmp_path: Path) -> None:
    def contents() -> Iterator[tuple[Path, str]]:
        yield tmp_path / "new" / "deep" / "a.csv", "1"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_all(tmp_path / "new", contents())
    assert not (tmp_path / "new").exists()


def test_a_folder_of_that_name_is_kept(tmp_path: Path) -> None:
    (tmp_path / "report.md" / "mine").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"report\.md: is a folder"):
        put(tmp_path, "A")
    assert held(tmp_path) == {} and (tmp_path / "report.md" / "mine").is_dir()


def test_a_device_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = process("import sys; print(open(sys.argv[1]).read())", pipe)
    write(pipe, "plan")
    assert reader.communicate(timeout=30)[0] == "plan\n" and pipe.is_fifo()
    write(Path(os.devnull), "plan")
    assert not Path(os.devnull).is_file()


@pytest.mark.slow
def test_two_outputs_at_once_do_not_mix(tmp_path: Path) -> None:
    """Both are killed at some moment; whatever lies there then is of one of them."""
    code = f"""
import sys
from pathlib import Path
from gpudiag.files import write_all
print("ready", flush=True)
while True:
    write_all(Path(sys.argv[1]), [(Path(sys.argv[1]) / name, sys.argv[2]) for name in {NAMES!r}])
"""
    for at in range(6):
        folder = tmp_path / str(at)
        both = [process(code, folder, text) for text in "AB"]
        for one in both:
            assert one.stdout is not None and one.stdout.readline() == "ready\n"
        time.sleep(0.1 + 0.03 * at)
        for one in both:
            one.kill()
            one.communicate()
        now = held(folder)
        assert len(set(now.values())) <= 1 and (LAST not in now or len(now) == len(NAMES)), now


@pytest.mark.slow
def test_a_lock_that_another_process_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import fcntl, os, sys, time; fcntl.flock(os.open(sys.argv[1], 0), fcntl.LOCK_EX); print(1, flush=True)"
    holder = process(f"{code}; time.sleep(600)", tmp_path)
    assert holder.stdout is not None and holder.stdout.readline()
    monkeypatch.setattr(files, "LONGEST_WAIT_S", 0.3)
    with pytest.raises(ConfigError, match=rf"{tmp_path}: another process has kept .* choose another output"):
        put(tmp_path, "A")
    assert not held(tmp_path)
    monkeypatch.setattr(files, "LONGEST_WAIT_S", 60)
    threading.Timer(0.5, holder.kill).start()
    put(tmp_path, "A")
    assert len(held(tmp_path)) == len(NAMES)
    holder.communicate()


HOLDER = "import sys, time\nfrom pathlib import Path\nfrom gpudiag.scratch import scratch\n" + (
    "with scratch(Path(sys.argv[1])) as it: (it / 'x').write_text('x'); print(it, flush=True); time.sleep(600)"
)


def test_only_what_dead_processes_left_is_swept(tmp_path: Path) -> None:
    dead, alive = process(HOLDER, tmp_path), process(HOLDER, tmp_path)
    folders = [Path(one.stdout.readline().strip()) for one in (dead, alive) if one.stdout]
    dead.kill()
    dead.communicate()
    (tmp_path / "gpudiag-of-mine").mkdir()  # without a lock: of the user, or of an older gpudiag
    (tmp_path / "gpudiag-link").symlink_to(folders[1])
    (tmp_path / "gpudiag-x").write_text("")
    with scratch(tmp_path) as own:
        assert own.stat().st_mode & 0o77 == 0 and (own / LOCK).exists()
        with scratch(tmp_path):
            assert own.exists()
        assert [folder.exists() for folder in folders] == [False, True]
    alive.kill()
    alive.communicate()
    assert {path.name for path in tmp_path.iterdir()} == {
        "gpudiag-of-mine",
        "gpudiag-link",
        "gpudiag-x",
        folders[1].name,
    }
    sweep(tmp_path)
    assert not folders[1].exists() and (tmp_path / "gpudiag-of-mine").is_dir()


def test_what_another_user_left_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = process(HOLDER, tmp_path)
    assert holder.stdout is not None
    folder = Path(holder.stdout.readline().strip())
    holder.kill()
    holder.communicate()
    with monkeypatch.context() as context:
        context.setattr(os, "geteuid", lambda: os.getuid() + 1)
        sweep(tmp_path)
    assert folder.exists()


Start = Callable[..., subprocess.Popen[str]]


def heeding_signals() -> None:
    """Whoever runs the tests with nohup, or behind a shell, ignores some of them, and so would what they start."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start ``gpudiag ARGUMENTS`` with temporary files and output below ``tmp_path``."""
    started: list[subprocess.Popen[str]] = []
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path / "tmp")}
    environment |= {"RUN_OF_TEST": str(tmp_path / "tmp")}

    def begin(*arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-P", "-m", "gpudiag", *map(str, arguments)]
        made = subprocess.Popen(
            command,
            text=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=environment,
            preexec_fn=heeding_signals,
        )
        started.append(made)
        return made

    yield begin
    for one in started:
        one.kill()
        one.communicate()


def until(met: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 120
    while not met():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def of_run(folder: Path) -> list[str]:
    """The processes that were begun with this folder for their temporary files, and theirs."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"RUN_OF_TEST={folder}\0".encode() in (one / "environ").read_bytes():
                found.append((one / "cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


def kernels(folder: Path) -> list[str]:
    return [command for command in of_run(folder) if "ipykernel" in command]


linux = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")


@linux
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])  # SIGTERM ends the commands below
def test_a_report_that_is_ended(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    tmp, out = tmp_path / "tmp", tmp_path / "out"
    report = start("report", SAMPLES / "tiny-batch-laptop", "-o", out)
    until(lambda: kernels(tmp), "no kernel started")
    time.sleep(0.3)
    report.send_signal(number)
    said = report.communicate(timeout=60)[1].splitlines()
    until(lambda: not of_run(tmp), "a process was left")
    assert not out.exists()
    if number == signal.SIGKILL:
        assert report.returncode == -signal.SIGKILL and list(tmp.glob("gpudiag-*"))
        sweep(tmp)
    else:
        name = "Ctrl-C" if number == signal.SIGINT else number.name
        assert [line for line in said if line.startswith("gpudiag")] == [f"gpudiag: ended by {name}."]
        assert not [line for line in said if "Traceback" in line]
        # a shell says 130 of both forms of the end by Ctrl-C
        assert report.returncode in {128 + number, -signal.SIGINT if number == signal.SIGINT else 128 + number}
    assert not list(tmp.iterdir())


def test_a_kernel_of_which_nobody_was_told_ends_too(tmp_path: Path) -> None:
    """As where a signal comes between its start and the return to whoever started it."""
    code = "import time; print(1, flush=True); time.sleep(600)"
    with pytest.raises(KeyboardInterrupt), kernel_for(tmp_path, own_modules=False):
        kernel, other = (process(code, place) for place in (tmp_path / "kernel.json", "elsewhere"))
        assert all(one.stdout is not None and one.stdout.readline() for one in (kernel, other))
        raise KeyboardInterrupt
    assert kernel.wait(timeout=0) is not None and other.poll() is None
    other.kill()
    for one in (kernel, other):
        one.communicate()


@pytest.mark.slow
def test_a_signal_while_a_socket_is_made_is_no_end_without_end(tmp_path: Path) -> None:
    """ZeroMQ itself looks for signals, so that a socket may be open and known to nobody; closing waited for it."""
    code = """
import sys
from pathlib import Path
import nbformat, papermill, zmq.asyncio
from gpudiag.report._notebook.kernel import keeping_kernel, kernel_for
made, get = [], zmq.asyncio.Socket.get
def interrupted(socket, key):
    made.append(key)
    if made.count(zmq.TYPE) == int(sys.argv[2]):
        raise KeyboardInterrupt
    return get(socket, key)
zmq.asyncio.Socket.get = interrupted
cells = [nbformat.v4.new_code_cell("1")]
try:
    with keeping_kernel(), kernel_for(Path(sys.argv[1]), own_modules=False) as given:
        papermill.execute_notebook(nbformat.v4.new_notebook(cells=cells), None, kernel_name="python3", **given)
except KeyboardInterrupt:
    print("ended")
"""
    ended = process(code, tmp_path, 3)
    try:
        assert ended.communicate(timeout=60)[0] == "ended\n"
    finally:
        ended.kill()


@linux
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_batch_that_is_ended_ends_its_reports(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    tmp, out = tmp_path / "tmp", tmp_path / "out"
    runs = [SAMPLES / "tiny-batch-laptop", SAMPLES / "hung-collective"]
    batch = start("report", *runs, "-o", out, "--jobs", 2)
    until(lambda: len(kernels(tmp)) == 2, "no two kernels started")
    batch.send_signal(number)
    batch.communicate(timeout=60)
    until(lambda: not of_run(tmp), "a process was left")
    sweep(tmp)
    assert not list(tmp.iterdir()) and not (out / "index.html").exists()


@linux
@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "after_s"),
    [(("diagnose", "--plan-out", "out/plan.json"), 0.3), (("export", "--to", "csv", "-o", "out"), 0.0)],
)
def test_other_commands_that_are_ended(start: Start, tmp_path: Path, command: tuple[str, ...], after_s: float) -> None:
    """The earlier output stays as it was."""
    name, *options = command
    earlier = tmp_path / "out" / ("plan.json" if name == "diagnose" else "trials.csv")
    earlier.parent.mkdir()
    earlier.write_text("earlier")
    ended = start(name, SAMPLES / "hpo-aggressive-pruning", *options)
    until(lambda: b"_sqlite3" in Path(f"/proc/{ended.pid}/maps").read_bytes(), "reads no study")
    time.sleep(after_s)
    ended.terminate()
    assert ended.communicate(timeout=60)[1] == "gpudiag: ended by SIGTERM.\n"
    assert ended.returncode == 143 and not list((tmp_path / "tmp").iterdir())
    assert list(earlier.parent.iterdir()) == [earlier] and earlier.read_text() == "earlier"


HOMELESS = """
import os, sys
os.environ.pop("HOME", None)
import pwd
def unknown(number): raise KeyError(number)
pwd.getpwuid = unknown
sys.argv = ["gpudiag", *sys.argv[1:]]
from gpudiag.cli import main
main()
"""


@pytest.mark.slow
def test_a_report_without_a_home(tmp_path: Path) -> None:
    """Of a folder whose name is not UTF-8, where there may be one: notebook and kernel are told of it."""
    (tmp_path / "tmp").mkdir()
    run = shutil.copytree(SAMPLES / "tiny-batch-laptop", tmp_path / "run")
    shutil.copy(SAMPLES / "healthy" / "optuna.db", run)
    with suppress(OSError):
        run = run.rename(os.fsdecode(os.fsencode(run) + b"\xff"))
    command = ["report", run, "-o", tmp_path / "out", "-p", "minimal=true"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", HOMELESS, *command],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TMPDIR": str(tmp_path / "tmp"),
            "LANG": "C",
            "PYTHONIOENCODING": "utf-8:strict",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0 and (tmp_path / "out" / "report.html").exists()
    # ipykernel warns of TCP where the path of the temporary folder is too long for a socket, as pytest's may be
    assert not [line for line in done.stderr.splitlines() if "TCP without encryption" not in line]
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.slow
def test_a_folder_that_was_deleted_under_the_user(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = "import os, sys; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]); sys.argv[1:] = sys.argv[2:]\n"
    run = f"{code}from gpudiag.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", run, gone, "report", SAMPLES / "tiny-batch-laptop", "-o", "out"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    said = "the folder that you are in was deleted; go to another one and run the command again."
    assert (done.returncode, done.stderr) == (2, f"gpudiag: {said}\n")
