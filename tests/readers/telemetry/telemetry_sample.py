"""What a dialect plugs into the contract suite of telemetry readers.

One file ``dialects/<dialect>.py`` holds ``SAMPLES: tuple[Sample, ...]``; the suite finds it by itself.
Generate the content in code (never paste other people's logs), small (5-60 rows), and give every shape of
the dialect that matters its own sample: with and without units, one GPU and several, ...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Content = str | bytes | Mapping[str, str]


@dataclass(frozen=True)
class Sample:
    """One healthy input of one dialect.

    ``content`` decides what the suite does with it: text (``\\n`` line ends) is also read with a BOM, in UTF-16,
    with CRLF and with garbage between its lines; bytes are only truncated and compressed; a mapping from relative
    path to text is a folder. ``rows`` is the length of ``table``.
    """

    reader: str
    """``Reader.name``; the one reader of all registries that may claim it."""
    name: str
    """What is special about this sample, in a few words joined by dashes; unique within the dialect."""
    content: Content
    rows: int
    gpus: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of ``read_telemetry`` beside ``timezone`` (which is UTC)."""
    table: str = "gpu"
    by_line: bool = True
    """False for one document (XML, JSON): no garbage lines, and a truncated copy may lose everything."""
    stamped: bool = True
    """False where rows carry no time of their own, so that the file twice over is no duplicate."""
    lost_by_cut: int = 1
    """Most rows that one cut in the middle of the text may cost or change (snapshot of several GPUs: their number)."""
    first: str = ""
    last: str = ""
    """The first and the last row of ``table`` as ``content`` says them, written down by hand and not by the reader:
    ``2025-03-01T10:00:00Z gpu=0 util_pct=35 mem_used_mib=4096``. Time in UTC, then every column with a value, in the
    units of the schema. Names contain no blanks. Without timestamps the time counts from 1970."""

    @property
    def ends(self) -> list[dict[str, str]]:
        """The two rows as text by column."""
        return [_row(text) for text in (self.first, self.last)]

    @property
    def id(self) -> str:
        return f"{self.reader}:{self.name}"


def _row(text: str) -> dict[str, str]:
    time, *pairs = text.split()
    return {"time": time, **dict(pair.split("=", 1) for pair in pairs)}
