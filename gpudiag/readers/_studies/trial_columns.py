"""What the columns of a table of trials are called: by Optuna, and in tables that people write themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from gpudiag.patterns import late
from gpudiag.readers._batches.task_words import DURATION_S, END, MOMENT, NOT_TASKS, OF_GPUS, START, STATUS
from gpudiag.readers._io.json_values import json_object
from gpudiag.readers._shape.exported import exported_table
from gpudiag.readers._studies.trial_rows import STUDY

NUMBER = ("trial_number", "trial", "trial_id")
VALUE = ("value", "objective", "objective_value")
_STATE = ("state", "status")
_OPTUNA = ("datetime_start", "datetime_complete", "duration")
_OURS = {"number": NUMBER, "value": VALUE, "state": _STATE, "datetime_start": START, "datetime_complete": END}
_METRIC = late(
    r"(?:(?:best|final|min|max|val|valid|validation|eval|test|dev)_)*"
    r"(?:loss|acc|accuracy|score|auc|f1|rmse|mae|mse|perplexity|reward)"
)
"""What the value of a trial may be called, where it is the only such column and stands beside times and no states.
Tables of measurements have no times, and those of tasks have states.
"""
_OF_OPTUNA = late(
    r"(?i)^(?:(?:number|state|duration|datetime[_ ](?:start|complete))$"
    r"|(?:params|user[_ ]attrs|system[_ ]attrs|values?|intermediate[_ ]values)(?:[_ ]|$))"
)
"""What Optuna calls a column or begins its name with, as others may write it: ``Params_lr``, ``Datetime Start``."""
_ROW_A_STEP = re.compile(r"(?:.*[/_])?(?:epoch|step|iter|iteration|num_updates|current_steps)")
"""Columns of which a trial has many rows."""
_NUMBERED = "a column trial with a whole number of its own for each row"
NEEDED = f"a table of trials needs {_NUMBERED}, and a column value with numbers"
LOOKED_AT = 100

Columns = Mapping[str, Sequence[object]]


def is_trials_header(names: Sequence[str]) -> bool:
    """True for the column names of ``study.trials_dataframe()``, also in title case, with any further columns."""
    known = {_as_optuna_has(name) for name in names}
    valued = "value" in known or "values" in known or any(name.startswith(("value_", "values_")) for name in known)
    dated = "datetime_start" in known or any(name.startswith("params_") for name in known)
    return "number" in known and valued and (dated or "state" in known)


def flattened(record: Mapping[str, Any]) -> dict[str, Any]:
    """``{"params": {"x": 1}, "values": [1, 2]}`` as ``params_x``, ``values_0`` and ``values_1``."""
    out: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict) and key in ("params", "user_attrs", "system_attrs", "values", "intermediate_values"):
            out |= {f"{key}_{name}": inner for name, inner in value.items()}
        elif isinstance(value, list) and key == "values":
            out |= {f"values_{index}": inner for index, inner in enumerate(value)}
        else:
            out[str(key)] = value
    return out


def is_trial(record: Mapping[str, Any]) -> bool:
    """Whether an object has the keys of a trial, flattened or not."""
    return is_trials_header([*record, *flattened(record)])


def are_lines_of_trials(lines: Sequence[str]) -> bool:
    """Whether JSON Lines begin with an object that has the keys of a trial."""
    first = json_object(lines[0]) if lines else None
    return first is not None and is_trial(first)


def numbers_trials(names: Sequence[str]) -> bool:
    """Whether a column numbers trials by its name; where anything may have numbers, one of values is beside it."""
    known = {plain_name(name) for name in names}
    return bool(known & set(NUMBER)) or ("number" in known and bool(known & set(VALUE)))


def is_own_header(names: Sequence[str]) -> bool:
    """True for column names of a table of trials that somebody wrote: a number of the trial and its value, and nothing
    that makes it a table of tasks, of steps or of samples.
    """
    known = {plain_name(name) for name in names}
    if "number" in names or not known & set(NUMBER) or not _value_in(known) or exported_table(names):
        return False
    of_tasks = known & set(STATUS) and (known & {*START, *END, *DURATION_S}).difference(_OPTUNA)
    of_samples = known & set(MOMENT) and any(OF_GPUS.search(name) for name in known)
    of_steps = known & set(NOT_TASKS) or any(map(_ROW_A_STEP.fullmatch, known))
    return not (of_tasks or of_samples or of_steps)


def is_own_table(rows: Sequence[Mapping[str, object]]) -> bool:
    """Whether rows with such names are trials: each has a whole number that no other of its study has, and values are
    numbers.
    """
    if not rows or not is_own_header(list(rows[0])):
        return False
    place = {ours: name for name, ours in optuna_names(list(rows[0])).items()}
    keys = [(*(row.get(name) for name in STUDY), str(row.get(place["number"]))) for row in rows[:LOOKED_AT]]
    values = [row.get(place[_valued(place)]) for row in rows[:LOOKED_AT]]
    whole = all(re.fullmatch(r"\d{1,18}(?:\.0)?", str(key[-1])) for key in keys)
    return whole and len({*map(str, keys)}) == len(keys) and all(v in (None, "") or _is_number(v) for v in values)


def optuna_names(names: Sequence[str]) -> dict[str, str]:
    """Names of such a table whose meaning is certain, each with Optuna's for it."""
    plain = {plain_name(name): name for name in reversed(names)}
    found = {ours: next((plain[word] for word in words if word in plain), "") for ours, words in _OURS.items()}
    if not found["value"] and (metric := _value_in(plain.keys())):
        found[f"value_{metric}"] = plain[metric]
    return {name: ours for ours, name in found.items() if name}


def _value_in(known: Set[str]) -> str:
    """The plain name of the column of values; empty without one."""
    metrics = [name for name in known if _METRIC.fullmatch(name)]
    timed = not known.isdisjoint((*START, *END, *DURATION_S)) and known.isdisjoint(STATUS)
    return next((name for name in VALUE if name in known), metrics[0] if timed and len(metrics) == 1 else "")


def _valued(names: Iterable[str]) -> str:
    """The one of Optuna's names that is of a value."""
    return next(name for name in names if name.startswith("value"))


def own_columns(columns: Columns) -> Columns:
    """The columns of such a table, or of Optuna's in title case, by Optuna's names; any others as they are."""
    names = list(columns)
    own = is_own_header(names)
    ours = optuna_names(names) if own else {name: _as_optuna_has(name) for name in names}
    ours = {name: optunas for name, optunas in ours.items() if own or optunas not in columns}
    return {ours.get(name, name): cells for name, cells in columns.items()}


def _as_optuna_has(name: str) -> str:
    """``params_LR`` of ``Params_LR``, and any other name as it is."""
    return _OF_OPTUNA.sub(lambda found: found[0].lower().replace(" ", "_"), name)


def plain_name(name: str) -> str:
    """``duration_s`` of ``Duration (s)``."""
    return re.sub(r"[\s()\[\]-]+", "_", name.lower()).strip("_")


def _is_number(cell: object) -> bool:
    try:
        float(str(cell))
    except ValueError:
        return False
    return not isinstance(cell, bool)
