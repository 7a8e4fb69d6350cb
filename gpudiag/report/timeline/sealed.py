"""Content as one text for a page: JSON and arrays of small integers behind it, deflated, in base64.

Layout before it is deflated: the length of the JSON in bytes (uint32, little-endian), the JSON, then the arrays, each
on a border of four bytes. Where an array belongs, the JSON holds ``{"$": [bytes of an item, first byte, length]}``.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

from gpudiag.readers._io.url import without_passwords

BORDER = 4


def sealed(content: dict[str, Any]) -> str:
    """The content, whose leaves are numbers, texts and arrays; no text keeps the password of a URL."""
    import numpy as np  # only here: the command line reads `reworded` on every start

    arrays: list[bytes] = []
    size = 0

    def placed(value: Any) -> Any:
        nonlocal size
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{type(value).__name__} is not packed")
        raw = value.astype(value.dtype.newbyteorder("<")).tobytes()
        at, padding = size, -len(raw) % BORDER
        arrays.append(raw + bytes(padding))
        size += len(raw) + padding
        return {"$": [value.dtype.itemsize, at, len(value)]}

    text = json.dumps(_changed(content, without_passwords), default=placed, ensure_ascii=False, separators=(",", ":"))
    return _whole(text, b"".join(arrays))


def reworded(text: str, change: Callable[[str], str]) -> str:
    """The same with each text in it changed: what stands in a page in base64 cannot be found there by searching."""
    raw = zlib.decompress(b64decode(text))
    head = 4 + int.from_bytes(raw[:4], "little")
    before = json.loads(raw[4:head])
    content = _changed(before, change)
    if content == before:  # as nearly always
        return text
    return _whole(json.dumps(content, ensure_ascii=False, separators=(",", ":")), raw[head:])


def _whole(text: str, arrays: bytes) -> str:
    head = text.encode()
    head += b" " * (-len(head) % BORDER)
    return b64encode(zlib.compress(len(head).to_bytes(4, "little") + head + arrays)).decode()


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_changed(one, change) for one in value]
    return {name: _changed(one, change) for name, one in value.items()} if isinstance(value, dict) else value
