"""How numbers are written: the one place for it, so that every output says the same thing the same way.

A share, a number of GPU-hours and an energy have two forms: as read in a sentence (``97 %``), and, with
``exact``, as checked in a table or beside a threshold (``97.4 %``). All others have one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TypeGuard
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gpudiag.units import FIRST_YEAR, MIB_PER_GIB, UNITS, unit_of
from gpudiag.values import Value, is_number

NO_DATE = "no date in the log"
UNKNOWN = "–"
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""How a cell of a CSV begins that a spreadsheet runs (OWASP, CSV injection)."""
_WORDS = {"gpu": "GPU", "cpu": "CPU", "ram": "RAM", "util": "utilization", "mem": "memory", "temp": "temperature"}
# C0/C1 controls (a terminal would obey them) and the marks that reorder text on screen.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# Of Azure Pipelines, TeamCity and older GitHub runners, which obey them wherever they stand in a line.
_CI_COMMAND = re.compile(r"##(?=\w*\[)")
# Of GitHub Actions, at the start of a line.
_CI_LINE = re.compile(r"^([^\S\n]*):(?=:[^\n]*?::)", re.MULTILINE)


def safe(text: object) -> str:
    """Text from an input without control characters, tabs and newlines as spaces, and no command for a CI system."""
    return _CI_COMMAND.sub("# #", _UNSAFE.sub("", str(text).replace("\n", " ").replace("\t", " ")))


def inert_lines(text: str) -> str:
    """Lines of which none is a command for GitHub Actions (``::error ...::``) by a name that it begins with."""
    return _CI_LINE.sub(r"\1: ", text)


def quantity(value: Value, unit: str = "1", *, exact: bool = False) -> str:
    """A value with its unit, at a precision that a reader can use; unknown is a dash."""
    value = value.item() if value is not None and hasattr(value, "item") else value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is not None and not isinstance(value, int | float):
        return safe(value)
    if not _known(value):
        return UNKNOWN
    if unit == "%":
        return share(value, exact=exact)
    if unit in _SECONDS and math.isfinite(value * _SECONDS[unit]):
        return duration(value * _SECONDS[unit])
    if unit in ("GPU-h", "worker-h", "GPU-s", "worker-s"):
        kind, _, size = unit.partition("-")
        return hours(value / (3600 if size == "s" else 1), f"{kind}-h", exact=exact)
    if unit in ("MiB", "GiB"):
        return memory(value * (MIB_PER_GIB if unit == "GiB" else 1))
    if unit in _KWH:
        return energy(value * _KWH[unit], exact=exact)
    if unit in ("x", "×"):
        return times(value, exact=exact)
    return number(value) if unit == "1" else f"{number(value)} {unit}"


_SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_KWH = {"J": 1 / 3.6e6, "Wh": 1e-3, "kWh": 1.0}


def named(name: str, value: Value, *, exact: bool = False) -> str:
    """A value whose unit is in its name: ``named("mean_power_w", 212.4)`` is '212 W'.

    So is what has no unit but a form of its own: a probability under chance (``drift_p``), a rank correlation
    (``rho_low``).
    """
    if is_number(value):
        last = set(name.split("_")[-2:])
        if name == "p" or name.endswith("_p") or (name.startswith("p_") and unit_of(name) == "1"):
            return p_value(value)
        if "rho" in last:
            return ratio(value)
    return quantity(value, unit_of(name), exact=exact)


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


def number(value: float | None) -> str:
    """Three significant digits, thousands set apart; whole numbers whole."""
    if not _known(value):
        return UNKNOWN
    if abs(value) >= 1e15:
        return f"{value:.2e}"
    if float(value).is_integer():
        return f"{int(value):,}"
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    digits = 2 - math.floor(math.log10(abs(value)))
    return _bare(value, digits) if digits <= 6 else f"{value:.2e}"


def abbreviated(value: float | None) -> str:
    """A number from 10,000 on in three digits: '124 M' parameters, '8.03 B', '142 k' tokens."""
    if not _known(value) or abs(value) < 9_999.5:
        return number(value)
    power = next(power for power in (3, 6, 9, 12) if abs(value) < 999.5 * 10**power or power == 12)
    return f"{number(value / 10**power)} {_POWERS[power]}"


