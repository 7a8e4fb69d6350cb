"""One line of JSON Lines as a row of metrics, with what objects within it hold, and counts with their totals, apart."""

from __future__ import annotations

import re
from typing import Any

from gpudiag.readers._io.json_values import json_object
from gpudiag.readers._steps.step_object import is_known, is_of_evaluation
from gpudiag.readers._steps.time_names import time_name

_OF_ALL = re.compile(r"(\d{1,12})/(\d{1,12})")


def row_of(line: str) -> dict[str, Any] | None:
    """The object of a line, where ``{"metrics": {"loss": 1}}`` is ``metrics/loss``, and ``{"global_step/max_steps":
    "5/100"}``, as ms-swift writes it, is two counts; None without one.
    """
    found = json_object(line)
    if found is None:
        return None
    out: dict[str, Any] = {}
    for name, value in found.items():
        if isinstance(value, dict):
            out |= {_name(name, inner): held for inner, held in value.items()}
        elif isinstance(value, str) and name.count("/") == 1 and (counts := _OF_ALL.fullmatch(value)):
            out |= dict(zip(name.split("/"), map(int, counts.groups()), strict=True))
    return {**out, **found}


def _name(of: str, inner: str) -> str:
    """``inner`` for a step or a time of the training, else what tells of what it is."""
    plain = not is_of_evaluation(of) and (is_known(inner) or time_name(inner) is not None)
    return inner if plain else f"{of}/{inner}"
