"""One line of JSON Lines as a row of metrics, with what objects within it hold, and counts with their totals, apart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpudiag.patterns import late
from gpudiag.readers._io.json_values import json_object
from gpudiag.readers._steps.step_object import is_known, is_of_training
from gpudiag.readers._steps.time_names import time_name

_OF_ALL = re.compile(r"(\d{1,12})/(\d{1,12})")
_METRICS = late(r"(?:(?:train(?:ing|er)?|metrics?|scalars?|stats|logs?|progress|perf(?:ormance)?)[-_ /.]?)+")
_MESSAGE = late("data|extra|fields|payload|attributes|values|event|message")
"""What structured logging keeps the parts of a message in; it holds metrics where one is a loss or a learning rate."""


def row_of(line: str) -> dict[str, Any] | None:
    """The object of a line, where ``{"metrics": {"loss": 1}}`` is ``metrics/loss``, and ``{"global_step/max_steps":
    "5/100"}``, as ms-swift writes it, is two counts; None without one.
    """
    found = json_object(line)
    if found is None:
        return None
    out = _spread(found)
    for name, value in found.items():
        if isinstance(value, str) and name.count("/") == 1 and (counts := _OF_ALL.fullmatch(value)):
            out |= dict(zip(name.split("/"), map(int, counts.groups()), strict=True))
    return {**out, **found}


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
