"""The checksum CRC-32C (Castagnoli) of a few bytes, as TFRecord masks it."""

from __future__ import annotations

_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8


def _table() -> tuple[int, ...]:
    out = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ _POLYNOMIAL * (byte & 1)
        out.append(byte)
    return tuple(out)


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """Of all bytes; some 15 MB a second."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    """As it stands in a TFRecord, where data may hold checksums themselves (tensorflow, lib/hash/crc32c.h)."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF
