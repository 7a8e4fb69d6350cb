"""The limits of one run, with children that hang, grow, die and chatter in place of the real one."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from gpudiag.fleets.found import FoundRun
from gpudiag.fleets.worker import Job, Limits, Worker, close_all, diagnosed

ECHO = """
import json, sys
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    name = json.loads(line)["found"]["name"]
    exec(sys.argv[1])
    print(json.dumps({"error": f"answered {name}"}), flush=True)
"""


@contextmanager
def child(does: str) -> Iterator[Worker]:
    worker = Worker((sys.executable, "-c", ECHO, does))
    try:
        yield worker
    finally:
        worker.close()


def reason(worker: Worker, name: str = "a", limits: Limits | None = None) -> str:
    outcome = worker.diagnosed(Job(FoundRun(name, f"/{name}"), {"reading": {}, "judging": {}}, limits or Limits()))
    assert outcome.row is not None and outcome.row.status == "not diagnosed" and outcome.row.run == name
    return outcome.row.reason


def test_one_process_answers_run_after_run() -> None:
    with child("") as worker:
        assert [reason(worker, name) for name in "abc"] == ["answered a", "answered b", "answered c"]


@pytest.mark.slow
def test_a_run_that_hangs_is_ended_and_the_next_one_answers() -> None:
    with child("import time; name == 'slow' and time.sleep(600)") as worker:
        began = time.monotonic()
        assert "longer than 1 s" in reason(worker, "slow", Limits(time_s=1.0))
        assert time.monotonic() - began < 30
        assert reason(worker, "quick") == "answered quick"


@pytest.mark.slow
def test_the_start_of_the_process_is_no_time_of_its_first_run() -> None:
    late = Worker((sys.executable, "-c", "import time; time.sleep(3)\n" + ECHO, ""))
    try:
        assert reason(late, "a", Limits(time_s=1.5)) == "answered a"
    finally:
        late.close()


@pytest.mark.slow
def test_a_process_that_never_starts_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpudiag.fleets.worker.START_S", 1.0)
    stuck = Worker((sys.executable, "-c", "import time; time.sleep(60)"))
    try:
        assert reason(stuck) == "the process that was to diagnose it did not start: it took longer than 1 s."
    finally:
        stuck.close()


@pytest.mark.slow
def test_a_run_that_grows_is_ended() -> None:
    grow = "import time; held = name == 'big' and (b'x' * (300 << 20), time.sleep(60))"
    with child(grow) as worker:
        assert "more than 200 MiB" in reason(worker, "big", Limits(memory_mib=200))
        assert reason(worker, "small", Limits(memory_mib=200)) == "answered small"


@pytest.mark.parametrize("end", ["import os; os._exit(7)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_process_that_ends_costs_one_run(end: str) -> None:
    with child(f"if name == 'a':\n        {end}") as worker:
        assert "ended (exit code 7)" in reason(worker) or "ended (signal 9)" in reason(worker)
        assert reason(worker, "b") == "answered b"


@pytest.mark.slow
def test_the_process_ends_with_the_one_that_asked(samples: Path) -> None:
    """Its stdin ends, whatever it is doing."""
    worker = Worker()
    job = Job(FoundRun("t", str(samples / "tiny-batch-laptop")), {"reading": {}, "judging": {}})
    outcome = worker.diagnosed(job)
    assert outcome.row is not None and outcome.row.status == "diagnosed" and outcome.document
    assert worker._child is not None and worker._child.stdin is not None
    process = psutil.Process(worker._child.pid)
    worker._child.stdin.close()
    process.wait(10)
    worker.close()


@pytest.mark.slow
def test_the_process_of_a_thread_that_ended_is_ended_with_the_others(samples: Path) -> None:
    job = Job(FoundRun("t", str(samples / "tiny-batch-laptop")), {"reading": {}, "judging": {}})
    before = {child.pid for child in psutil.Process().children()}
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(diagnosed, job).result().row is not None
        (process,) = [child for child in psutil.Process().children() if child.pid not in before]
    gc.collect()  # a worker that nobody holds would be dropped with its process, which nobody waits for
    assert process.is_running()
    close_all()
    assert not process.is_running()


def test_a_process_has_one_thread_for_its_arithmetic_unless_somebody_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    told = "import os; name = os.environ['OPENBLAS_NUM_THREADS'] + os.environ['OMP_NUM_THREADS']"
    with child(told) as worker:
        assert reason(worker) == "answered 13"
