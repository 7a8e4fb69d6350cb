"""Evidence of a finding as names and values that a reader can take in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import cast

from gpudiag.facts import LABELS
from gpudiag.plain_data import clean
from gpudiag.report.format import alike, estimated, interval, is_dated, is_instant, label, named, split_unit, timestamp
from gpudiag.units import unit_of
from gpudiag.values import Value, Values

MAX_ITEMS = 8
"""Items of a list that are shown; the document holds all of them."""


def pairs(values: Values, show_in: tzinfo | None = None) -> list[tuple[str, str]]:
    """(name, value) in words, of what is known. ``x_low_pct`` and ``x_high_pct`` are shown as the interval of
    ``x_pct``; times in the zone, which a page says once, or in UTC, which is said with each.
    """
    bounds = {name: _bounds(name) for name in values if set(_bounds(name)) <= set(values)}
    together = _hours(values, bounds)
    hidden = {bound for both in bounds.values() for bound in both}
    return [
        (
            LABELS.get(name) or label(name),
            together.get(name) or _one(values, name, bounds.get(name), show_in),
        )
        for name, value in values.items()
        if name not in hidden and clean(value) is not None
    ]


def _bounds(name: str) -> tuple[str, str]:
    """The names that the bounds of a number would have."""
    stem, unit = split_unit(name)
    return f"{stem}_low{unit}", f"{stem}_high{unit}"


def _hours(values: Values, bounds: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """GPU time and worker time, each in one unit on a card."""
    texts: dict[str, str] = {}
    for unit in ("GPU-h", "worker-h"):
        names = [name for name, value in values.items()
                 if unit_of(name) == unit and isinstance(value, int | float) and name not in bounds]  # fmt: skip
        texts |= zip(names, alike(unit, *(cast(float, values[name]) for name in names), exact=True), strict=True)
    return texts


def _one(values: Values, name: str, bounds: tuple[str, str] | None, show_in: tzinfo | None) -> str:
    """A value, with the interval that it has."""
    if bounds is None:
        return _value(name, values[name], show_in)
    value, low, high = (cast("float | None", clean(values[one])) for one in (name, *bounds))
    unit = unit_of(bounds[0])
    text = named(name, value) if unit == "1" else estimated(value, low, high, unit)
    return f"{text} ({interval(low, high, unit)})"


def _value(name: str, value: Value, show_in: tzinfo | None = None) -> str:
    """A list up to MAX_ITEMS items, a mapping as 'key: value', anything else with its unit."""
    if is_instant(value):
        in_utc = show_in is None and is_dated(datetime.fromisoformat(value))
        return timestamp(value, show_in or UTC) + " UTC" * in_utc
    if isinstance(value, Mapping):
        return _value(name, [f"{key}: {_value(name, item)}" for key, item in value.items()])
    if isinstance(value, list):
        shown = ", ".join(_value(name, item) for item in value[:MAX_ITEMS])
        return f"{shown} and {len(value) - MAX_ITEMS} more" if len(value) > MAX_ITEMS else shown or "none"
    if isinstance(value, str) and value.count(", ") > 2 * MAX_ITEMS:  # places, such as trials
        return _value(name, value.split(", "))
    return named(name, value, exact=True)
