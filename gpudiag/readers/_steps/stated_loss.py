"""Whether the loss that a line states is a finite number: 1 for NaN and infinite, 0 for finite, None for no loss."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from gpudiag.patterns import late
from gpudiag.values import is_number

_STATED = late(
    r"(?i)(?<![a-z_])(?P<name>(?:[a-z]{1,20}[ _./-]){0,3}loss(?:[_./-][a-z_\d]{1,20})?)['\"]?\s{0,3}"
    r"[:=|]?\s{0,6}(?:tensor\()?(?P<value>[-+]?(?:nan|inf(?:inity)?|\d[\d.]{0,20}(?:e[-+]?\d{1,3})?))(?![a-z\d])"
)
_OF_OTHERS = late(
    r"(?i)eval|val(?:id)?(?![a-z])|valid|test|dev(?![a-z])|hold|infer|predict|scale|"
    r"best|min(?:imum)?(?![a-z])|max(?:imum)?(?![a-z])|lowest|prev|last|old|target|threshold|patience"
)
"""Losses of other data than is trained on, and records of them, which begin as infinite."""
_ON_OTHERS = late(r"(?i)(?<![a-z_\d])(?:eval|valid|val|test|dev|infer|predict)[a-z]*(?![a-z_\d])")
"""A line that names other data ahead of its loss is of these."""
_OF_ALL = late(r"(?i)(?:^|[ _./-])(?:train(?:ing)?[ _./-]|total[ _./-]|lm[ _./-])?loss(?:[_./-]train(?:ing)?)?$")
"""Beside others it is the sum that is trained on: a part of it may be NaN by itself, such as the mean over nothing."""
_WORDS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}


def not_finite(line: str) -> int | None:
    """Of a line of text."""
    lower = line.lower()
    if "loss" not in lower:
        return None
    if "nan" not in lower and "inf" not in lower:
        return 0
    others = _ON_OTHERS.search(line)
    begin = others.start() if others else len(line)
    return _of_losses(
        (one["name"], one["value"])
        for one in _STATED.finditer(line)
        if one.start() < begin or "train" in one["name"].lower()
    )


def not_finite_of(said: Mapping[str, Any]) -> int | None:
    """Of numbers by name."""
    return _of_losses((name, value) for name, value in said.items() if "loss" in name.lower())


def not_finite_of_trainer(said: Mapping[str, float]) -> int | None:
    """Of a line of Hugging Face's Trainer, which by default leaves steps with a loss of NaN out of the mean that it
    prints: without any other it is 0, and only the norm of the gradients tells.
    """
    loss, norm = said.get("loss"), said.get("grad_norm", 0.0)
    if loss is None:
        return None
    return int(not math.isfinite(loss) or (loss == 0 and not math.isfinite(norm)))


def _of_losses(stated: Iterable[tuple[str, Any]]) -> int | None:
    """By that of all, else by several together: one by itself may be a part of it."""
    known, of_all = list[float](), list[float]()
    for name, value in stated:
        number = None if _is_of_others(name) else _number(value)
        if number is not None:
            known.append(number)
            if _is_of_all(name):
                of_all.append(number)
    told = of_all or (known if len(known) > 1 else [])
    return int(not any(map(math.isfinite, told))) if told else None


@lru_cache(4096)  # the names of a log are few
def _is_of_others(name: str) -> bool:
    return _OF_OTHERS.search(name) is not None


@lru_cache(4096)
def _is_of_all(name: str) -> bool:
    return _OF_ALL.search(name) is not None


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        text = value.lower().lstrip("+-")
        return _WORDS.get(text, 0.0 if text[:1].isdigit() else None)
    return float(value) if is_number(value) else None
