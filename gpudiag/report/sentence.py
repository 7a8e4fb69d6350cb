"""Sentences from templates and values: ``render("It ran for {observed_s}.", {"observed_s": 551})``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from string import Formatter
from typing import cast

from gpudiag.report.format import (
    abbreviated,
    alike,
    clock_time,
    count,
    estimate,
    gain,
    gpus,
    is_dated,
    listed,
    named,
    plural,
    points,
    precise,
    quantity,
    ratio,
    shift,
    significance,
    split_unit,
    zone,
)
from gpudiag.units import unit_of
from gpudiag.values import Value, Values

EXACT = "exact"
ESTIMATE = "estimate"
AS = "as "
UTC_TOLD = " UTC"
FORMS: dict[str, Callable[[str, Value], str]] = {
    "abbreviated": lambda name, value: abbreviated(_number(value)),
    "count": lambda name, value: count(_number(value)),
    "gain": lambda name, value: gain(_number(value), None, None),
    "minute": lambda name, value: f"{cast(datetime, value):%Y-%m-%d %H:%M}",
    "points": lambda name, value: points(_number(value)),
    "precise": lambda name, value: precise(_number(value), unit_of(name)),
    "ratio": lambda name, value: ratio(_number(value)),
    "shift": lambda name, value: shift(_number(value)),
    "significance": lambda name, value: significance(_number(value)),
}
"""Forms that a template asks for by name."""


def render(template: str, values: Values, show_in: str = "UTC") -> str:
    """The template with each ``{name}`` in words. A name without a value raises KeyError.

    - ``{mean_pct}``: the unit is in the name, as everywhere: '97 %'; ``{mean_pct:exact}`` is '97.4 %'. Several GPU
      times, ``{used_gpu_h} of {all_gpu_h}``, are in one unit.
    - ``{fail_pct:estimate}``: with the 95 % interval from ``fail_low_pct`` to ``fail_high_pct``, '7.7 % (4.7–12 %)'.
    - ``{n_failed:trial}``: a count with its noun, '3 trials'; ``{n:study|studies}`` for other plurals.
    - ``{rate:=trials/h}``: a unit that the name does not carry.
    - ``{offset_s:as shift}``: one of FORMS by name, '+8 h'; ``{fit:as ratio}`` is '0.87'.
    - ``{first}``, a time, to the second and in UTC, which the template says: ``{first} UTC``; in another zone
      (``show_in``) its name takes that place. One without a date is '10:02:00 (no date)', and no zone is said.
    - ``{gpu}``, ``{gpus}``: one or several GPUs, 'GPU 0', 'GPUs 0 and 2'. Other lists are 'a, b and c'.

    Text loses its control characters; what is unknown (None, NaN) is a dash.
    """
    return "".join(_parts(template, values, show_in))


def _parts(template: str, values: Values, show_in: str) -> Iterable[str]:
    together, of_zone = _gpu_times(template, values), UTC_TOLD
    for text, name, form, conversion in Formatter().parse(template):
        yield of_zone + text.removeprefix(UTC_TOLD) if text.startswith(UTC_TOLD) else text
        of_zone = UTC_TOLD
        if name is None:
            continue
        if conversion or not name.isidentifier():
            raise ValueError(f"a template names a value, as in {{mean_pct}}; got {{{name}}} in {template!r}")
        if name in together and not form:
            yield together[name]
            continue
        value = values[name]
        if isinstance(value, datetime):
            value, of_zone = _in_zone(value, show_in)
        yield _estimated(name, values) if form == ESTIMATE else _said(name, form or "", value)


def _in_zone(moment: datetime, show_in: str) -> tuple[datetime, str]:
    """The moment on the clocks of that zone, and what says so behind it: nothing of one without a date."""
    if not is_dated(moment):
        return moment.astimezone(UTC), ""
    return moment.astimezone(zone(show_in)), UTC_TOLD if show_in in ("", "UTC") else f" ({show_in})"


def _gpu_times(template: str, values: Values) -> dict[str, str]:
    """The GPU times that a template names, in one unit: beside '0.11 GPU-h' none is '5.1 GPU-s'."""
    named_here = {name for _, name, form, _ in Formatter().parse(template) if name and not form}
    hours = {name: _number(values[name]) for name in sorted(named_here) if unit_of(name) == "GPU-h"}
    return dict(zip(hours, alike("GPU-h", *hours.values()), strict=True))


def _estimated(name: str, values: Values) -> str:
    stem, unit = split_unit(name)
    value, low, high = (_number(values[key]) for key in (name, f"{stem}_low{unit}", f"{stem}_high{unit}"))
    return estimate(value, low, high, unit_of(name)) if unit else ratio(value, low, high)


def _said(name: str, form: str, value: Value) -> str:
    if form in ("", EXACT):
        if name in ("gpu", "gpus"):
            return gpus([value] if isinstance(value, str) or not isinstance(value, Iterable) else value)
        if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
            return listed(named(name, item, exact=form == EXACT) for item in value)
        if isinstance(value, datetime):
            return clock_time(value, value.tzinfo or UTC)
        return named(name, value, exact=form == EXACT)
    if form.startswith(AS):
        return FORMS[form.removeprefix(AS)](name, value)
    if form.startswith("="):
        return quantity(value, form[1:])
    noun, _, nouns = form.partition("|")
    return plural(_number(value), noun, nouns)


def _number(value: Value) -> float | None:
    """The same: a template asks for a form of numbers where there is one, also of numpy."""
    return cast("float | None", value)
