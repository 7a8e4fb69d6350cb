"""The recorder in a process of its own; :class:`gpudiag.record.recorder.Recorder` starts it as ``python -m``."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpudiag.errors import GpudiagError
from gpudiag.record.readings import NoDriver, RecordRow
from gpudiag.record.sampler import Options, Sampler
from gpudiag.record.worker import make_sampler, say
from gpudiag.timezones import machine_zone

SHOWN = ("gpu", "util_pct", "mem_used_mib", "mem_total_mib", "power_w", "cpu_pct", "ram_used_mib", "ram_total_mib")
"""What the status line and the summaries need."""


def main(argument: str) -> None:
    """Record what the parent asks for until its end of our stdin closes, or the parent is gone."""
    asked = json.loads(argument)
    stop = threading.Event()

    def heard(rows: Sequence[RecordRow]) -> None:
        if os.getppid() != asked["parent"]:
            stop.set()
        _tell([_short(row) for row in rows if row.record in ("gpu", "host")])

    options = Options(**asked["options"] | {"gpus": tuple(asked["options"]["gpus"])}, zone=str(machine_zone()))
    try:
        sampler = make_sampler(Path(asked["file"]), options, asked["wanted"], None, heard)
    except GpudiagError as error:
        _tell({"error": str(error), "no_driver": isinstance(error, NoDriver)})
        return
    _tell({"ready": True})
    os.set_blocking(sys.stdout.fileno(), False)
    listener = threading.Thread(target=_listen, args=(sampler, stop), daemon=True)
    listener.start()
    try:
        sampler.run(stop)
    except Exception as error:  # one sentence in place of a traceback among the training's output
        say(f"recording has stopped: {type(error).__name__}: {error}")
    sampler.close()


def _listen(sampler: Sampler, stop: threading.Event) -> None:
    for line in sys.stdin:
        kind, detail, values = json.loads(line)
        sampler.mark(kind, detail, **values)
    stop.set()


def _tell(message: Any) -> None:
    """One line to the parent; left out where it does not listen, so that nothing ever waits for it."""
    with suppress(OSError):
        os.write(sys.stdout.fileno(), (json.dumps(message) + "\n").encode())


def _short(row: RecordRow) -> list[Any]:
    return [row.record, row.time_s, row.mono_s, {name: row.values[name] for name in SHOWN if name in row.values}]


if __name__ == "__main__":
    main(sys.argv[1])
    os._exit(0)  # the listener may still wait for the parent
