"""Which trials broke a constraint of their study: such a trial is never the best, whatever its value.

Optuna stores the values of constraints as system attributes of a trial, and a trial is feasible if none is above 0:
``constraints``, a list (``constraints_func`` of a sampler; up to Optuna 2 with the sampler's name before it), and
``constraints:<name>``, a number (``trial.set_constraint``, Optuna 5). A trial without any is feasible, as in Optuna.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

LISTS = tuple(f"system_attrs.{sampler}constraints" for sampler in ("", "nsga2:", "botorch:"))
NAMED = "system_attrs.constraints:"


def infeasible(trials: pd.DataFrame) -> np.ndarray:
    """True for each trial with a constraint above 0, in the order given."""
    out = np.zeros(len(trials), dtype=bool)
    for name in trials.columns:
        if name in LISTS:
            out |= [_broken(cell) for cell in trials[name]]
        elif str(name).startswith(NAMED):
            out |= (pd.to_numeric(trials[name], errors="coerce") > 0).to_numpy(bool, na_value=False)
    return out


def _broken(cell: object) -> bool:
    """True for a list as JSON or Python writes it, or a bare number, with an entry above 0."""
    return any(_number(entry) > 0 for entry in str(cell).strip("[]() ").split(","))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