_POWERS = {3: "k", 6: "M", 9: "B", 12: "T"}


def significant(value: float | None, digits: int) -> str:
    """So many significant digits at most, whole from there on: a bound of an estimate has fewer than its value."""
    if not _known(value):
        return UNKNOWN
    return number(float(f"{value:.{digits}g}")) if abs(value) < 10 ** (digits - 1) else number(round(value))


def parameter(value: float) -> str:
    """A parameter or an objective of a trial in five significant digits, which tell most trials apart: '0.00063114'."""
    return f"{value:.5g}" if math.isfinite(value) else UNKNOWN


def digits_of(value: float, most: int = 0) -> str:
    """So many significant digits at most, for copies: '0.0006311432'; 0 is all that the number has."""
    return f"{value:.{most}g}" if most and math.isfinite(value) else repr(value).removesuffix(".0")


def share(pct: float | None, *, exact: bool = False) -> str:
    """'97 %', one decimal below ten: '8.6 %'; exact '97.4 %'. What is not 0 or 100 % never reads so."""
    if not _known(pct):
        return UNKNOWN
    if pct < 0:
        return f"{_least(-pct, '>')}-{_bare(max(-pct, 0.1), _share_digits(-pct, exact))} %"
    digits = _share_digits(pct, exact)
    most = 100 - 10**-digits
    if most + 0.5 * 10**-digits <= pct < 100:
        return f"> {most:.{digits}f} %"
    return f"{_least(pct, '<')}{_bare(max(pct, 0.1) if pct else 0, digits)} %"


def _share_digits(pct: float, exact: bool) -> int:
    return 1 if pct < 9.95 or (exact and pct < 999.95) else 0


def _least(pct: float, sign: str) -> str:
    return f"{sign} " if 0 < pct < 0.1 else ""


def points(difference: float | None) -> str:
    """A difference of two shares, or a change in percent, with its sign: '+4.5 %', '-12 %'."""
    text = share(difference)
    return f"+{text}" if _known(difference) and difference > 0 and not text.startswith("<") else text


def duration(seconds: float | None) -> str:
    """Two units at most: 0.7 ms, 41 s, 9 min 11 s, 2 h 05 min, 3 d 4 h."""
    if not _known(seconds):
        return UNKNOWN
    if seconds < 0:
        return "-" + duration(-seconds)
    if seconds > 1e12:
        return f"{seconds:.2e} s"
    if 0 < seconds < 1e-6:
        return "< 0.001 ms"
    if 0 < seconds < 0.9995:
        return f"{number(seconds * 1000)} ms"
    if seconds < 9.95:
        return f"{_bare(seconds, 1)} s"
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
    return f"{high:,} {big} {low:0{width}d} {small}" if low else f"{high:,} {big}"


def shift(seconds: float | None) -> str:
    """A difference of two clocks, to the second and with its sign: '+8 h', '-3 h 30 min', '+5 h 45 s', '0 h'."""
    if not _known(seconds):
        return UNKNOWN
    whole, rest = divmod(round(abs(seconds)), 3600)
    minutes, left = divmod(rest, 60)
    parts = [f"{value} {unit}" for value, unit in ((whole, "h"), (minutes, "min"), (left, "s")) if value]
    return ("+" if seconds > 0 else "-") + " ".join(parts) if parts else "0 h"


def hours(value: float | None, unit: str = "GPU-h", *, exact: bool = False) -> str:
    """'0.13 GPU-h', '47 GPU-h'; below a hundredth of an hour '23 GPU-s'; exact '47.3 GPU-h'."""
    if not _known(value):
        return UNKNOWN
    if 0 < abs(value) < 0.01:
        return f"{_few(value * 3600)} {unit.replace('-h', '-s')}"
    return f"{_few(value, exact=exact)} {unit}"


def alike(unit: str, *values: float | None, exact: bool = False) -> list[str]:
    """Hours that stand side by side, in one unit: '32 GPU-s' beside '79 GPU-s', where one alone were '0.02 GPU-h',
    and '< 0.01 GPU-h' beside '1.3 GPU-h'.
    """
    known = [abs(value) for value in values if _known(value)]
    small = any(0 < value < 0.01 for value in known) and all(value < 1 for value in known)
    per, name = (3600, unit.replace("-h", "-s")) if small else (1, unit)
    return [f"{_few(value * per, exact=exact)} {name}" if _known(value) else UNKNOWN for value in values]


