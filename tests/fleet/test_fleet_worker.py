"""The limits of one run, with children that hang, grow, die and chatter in place of the real one."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from gpudiag.fleets.found import FoundRun
from gpudiag.fleets.worker import Job, Limits, Worker

ECHO = """
import json, sys
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


def test_a_run_that_hangs_is_ended_and_the_next_one_answers() -> None:
    with child("import time; name == 'slow' and time.sleep(600)") as worker:
        began = time.monotonic()
        assert "longer than 1 s" in reason(worker, "slow", Limits(time_s=1.0))
        assert time.monotonic() - began < 30
        assert reason(worker, "quick") == "answered quick"


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
