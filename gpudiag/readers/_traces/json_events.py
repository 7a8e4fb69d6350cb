"""Events of a Chrome trace as columns, piece by piece: a trace of a gigabyte never lies in memory as objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import polars as pl

from gpudiag.errors import InputError
from gpudiag.readers._io.json_values import read_json
from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.source import Source

PIECE_BYTES = 16 * 1024**2
MOST_EVENT_BYTES = 32 * 1024**2
MOST_REST_BYTES = 32 * 1024**2
"""One event, and what stands beside the events, are never longer in a trace of a profiler."""
MOST_NS = 4e18
"""Later than the year 2096."""
MOST_DAMAGED = 1000
"""Events of one piece that are looked for one by one; where more are damaged, the rest of the piece is lost."""
CUT_OFF, DAMAGED = "trace ends in the middle", "damaged event"
OPENS = re.compile(rb'"traceEvents"\s*:\s*\[|\A(?:\xef\xbb\xbf)?\s*\[')
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_NO_JSON_NUMBER = re.compile(rb"(?<=[:,\[ ])-?(?:NaN|nan|Infinity|inf)\b")
_SINCE_1970 = re.compile(rb'"ts"\s*:\s*(?=\d{13,17}[\s.,}])')
KEPT_DIGITS, SHIFTED_US = 11, 10**11
"""Of a timestamp since 1970 in microseconds, and what a 1 before them adds: 28 hours."""
_QUOTE, _COMMA, _LF, _CR, _BLANK = 34, 44, 10, 13, 32


@dataclass(frozen=True)
class Epoch:
    """The first digits of the timestamps since 1970, which a 1 replaces: a float has no room for all and the decimals.

    The few that begin otherwise stay whole, and lose their decimals.
    """

    written: bytes
    shortened: bytes
    base_us: int

    @classmethod
    def of(cls, events: bytes) -> Epoch | None:
        """That of the first timestamp since 1970; None where times count from the start of the profiler."""
        found = _SINCE_1970.search(events)
        if found is None:
            return None
        digits = re.match(rb"\d+", events[found.end() : found.end() + 20])
        first = digits[0][:-KEPT_DIGITS] if digits else b""
        return cls(found[0] + first, found[0] + b"1", int(first or b"0") * SHIFTED_US - SHIFTED_US)

    def applied(self, events: bytes) -> bytes:
        return events.replace(self.written, self.shortened)

    def whole_ns(self) -> pl.Expr:
        shifted = pl.col("ts").is_between(SHIFTED_US, 2 * SHIFTED_US)
        return pl.when(shifted).then(_whole_ns() + self.base_us * 1000).otherwise(_whole_ns())


def _whole_ns() -> pl.Expr:
    """Whole microseconds are exact, whatever room is left for decimals."""
    whole = pl.col("ts").floor()
    decimals = ((pl.col("ts") - whole) * 1000).round()
    return whole.cast(pl.Int64, strict=False) * 1000 + decimals.cast(pl.Int64, strict=False)


@dataclass
class EventStream:
    """The events of a source, and afterwards what stood beside them: ``beside`` is {} where it is damaged or cut."""

    source: Source
    problems: ProblemLog
    beside: dict[str, Any] = field(default_factory=dict)
    epoch: Epoch | None = None

    def frames(self) -> Iterator[pl.DataFrame]:
        """Frames of finished events: cat, name, pid, tid, ts_ns, dur (microseconds), device, stream, correlation.

        Raises InputError where no array of events begins.
        """
        with self.source.stream() as stream:
            before, rest = self._opening(stream)
            while True:
                data = stream.read(PIECE_BYTES)
                rest += data
                events, rest, closed = _cut(rest, last=not data)
                if events:
                    self.epoch = self.epoch or Epoch.of(events)
                    yield _frame(events, self.problems, self.epoch)
                if closed or not data:
                    break
                if len(rest) > MOST_EVENT_BYTES:
                    raise InputError(f"{self.source.path}: one event is longer than {MOST_EVENT_BYTES // 2**20} MiB.")
            if not closed:
                self.problems.add(CUT_OFF, example="the file was cut while it was written or copied", lost=True)
            self.beside = _beside(before, rest + stream.read(MOST_REST_BYTES) if closed else b"]}")
            if closed and not self.beside and before.strip(b"\xef\xbb\xbf \t\r\n") != b"[":
                self.problems.add("damaged text beside the events", example="rank and names of GPUs are unknown")

    def _opening(self, stream: BinaryIO) -> tuple[bytes, bytes]:
        """What stands before the first event, and the first bytes from there on."""
        read = b""
        while (found := OPENS.search(read)) is None:
            data = stream.read(PIECE_BYTES)
            read += data
            if not data or len(read) > MOST_REST_BYTES:
                raise InputError(
                    f"{self.source.path}: expected a Chrome trace, an object with the key traceEvents or an array of "
                    "events, but there is none; write it with torch.profiler's prof.export_chrome_trace(path)."
                )
        return read[: found.end()], read[found.end() :]


def _cut(data: bytes, *, last: bool) -> tuple[bytes, bytes, bool]:
    """Whole events, one a line; what follows them; and whether the array ended.

    Brackets and commas count outside strings only. Of the last piece of a file that was cut off, the event that the
    cut went through is left out.
    """
    seen = np.frombuffer(_ESCAPED.sub(b"__", data) if b"\\" in data else data, np.uint8)
    outside = (np.cumsum(seen == _QUOTE, dtype=np.uint8) & 1) == 0
    depth = np.zeros(len(seen), np.int8)
    for opens, closes in (b"{}", b"[]"):
        depth += seen == opens
        depth -= seen == closes
    depth[~outside] = 0
    level = np.cumsum(depth, dtype=np.int32)
    ends = np.flatnonzero(level < 0)
    stop = int(ends[0]) if len(ends) else len(seen)
    commas = np.flatnonzero((seen[:stop] == _COMMA) & (level[:stop] == 0) & outside[:stop])
    whole = stop if len(ends) else int(commas[-1]) if len(commas) else 0
    if last and not len(ends) and len(seen) and level[-1] == 0 and outside[-1]:
        whole = stop  # cut off behind an event
    out = np.frombuffer(data, np.uint8)[:whole].copy()
    out[(out == _LF) | (out == _CR)] = _BLANK  # within JSON no string holds a line end
    out[commas[commas < whole]] = _LF
    return out.tobytes(), data[whole if len(ends) else whole + bool(len(commas)) :], bool(len(ends))


def _frame(lines: bytes, problems: ProblemLog, epoch: Epoch | None) -> pl.DataFrame:
    """One row a finished event (phase X)."""
    frames = list(_parsed(epoch.applied(lines) if epoch else lines, problems, [MOST_DAMAGED]))
    frame = pl.concat(frames) if frames else _columns(b"")
    args = pl.col("args").struct
    ns = epoch.whole_ns() if epoch else _whole_ns()
    return frame.filter(pl.col("ph") == "X").select(
        "cat", "name", "pid", "tid", "dur",
        ts_ns=pl.when(pl.col("ts").abs() < MOST_NS / 1000).then(ns),
        device=args.field("device"), stream=args.field("stream"), correlation=args.field("correlation"),
    )  # fmt: skip


def _columns(lines: bytes) -> pl.DataFrame:
    whole = {"device": pl.Int64, "stream": pl.Int64, "correlation": pl.Int64}
    schema = {
        "ph": pl.String, "cat": pl.String, "name": pl.String, "pid": pl.String, "tid": pl.String, "ts": pl.Float64,
        "dur": pl.Float64, "args": pl.Struct(whole),
    }  # fmt: skip
    if not lines.strip():
        return pl.DataFrame(schema=schema)
    return pl.read_ndjson(lines, schema=schema, ignore_errors=True)


def _parsed(lines: bytes, problems: ProblemLog, left: list[int]) -> Iterator[pl.DataFrame]:
    """Frames of these lines; damaged ones are found by halves and counted."""
    try:
        yield _columns(lines)
        return
    except pl.exceptions.PolarsError:
        pass
    mended = _NO_JSON_NUMBER.sub(b"null", lines.decode("utf-8", "replace").encode())
    if mended != lines:
        yield from _parsed(mended, problems, left)
        return
    middle = lines.find(b"\n", len(lines) // 2)
    middle = middle if middle >= 0 else lines.rfind(b"\n")
    if middle < 0 or left[0] <= 0:
        problems.add(DAMAGED, lines.count(b"\n") + 1, example=lines[:80].decode("utf-8", "replace"), lost=True)
        left[0] -= 1
        return
    yield from _parsed(lines[:middle], problems, left)
    yield from _parsed(lines[middle + 1 :], problems, left)


def _beside(before: bytes, after: bytes) -> dict[str, Any]:
    try:
        held = read_json((before + after).decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return held if isinstance(held, dict) else {}
