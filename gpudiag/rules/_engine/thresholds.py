"""The thresholds in force for a run: a rule's own, changed by a preset, by run.toml, and by whoever asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from gpudiag.errors import ConfigError, expected
from gpudiag.rules import RULES
from gpudiag.rules._engine.presets import preset as preset_thresholds
from gpudiag.rules._engine.rule import Rule, check_thresholds
from gpudiag.run import Run

Thresholds: TypeAlias = Mapping[str, Mapping[str, float]]
"""By rule id and name."""
GivenThresholds: TypeAlias = Thresholds | str | Iterable[str]
"""Thresholds, or one or several texts that :func:`parse_thresholds` reads."""


def effective_thresholds(
    run: Run, rules: Iterable[Rule], given: GivenThresholds = "", preset: str = ""
) -> dict[str, dict[str, float]]:
    """The rules' own defaults, changed by preset, run.toml and ``given``, in this order; each is checked once.

    Raises ConfigError for what no rule has (run.toml may name rules that this call leaves out) or is out of range.
    """
    rules = tuple(rules)
    known = tuple({rule.id: rule for rule in (*RULES, *rules)}.values())
    base = check_thresholds(known, preset_thresholds(preset))
    try:
        stated = check_thresholds(known, run.info.thresholds, base)
    except ConfigError as error:
        raise ConfigError(f"run.toml: {error}") from error
    return check_thresholds(rules, _by_rule(given), stated)


def _by_rule(given: GivenThresholds) -> Thresholds:
    if isinstance(given, Mapping):
        if all(isinstance(each, Mapping) for each in given.values()):
            return given
    elif isinstance(given, str):
        return parse_thresholds([given])
    elif isinstance(given, Iterable):
        items = list(given)
        if all(isinstance(item, str) for item in items):
            return parse_thresholds(items)
    raise expected("thresholds as text, or by rule id and name", given)


def parse_thresholds(items: Iterable[str]) -> dict[str, dict[str, float]]:
    """Thresholds from items ``"rule.threshold=value"``, of which one text may hold several with commas between them;
    a colon may stand for the equals sign.

    Raises ConfigError that quotes the part that is wrong.
    """
    out: dict[str, dict[str, float]] = {}
    for part in filter(None, (piece.strip() for item in items for piece in item.split(","))):
        key, equals, value = part.replace(":", "=", 1).partition("=")
        rule, dot, name = key.strip().partition(".")
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not (equals and dot and rule and name) or number != number:
            raise ConfigError(f"threshold '{part}' is not understood; expected rule.threshold=number.")
        out.setdefault(rule, {})[name] = number
    return out
