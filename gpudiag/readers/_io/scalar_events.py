"""The scalars in the events of a TensorBoard file; images, histograms, graphs and texts are not decoded.

Field numbers are those of TensorBoard's event.proto, summary.proto, tensor.proto and types.proto.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from sys import intern
from typing import NamedTuple

from gpudiag.readers._io.problems import ProblemLog
from gpudiag.readers._io.wire_format import Message, double, inner, message, number, single, text

_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5
"""Fields of Event."""
_VALUE = 1
_TAG, _SIMPLE_VALUE, _TENSOR, _METADATA = 1, 2, 8, 9
"""Fields of Summary and of its Value."""
_PLUGIN, _PLUGIN_NAME = 1, 1
_DTYPE, _CONTENT = 1, 4
_NUMBERS = {1: ("<f", 5), 2: ("<d", 6)}
"""By type of a tensor that may be a scalar: how its bytes are read, and the field that its values may stand in.
TensorFlow and PyTorch write no scalar of another type."""
_SCALARS = ("scalars", "")
_ONE = re.compile(rb"(?s)\x09(.{8})\x10([\x80-\xff]{0,6}[\0-\x7f])\x2a(.)\x0a(.)\x0a(.)(.+)\x15(.{4})")
"""An event with one scalar as PyTorch and TensorFlow 1 write it: time, step, three lengths, tag and value."""
_MOST = 2**53


class Scalar(NamedTuple):
    """``time_s``: seconds since 1970."""

    time_s: float
    step: int
    tag: str
    value: float


def scalars(records: Iterable[bytes], log: ProblemLog) -> Iterator[Scalar]:
    """The scalars of all records, in their order. One that is no message is left out and counted."""
    plugins: dict[str, str] = {}
    for data in records:
        if one := _one(data):
            yield one
            continue
        try:
            event = message(data)
            time_s, step = double(event, _WALL_TIME), number(event, _STEP)
            if abs(step) >= _MOST:
                raise ValueError("a step that no training comes to")
            for summary in inner(event, _SUMMARY):
                for value in inner(summary, _VALUE):
                    found = _value(value, plugins)
                    if found is not None:
                        yield Scalar(time_s, step, intern(text(value, _TAG)), found)
        except ValueError:
            log.add("record that is no message", lost=True)


def _one(data: bytes) -> Scalar | None:
    """The scalar of an event that holds nothing else: parsed field by field it took three times as long."""
    found = _ONE.fullmatch(data)
    if not found:
        return None
    time_s, step, *lengths, tag, value = found.groups()
    n = len(tag)
    if n >= 128 - 9 or b"".join(lengths) != bytes((n + 9, n + 7, n)):
        return None
    number = 0
    for byte in reversed(step):
        number = number << 7 | byte & 127
    if number >= _MOST:
        return None
    moment, single = struct.unpack("<df", time_s + value)
    return Scalar(moment, number, intern(tag.decode("utf-8", "replace")), single)


def _value(found: Message, plugins: dict[str, str]) -> float | None:
    """The number of a scalar, None for anything else. Which plugin a tag is of stands with its first value."""
    if (simple := single(found, _SIMPLE_VALUE)) is not None:
        return simple
    tensors = inner(found, _TENSOR)
    if not tensors:
        return None
    tag = text(found, _TAG)
    for metadata in inner(found, _METADATA):
        plugins[tag] = "".join(text(plugin, _PLUGIN_NAME) for plugin in inner(metadata, _PLUGIN))
    return _of_tensor(tensors[-1]) if plugins.get(tag, "") in _SCALARS else None


def _of_tensor(tensor: Message) -> float | None:
    """The one number that a tensor holds: in its content, or in the field for values of its type."""
    layout, field = _NUMBERS.get(number(tensor, _DTYPE), ("", 0))
    content = [part for name in (_CONTENT, field) for part in tensor.get(name, []) if isinstance(part, bytes)]
    data = b"".join(content)
    if not layout or (data and len(data) != struct.calcsize(layout)):
        return None
    return float(struct.unpack(layout, data)[0]) if data else 0.0  # which is left out
