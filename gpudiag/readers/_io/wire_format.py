"""Messages of Protocol Buffers by their wire format: the values of each field by its number, without a schema."""

from __future__ import annotations

import struct

Message = dict[int, list[int | bytes]]
"""Numbers that are written as a whole, and the bytes of everything else."""


def message(data: bytes) -> Message:
    """The values of a protobuf message by field number. Raises ValueError if it is none."""
    found: Message = {}
    at, end = 0, len(data)
    while at < end:
        key, at = (data[at], at + 1) if data[at] < 128 else _varint(data, at)  # most are one byte: a call costs more
        field, wire = key >> 3, key & 7
        value: int | bytes
        if wire == 0:
            value, at = _varint(data, at)
        else:
            if wire == 2:
                size, at = (data[at], at + 1) if at < end and data[at] < 128 else _varint(data, at)
            elif wire in (1, 5):
                size = 8 if wire == 1 else 4
            else:
                raise ValueError(f"wire type {wire}")
            value, at = data[at : at + size], at + size
            if at > end:
                raise ValueError("cut")
        if field in found:
            found[field].append(value)
        else:
            found[field] = [value]
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


def double(found: Message, field: int) -> float:
    """The last double under a field; 0, which protobuf leaves out, if there is none."""
    value = found.get(field, [b""])[-1]
    return float(struct.unpack("<d", value)[0]) if isinstance(value, bytes) and len(value) == 8 else 0.0


def single(found: Message, field: int) -> float | None:
    """The last float under a field, None if there is none."""
    value = found.get(field, [b""])[-1]
    return float(struct.unpack("<f", value)[0]) if isinstance(value, bytes) and len(value) == 4 else None
