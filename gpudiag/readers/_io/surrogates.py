"""Halves of a character in JSON: an escape of the range D800 to DFFF that stands alone.

A text that was cut within an emoji leaves one. Python's JSON takes it, and no table can hold it.
"""

from __future__ import annotations

import re
from typing import AnyStr

_FORM = (
    r"\\+u[dD][89abAB][0-9a-fA-F]{2}\\+u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole character
    r"|(?P<escape>\\+)u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_RAW = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
"""One that was written as it is: no UTF-8, but Python reads it in JSON."""
_TEXT, _BYTES = re.compile(_FORM), re.compile(_FORM.encode())


def without_halves(json: AnyStr) -> AnyStr:
    """The JSON with the replacement character in place of each, also within JSON that it quotes; as long as before."""
    if isinstance(json, str):
        marked = "\\ud" in json or "\\uD" in json
        return _TEXT.sub(lambda m: m["escape"] + "ufffd" if m["escape"] else m[0], json) if marked else json
    json = _RAW.sub(b"\xef\xbf\xbd", json) if b"\xed" in json else json
    marked = b"\\ud" in json or b"\\uD" in json
    return _BYTES.sub(lambda m: m["escape"] + b"ufffd" if m["escape"] else m[0], json) if marked else json