MANY_S = 100
"""Seconds from which on no value of a table has fractions of one."""


def hours_below(unit: str, values: Iterable[float | None]) -> list[str]:
    """Exact hours of one table, in one unit, with as many decimals each: '1.00 GPU-h' above '1.23 GPU-h'."""
    held = list(values)
    texts = alike(unit, *held, exact=True)
    amounts = [_amount(*one) for one in zip(held, texts, strict=True)]
    whole = max(map(abs, amounts), default=0.0) >= MANY_S and any(text.endswith("-s") for text in texts)
    if whole:
        texts = [f"< 1 {text.rpartition(' ')[2]}" if 0 < amount < 0.5 else text
                 for amount, text in zip(amounts, texts, strict=True)]  # fmt: skip
    digits = max((len(text.partition(" ")[0].partition(".")[2]) for text in texts if text[0] not in "<>"), default=0)
    digits = 0 if whole else digits
    return [
        f"{amount:,.{digits}f} {text.partition(' ')[2]}" if amount and text[0] not in "<>" else text
        for amount, text in zip(amounts, texts, strict=True)
    ]


def _amount(hours_held: float | None, text: str) -> float:
    """The number that the text shows, before it was rounded."""
    return hours_held * (3600 if text.endswith("-s") else 1) if _known(hours_held) else 0.0


def energy(kwh: float | None, *, exact: bool = False) -> str:
    """'0.11 Wh', '1.4 kWh'."""
    if not _known(kwh):
        return UNKNOWN
    return f"{_few(kwh * 1000, exact=exact)} Wh" if abs(kwh) < 0.9995 else f"{_few(kwh, exact=exact)} kWh"


def _few(value: float, *, exact: bool = False) -> str:
    """Two decimals below 1, one below 10, none above; exact has one digit more below 1,000."""
    if 0 < abs(value) < 0.01:
        return f"{'< ' if value > 0 else '> -'}0.01"
    more = 1 if exact and abs(value) < 999.95 else 0
    size = abs(value)
    digits = 2 if size < 0.995 else 1 + more if size < 9.95 else more
    return _bare(value, digits)


def memory(mib: float | None) -> str:
    """'640 MiB', from one GiB on '23.1 GiB'."""
    if not _known(mib):
        return UNKNOWN
    if 0 < abs(mib) < 0.05:
        return f"{'< ' if mib > 0 else '> -'}0.1 MiB"
    if abs(mib) < 1023.5:
        return f"{_bare(mib, 1 if abs(mib) < 9.95 else 0)} MiB"
    return f"{gib(mib)} GiB"


def gib(mib: float | None) -> str:
    """'23.1', for columns whose heading names the unit."""
    if not _known(mib):
        return UNKNOWN
    size = mib / MIB_PER_GIB + 0.0
    return f"{size:,.{1 if abs(size) < 999.95 else 0}f}"


def times(factor: float | None, *, exact: bool = False) -> str:
    """A ratio: '1.3×', near or below 1 with two decimals, '0.87×'; exact always with two, '1.27×'."""
    if not _known(factor):
        return UNKNOWN
    if 0 < factor < 0.01:
        return "< 0.01×"
    digits = 2 if exact or factor < 1.095 else 1 if factor < 9.95 else 0
    return f"{factor:,.{digits}f}×" if exact else f"{_bare(factor, digits)}×"


def at_most(factor: float | None) -> str:
    """An upper bound of a ratio, rounded up: 1.2547 is '1.26×'."""
    return factors(factor, factor)[1]


def factors(low: float | None, high: float | None) -> tuple[str, str]:
    """Bounds of a ratio, in two decimals below 10 and none from there on, and no narrower than they are."""
    if not (_known(low) and _known(high)):
        return UNKNOWN, UNKNOWN
    first, last = (outward(low, high, 2 if end < 10 else 0)[at] for at, end in enumerate((low, high)))
    return f"{_bare(first, 2)}×", f"{_bare(last, 2)}×"


