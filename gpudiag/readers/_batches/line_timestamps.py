"""The timestamp that a line of a log begins with."""

from __future__ import annotations

import re

from gpudiag.readers._shape.moments import read_moment
from gpudiag.readers._shape.timestamp_forms import TIMESTAMP

_TIMESTAMP_WITHIN = 60
"""Characters from the beginning of a line in which its own timestamp stands; later ones belong to its text."""
_NAMED_TIMESTAMP = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d (?:[A-Z]{2,5} )?\d{4}")


def line_timestamp(line: str) -> str:
    """The timestamp at the beginning of a line as ISO 8601 text, empty if there is none."""
    head = line[:_TIMESTAMP_WITHIN]
    if match := TIMESTAMP.search(head):
        date = match["date"]
        if not match["seconds"] or match["half"] or len(re.split(r"\D", date)[0]) != 4:
            return ""
        clock = match["clock"].replace(",", ".")
        return f"{re.sub(r'[/.]', '-', date)}T{clock}{(match['zone'] or '').strip()}"
    if match := _NAMED_TIMESTAMP.search(head):
        moment = read_moment(match[0])
        return "" if moment is None else moment.timestamp.isoformat() + ("+00:00" if moment.utc else "")
    return ""
