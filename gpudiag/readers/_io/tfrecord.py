"""Records of a TFRecord file, as TensorBoard's event files are.

A record is its length (8 bytes), the length's checksum (4), the data and their checksum (4).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import BinaryIO

from gpudiag.readers._io.crc32c import masked
from gpudiag.readers._io.problems import INCOMPLETE, ProblemLog

CUT = "last record is cut"
WRONG_LENGTH = f"{INCOMPLETE} the length of a record is damaged, and only what comes before was read"
_HEADER_BYTES, _CHECKSUM_BYTES = 12, 4
MOST_BYTES = 16 * 1024**2
"""A longer record is passed over: it holds a graph or pictures, or its length is no length."""
CHECKED_BYTES = 16 * 1024
"""Of longer data the checksum is not computed, which would take longer than all else: scalars are far shorter."""
_PIECE_BYTES = 1024**2


def records(stream: BinaryIO, log: ProblemLog) -> Iterator[bytes]:
    """The data of records in order. A damaged one is left out and counted, the end of a killed run's file as cut."""
    n = 0
    while header := stream.read(_HEADER_BYTES):
        if not header.strip(b"\0") or len(header) < _HEADER_BYTES:  # a crash of the machine leaves zeros behind the end
            log.add(CUT, lost=True, example=_after(n))
            return
        size, checksum = struct.unpack("<QI", header)
        if _of_length(size) != checksum:
            log.add(WRONG_LENGTH, lost=True, example=_after(n))
            return
        if size > MOST_BYTES:
            if not _passed(stream, size + _CHECKSUM_BYTES):
                log.add(CUT, lost=True, example=_after(n))
            n += 1
            continue
        data = stream.read(size + _CHECKSUM_BYTES)
        if len(data) < size + _CHECKSUM_BYTES:
            log.add(CUT, lost=True, example=_after(n))
            return
        data, (checksum,) = data[:size], struct.unpack("<I", data[size:])
        if size <= CHECKED_BYTES and masked(data) != checksum:
            log.add("record with a wrong checksum", lost=True, example=_after(n))
        else:
            yield data
        n += 1


def _after(n: int) -> str:
    return f"after {n} {'record' if n == 1 else 'records'}"


@lru_cache(4096)  # a file has few lengths
def _of_length(size: int) -> int:
    return masked(struct.pack("<Q", size))


def _passed(stream: BinaryIO, size: int) -> bool:
    """Read over so many bytes; False where the file ends before."""
    while size > 0:
        piece = stream.read(min(size, _PIECE_BYTES))
        if not piece:
            return False
        size -= len(piece)
    return True
