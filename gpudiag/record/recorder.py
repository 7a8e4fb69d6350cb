"""The recorder as a context manager around a training, in a thread or in a process of its own."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Literal, TypeVar

from gpudiag.errors import ConfigError, expected
from gpudiag.readers._io.record_format import SETTINGS, SETTINGS_KIND
from gpudiag.record import parquet
from gpudiag.record.data_waits import DataWaits
from gpudiag.record.failure import failure
from gpudiag.record.readings import Adapter, Reading
from gpudiag.record.sampler import Options
from gpudiag.record.status import LiveStatus
from gpudiag.record.worker import ProcessWorker, ThreadWorker, Wanted, say
from gpudiag.timezones import machine_zone

Item = TypeVar("Item")


class Recorder:
    """Record GPUs, their processes and the host to a file while the body of a ``with`` runs.

    ::

        with gd.Recorder("metrics.csv", interval_s=1) as rec:
            for epoch in range(10):
                for batch in rec.timed(loader):
                    ...
                print(rec.epoch(epoch))

    The file is append-only: a killed training loses at most the last sample, and another start appends to it.
    No failure while recording reaches the training. ``gpudiag.read_telemetry(path)`` reads it back.

    Args:
        path: ``.csv``, or ``.parquet``: then a journal ``NAME.journal.csv`` is written and converted at the end;
            after a kill the journal remains, which can be read as well.
        interval_s: seconds between samples, 0.01 to 3600.
        gpus: indices or uuids; default: all.
        processes: record the processes on each GPU as well.
        host: record processors, memory and disks as well.
        mode: ``thread`` samples in this process; ``process`` starts another, which Python's lock cannot delay.
        rotate_mb: begin a new file after that many megabytes (CSV only).
        settings: present values such as ``{"batch_size": 32, "num_workers": 4}``, repeated in warnings; those of
            ``[dataloader]`` in run.toml are recorded, and read as if they stood there.
        warn: say on stderr when a GPU in use stays below 30 % for a minute.
        adapter: where readings of GPUs come from; default: NVML. Only for ``mode="thread"``.

    Raises:
        NoDriver: on entry, where there is no NVIDIA driver and the host is not recorded.
        ConfigError: on entry, for a GPU that does not exist or a file that cannot be written.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        interval_s: float = 1.0,
        gpus: Sequence[str] = (),
        processes: bool = True,
        host: bool = True,
        mode: Literal["thread", "process"] = "thread",
        rotate_mb: float | None = None,
        settings: Mapping[str, object] | None = None,
        warn: bool = True,
        adapter: Adapter | None = None,
    ) -> None:
        if not isinstance(path, str | Path):
            raise expected("the path of a file to record to", path)
        self.path = Path(path)
        self._parquet = self.path.suffix == ".parquet"
        if self._parquet and rotate_mb is not None:
            raise ConfigError(f"{self.path}: Parquet is written at the end and cannot be rotated; record to .csv.")
        if mode not in ("thread", "process"):
            raise ConfigError(f"mode must be 'thread' or 'process', but got '{mode}'.")
        self._file = parquet.journal_of(self.path) if self._parquet else self.path
        self._options = Options(interval_s, tuple(gpus), processes, str(machine_zone()))
        self._wanted = Wanted(host=host, rotate_mb=rotate_mb)
        self._board = LiveStatus(say if warn else lambda text: None, settings)
        self._settings = {name: (settings or {})[name] for name in SETTINGS if name in (settings or {})}
        self._waits = DataWaits()
        self._worker = ProcessWorker() if mode == "process" else ThreadWorker(adapter)
        self._owner = 0

    def open(self, command: str = "") -> None:
        """Find the GPUs and begin the file, whose header names ``command``; else :meth:`start` does this."""
        self._owner = os.getpid()
        self._worker.open(self._file, replace(self._options, command=command), self._wanted, self._board)
        if self._settings:
            self.mark(SETTINGS_KIND, json.dumps(self._settings, default=str))

    def start(self) -> Recorder:
        """Begin to sample."""
        if not self._owner:
            self.open()
        self._worker.start()
        return self

    def stop(self) -> None:
        """End the recording; may be called twice. In a fork of the process that started it, it does nothing."""
        if self._owner != os.getpid():
            return
        self._owner = 0
        self._tell_waits()
        if self._worker.stop() and self._parquet:
            try:
                self.path = parquet.convert(self._file, self.path)
            except Exception as error:  # whatever Parquet says, the training goes on and the journal is whole
                say(f"{self.path} was not written ({error}); the recording is in {self._file}.")

    def mark(self, kind: str, detail: str, **values: Reading | None) -> None:
        """Write an event into the recording; ``trial`` and ``gpu`` may be given beside it."""
        self._worker.mark(kind, detail, values)

    def epoch(self, number: int | None = None) -> str:
        """What was seen since the last call, in one line, which is written as an event too."""
        summary = ("epoch: " if number is None else f"epoch {number}: ") + self._board.epoch_summary()
        self.mark("epoch", summary)
        self._tell_waits()
        return summary

    def timed(self, loader: Iterable[Item]) -> Iterator[Item]:
        """The items of a loader; how long each kept the loop waiting is measured, and recorded each minute."""
        began = time.perf_counter()
        self._waits.begin()
        items = iter(loader)  # which starts the loader's workers
        while True:
            try:
                item = next(items)
            except StopIteration:
                self._waits.end()
                return
            self.waited(time.perf_counter() - began)
            yield item
            began = time.perf_counter()

    def waited(self, seconds: float, *, elsewhere: bool = False) -> None:
        """The training has waited so long for its next batch, for loops that :meth:`timed` cannot go around.

        With ``elsewhere`` it is written in another file already, and is for summaries and warnings alone.
        """
        self._board.waited(seconds)
        if not elsewhere:
            self._waits.add(seconds)
            if self._waits.is_due:
                self._tell_waits()

    def _tell_waits(self) -> None:
        if text := self._waits.take():
            self.mark("loader", text)

    def status_line(self) -> str:
        """``GPU: 85% | VRAM:12.3/24.0GB(51.2%) | CPU: 45.2% | RAM:18.4/64.0GB(28.8%)``; empty before the first."""
        return self._board.status_line()

    def postfix(self) -> dict[str, str]:
        """The status for a progress bar: ``bar.set_postfix(rec.postfix(), refresh=False)``."""
        return self._board.postfix()

    def __enter__(self) -> Recorder:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.mark("exception", failure(error))
        self.stop()
