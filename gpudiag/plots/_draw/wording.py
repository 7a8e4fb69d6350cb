"""Quantities in words, for tick labels, legends and text alternatives."""

from __future__ import annotations

DAY_S = 86400.0
UNITS_S = (("d", DAY_S), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 0.001))


def natural_unit(seconds: float) -> tuple[str, float]:
    """The unit in which a duration is spoken of, and its length in seconds."""
    return next((unit for unit in UNITS_S if seconds >= unit[1]), UNITS_S[-1] if seconds > 0 else UNITS_S[-2])


def duration_text(seconds: float, digits: int = 2) -> str:
    """A duration in its natural unit: 40 ms, 12 s, 2.5 min, 1 h, 3 d."""
    name, size = natural_unit(seconds)
    value = seconds / size
    return f"{value:.{digits}g} {name}" if value < 10**digits else f"{value:.0f} {name}"


def short(name: str, longest: int = 14) -> str:
    """A name that fits beside an axis; the middle of a long one, such as a UUID, is left out."""
    return name if len(name) <= longest else f"{name[: longest - 7]}…{name[-6:]}"


def counted(n: float, noun: str) -> str:
    """A number with its noun: 1 GPU, 2 GPUs."""
    return f"{n:.0f} {noun}" + ("" if n == 1 else "s")


def share_text(pct: float) -> str:
    """A share in whole percent, where a little is not nothing: 0 %, < 1 %, 12 %."""
    return "< 1 %" if 0 < pct < 0.5 else f"{pct:.0f} %"
