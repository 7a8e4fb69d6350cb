"""Lines of a log within JSON, an object a line, as Docker and structured logging keep them."""

from __future__ import annotations

from gpudiag.readers._io.json_values import json_object
from gpudiag.readers._steps.step_object import stamp_of_object

_TEXT = ("log", "message", "msg")


def printed(line: str) -> str:
    """What a program printed, behind the timestamp that its object has; any other line as it is, since what has no
    timestamp may be data. Of a bar that was drawn several times, the last.
    """
    found = json_object(line) if line.startswith('{"') else None
    text = next((found[name] for name in _TEXT if isinstance(found.get(name), str)), None) if found else None
    if not found or text is None or not (stamp := stamp_of_object(found)):
        return line
    last = text.strip().rpartition("\r")[2]
    return f"{stamp} {last}".replace("\n", " ")
