"""Where sampling happens: in a thread of the training's process, or in another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypedDict

from gpudiag.errors import ConfigError
from gpudiag.interpreter import module_command
from gpudiag.record.host import Host
from gpudiag.record.nvml import Nvml
from gpudiag.record.readings import Adapter, NoDriver, Reading, RecordRow
from gpudiag.record.sampler import Options, Sampler
from gpudiag.record.sink import CsvSink
from gpudiag.record.status import LiveStatus

PATIENCE_S = 10.0
"""How long the end of a training waits for a reading that hangs in the driver."""


def say(text: str) -> None:
    """One line on stderr."""
    sys.stderr.write(f"gpudiag: {text}\n")
    sys.stderr.flush()


class Wanted(TypedDict):
    """What a recording is asked for beside its readings: the host too, and files of so many MB at most."""

    host: bool
    rotate_mb: float | None


def make_sampler(
    file: Path,
    options: Options,
    wanted: Wanted,
    adapter: Adapter | None,
    heard: Callable[[Sequence[RecordRow]], None],
) -> Sampler:
    """A sampler whose session has begun; without a driver it records the host alone, if that is wanted."""
    sink = CsvSink(file, say, rotate_mb=wanted["rotate_mb"])
    host = Host() if wanted["host"] else None
    sampler = Sampler(sink, adapter or Nvml(), host, options, heard=heard)
    try:
        sampler.open()
    except NoDriver as error:
        if host is None:
            raise
        say(f"{error} Only the host is recorded.")
        sampler = Sampler(sink, None, host, options, heard=heard)
        sampler.open()
    return sampler


class ThreadWorker:
    """Samples in a thread of this process."""

    def __init__(self, adapter: Adapter | None) -> None:
        self._adapter = adapter
        self._sampler: Sampler | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self, file: Path, options: Options, wanted: Wanted, board: LiveStatus) -> None:
        self._sampler = make_sampler(file, options, wanted, self._adapter, board.update)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="gpudiag-record", daemon=True)
        self._thread.start()

    def stop(self) -> bool:
        """True if the file is closed."""
        self._stop.set()
        if self._thread is None:
            self._close()
            return True
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            say("a reading hangs in the driver; the recording was left as it is.")
        return not self._thread.is_alive()

    def mark(self, kind: str, detail: str, values: Mapping[str, Reading | None]) -> None:
        if self._sampler is not None:
            self._sampler.mark(kind, detail, **values)
            if self._thread is None:
                self._sampler.flush()

    def _run(self) -> None:
        assert self._sampler is not None
        try:
            self._sampler.run(self._stop)
        except Exception as error:  # the training must not notice
            say(f"recording has stopped: {type(error).__name__}: {error}")
        self._close()

    def _close(self) -> None:
        if self._sampler is not None:
            self._sampler.close()


class ProcessWorker:
    """Samples in another process, which ends with this one: its stdin closes and its parent is gone."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None

    def open(self, file: Path, options: Options, wanted: Wanted, board: LiveStatus) -> None:
        asked = {"file": str(file.absolute()), "wanted": dict(wanted), "parent": os.getpid()}
        asked["options"] = {"interval_s": options.interval_s, "gpus": options.gpus, "processes": options.processes}
        self._process = subprocess.Popen(
            module_command("gpudiag.record.process", [json.dumps(asked)]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is the training's affair
        )
        assert self._process.stdout is not None
        answer = json.loads(self._process.stdout.readline() or '{"error": "the recorder\'s process did not start."}')
        if "error" in answer:
            self.stop()
            raise (NoDriver if answer.get("no_driver") else ConfigError)(answer["error"])
        self._thread = threading.Thread(target=self._listen, args=(board,), name="gpudiag-listen", daemon=True)
        self._thread.start()

    def start(self) -> None:
        """The process samples from its start."""

    def stop(self) -> bool:
        """True if the file is closed."""
        process = self._process
        if process is None:
            return True
        assert process.stdin is not None and process.stdout is not None
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            say("a reading hangs in the driver; the recording was left as it is.")
            process.kill()
            process.wait()
            return False
        if self._thread is not None:
            self._thread.join(PATIENCE_S)
        process.stdout.close()
        return True

    def mark(self, kind: str, detail: str, values: Mapping[str, Reading | None]) -> None:
        if self._process is None or self._process.stdin is None or self._process.stdin.closed:
            return
        with suppress(OSError):  # the recorder has ended, and has said why
            self._process.stdin.write(json.dumps([kind, detail, dict(values)]) + "\n")
            self._process.stdin.flush()

    def _listen(self, board: LiveStatus) -> None:
        assert self._process is not None and self._process.stdout is not None
        for line in self._process.stdout:
            board.update([RecordRow(*row) for row in json.loads(line)])
