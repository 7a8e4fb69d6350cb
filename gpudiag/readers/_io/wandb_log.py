"""W&B's own run file (``run-<id>.wandb``): which records it holds, and the protobuf fields of a record.

A header of 7 bytes, then blocks of 32768 bytes in LevelDB's log format: pieces of records, each with its CRC-32,
length and type (whole, first, middle or last piece of a record). A record is a protobuf message, of which only the
wire format matters here; field numbers are those of wandb_internal.proto.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from gpudiag.readers._io.problems import ProblemLog

MAGIC = b":W&B\xe1\xbe"
STATS, RUN, EXIT = 7, 17, 18
"""Fields of a record: system metrics, the run's description, how it ended."""
KEY, VALUE_JSON = 1, 16
"""Fields of an item of metrics, configuration or summary."""
CUT = "last record is cut"

_HEADER_BYTES = 7
_BLOCK_BYTES = 32768
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4

Message = dict[int, list[int | bytes]]


def records(data: bytes, log: ProblemLog) -> Iterator[Message]:
    """The records in order. A damaged one is skipped, the end of a killed run's file is counted as cut."""
    parts: list[bytes] = []
    for kind, piece in _pieces(data, log):
        if kind in (_WHOLE, _FIRST):
            parts = []
        elif not parts:  # the piece before was damaged
            continue
        parts.append(piece)
        if kind in (_WHOLE, _LAST):
            try:
                yield message(b"".join(parts))
            except ValueError:
                log.add("record that is no message", lost=True)
            parts = []
    if parts:
        log.add(CUT, lost=True)


def _pieces(data: bytes, log: ProblemLog) -> Iterator[tuple[int, bytes]]:
    at = _HEADER_BYTES
    while at < len(data):
        left = _BLOCK_BYTES - at % _BLOCK_BYTES
        if left < _HEADER_BYTES:  # too little for a piece: the rest of a block is padding
            at += left
            continue
        if at + _HEADER_BYTES > len(data):
            log.add(CUT, lost=True)
            return
        checksum, size, kind = struct.unpack_from("<IHB", data, at)
        if not kind:
            at += left
            continue
        piece = data[at + _HEADER_BYTES : at + _HEADER_BYTES + size]
        at += _HEADER_BYTES + size
        if len(piece) < size:
            log.add(CUT, lost=True)
        elif zlib.crc32(piece, zlib.crc32(bytes([kind]))) == checksum:
            yield kind, piece
        else:
            log.add("record with a wrong checksum", lost=True)
            at += -at % _BLOCK_BYTES  # its length cannot be trusted either


def message(data: bytes) -> Message:
    """The values of a protobuf message by field number. Raises ValueError if it is none."""
    found: Message = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        field, wire = key >> 3, key & 7
        value: int | bytes
        if wire == 0:
            value, at = _varint(data, at)
        else:
            if wire == 2:
                size, at = _varint(data, at)
            elif wire in (1, 5):
                size = 8 if wire == 1 else 4
            else:
                raise ValueError(f"wire type {wire}")
            value, at = data[at : at + size], at + size
            if at > len(data):
                raise ValueError("cut")
        found.setdefault(field, []).append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("no number")
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def inner(found: Message, field: int) -> list[Message]:
    """The messages under a field. Raises ValueError if it holds none."""
    return [message(value) for value in found.get(field, []) if isinstance(value, bytes)]


def text(found: Message, field: int) -> str:
    """The last text under a field, empty if there is none."""
    value = found.get(field, [b""])[-1]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def number(found: Message, field: int) -> int:
    """The last number under a field; 0, which protobuf leaves out, if there is none. int32 may be negative."""
    value = found.get(field, [0])[-1]
    value = value if isinstance(value, int) else 0
    return value - 2**64 if value >= 2**63 else value


def epoch_us(found: Message, field: int) -> int | None:
    """A timestamp in microseconds since 1970, None if there is none."""
    timestamps = inner(found, field)
    return number(timestamps[-1], 1) * 1_000_000 + number(timestamps[-1], 2) // 1000 if timestamps else None
