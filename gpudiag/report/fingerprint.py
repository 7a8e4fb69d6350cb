"""What tells a finding again in another run: CI systems show as new what has another fingerprint."""

from __future__ import annotations

from hashlib import sha256


def fingerprint(run: str, rule: str) -> str:
    """64 hexadecimal digits of the name of the run and the check, which has one verdict a run: no number, time or path
    is in it, so that the same fault has the same ones tomorrow and on another machine.
    """
    return sha256(f"{run}\0{rule}".encode(errors="replace")).hexdigest()
