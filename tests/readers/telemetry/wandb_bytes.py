"""Writes W&B run files: protobuf by hand, LevelDB log blocks by hand."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence

HEADER = b":W&B\xe1\xbe\x00"
BLOCK = 32768


def varint(value: int) -> bytes:
    out = bytearray()
    value &= 2**64 - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def item(key: str, value: object) -> bytes:
    return field(1, key) + field(16, json.dumps(value))


def timestamp(epoch_s: float) -> bytes:
    whole, nanos = divmod(round(epoch_s * 1_000_000), 1_000_000)
    return field(1, whole) + field(2, nanos * 1000)


def stats(epoch_s: float, values: Mapping[str, object]) -> bytes:
    items = b"".join(field(3, item(key, value)) for key, value in values.items())
    return field(1, 7) + field(7, field(2, timestamp(epoch_s)) + items)


def history(values: Mapping[str, object]) -> bytes:
    """A call of log: since 0.17 each name is one of nested keys, before it was the key."""
    items = [field(2, name) + field(16, json.dumps(value)) for name, value in values.items() if name != "_step"]
    items += [item(name, value) for name, value in values.items() if name == "_step"]
    return field(2, b"".join(field(1, one) for one in items))


def environment(gpus: Sequence[tuple[str, str]]) -> bytes:
    """The machine as since 0.19: name and uuid of each GPU."""
    boards = b"".join(field(24, field(1, name) + field(2, 85_520_809_984) + field(5, uuid)) for name, uuid in gpus)
    return field(26, field(17, len(gpus)) + boards)


def exit_record(code: int, runtime_s: int) -> bytes:
    return field(18, (field(1, code) if code else b"") + field(2, runtime_s))


def run_record(
    run_id: str, name: str, epoch_s: float, config: Mapping[str, object], host: str, sweep: str = ""
) -> bytes:
    settings = b"".join(field(1, item(key, value)) for key, value in config.items())
    body = field(1, run_id) + field(3, "proj") + field(4, settings) + field(8, name) + field(13, host)
    return field(17, body + (field(12, sweep) if sweep else b"") + field(17, timestamp(epoch_s)))


def run_file(records: Sequence[bytes]) -> bytes:
    """Records in blocks; one that crosses a block's end is written in pieces (first 2, middle 3, last 4)."""
    out = bytearray(HEADER)
    for record in records:
        rest, begun, done = record, False, False
        while not done:
            left = BLOCK - len(out) % BLOCK
            if left < 7:
                out += bytes(left)
                continue
            part, rest = rest[: left - 7], rest[left - 7 :]
            done = not rest
            kind = (4 if done else 3) if begun else (1 if done else 2)
            out += struct.pack("<IHB", zlib.crc32(part, zlib.crc32(bytes([kind]))), len(part), kind) + part
            begun = True
    return bytes(out)
