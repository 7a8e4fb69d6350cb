"""W&B's own run file (``run-<id>.wandb``): which records it holds.

A header of 7 bytes, then blocks of 32768 bytes in LevelDB's log format: pieces of records, each with its CRC-32,
length and type (whole, first, middle or last piece of a record). A record is a protobuf message, of which only the
wire format matters here; field numbers are those of wandb_internal.proto.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.wire_format import Message, message

MAGIC = b":W&B\xe1\xbe"
HISTORY, STATS, RUN, EXIT, ENVIRONMENT = 2, 7, 17, 18, 26
"""Fields of a record: metrics of the training, those of the system, the run, how it ended, the machine."""
KEY, VALUE_JSON = 1, 16
"""Fields of an item of metrics, configuration or summary."""
CUT = "last record is cut"

_HEADER_BYTES = 7
_BLOCK_BYTES = 32768
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


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
