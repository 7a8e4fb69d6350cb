"""How numbers are written: one place, so that every output says the same thing the same way."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpudiag.units import UNITS, unit_of

UNKNOWN = "–"
_WORDS = {"gpu": "GPU", "cpu": "CPU", "ram": "RAM", "util": "utilization", "mem": "memory", "temp": "temperature"}
# C0/C1 controls (a terminal would obey them) and the marks that reorder text on screen.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def safe(text: object) -> str:
    """Text from an input without control characters, tabs and newlines as spaces."""
    return _UNSAFE.sub("", str(text).replace("\n", " ").replace("\t", " "))


def quantity(value: Any, unit: str = "1") -> str:
    """A value with its unit, at a precision that a reader can use; unknown is a dash."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return safe(value)
    if unit == "%":
        return percent(value)
    if unit == "s":
        return duration(value)
    if unit == "h" and abs(value) < 1e9:
        return duration(value * 3600)
    if unit in ("GPU-h", "slot-h"):
        return hours(value, unit)
    if unit in ("GPU-s", "slot-s"):
        return hours(value / 3600, unit.replace("-s", "-h"))
    if unit in ("MiB", "GiB"):
        return memory(value * (1024 if unit == "GiB" else 1))
    return number(value) if unit == "1" else f"{number(value)} {unit}"


def named(name: str, value: Any) -> str:
    """A value whose unit is in its name: ``named("mean_power_w", 212.4)`` is '212 W'."""
    return quantity(value, unit_of(name))


def label(name: str) -> str:
    """The name in words, without its unit: ``max_util_pct`` is 'max utilization', ``n_fail`` 'fail count'."""
    words = [_WORDS.get(word, word) for word in safe(split_unit(name)[0]).split("_") if word]
    if words[:1] == ["n"] and len(words) > 1:
        words = words[1:] if words[-1].endswith("s") else [*words[1:], "count"]
    return " ".join(words)


def split_unit(name: str) -> tuple[str, str]:
    """A name and the suffix that is its unit: ('fail', '_pct')."""
    for suffix in sorted(UNITS, key=len, reverse=True):
        if name.endswith(suffix) and name != suffix:
            return name.removesuffix(suffix), suffix
    return name, ""


def number(value: float) -> str:
    """Three significant digits, thousands set apart; whole numbers whole."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1e15:
        return f"{value:.2e}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 2 - math.floor(math.log10(abs(value)))
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits <= 6 else f"{value:.2e}"


def percent(value: float) -> str:
    """One decimal where it says something: 86.5 %, 84 %, below 0.1 %."""
    if 0 < abs(value) < 0.1:
        return "under 0.1 %" if value > 0 else "over -0.1 %"
    if 99.9 < value < 100:
        return "over 99.9 %"
    return f"{value:.1f}".removesuffix(".0") + " %"


def share(value: Any) -> str:
    """A percentage for a column of percentages: always one decimal."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:.1f} %"


def duration(seconds: float) -> str:
    """Two units at most: 0.7 s, 41 s, 9 min 11 s, 2 h 05 min, 3 d 4 h."""
    if seconds < 0:
        return "-" + duration(-seconds)
    if seconds > 1e12:
        return f"{seconds:.2e} s"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms" if seconds else "0 s"
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return _two(whole, 60, "min", "s")
    if round(whole / 60) < 24 * 60:
        return _two(round(whole / 60), 60, "h", "min")
    return _two(round(whole / 3600), 24, "d", "h")


def _two(value: int, base: int, big: str, small: str) -> str:
    high, low = divmod(value, base)
    width = 2 if base == 60 else 1
    return f"{high} {big} {low:0{width}d} {small}" if low else f"{high} {big}"


def hours(value: float, unit: str = "GPU-h") -> str:
    """Hours of a GPU or of a slot; seconds below a hundredth of an hour."""
    if 0 < abs(value) < 0.01:
        return f"{value * 3600:.0f} {unit.replace('-h', '-s')}"
    decimals = 2 if abs(value) < 10 else 1 if abs(value) < 1000 else 0
    return f"{value:,.{decimals}f} {unit}" if value else f"0 {unit}"


def memory(mib: float) -> str:
    """MiB, from one GiB on in GiB."""
    return f"{mib:.0f} MiB" if abs(mib) < 1024 else f"{mib / 1024:.1f} GiB"


def interval(low: Any, high: Any, unit: str = "1") -> str:
    """'81.1–90.6 %'; a dash where a bound is unknown."""
    if any(v is None or not math.isfinite(v) for v in (low, high)):
        return UNKNOWN
    if unit == "%":
        return f"{low:.1f}–{high:.1f} %"
    return f"{quantity(low, unit)} – {quantity(high, unit)}"


def plural(count: int, noun: str, nouns: str = "") -> str:
    """'1 finding', '3 findings'."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def zone(name: str) -> tzinfo:
    """The zone for showing times: the run's, or UTC where its name is not an IANA name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def stamp(iso: str | None, show_in: tzinfo) -> str:
    """'2025-10-24 19:40:07' in that zone; the zone itself is said once per report."""
    if not iso:
        return UNKNOWN
    return f"{datetime.fromisoformat(iso).astimezone(show_in):%Y-%m-%d %H:%M:%S}"


def span(start: str | None, end: str | None, show_in: tzinfo) -> str:
    """'2025-10-24 19:40:07 to 22:13:51', the date once where it is the same."""
    if not start or not end:
        return UNKNOWN
    first, last = stamp(start, show_in), stamp(end, show_in)
    return f"{first} to {last[11:] if first[:10] == last[:10] else last}"


def length(start: str | None, end: str | None) -> str:
    """How long from start to end."""
    if not start or not end:
        return UNKNOWN
    lasted: timedelta = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return duration(lasted.total_seconds())
