"""What no reader knows is refused with what it looks like."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpudiag.readers._io.source import Source
from gpudiag.readers.base import refuse

CASES = {
    "timestamp,n1_watts,total_watts\n2026-05-05T19:14:51,1,2\n": "none of its columns is known (timestamp, n1_watts, ",
    "a;b;c\n1;2;3\n": "none of its columns is known (a, b, c)",
    "": "is empty (0 bytes)",
    "Hello, this is prose. It goes on: and on.\n": "its first line is 'Hello",
    "1,2,3\n": "its first line is '1,2,3'",
    "\x00\x01\x02\x03" * 50: "binary file",
}


@pytest.mark.parametrize("text", CASES)
def test_the_sentence_says_what_came(text: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(text, encoding="utf-8")
    message = str(refuse(Source.open(tmp_path / "x"), "something else"))
    assert CASES[text] in message and "expected something else" in message and str(tmp_path) in message
