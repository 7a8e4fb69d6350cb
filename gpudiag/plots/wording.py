"""Quantities in words, for tick labels, legends and text alternatives."""

from __future__ import annotations

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0


def duration_text(seconds: float) -> str:
    """A duration in its natural unit: 0.4 s, 12 s, 2.5 min, 1 h, 3 d."""
    for unit, size in (("d", DAY_S), ("h", HOUR_S), ("min", MINUTE_S)):
        if seconds >= size:
            return f"{seconds / size:.2g} {unit}" if seconds / size < 10 else f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def counted(n: float, noun: str) -> str:
    """A number with its noun: 1 GPU, 2 GPUs."""
    return f"{n:.0f} {noun}" + ("" if n == 1 else "s")


def share_text(pct: float) -> str:
    """A share in whole percent, where a little is not nothing: 0 %, < 1 %, 12 %."""
    return "< 1 %" if 0 < pct < 0.5 else f"{pct:.0f} %"
