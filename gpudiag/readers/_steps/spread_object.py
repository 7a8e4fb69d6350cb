"""One line of JSON Lines as a row of metrics, with what objects within it hold, and counts with their totals, apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpudiag.patterns import late
from gpudiag.readers._io.json_values import json_object
from gpudiag.readers._steps.step_object import STEPS, TOTALS, is_known, is_of_training
from gpudiag.readers._steps.time_names import time_name

_OF_ALL = late(r"(\d{1,12})/(\d{1,12})")
_METRICS = late(r"(?:(?:train(?:ing|er)?|metrics?|scalars?|stats|logs?|progress|perf(?:ormance)?)[-_ /.]?)+")
_MESSAGE = late("data|extra|fields|payload|attributes|values|event|message")
"""What structured logging keeps the parts of a message in; it holds metrics where one is a loss or a learning rate."""


def row_of(line: str) -> dict[str, Any] | None:
    """The object of a line, where ``{"metrics": {"loss": 1}}`` is ``metrics/loss``, and ``{"global_step/max_steps":
    "5/100"}``, as ms-swift writes it, is two counts, and ``{"train/step": "5/100"}`` is one; None without an object.
    """
    found = json_object(line)
    if found is None:
        return None
    row = {**_spread(found), **found}
    for name, value in tuple(row.items()):
        if isinstance(value, str) and (counts := _OF_ALL.fullmatch(value)):
            row |= zip(_counted(name), map(int, counts.groups()), strict=False)
    return row


def _counted(name: str) -> list[str]:
    """What the numbers of "5/100" are by its name: a count of steps, and their total only where the name has it too."""
    step, _, total = name.partition("/")
    return [step, total] if step in STEPS and total in TOTALS else [name] if name in STEPS else []


def _spread(found: Mapping[str, Any]) -> dict[str, Any]:
    """What objects within it hold: a step or a time of the training by its own name, unless two hold it, and all else
    behind the name of its object.
    """
    out: dict[str, Any] = {}
    twice = set()
    for of, held in found.items():
        if not isinstance(held, dict):
            continue
        lifts = _METRICS.fullmatch(of.lower()) or (_MESSAGE.fullmatch(of.lower()) and any(map(is_of_training, held)))
        for inner, value in held.items():
            name = inner if lifts and (is_known(inner) or time_name(inner) is not None) else f"{of}/{inner}"
            twice |= {name} & out.keys()
            out[name] = value
    return {name: value for name, value in out.items() if name not in twice}
