"""Where rows go: an append-only CSV file that survives a kill, a restart and a full disk."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from gpudiag.errors import ConfigError
from gpudiag.readers._io.record_format import COLUMNS, GPU_LINE, MAGIC, VERSION
from gpudiag.record.own_file import refuse_others
from gpudiag.record.readings import Device, RecordRow, Values

MB = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MIDDLE = COLUMNS[2:-1]

Opener = Callable[[Path], BinaryIO]


def _append(path: Path) -> BinaryIO:
    return path.open("ab", buffering=0)


class CsvSink:
    """Appends rows to ``path``. Every call of :meth:`write` is one write to the system, so that a kill tears no row.

    The first failure to write (a full disk) is told once through ``say`` and ends the recording, never the
    caller. With ``rotate_mb`` a full file is renamed to ``NAME.001.csv`` and so on, and a new one begun.
    """

    def __init__(
        self,
        path: Path,
        say: Callable[[str], None],
        *,
        rotate_mb: float | None = None,
        opener: Opener = _append,
    ) -> None:
        self.path = path
        self.failed = False
        self._say = say
        self._limit = None if rotate_mb is None else rotate_mb * MB
        self._opener = opener
        self._file: BinaryIO | None = None
        self._header = b""
        self._size = 0

    def begin(self, about: Values, devices: Sequence[Device]) -> None:
        """Begin a session: append its header.

        Raises ConfigError if the file cannot be opened, or holds something else than a recording.
        """
        lines = [f"{MAGIC}{VERSION} {json.dumps(about)}", *(GPU_LINE + json.dumps(_described(d)) for d in devices)]
        self._header = ("\n".join([*lines, ",".join(COLUMNS)]) + "\n").encode()
        if self._file is None:
            self._open()
        self._put(self._header)

    def write(self, rows: Iterable[RecordRow]) -> bool:
        """Append rows. False if the recording has ended because nothing can be written any more."""
        data = "".join(line(row) for row in rows).encode("utf-8", "replace")
        if self._limit is not None and self._size + len(data) > self._limit and self._size > len(self._header):
            self._rotate()
        return self._put(data)

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            refuse_others(self.path, MAGIC.encode(), "a recording of gpudiag")
            torn = _torn(self.path)
            self._file = self._opener(self.path)
            self._size = self.path.stat().st_size if self.path.exists() else 0
        except OSError as error:
            raise ConfigError(
                f"{self.path}: cannot be written ({error.strerror or error}); give another file with -o."
            ) from error
        if torn:
            self._put(b"\n")

    def _rotate(self) -> None:
        self.close()
        try:
            self.path.rename(_next_free(self.path))
            self._open()
        except (OSError, ConfigError) as error:
            self._give_up(str(error))
        else:
            self._put(self._header)

    def _put(self, data: bytes) -> bool:
        left = memoryview(data)
        try:
            while left and self._file is not None and not self.failed:
                written = self._file.write(left)
                left = left[written:]
                self._size += written
        except OSError as error:
            self._give_up(error.strerror or str(error))
        return not self.failed

    def _give_up(self, why: str) -> None:
        if not self.failed:
            self.failed = True
            self._say(f"recording to {self.path} has stopped: {why}. What was recorded so far is kept.")


def line(row: RecordRow) -> str:
    """One row as text with its line end."""
    get = row.values.get
    cells = ",".join([_cell(get(name)) for name in _MIDDLE])
    return f"{timestamp(row.time_s)},{row.mono_s:.6f},{cells},{row.record}\n"


def timestamp(time_s: float) -> str:
    """Seconds since 1970 as ISO 8601 in UTC, to the microsecond."""
    return (_EPOCH + timedelta(seconds=time_s)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _cell(value: float | int | str | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        text = " ".join(value.split())
        return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text
    if isinstance(value, int):
        return str(value)
    return f"{value:.3f}".rstrip("0").rstrip(".") if value == value else ""


def _described(device: Device) -> Values:
    known = {field.name: getattr(device, field.name) for field in fields(device) if field.name != "handle"}
    return {name: value for name, value in known.items() if value not in ("", None, False)}


def _torn(path: Path) -> bool:
    """True if the file ends within a line, as a power cut or a full disk leaves it."""
    if not path.exists() or not path.stat().st_size:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _next_free(path: Path) -> Path:
    number = 1
    while (free := path.with_name(f"{path.stem}.{number:03d}{path.suffix}")).exists():
        number += 1
    return free