def outward(low: float, high: float, decimals: int) -> tuple[float, float]:
    """Bounds of that many decimals at most that hold what these hold: one that is rounded inward is false."""
    size = 10.0**decimals
    return math.floor(round(low * size, 6)) / size, math.ceil(round(high * size, 6)) / size


def precise(value: float | None, unit: str = "1") -> str:
    """At least three significant digits: for two values that stand beside their ratio."""
    if not _known(value) or value <= 0:
        return quantity(value, unit)
    if unit in ("GPU-h", "GPU-s"):
        seconds = value * (3600 if unit == "GPU-h" else 1)
        return f"{number(seconds)} GPU-s" if seconds < 36 else f"{number(seconds / 3600)} GPU-h"
    if unit == "MiB":
        return f"{number(value)} MiB" if value < 1023.5 else f"{number(value / MIB_PER_GIB)} GiB"
    if unit in _KWH:
        kwh = value * _KWH[unit]
        return f"{number(kwh)} kWh" if kwh >= 0.9995 else f"{number(kwh * 1000)} Wh"
    if unit in _SECONDS and 1 <= value * _SECONDS[unit] < 60:
        return f"{number(value * _SECONDS[unit])} s"
    return f"{number(value)} %" if unit == "%" and 0.1 <= value < 99.95 else quantity(value, unit, exact=True)


