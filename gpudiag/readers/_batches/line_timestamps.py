"""The timestamp that a line of a log begins with, where it is a moment by itself."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from gpudiag.readers._shape.moments import read_moment
from gpudiag.readers._shape.ticks import is_epoch
from gpudiag.readers._shape.timestamp_forms import TIMESTAMP

WITHIN = 60
"""Characters from the beginning of a line in which its own timestamp stands; later ones belong to its text."""
_NAMED_TIMESTAMP = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d (?:[A-Z]{2,5} )?\d{4}")
_EPOCH = re.compile(r"\W{0,2}(\d{10}(?:\.\d{1,9})?)(?=[\]\s:,|])")


def line_timestamp(line: str) -> str:
    """The timestamp at the beginning of a line as ISO 8601 text; empty if there is none, or one with its year last."""
    head = line[:WITHIN]
    if match := TIMESTAMP.search(head):
        date = match["date"]
        if date.isdecimal():
            return iso_of(match, f"{date[:4]}-{date[4:6]}-{date[6:]}")
        return iso_of(match, date.replace("/", "-").replace(".", "-")) if date[:4].isdecimal() else ""
    if match := _NAMED_TIMESTAMP.search(head):
        moment = read_moment(match[0])
        return "" if moment is None else moment.timestamp.isoformat() + ("+00:00" if moment.utc else "")
    if (match := _EPOCH.match(head)) and is_epoch(float(match[1])):
        return datetime.fromtimestamp(float(match[1]), UTC).isoformat()
    return ""


def iso_of(match: re.Match[str], date: str) -> str:
    """A match of ``TIMESTAMP`` as ISO 8601 text with this spelling of its date; empty for one without seconds."""
    if not match["seconds"]:
        return ""
    clock, half = match["clock"], match["half"]
    return f"{date}T{of_day(clock, half) if half else clock.replace(',', '.')}{(match['zone'] or '').strip()}"


def of_day(clock: str, half: str) -> str:
    """A time of day with hours up to 24. ``half``: AM or PM."""
    hours, rest = clock.replace(",", ".").split(":", 1)
    return f"{int(hours) % 12 + 12 * (half.strip().upper() == 'PM'):02d}:{rest}"
