"""A report as Markdown in the job summary of a GitHub workflow, which takes 1,024 KiB a step and refuses more whole."""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_BYTES = 1024 * 1024
"""What GitHub takes of one step; of a longer summary it shows nothing at all."""
CUT = "*This summary ends here, since GitHub takes 1,024 KiB of a step. The report of* `gpudiag report` *has all.*\n"

_SECTION = ("## ", "### ", "<details>")
_FENCE = re.compile(r"(`{3,}|~{3,})")


def job_summary(markdown: str, room_bytes: int) -> str:
    """The report, cut before its last section that fits, with a sentence that says so; '' where not even that fits."""
    if len(markdown.encode()) <= room_bytes:
        return markdown
    room_bytes -= len(CUT.encode())
    fits = [at for at in _borders(markdown) if len(markdown[:at].encode()) <= room_bytes]
    return markdown[: fits[-1]] + CUT if fits else ""


def _borders(markdown: str) -> Iterator[int]:
    """Where the text may end: before each section that is within no fold and no code, the beginning included."""
    yield 0
    at, depth, fence = 0, 0, ""
    for line in markdown.splitlines(keepends=True):
        opened = _FENCE.match(line)
        if fence:
            fence = "" if line.rstrip() == fence else fence
        elif opened:
            fence = opened[1]
        else:
            if depth == 0 and line.startswith(_SECTION):
                yield at
            depth += line.startswith("<details>") - line.startswith("</details>")
        at += len(line)