def ratio(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """A ratio, index or correlation as a bare number, two decimals always: '0.87', '1.27 (1.19–1.35)'."""
    text = UNKNOWN if not _known(value) else f"{round(value, 2) + 0.0:,.2f}"
    return f"{text} ({ratio(low)}–{ratio(high)})" if _known(low) and _known(high) else text


def gain(factor: float | None, low: float | None, high: float | None) -> str:
    """'1.31× faster (1.2–1.5×)'; alone '1.3× faster'."""
    if not _known(factor):
        return UNKNOWN
    bounds = f" ({interval(low, high, '×')})" if _known(low) and _known(high) else ""
    return f"{estimated(factor, low, high, '×')} {'faster' if factor >= 1 else 'as fast'}{bounds}"


def p_value(p: float | None) -> str:
    """A probability under chance: '0.03', '0.004', '< 0.001'."""
    if not _known(p):
        return UNKNOWN
    if p < 1e-3:
        return "< 0.001"
    return f"{p:.2f}" if p >= 0.01 else f"{p:.1g}"


def significance(p: float | None) -> str:
    """The same with its letter: 'p = 0.03', 'p < 0.001'."""
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def money(value: float | None, currency: str) -> str:
    """'1,204.50 USD'."""
    return UNKNOWN if not _known(value) else f"{value:,.2f} {safe(currency)}"


def interval(low: float | None, high: float | None, unit: str = "1") -> str:
    """'92–98 %', '1.21–1.5×', '40 s – 1 min 10 s'; a dash where a bound is unknown. Ratios are rounded outward."""
    if not (_known(low) and _known(high)):
        return UNKNOWN
    if unit == "%":
        if share(low) == share(high):
            return share(high)
        first, last = (_bound(pct, fine=high - low < 2) for pct in (low, high))
        if first == last or 0 < low < 0.1:
            return f"{share(low)} – {share(high)}"
        return f"{first} to {last} %" if low < 0 else f"{first}–{last} %"
    first, last = factors(low, high) if unit in ("x", "×") else (quantity(low, unit), quantity(high, unit))
    if first == last:
        return first
    number_a, _, unit_a = first.partition(" ")
    number_b, _, unit_b = last.partition(" ")
    if unit_a.endswith("-s") and unit_b == unit_a.replace("-s", "-h"):
        size_s = high * (1 if unit.endswith("-s") else 3600)
        number_a, number_b = ("0", number_b) if size_s >= 3600 else (number_a, _few(size_s))
        return f"{number_a}–{number_b} {unit_b if size_s >= 3600 else unit_a}"
    if first.endswith("×"):
        return f"{first.removesuffix('×')}–{last}"
    if unit_a == unit_b and low >= 0 and "<" not in number_a:
        return f"{number_a}–{number_b} {unit_b}".rstrip()
    return f"{first} – {last}"


def _bound(pct: float, fine: bool) -> str:
    return _bare(pct, 1 if fine or abs(pct) < 9.95 or 99 < pct < 100 else 0)


def estimate(value: float | None, low: float | None, high: float | None, unit: str = "1") -> str:
    """A value with its 95 % interval: '95.6 % (92–98 %)'; the interval alone where only it is known."""
    bounds = interval(low, high, unit)
    if not _known(value):
        return bounds
    text = estimated(value, low, high, unit)
    return text if bounds == UNKNOWN else f"{text} ({bounds})"


def estimated(value: float | None, low: float | None, high: float | None, unit: str = "1") -> str:
    """A value that stands beside its interval: rounded as the interval is where it would read outside of it, so that
    10.4 in 8.1 to 10.45 is '10 %' beside '8.1–10 %'.
    """
    if unit in ("x", "×") and _known(value):
        return f"{_bare(value, 2 if value < 10 else 0)}×" if _known(low) and _known(high) else times(value)
    if not (_known(value) and _known(low) and _known(high)):
        return quantity(value, unit, exact=True)
    if unit != "%":
        return quantity(value, unit)
    least, most = (float(_bound(pct, fine=high - low < 2).replace(",", "")) for pct in (low, high))
    return share(value, exact=least <= round(value, 1) <= most)


def count(n: float | None) -> str:
    """'4,758'."""
    return UNKNOWN if not _known(n) else f"{round(n):,}"


def plural(n: float | None, noun: str, nouns: str = "") -> str:
    """'1 finding', '3 findings'."""
    return f"{count(n)} {noun if _known(n) and round(n) == 1 else nouns or noun + 's'}"


def listed(items: Iterable[object], last: str = "and") -> str:
    """'a', 'a and b', 'a, b and c'."""
    *head, tail = [safe(item) for item in items] or [UNKNOWN]
    return f"{', '.join(head)} {last} {tail}" if head else tail


def gpus(names: Iterable[object]) -> str:
    """'GPU 0', 'GPUs 0 and 2'."""
    several = list(names)
    return f"GPU{'s' if len(several) > 1 else ''} {listed(several)}"


def zone(name: str) -> tzinfo:
    """The zone for showing times: the run's, or UTC where its name is not an IANA name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")


def timestamp(iso: str | None, show_in: tzinfo) -> str:
    """'2025-10-24 19:40:07' in that zone; the zone itself is said once per report."""
    return clock_time(datetime.fromisoformat(iso), show_in) if iso else UNKNOWN


def clock_time(moment: datetime, show_in: tzinfo) -> str:
    """The same of a moment. One without a date is held as of 1970, and is '10:02:00 (no date)' in every zone, or
    'day 2, 10:02:00 (no date)'.
    """
    if not is_dated(moment):
        utc = moment.astimezone(UTC)
        day = f"day {utc.timetuple().tm_yday}, " if utc.timetuple().tm_yday > 1 else ""
        return f"{day}{utc:%H:%M:%S} (no date)"
    return f"{moment.astimezone(show_in):%Y-%m-%d %H:%M:%S}"


def is_dated(moment: datetime) -> bool:
    """False for a moment that counts from midnight or from the beginning of a log; NaT is none of these."""
    return not moment.year < FIRST_YEAR


_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)")


def is_instant(value: object) -> TypeGuard[str]:
    """True for a time as documents hold it: ISO 8601 with its offset."""
    return isinstance(value, str) and _ISO.fullmatch(value) is not None


def span(start: str | None, end: str | None, show_in: tzinfo) -> str:
    """'2025-10-24 19:40:07 to 22:13:51', the date once where it is the same; of a log that counts from its own
    beginning, that it has no date.
    """
    if not start or not end:
        return UNKNOWN
    if not is_dated(datetime.fromisoformat(start)):
        return NO_DATE
    first, last = timestamp(start, show_in), timestamp(end, show_in)
    return f"{first} to {last[11:] if first[:10] == last[:10] else last}"


def length(start: str | None, end: str | None) -> str:
    """How long from start to end."""
    if not start or not end:
        return UNKNOWN
    lasted: timedelta = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    return duration(lasted.total_seconds())


def _known(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _bare(value: float, digits: int) -> str:
    """That many decimals at most, none of them a trailing zero; thousands set apart."""
    text = f"{value:,.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
